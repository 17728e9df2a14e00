// SPDX-License-Identifier: Apache-2.0

package clouds

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestRender(t *testing.T) {
	for name, test := range map[string]struct {
		cloud string
		in    Cloud
		want  string
	}{
		"a_password_scoped_to_a_project": {
			cloud: "admin",
			in: Cloud{
				AuthURL: "http://cp-keystone.openstack.svc:5000/v3", RegionName: "RegionOne", EndpointType: EndpointTypeInternal,
				Password: &PasswordAuth{Username: "admin", UserDomainName: "Default", Password: `p"w\`, ProjectName: "admin", ProjectDomainName: "Default"},
			},
			want: `clouds:
  "admin":
    auth_type: "password"
    auth:
      auth_url: "http://cp-keystone.openstack.svc:5000/v3"
      username: "admin"
      user_domain_name: "Default"
      password: "p\"w\\"
      project_name: "admin"
      project_domain_name: "Default"
    region_name: "RegionOne"
    endpoint_type: "internal"
`,
		},
		"an_unscoped_password_without_any_project_key": {
			cloud: "yes",
			in: Cloud{
				AuthURL:  "https://keystone.example/v3",
				Password: &PasswordAuth{Username: "svc", UserDomainName: "Default", Password: "1e3", ProjectDomainName: "Default"},
			},
			want: `clouds:
  "yes":
    auth_type: "password"
    auth:
      auth_url: "https://keystone.example/v3"
      username: "svc"
      user_domain_name: "Default"
      password: "1e3"
`,
		},
		"an_application_credential": {
			cloud: "openstack",
			in: Cloud{
				AuthURL: "https://keystone.example/v3", RegionName: "RegionOne", EndpointType: EndpointTypePublic,
				ApplicationCredential: &ApplicationCredentialAuth{ID: "17cb", Secret: "a\nb\u2028\x7f\U000E0001é"},
			},
			want: `clouds:
  "openstack":
    auth_type: "v3applicationcredential"
    auth:
      auth_url: "https://keystone.example/v3"
      application_credential_id: "17cb"
      application_credential_secret: "a\u000Ab\u2028\u007F\U000E0001é"
    region_name: "RegionOne"
    endpoint_type: "public"
`,
		},
		"a_document_beside_a_CA_bundle": {
			cloud: "c5c3",
			in: Cloud{
				AuthURL: "https://keystone.example/v3", EndpointType: EndpointTypePublic, CACert: BundleName([]byte("a bundle")),
				Password: &PasswordAuth{Username: "admin", UserDomainName: "Default", Password: "p"},
			},
			want: `clouds:
  "c5c3":
    auth_type: "password"
    auth:
      auth_url: "https://keystone.example/v3"
      username: "admin"
      user_domain_name: "Default"
      password: "p"
    endpoint_type: "public"
    cacert: "sha256:cd98c950d629c66548537b4ecd68dab3e8cf59974ba6e40df5a1a7354b39db5f"
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(test.cloud, test.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// K-ORC keys its sessions by the document without the certificates.
func TestBundleName_tells_bundles_apart_and_no_bundle_has_none(t *testing.T) {
	if one, other := BundleName([]byte("one")), BundleName([]byte("other")); one == other || one == "" {
		t.Errorf("two bundles are called %q and %q", one, other)
	}
	for _, none := range [][]byte{nil, {}} {
		if name := BundleName(none); name != "" {
			t.Errorf("no bundle is called %q", name)
		}
	}
}

func TestRender_refuses_without_showing_values(t *testing.T) {
	const secret = "hunter2"
	password := &PasswordAuth{Username: "u", UserDomainName: "d", Password: secret}
	credential := &ApplicationCredentialAuth{ID: "i", Secret: secret}
	for name, test := range map[string]struct {
		cloud string
		in    Cloud
	}{
		"a_cloud_without_a_name": {"", Cloud{AuthURL: "http://k", Password: password}},
		"no_auth_url":            {"c", Cloud{Password: password}},
		"no_way_to_log_in":       {"c", Cloud{AuthURL: "http://k"}},
		"two_ways_to_log_in":     {"c", Cloud{AuthURL: "http://k", Password: password, ApplicationCredential: credential}},
		"a_value_that_is_not_utf8": {"c", Cloud{AuthURL: "http://k", Password: &PasswordAuth{
			Username: "u", UserDomainName: "d", Password: secret + "\xff"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(test.cloud, test.in)
			if err == nil {
				t.Fatalf("rendered %s", got)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestParse_errors_never_quote_the_document(t *testing.T) {
	for name, document := range map[string]string{
		"not_yaml":              "clouds: {a: {auth: {password: 'hunter2",
		"password_is_a_number":  "clouds: {a: {auth: {password: [hunter2]}}}",
		"clouds_is_a_list":      "clouds: [hunter2]",
		"no_clouds":             "hunter2: {}",
		"tabs":                  "clouds:\n\thunter2: x",
		"a_duplicate_key":       "clouds: {hunter2: {}, hunter2: [}",
		"an_unknown_alias":      "clouds: *hunter2",
		"a_scalar":              "hunter2",
		"an_empty_document":     "",
		"control_characters":    "clouds: \x01hunter2",
		"something_of_a_binary": "\xff\xfehunter2",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(document))
			if err == nil {
				t.Fatalf("parsed as %v", got)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes the document: %v", err)
			}
		})
	}
}

func TestParse_reads_a_document_of_another_hand(t *testing.T) {
	got, err := Parse([]byte(`
cache: {expiration: 60}
clouds:
  one:
    auth: {auth_url: http://k:5000, username: u, password: p, user_domain_name: D, project_name: P, project_domain_name: D}
    interface: internal
    verify: false
  two: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Cloud{
		"one": {AuthURL: "http://k:5000", Password: &PasswordAuth{Username: "u", UserDomainName: "D", Password: "p", ProjectName: "P", ProjectDomainName: "D"}},
		"two": {},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

func TestAuth_prints_without_its_secret(t *testing.T) {
	c := Cloud{
		Password:              &PasswordAuth{Username: "u", UserDomainName: "d", Password: "hunter2"},
		ApplicationCredential: &ApplicationCredentialAuth{ID: "i", Secret: "hunter2"},
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(verb+verb+verb+verb, *c.Password, *c.ApplicationCredential, c.Password, c.ApplicationCredential)
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s shows the secret: %s", verb, text)
		}
	}
	if text, err := yaml.Marshal(c); err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("marshalling shows the secret: %s (%v)", text, err)
	}
}

func TestDigest_is_sha256_in_hex(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := Digest([]byte("abc")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// hostile are texts that YAML has a meaning of its own for.
var hostile = []string{
	"", " ", " leading", "trailing ", "yes", "no", "on", "null", "~", "true", "1e3", "0x1f", "0o17", "12:30:45", "1_000", "2026-01-01",
	"a: b", "a #b", "# c", "- x", "? x", "&a", "*a", "!tag", "|", ">", "%YAML", "@", "`", "{}", "[]", "---", "...", "<<", "=",
	`"`, `'`, `\`, `\n`, "\n", "\r\n", "\t", "\x00", "\x1b[31m", "\x7f", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "\ufffd", "\uffff",
	"naïve", "e\u0301", "日本語", "🔑", "\u202egnirts", "\U0010ffff", "${HOME}", "{{ .Values }}", "</script>",
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(hostile),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(hostile), 1, 4), func(parts []string) string { return strings.Join(parts, "") }),
	)
}

func nonEmpty() *rapid.Generator[string] {
	return text().Filter(func(s string) bool { return s != "" })
}

func anyCloud(t *rapid.T) Cloud {
	c := Cloud{
		AuthURL:      nonEmpty().Draw(t, "auth URL"),
		RegionName:   text().Draw(t, "region"),
		EndpointType: text().Draw(t, "endpoint type"),
		CACert:       text().Draw(t, "CA certificates"),
	}
	if rapid.Bool().Draw(t, "is a password") {
		c.Password = &PasswordAuth{
			Username:       nonEmpty().Draw(t, "username"),
			UserDomainName: text().Draw(t, "user domain"),
			Password:       text().Draw(t, "password"),
			ProjectName:    text().Draw(t, "project"),
		}
		if c.Password.ProjectName != "" {
			c.Password.ProjectDomainName = text().Draw(t, "project domain")
		}
	} else {
		c.ApplicationCredential = &ApplicationCredentialAuth{
			ID:     nonEmpty().Draw(t, "id"),
			Secret: text().Draw(t, "secret"),
		}
	}
	return c
}

func TestRender_round_trips_hostile_values(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, cloud := nonEmpty().Draw(t, "name"), anyCloud(t)
		document, err := Render(name, cloud)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Render(name, cloud)
		if err != nil || string(again) != string(document) {
			t.Fatalf("two renderings differ: %q and %q (%v)", document, again, err)
		}
		got, err := Parse(document)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if want := map[string]Cloud{name: cloud}; !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v from\n%s", got, document)
		}
	})
}

func FuzzRender(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, secret string) {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(secret) {
			return // refused, which TestRender_refuses_without_showing_values covers
		}
		cloud := Cloud{AuthURL: "http://k", ApplicationCredential: &ApplicationCredentialAuth{ID: "i", Secret: secret}}
		document, err := Render(name, cloud)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(document)
		if err != nil || !reflect.DeepEqual(got, map[string]Cloud{name: cloud}) {
			t.Fatalf("got %v (%v) from\n%s", got, err, document)
		}
	})
}
