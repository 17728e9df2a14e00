package providers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLoad_has_an_entry_for_every_provider_that_is_promised(t *testing.T) {
	catalog, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{
		"github-pat", "gitlab-pat", "slack-bot-token", "openai-api-key", "anthropic-api-key", "bearer-api", "oauth-mcp", "keystone-password",
		"keystone-application-credential",
	} {
		if _, ok := catalog.Provider(id); !ok {
			t.Errorf("%s is not in the catalog", id)
		}
	}
	// Slack answers 200 to a token that it does not know, and a probe would call every token alive.
	if slack, _ := catalog.Provider("slack-bot-token"); slack.Verify != nil {
		t.Error("Slack has a probe")
	}
}

// A ConfigMap is mounted as links into a hidden folder, and may be missing.
func TestLoadDirectory_takes_the_files_of_a_mounted_ConfigMap(t *testing.T) {
	directory := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wiki.yaml", "{id: wiki, title: Wiki, shape: bearer}")
	write("README", "no entry")
	write("..2026", "hidden")
	embedded, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := LoadDirectory(directory)
	if err != nil || len(catalog.IDs()) != len(embedded.IDs())+1 || !slices.Contains(catalog.IDs(), "wiki") {
		t.Fatalf("it gives %v, %v", catalog, err)
	}
	for _, none := range []string{"", filepath.Join(directory, "missing")} {
		if catalog, err := LoadDirectory(none); err != nil || !slices.Equal(catalog.IDs(), embedded.IDs()) {
			t.Errorf("%q gives %v, %v", none, catalog, err)
		}
	}
	write("wrong.yaml", "{id: wrong}")
	if _, err := LoadDirectory(directory); err == nil || !strings.Contains(err.Error(), directory) || !strings.Contains(err.Error(), "wrong.yaml") {
		t.Errorf("a wrong entry gives %v", err)
	}
}

func TestLoad_takes_entries_from_a_ConfigMap(t *testing.T) {
	catalog, err := Load(map[string]string{
		"wiki.yaml":       "{id: wiki, title: Wiki, shape: bearer, verify: {endpoint: 'https://wiki.example/me'}}",
		"github-pat.yaml": "{id: github-pat, title: GitHub Enterprise, shape: bearer, verify: {endpoint: 'https://github.example/api/v3/user'}}",
	})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := catalog.Provider("github-pat"); p.Title != "GitHub Enterprise" {
		t.Errorf("the embedded entry stayed: %+v", p)
	}
	if !slices.Contains(catalog.IDs(), "wiki") || !slices.Contains(catalog.IDs(), "gitlab-pat") {
		t.Errorf("the catalog holds %v", catalog.IDs())
	}
}

func TestLoad_refuses(t *testing.T) {
	const verify = "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'https://x.example/'}\n"
	for says, entry := range map[string]string{
		"unknown field":                "id: x\ntitle: X\nshape: bearer\nverfy: {}",
		`the id is "z"`:                "id: z\ntitle: X\nshape: bearer",
		"title is missing":             "id: x\nshape: bearer",
		`shape "cookie" is not`:        "id: x\ntitle: X\nshape: cookie",
		"no regular expression":        "id: x\ntitle: X\nshape: bearer\ntokenShape: {pattern: '('}",
		"no absolute https URL":        "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'http://x.example/'}",
		`"//x.example/" is no`:         "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: '//x.example/'}",
		`"https://u:p@x.example/" is`:  "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'https://u:p@x.example/'}",
		"is not GET, HEAD or POST":     "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'https://x.example/', method: DELETE}",
		"is not Bearer or token":       "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'https://x.example/', authScheme: Basic}",
		"belongs to the header":        "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'https://x.example/', authScheme: token, header: X-Key}",
		"401 is no success":            "id: x\ntitle: X\nshape: bearer\nverify: {endpoint: 'https://x.example/', successStatuses: [401]}",
		"a login asks":                 "id: x\ntitle: X\nshape: keystone\nverify: {endpoint: 'https://x.example/'}",
		"99 is no HTTP status":         verify + "authFailure: {httpStatuses: [99]}",
		"600 is no HTTP status":        verify + "authFailure: {httpStatuses: [600]}",
		"0 is not between 1 and 255":   verify + "authFailure: {exitCodes: [0]}",
		"256 is not between 1 and 255": verify + "authFailure: {exitCodes: [256]}",
		"missing closing":              verify + "authFailure: {stderrPatterns: ['(']}",
		"when nothing was printed":     verify + "authFailure: {stderrPatterns: ['.*']}",
		"an agent could forge them":    "id: x\ntitle: X\nshape: bearer\nauthFailure: {exitCodes: [1]}",
	} {
		_, err := Load(map[string]string{"x.yaml": entry})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%s\n  the complaint is %v, want %q in it", entry, err, says)
		}
	}
}

func TestProvider_Matches_looks_at_the_whole_credential(t *testing.T) {
	catalog, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	github, _ := catalog.Provider("github-pat")
	for credential, want := range map[string]bool{
		"ghp_" + strings.Repeat("a", 36): true, strings.Repeat("0f", 20): true,
		"ghp_" + strings.Repeat("a", 36) + "\n": false, " ghp_" + strings.Repeat("a", 36): false, "": false, "password": false,
	} {
		if got := github.Matches(credential); got != want {
			t.Errorf("Matches(%q) is %t", credential, got)
		}
	}
	if bearer, _ := catalog.Provider("bearer-api"); !bearer.Matches("anything") {
		t.Error("an entry without a shape refuses")
	}
}

// A field for passwords takes the line breaks out of a document, and what is left must not be stored.
func TestProvider_Matches_a_document_for_Keystone(t *testing.T) {
	catalog, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	const auth = "{auth_url: https://keystone.example.com/v3, application_credential_id: a, application_credential_secret: b}"
	for _, id := range []string{"keystone-application-credential", "keystone-password"} {
		provider, _ := catalog.Provider(id)
		for document, want := range map[string]bool{
			"clouds:\n  openstack:\n    auth:\n      auth_url: https://keystone.example.com/v3\n      username: u\n      password: p\n": true,
			"{clouds: {openstack: {auth: " + auth + "}}}":                                 true,
			"clouds:  openstack:    auth:      auth_url: https://keystone.example.com/v3": false,
			"{clouds: {a: {auth: " + auth + "}, b: {auth: " + auth + "}}}":                false,
			"{clouds: {openstack: {auth: {auth_url: https://keystone.example.com/v3}}}}":  false,
			"{clouds: {}}": false, "a-password": false, "": false,
		} {
			if got := provider.Matches(document); got != want {
				t.Errorf("%s takes %q: %t", id, document, got)
			}
		}
		if provider.TokenShape == nil || provider.TokenShape.Description == "" {
			t.Errorf("%s does not say what it takes", id)
		}
	}
}
