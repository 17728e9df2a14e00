package main

import (
	"encoding/base64"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c5c3/c5c3-operator/internal/egress"
)

func TestOptions(t *testing.T) {
	for arguments, wrong := range map[string]string{
		"":                                   "",
		"--leader-elect":                     "",
		"--tls-cert-file=a":                  "belong together",
		"--tls-key-file=a":                   "belong together",
		"--tls-cert-file=a --tls-key-file=b": "",
		"--log-format=xml":                   "json or text",
		"argument":                           "is not an option",
	} {
		o, err := parse(strings.Fields(arguments), io.Discard)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q is answered with %v", arguments, err)
		}
		if arguments == "" && (o.pageAddress != ":8443" || o.linkKey != "/etc/c5c3-cards/link-key/key" || o.config != "/etc/c5c3-cards/config/config.yaml" || o.LeaderElect) {
			t.Errorf("the defaults are %+v", o)
		}
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func linkKey(t *testing.T) string {
	t.Helper()
	return write(t, "key", base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for this test"))+"\n")
}

func TestLinkKey_is_long_or_refused(t *testing.T) {
	for name, c := range map[string]struct{ content, wrong string }{
		"32_bytes":          {base64.StdEncoding.EncodeToString(make([]byte, 32)), ""},
		"wrapped":           {base64.StdEncoding.EncodeToString(make([]byte, 96))[:64] + "\n" + base64.StdEncoding.EncodeToString(make([]byte, 96))[64:] + "\n", ""},
		"31_bytes":          {base64.StdEncoding.EncodeToString(make([]byte, 31)), "at least 32"},
		"empty":             {"", "at least 32"},
		"half_a_key_as_hex": {strings.Repeat("0f", 16), "at least 32"},
		"no_base64":         {"secret-of-a-test!", "not base64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readKey(write(t, "key", c.content))
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("it is answered with %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret-of-a-test") {
				t.Errorf("the error quotes the key: %v", err)
			}
		})
	}
	if _, err := readKey("/nowhere/key"); err == nil {
		t.Error("a missing key is made up")
	}
}

func TestConfig(t *testing.T) {
	load := func(content string) (*config, error) {
		return loadConfig(write(t, "config.yaml", content), &egress.Guard{})
	}
	for content, wrong := range map[string]string{
		"{}":                                     "",
		"event: true":                            "",
		"evnt: true":                             "unknown field",
		"slack: {}":                              "botTokenFile",
		"externalURL: https://cards.example.com": "login",
		"externalURL: cards.example.com\nlogin: {kubernetes: {}}":                                                 "absolute",
		"externalURL: https://cards.example.com\nlogin: {kubernetes: {}}":                                         "",
		"externalURL: https://cards.example.com\nlogin: {oidc: {issuerURL: http://sso.example.com, clientID: x}}": "--egress-allow",
		"trustedProxies: [everybody]": "everybody",
		"externalURL: https://cards.example.com\nlogin: {kubernetes: {audience: x}}": "unknown field",
	} {
		if _, err := load(content); wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q is answered with %v", content, err)
		}
	}
	if _, err := loadConfig("/nowhere/config.yaml", nil); err == nil {
		t.Error("a missing configuration is an empty one")
	}
}

// TestConfig_of_the_example reads config/cards-example with its secrets elsewhere.
func TestConfig_of_the_example(t *testing.T) {
	content, err := os.ReadFile("../../config/cards-example/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), "/etc/c5c3-cards/secrets", t.TempDir())
	for _, line := range strings.Split(text, "\n") {
		if _, path, ok := strings.Cut(line, "File: "); ok {
			if err := os.WriteFile(path, []byte("a secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := loadConfig(write(t, "config.yaml", text), &egress.Guard{})
	if err != nil {
		t.Fatal(err)
	}
	oidc, err := c.Login.OIDC.settings()
	if err != nil || oidc.IssuerURL != "https://sso.example.com" || oidc.ClientSecret != "a secret" || oidc.UsernameClaim != "email" || oidc.GroupsClaim != "groups" {
		t.Errorf("OIDC is %+v, %v", oidc, err)
	}
	if tokens := c.Login.Kubernetes.settings(); len(tokens.Audiences) != 1 || tokens.Audiences[0] != "c5c3-cards" {
		t.Errorf("tokens are %+v", tokens)
	}
	if c.Slack == nil || c.Webhook == nil || !c.Event || len(c.TrustedProxies) != 1 || c.TrustedProxies[0] != netip.MustParsePrefix("10.0.0.0/8") {
		t.Errorf("it is %+v", c)
	}
}
