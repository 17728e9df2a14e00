package api

import (
	"fmt"
	"maps"
	"strings"
)

// Words of the API server about schema constraints.
const (
	required  = "Required value"
	tooLong   = "Too long: may not be more than %d bytes"
	tooShort  = "should be at least 1 chars long"
	tooMany   = "Too many: %d: must have at most %d items"
	noMatch   = "should match '%s'"
	oneOf     = "Unsupported value: %q: supported values: %s"
	atLeast   = "should be greater than or equal to %d"
	wrongType = "must be of type %s"
)

// Patterns of the API, as the contract has them.
const (
	noComma         = `^[^,]+$`
	dnsLabel        = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	dnsLabelOrEmpty = `^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	url             = `^https?://[^\s]+$`
)

// letters returns a text of n bytes.
func letters(n int) string { return strings.Repeat("a", n) }

// length is the two sides of a field's shortest and longest value. Fields that a longer path leads
// to are given their surroundings by around.
func length(field string, longest int, around ...edit) []admission {
	write := func(value string) edit { return all(append(around[:len(around):len(around)], set(field, value))...) }
	return []admission{
		takes(field, "minLength", field+" has 1 character", write("a")),
		refuses(field, "minLength", tooShort, field+" is empty", write("")),
		takes(field, "maxLength", fmt.Sprintf("%s has %d characters", field, longest), write(letters(longest))),
		refuses(field, "maxLength", fmt.Sprintf(tooLong, longest), fmt.Sprintf("%s has %d characters", field, longest+1), write(letters(longest+1))),
	}
}

// keystoneName is the shape of a name in Keystone.
func keystoneName(field string, longest int, around ...edit) []admission {
	write := func(value string) edit { return all(append(around[:len(around):len(around)], set(field, value))...) }
	return append(length(field, longest, around...),
		takes(field, "pattern", field+" has spaces and letters of any script", write("Ünïcode 名前 (test)")),
		takes(field, "maxLength", fmt.Sprintf("%s has %d characters of two bytes each", field, longest), write(strings.Repeat("ü", longest))),
		refuses(field, "pattern", fmt.Sprintf(noMatch, noComma), field+" has a comma", write("member,reader")),
	)
}

// objectName is the cap on metadata.name.
func objectName(message string) []admission {
	name := func(length int) edit { return set("metadata.name", letters(length)) }
	return []admission{
		takes("", message, "metadata.name has 1 byte", name(1)),
		takes("", message, "metadata.name has 63 bytes", name(63)),
		refuses("", message, "", "metadata.name has 64 bytes", name(64)),
		refuses("", message, "", "metadata.name has 253 bytes", name(253)),
	}
}

// namespaceName is the shape of an optional namespace.
func optionalNamespace(field string) []admission {
	return []admission{
		takes(field, "pattern", field+" is a DNS label", set(field, "openstack-1")),
		takes(field, "pattern", field+" is empty", set(field, "")),
		refuses(field, "pattern", fmt.Sprintf(noMatch, dnsLabelOrEmpty), field+" has a capital", set(field, "OpenStack")),
		refuses(field, "pattern", fmt.Sprintf(noMatch, dnsLabelOrEmpty), field+" ends in a dash", set(field, "openstack-")),
		refuses(field, "pattern", fmt.Sprintf(noMatch, dnsLabelOrEmpty), field+" has a dot", set(field, "open.stack")),
		takes(field, "maxLength", field+" has 63 characters", set(field, letters(63))),
		refuses(field, "maxLength", fmt.Sprintf(tooLong, 63), field+" has 64 characters", set(field, letters(64))),
	}
}

// endpoint is the shape of a URL.
func endpoint(field string, around ...edit) []admission {
	write := func(value string) edit { return all(append(around[:len(around):len(around)], set(field, value))...) }
	cases := []admission{
		takes(field, "pattern", field+" is https", write("https://keystone.example.com/v3")),
		takes(field, "pattern", field+" is http with a port", write("http://10.0.0.1:5000/v3")),
		takes(field, "pattern", field+" has an IPv6 address", write("https://[2001:db8::1]:5000/v3")),
		takes(field, "maxLength", field+" has 1024 characters", write("https://"+letters(1016))),
		refuses(field, "maxLength", fmt.Sprintf(tooLong, 1024), field+" has 1025 characters", write("https://"+letters(1017))),
	}
	for what, value := range map[string]string{
		"has no scheme": "keystone.example.com/v3", "is ftp": "ftp://keystone.example.com", "is a scheme alone": "https://",
		"has a space": "https://keystone.example.com/ v3", "ends in a line feed": "https://keystone.example.com/v3\n",
		"has words in front": "see https://keystone.example.com/v3", "shouts its scheme": "HTTPS://keystone.example.com",
	} {
		cases = append(cases, refuses(field, "pattern", fmt.Sprintf(noMatch, url), field+" "+what, write(value)))
	}
	return cases
}

// reference is an optional reference {name}.
func reference(field string, around ...edit) []admission {
	with := func(value any) edit { return all(append(around[:len(around):len(around)], set(field, value))...) }
	return append(length(field+".name", 253, around...),
		takes(field+".name", "required", field+" has a name", with(values{"name": "x"})),
		refuses(field+".name", "required", required, field+" has no name", with(values{})),
	)
}

func assignment(namespace string, more ...values) values {
	entry := values{"namespace": namespace}
	for _, fields := range more {
		maps.Copy(entry, fields)
	}
	return entry
}

func onCluster(name string) values { return values{"targetClusterRef": values{"name": name}} }

func allows(roles ...string) values { return values{"allowedRoles": roles} }

func assignments(entries ...values) edit { return set("spec.namespaceAssignments", entries) }

func manyAssignments(n int) edit {
	var entries []values
	for i := range n {
		entries = append(entries, assignment(fmt.Sprintf("tenant-%d", i)))
	}
	return assignments(entries...)
}

func manyRoles(n int) []string {
	var roles []string
	for i := range n {
		roles = append(roles, fmt.Sprintf("role-%d", i))
	}
	return roles
}

func controlPlaneAdmissions() []admission {
	const (
		keystone   = "spec.services.keystone"
		entries    = "spec.namespaceAssignments"
		modeRule   = "services.keystone.external is required in mode External and not allowed in mode Managed"
		uniqueRule = "namespaceAssignments must not name the same namespace on the same cluster twice"
		admin      = "spec.korc.adminCredential"
	)
	external := set(keystone, values{"mode": "External", "external": values{"authURL": "https://keystone.example.com/v3"}})
	cases := objectName("metadata.name must be at most 63 bytes; it is part of the names of the ControlPlane's children")
	cases = append(cases, []admission{
		takes("", "", "no spec at all"),
		takes("", "", "an empty spec", set("spec", values{})),
		takes(keystone+".mode", "enum", "mode is Managed", set(keystone+".mode", "Managed")),
		takes(keystone+".mode", "enum", "mode is External", external),
		refuses(keystone+".mode", "enum", fmt.Sprintf(oneOf, "managed", `"Managed", "External"`), "mode is in lower case", set(keystone+".mode", "managed")),
		refuses(keystone+".mode", "enum", fmt.Sprintf(oneOf, "", `"Managed", "External"`), "mode is empty", set(keystone+".mode", "")),
		takes(keystone, modeRule, "External says where Keystone is", external),
		refuses(keystone, modeRule, "", "External does not say where Keystone is", set(keystone+".mode", "External")),
		refuses(keystone, modeRule, "", "Managed says where Keystone is", external, set(keystone+".mode", "Managed")),
		refuses(keystone, modeRule, "", "no mode, which is Managed, says where Keystone is", external, drop(keystone+".mode")),
		takesUpdate(keystone, modeRule, "a managed Keystone becomes an external one", nil, external),
		refusesUpdate(keystone, modeRule, "an external Keystone becomes a managed one and keeps its URL", external, set(keystone+".mode", "Managed")),
		takes(keystone+".external.authURL", "required", "external has a URL", external),
		refuses(keystone+".external.authURL", "required", required, "external has no URL", external, drop(keystone+".external.authURL")),
		takes(keystone+".external.authURL", "minLength", "external has a short URL", external, set(keystone+".external.authURL", "http://k")),
		refuses(keystone+".external.authURL", "minLength", tooShort, "external has an empty URL", external, set(keystone+".external.authURL", "")),
		takes(keystone+".external.endpointType", "enum", "the interface is public", external, set(keystone+".external.endpointType", "public")),
		takes(keystone+".external.endpointType", "enum", "the interface is internal", external, set(keystone+".external.endpointType", "internal")),
		takes(keystone+".external.endpointType", "enum", "the interface is admin", external, set(keystone+".external.endpointType", "admin")),
		refuses(keystone+".external.endpointType", "enum", fmt.Sprintf(oneOf, "publicURL", `"public", "internal", "admin"`), "the interface is publicURL", external, set(keystone+".external.endpointType", "publicURL")),
		takes(keystone, "", "a managed Keystone is published by URL and by gateway, on another cluster, with a bundle",
			set(keystone+".publicEndpoint", "https://keystone.example.com/v3"), set(keystone+".gateway.hostname", "keystone.example.com"),
			set(keystone+".targetClusterRef.name", "edge"), set(keystone+".caBundleSecretRef.name", "bundle")),

		takes("spec.secretStoreRef.kind", "enum", "the store is a SecretStore", set("spec.secretStoreRef", values{"name": "x", "kind": "SecretStore"})),
		takes("spec.secretStoreRef.kind", "enum", "the store is a ClusterSecretStore", set("spec.secretStoreRef", values{"name": "x", "kind": "ClusterSecretStore"})),
		refuses("spec.secretStoreRef.kind", "enum", fmt.Sprintf(oneOf, "Vault", `"SecretStore", "ClusterSecretStore"`), "the store is a Vault", set("spec.secretStoreRef", values{"name": "x", "kind": "Vault"})),

		takes(entries, "maxItems", "32 namespaces are assigned", manyAssignments(32)),
		refuses(entries, "maxItems", fmt.Sprintf(tooMany, 33, 32), "33 namespaces are assigned", manyAssignments(33)),
		takes(entries, uniqueRule, "two namespaces are assigned", assignments(assignment("tenant-a"), assignment("tenant-b"))),
		takes(entries, uniqueRule, "the same namespace on the management cluster and on another", assignments(assignment("tenant-a"), assignment("tenant-a", onCluster("edge")))),
		takes(entries, uniqueRule, "the same namespace on two clusters", assignments(assignment("tenant-a", onCluster("edge")), assignment("tenant-a", onCluster("core")))),
		takes(entries, uniqueRule, "no entry at all", assignments([]values{}...)),
		refuses(entries, uniqueRule, "", "the same namespace twice", assignments(assignment("tenant-a"), assignment("tenant-a"))),
		refuses(entries, uniqueRule, "", "the same namespace twice with different roles", assignments(assignment("tenant-a", allows("member")), assignment("tenant-a", allows("reader")))),
		refuses(entries, uniqueRule, "", "the same namespace twice on one cluster", assignments(assignment("tenant-a", onCluster("edge")), assignment("tenant-b"), assignment("tenant-a", onCluster("edge")))),
		takesUpdate(entries, uniqueRule, "an entry is added", assignments(assignment("tenant-a")), assignments(assignment("tenant-a"), assignment("tenant-b"))),
		takesUpdate(entries, uniqueRule, "all entries are removed", assignments(assignment("tenant-a")), drop(entries)),
		refusesUpdate(entries, uniqueRule, "an entry is added a second time", assignments(assignment("tenant-a")), assignments(assignment("tenant-a"), assignment("tenant-a"))),

		takes(entries+"[].namespace", "required", "an entry names a namespace", assignments(assignment("tenant-a"))),
		refuses(entries+"[].namespace", "required", required, "an entry names no namespace", assignments(values{"allowedRoles": []string{"member"}})),
		takes(entries+"[].namespace", "minLength", "an entry names a namespace of 1 character", assignments(assignment("a"))),
		refuses(entries+"[].namespace", "minLength", tooShort, "an entry names an empty namespace", assignments(assignment(""))),
		takes(entries+"[].namespace", "maxLength", "an entry names a namespace of 63 characters", assignments(assignment(letters(63)))),
		refuses(entries+"[].namespace", "maxLength", fmt.Sprintf(tooLong, 63), "an entry names a namespace of 64 characters", assignments(assignment(letters(64)))),
		takes(entries+"[].namespace", "pattern", "an entry names a namespace with a dash", assignments(assignment("tenant-a"))),
		refuses(entries+"[].namespace", "pattern", fmt.Sprintf(noMatch, dnsLabel), "an entry names all namespaces", assignments(assignment("*"))),
		refuses(entries+"[].namespace", "pattern", fmt.Sprintf(noMatch, dnsLabel), "an entry names a namespace in capitals", assignments(assignment("Tenant"))),

		takes(entries+"[].targetClusterRef.name", "required", "an entry names a cluster", assignments(assignment("tenant-a", onCluster("edge")))),
		refuses(entries+"[].targetClusterRef.name", "required", required, "an entry has a cluster without a name", assignments(assignment("tenant-a", values{"targetClusterRef": values{}}))),
		takes(entries+"[].targetClusterRef.name", "minLength", "an entry names a cluster of 1 character", assignments(assignment("tenant-a", onCluster("e")))),
		refuses(entries+"[].targetClusterRef.name", "minLength", tooShort, "an entry has a cluster with an empty name", assignments(assignment("tenant-a", onCluster("")))),
		takes(entries+"[].targetClusterRef.name", "maxLength", "an entry names a cluster of 253 characters", assignments(assignment("tenant-a", onCluster(letters(253))))),
		refuses(entries+"[].targetClusterRef.name", "maxLength", fmt.Sprintf(tooLong, 253), "an entry names a cluster of 254 characters", assignments(assignment("tenant-a", onCluster(letters(254))))),

		takes(entries+"[].allowedRoles", "maxItems", "an entry allows no role", assignments(assignment("tenant-a", values{"allowedRoles": []string{}}))),
		takes(entries+"[].allowedRoles", "maxItems", "an entry allows 64 roles", assignments(assignment("tenant-a", allows(manyRoles(64)...)))),
		refuses(entries+"[].allowedRoles", "maxItems", fmt.Sprintf(tooMany, 65, 64), "an entry allows 65 roles", assignments(assignment("tenant-a", allows(manyRoles(65)...)))),
		takes(entries+"[].allowedRoles[]", "minLength", "an entry allows a role of 1 character", assignments(assignment("tenant-a", allows("m")))),
		refuses(entries+"[].allowedRoles[]", "minLength", tooShort, "an entry allows an empty role", assignments(assignment("tenant-a", allows("member", "")))),
		takes(entries+"[].allowedRoles[]", "maxLength", "an entry allows a role of 255 characters", assignments(assignment("tenant-a", allows(letters(255))))),
		refuses(entries+"[].allowedRoles[]", "maxLength", fmt.Sprintf(tooLong, 255), "an entry allows a role of 256 characters", assignments(assignment("tenant-a", allows(letters(256))))),
		takes(entries+"[].allowedRoles[]", "pattern", "an entry allows roles with spaces, capitals and underscores", assignments(assignment("tenant-a", allows("load-balancer_member", "My Role", "Überträger")))),
		refuses(entries+"[].allowedRoles[]", "pattern", fmt.Sprintf(noMatch, noComma), "an entry allows two roles in one text", assignments(assignment("tenant-a", allows("member,reader")))),
		refuses(entries+"[].allowCatalogEntries", "type", fmt.Sprintf(wrongType, "boolean"), "allowCatalogEntries is a text", assignments(assignment("tenant-a", values{"allowCatalogEntries": "yes"}))),
		takes(entries+"[].allowCatalogEntries", "type", "allowCatalogEntries is a boolean", assignments(assignment("tenant-a", values{"allowCatalogEntries": true}))),
	}...)
	for _, more := range [][]admission{
		length("spec.region", 255),
		reference("spec.secretStoreRef"),
		endpoint(keystone+".external.authURL", external),
		reference(keystone+".external.caBundleSecretRef", external),
		optionalNamespace(keystone + ".namespace"),
		reference(keystone + ".targetClusterRef"),
		endpoint(keystone + ".publicEndpoint"),
		length(keystone+".gateway.hostname", 253),
		{
			takes(keystone+".gateway.hostname", "required", "the gateway has a hostname", set(keystone+".gateway", values{"hostname": "keystone.example.com"})),
			refuses(keystone+".gateway.hostname", "required", required, "the gateway has no hostname", set(keystone+".gateway", values{})),
		},
		reference(keystone + ".caBundleSecretRef"),
		length(admin+".passwordSecretRef.name", 253),
		length(admin+".passwordSecretRef.key", 253),
		keystoneName(admin+".userName", 255),
		keystoneName(admin+".projectName", 64),
		keystoneName(admin+".domainName", 64),
	} {
		cases = append(cases, more...)
	}
	return cases
}
