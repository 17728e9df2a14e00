// Command invalid-controlplane-cr writes the admission corpus of ControlPlane.
package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

//go:generate go run .

const (
	kind     = admission.ControlPlane
	keystone = "spec.services.keystone"
	admin    = "spec.korc.adminCredential"
	entries  = "spec.namespaceAssignments"

	nameRule   = "metadata.name must be at most 63 bytes; it is part of the names of the ControlPlane's children"
	modeRule   = "services.keystone.external is required in mode External and not allowed in mode Managed"
	uniqueRule = "namespaceAssignments must not name the same namespace on the same cluster twice"

	url = `^https?://[^\s]+$`
)

type values = admission.Values

// external makes the Keystone one that somebody else runs.
var external = admission.Set(keystone, values{"mode": "External", "external": values{"authURL": "https://keystone.example.com/v3"}})

func main() {
	admission.Generate(kind,
		admission.ObjectName(nameRule),
		shape(),
		keystoneService(),
		reached(),
		secretStore(),
		adminCredential(),
		consent(),
		assignments(),
	)
}

// shape is the object as a whole.
func shape() []admission.Case {
	cases := []admission.Case{
		admission.Takes("", "", "no spec at all"),
		admission.Takes("", "", "an empty spec", admission.Set("spec", values{})),
		admission.Takes("", "", "a spec of null", admission.Set("spec", nil)),
	}
	for _, field := range []string{"spec", "spec.services", keystone, "spec.korc", admin, admin + ".passwordSecretRef"} {
		cases = append(cases, admission.ObjectTypes(field)...)
	}
	return append(cases, admission.Length("spec.region", 255)...)
}

// keystoneService is who runs Keystone.
func keystoneService() []admission.Case {
	const (
		mode     = keystone + ".mode"
		authURL  = keystone + ".external.authURL"
		endpoint = keystone + ".external.endpointType"
	)
	cases := []admission.Case{
		admission.Takes(mode, "enum", "mode is Managed", admission.Set(mode, "Managed")),
		admission.Takes(mode, "enum", "mode is External", external),
		admission.Takes(keystone, modeRule, "External says where Keystone is", external),
		admission.Refuses(admission.Breaks(keystone, modeRule), "External does not say where Keystone is", admission.Set(mode, "External")),
		admission.Refuses(admission.Breaks(keystone, modeRule), "Managed says where Keystone is", external, admission.Set(mode, "Managed")),
		admission.Refuses(admission.Breaks(keystone, modeRule), "no mode, which is Managed, says where Keystone is", external, admission.Drop(mode)),
		admission.Takes(keystone, modeRule, "a managed Keystone becomes an external one", external).Of(),
		admission.Refuses(admission.Breaks(keystone, modeRule), "an external Keystone becomes a managed one and keeps its URL", admission.Set(mode, "Managed")).Of(external),
		admission.Refuses(admission.Breaks(keystone, modeRule), "a managed Keystone becomes an external one without a URL", admission.Set(mode, "External")).Of(),
		admission.Takes(authURL, "required", "external has a URL", external),
		admission.Refuses(admission.Missing(authURL), "external has no URL", external, admission.Drop(authURL)),
		admission.Takes(authURL, "minLength", "external has a short URL", external, admission.Set(authURL, "http://k")),
		admission.Refuses(admission.TooShort(authURL), "external has an empty URL", external, admission.Set(authURL, "")),
		admission.Takes(keystone, "", "a managed Keystone is published by URL and by gateway, on another cluster, with a bundle",
			admission.Set(keystone+".publicEndpoint", "https://keystone.example.com/v3"), admission.Set(keystone+".gateway.hostname", "keystone.example.com"),
			admission.Set(keystone+".targetClusterRef.name", "edge"), admission.Set(keystone+".caBundleSecretRef.name", "bundle")),
		unknown(keystone+".authURL", "a URL outside of external", admission.Set(keystone+".authURL", "https://keystone.example.com/v3")),
		unknown(keystone+".insecure", "a Keystone whose certificate nobody looks at", admission.Set(keystone+".insecure", true)),
		unknown(keystone+".external.caBundle", "a bundle in the object itself", external, admission.Set(keystone+".external.caBundle", "-----BEGIN CERTIFICATE-----")),
	}
	for _, value := range []string{"managed", "external", "", "Managed "} {
		cases = append(cases, admission.Refuses(admission.NoneOf(mode, value, "Managed", "External"), fmt.Sprintf("mode is %q", value), admission.Set(mode, value)))
	}
	for _, value := range []string{"public", "internal", "admin"} {
		cases = append(cases, admission.Takes(endpoint, "enum", "the interface is "+value, external, admission.Set(endpoint, value)))
	}
	for _, value := range []string{"publicURL", "Public", ""} {
		cases = append(cases, admission.Refuses(admission.NoneOf(endpoint, value, "public", "internal", "admin"), fmt.Sprintf("the interface is %q", value), external, admission.Set(endpoint, value)))
	}
	return cases
}

// reached is where Keystone is, and how its certificate is verified.
func reached() []admission.Case {
	hostname := keystone + ".gateway.hostname"
	return slices.Concat(
		endpointURL(keystone+".external.authURL", external),
		endpointURL(keystone+".publicEndpoint"),
		reference(keystone+".external.caBundleSecretRef", external),
		reference(keystone+".caBundleSecretRef"),
		reference(keystone+".targetClusterRef"),
		admission.OptionalNamespace(keystone+".namespace"),
		admission.Length(hostname, 253),
		[]admission.Case{
			admission.Takes(hostname, "required", "the gateway has a hostname", admission.Set(keystone+".gateway", values{"hostname": "keystone.example.com"})),
			admission.Refuses(admission.Missing(hostname), "the gateway has no hostname", admission.Set(keystone+".gateway", values{})),
		},
	)
}

// endpointURL is the shape of a URL.
func endpointURL(field string, around ...admission.Edit) []admission.Case {
	write := admission.At(field, around)
	const fill = len("https://")
	cases := []admission.Case{
		admission.Takes(field, "pattern", field+" is https", write("https://keystone.example.com/v3")),
		admission.Takes(field, "pattern", field+" is http with a port", write("http://10.0.0.1:5000/v3")),
		admission.Takes(field, "pattern", field+" has an IPv6 address", write("https://[2001:db8::1]:5000/v3")),
		admission.Takes(field, "maxLength", field+" has 1024 characters", write("https://"+admission.Letters(1024-fill))),
		admission.Refuses(admission.TooLong(field, 1024), field+" has 1025 characters", write("https://"+admission.Letters(1025-fill))),
	}
	for _, value := range []string{
		"keystone.example.com/v3", "ftp://keystone.example.com", "https://", "https:/keystone.example.com", "https://keystone.example.com/ v3",
		"https://keystone.example.com/v3\n", "see https://keystone.example.com/v3", "HTTPS://keystone.example.com",
	} {
		cases = append(cases, admission.Refuses(admission.NoMatch(field, value, url), fmt.Sprintf("%s is %q", field, value), write(value)))
	}
	return append(cases, admission.TextTypes(field, around...)...)
}

// reference is an optional reference {name}.
func reference(field string, around ...admission.Edit) []admission.Case {
	with := admission.At(field, around)
	return append(admission.Length(field+".name", 253, around...),
		admission.Takes(field+".name", "required", field+" has a name", with(values{"name": "x"})),
		admission.Refuses(admission.Missing(field+".name"), field+" has no name", with(values{})),
		unknown(field+".namespace", field+" has a namespace", with(values{"name": "x", "namespace": "openstack"})),
	)
}

func unknown(field, name string, edits ...admission.Edit) admission.Case {
	return admission.Refuses(admission.Unknown(kind, field), name, edits...)
}

// secretStore is where backups go.
func secretStore() []admission.Case {
	const field = "spec.secretStoreRef"
	of := func(storeKind string) admission.Edit {
		return admission.Set(field, values{"name": "x", "kind": storeKind})
	}
	cases := append(reference(field),
		admission.Takes(field+".kind", "enum", "the store is a SecretStore", of("SecretStore")),
		admission.Takes(field+".kind", "enum", "the store is a ClusterSecretStore", of("ClusterSecretStore")),
	)
	for _, value := range []string{"Vault", "secretstore", ""} {
		cases = append(cases, admission.Refuses(admission.NoneOf(field+".kind", value, "SecretStore", "ClusterSecretStore"), fmt.Sprintf("the store is a %q", value), of(value)))
	}
	return cases
}

// adminCredential is how the operator gets into Keystone.
func adminCredential() []admission.Case {
	return slices.Concat(
		admission.Length(admin+".passwordSecretRef.name", 253),
		admission.Length(admin+".passwordSecretRef.key", 253),
		admission.KeystoneName(admin+".userName", 255),
		admission.KeystoneName(admin+".projectName", 64),
		admission.KeystoneName(admin+".domainName", 64),
		[]admission.Case{
			unknown(admin+".password", "a password in the object itself", admission.Set(admin+".password", "never")),
			unknown(admin+".passwordSecretRef.namespace", "a password in another namespace", admission.Set(admin+".passwordSecretRef.namespace", "openstack")),
		},
	)
}

func entry(namespace string, more values) values {
	made := maps.Clone(more)
	if made == nil {
		made = values{}
	}
	made["namespace"] = namespace
	return made
}

func on(cluster string) values { return values{"targetClusterRef": values{"name": cluster}} }

func allows(roles ...string) values { return values{"allowedRoles": roles} }

func assign(list ...values) admission.Edit { return admission.Set(entries, list) }

func many(n int) admission.Edit {
	list := make([]values, 0, n)
	for i := range n {
		list = append(list, entry(fmt.Sprintf("tenant-%d", i), nil))
	}
	return assign(list...)
}

// consent is the list of entries.
func consent() []admission.Case {
	takes := func(name string, edits ...admission.Edit) admission.Case {
		return admission.Takes(entries, uniqueRule, name, edits...)
	}
	refuses := func(name string, edits ...admission.Edit) admission.Case {
		return admission.Refuses(admission.Breaks(entries, uniqueRule), name, edits...)
	}
	a, b := entry("tenant-a", nil), entry("tenant-b", nil)
	return []admission.Case{
		admission.Takes(entries, "maxItems", "32 namespaces are assigned", many(32)),
		admission.Refuses(admission.TooMany(entries, 33, 32), "33 namespaces are assigned", many(33)),
		admission.Refuses(admission.WrongType(entries, "string", "array"), "the entries are a text", admission.Set(entries, "tenant-a")),
		admission.Refuses(admission.WrongType(entries+"[0]", "string", "object"), "an entry is a text", admission.Set(entries, []string{"tenant-a"})),
		takes("no entry at all", assign([]values{}...)),
		takes("two namespaces are assigned", assign(a, b)),
		takes("the same namespace on the management cluster and on another", assign(a, entry("tenant-a", on("edge")))),
		takes("the same namespace on two clusters", assign(entry("tenant-a", on("edge")), entry("tenant-a", on("core")))),
		refuses("the same namespace twice", assign(a, a)),
		refuses("the same namespace twice with different roles", assign(entry("tenant-a", allows("member")), entry("tenant-a", allows("reader")))),
		refuses("the same namespace twice on one cluster", assign(entry("tenant-a", on("edge")), b, entry("tenant-a", on("edge")))),
		refuses("the same namespace three times", assign(a, b, a, a)),
		takes("an entry is added", assign(a, b)).Of(assign(a)),
		takes("all entries are removed", admission.Drop(entries)).Of(assign(a)),
		refuses("an entry is added a second time", assign(a, a)).Of(assign(a)),
	}
}

// assignments is one entry of the list.
func assignments() []admission.Case {
	const (
		item    = entries + "[]"
		first   = entries + "[0]"
		cluster = ".targetClusterRef.name"
		roles   = ".allowedRoles"
	)
	roleNames := func(n int) values {
		names := make([]string, 0, n)
		for i := range n {
			names = append(names, fmt.Sprintf("role-%d", i))
		}
		return allows(names...)
	}
	with := func(more values) admission.Edit { return assign(entry("tenant-a", more)) }
	return slices.Concat(
		admission.RequiredNamespace(item+".namespace", first+".namespace", func(namespace string) admission.Edit { return assign(entry(namespace, nil)) }),
		[]admission.Case{
			admission.Takes(item+".namespace", "required", "an entry names a namespace", with(nil)),
			admission.Refuses(admission.Missing(first+".namespace"), "an entry names no namespace", assign(allows("member"))),
			unknown(first+".roles", "an entry with roles by another word", with(values{"roles": []string{"member"}})),
			unknown(first+".namespaceSelector", "an entry that selects by label", with(values{"namespaceSelector": values{}})),

			admission.Takes(item+cluster, "required", "an entry names a cluster", with(on("edge"))),
			admission.Refuses(admission.Missing(first+cluster), "an entry has a cluster without a name", with(values{"targetClusterRef": values{}})),
			admission.Takes(item+cluster, "minLength", "an entry names a cluster of 1 character", with(on("e"))),
			admission.Refuses(admission.TooShort(first+cluster), "an entry names an empty cluster", with(on(""))),
			admission.Takes(item+cluster, "maxLength", "an entry names a cluster of 253 characters", with(on(admission.Letters(253)))),
			admission.Refuses(admission.TooLong(first+cluster, 253), "an entry names a cluster of 254 characters", with(on(admission.Letters(254)))),

			admission.Takes(item+roles, "maxItems", "an entry allows 64 roles", with(roleNames(64))),
			admission.Refuses(admission.TooMany(first+roles, 65, 64), "an entry allows 65 roles", with(roleNames(65))),
			admission.Refuses(admission.WrongType(first+roles, "string", "array"), "an entry allows a text", with(values{"allowedRoles": "member"})),
			admission.Refuses(admission.WrongType(first+roles+"[0]", "integer", "string"), "an entry allows a number", with(values{"allowedRoles": []int{1}})),
			admission.Takes(item+roles+"[]", "minLength", "an entry allows a role of 1 character", with(allows("m"))),
			admission.Refuses(admission.TooShort(first+roles+"[1]"), "an entry allows an empty role", with(allows("member", ""))),
			admission.Takes(item+roles+"[]", "maxLength", "an entry allows a role of 255 characters", with(allows(admission.Letters(255)))),
			admission.Refuses(admission.TooLong(first+roles+"[0]", 255), "an entry allows a role of 256 characters", with(allows(admission.Letters(256)))),
			admission.Takes(item+roles+"[]", "pattern", "an entry allows roles with spaces, capitals and underscores", with(allows("load-balancer_member", "My Role", "Überträger"))),
			admission.Refuses(admission.NoMatch(first+roles+"[0]", "member,reader", admission.NoComma), "an entry allows two roles in one text", with(allows("member,reader"))),

			admission.Takes(item+".allowCatalogEntries", "type", "allowCatalogEntries is a boolean", with(values{"allowCatalogEntries": true})),
			admission.Refuses(admission.WrongType(first+".allowCatalogEntries", "string", "boolean"), "allowCatalogEntries is a text", with(values{"allowCatalogEntries": "yes"})),
		},
	)
}
