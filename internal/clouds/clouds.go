// SPDX-License-Identifier: Apache-2.0

// Package clouds renders and parses clouds.yaml, the document by which OpenStack clients, K-ORC
// among them, learn where Keystone is and how to log in there.
//
// The package covers what the operator itself writes: one cloud per document, logging in with a
// password or with an application credential. It is no general reader of clouds.yaml: it never
// merges profiles, secure.yaml or the environment.
package clouds

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// SecretKey is the key of a Kubernetes Secret under which K-ORC looks for the document.
const SecretKey = "clouds.yaml"

// CASecretKey is the key beside SecretKey under which K-ORC looks for the PEM certificates it
// trusts instead of its system's.
const CASecretKey = "cacert"

// The interfaces of Keystone's catalog that Cloud.EndpointType may name.
const (
	EndpointTypePublic   = "public"
	EndpointTypeInternal = "internal"
	EndpointTypeAdmin    = "admin"
)

// authTypeApplicationCredential and authTypePassword are the plugin names that both gophercloud
// and keystoneauth know. A client that has to guess takes a document without a plugin name for a
// password one, so the application credential has to say what it is.
const (
	authTypeApplicationCredential = "v3applicationcredential"
	authTypePassword              = "password"
)

// Cloud is one entry of a clouds.yaml: a Keystone and one way to log in there. At most one of
// Password and ApplicationCredential is set.
type Cloud struct {
	// AuthURL is Keystone's address, with or without its /v3 suffix.
	AuthURL string
	// RegionName picks the region in Keystone's catalog. Empty means any region.
	RegionName string
	// EndpointType picks the interface in Keystone's catalog: public, internal or admin. Empty
	// leaves it to the reader, and every known reader then takes public.
	EndpointType string
	// CACert is the entry's cacert, to most readers a file of PEM certificates to trust. Documents
	// for K-ORC carry BundleName in it. Empty renders nothing.
	CACert string
	// Password logs in as a user. Nil when the entry carries no username.
	Password *PasswordAuth
	// ApplicationCredential logs in with an application credential. Nil when the entry carries
	// none.
	ApplicationCredential *ApplicationCredentialAuth
}

// PasswordAuth logs in as a user with its password.
type PasswordAuth struct {
	Username       string
	UserDomainName string
	Password       string `json:"-"`
	// ProjectName scopes the token. Empty asks for an unscoped one, and then no project key is
	// rendered at all: a consumer adds its own project through the environment, and a project
	// domain without a project would make some clients refuse the document.
	ProjectName string
	// ProjectDomainName is the domain of ProjectName; it means nothing without one.
	ProjectDomainName string
}

// ApplicationCredentialAuth logs in with an application credential, whose project is its own.
type ApplicationCredentialAuth struct {
	ID     string
	Secret string `json:"-"`
}

// String leaves the password out, so that a careless %v shows none.
func (a PasswordAuth) String() string {
	return fmt.Sprintf("password of user %q in domain %q", a.Username, a.UserDomainName)
}

// GoString is String, for %#v.
func (a PasswordAuth) GoString() string { return a.String() }

// String leaves the secret out, so that a careless %v shows none.
func (a ApplicationCredentialAuth) String() string {
	return fmt.Sprintf("application credential %q", a.ID)
}

// GoString is String, for %#v.
func (a ApplicationCredentialAuth) GoString() string { return a.String() }

// BundleName is the CACert of a document that lies beside a CA bundle in a Secret for K-ORC: it names
// the bundle by its digest. It is empty for an empty bundle.
//
// K-ORC takes the certificates from the Secret's key CASecretKey and never opens this as a file. But
// it keeps its sessions, for half a token's life, under a hash of the parsed entry that leaves the
// certificates out (v2.6.0, internal/scope/provider.go). Without the digest it would go on trusting
// the bundle of yesterday, and a create that fails for that is one that it gives up on.
func BundleName(bundle []byte) string {
	if len(bundle) == 0 {
		return ""
	}
	return "sha256:" + Digest(bundle)
}

// Render writes a document with the one cloud c called name. Equal input gives equal bytes, on
// every release of the operator, because a digest of the bytes decides whether a backup is current
// (Digest).
//
// Every key that is data and every value is double-quoted: a cloud called "yes" or a password
// "1e3" stays a string for readers of YAML 1.1 and 1.2 alike. The text is composed here, since
// marshalling through a map would sort and quote as the library of the day sees fit.
//
// The interface is written as endpoint_type; K-ORC ignores the synonym interface.
//
// Render fails when c carries no way to log in or two, when AuthURL or the name is empty, and when
// a value is not UTF-8, which YAML cannot carry. The error names the key, never the value.
func Render(name string, c Cloud) ([]byte, error) {
	switch {
	case name == "":
		return nil, errors.New("rendering clouds.yaml: the cloud has no name")
	case c.AuthURL == "":
		return nil, errors.New("rendering clouds.yaml: auth_url is empty")
	case c.Password == nil && c.ApplicationCredential == nil:
		return nil, errors.New("rendering clouds.yaml: neither a password nor an application credential is given")
	case c.Password != nil && c.ApplicationCredential != nil:
		return nil, errors.New("rendering clouds.yaml: both a password and an application credential are given")
	}

	var w writer
	w.raw("clouds:\n  ")
	w.quoted("the cloud's name", name)
	w.raw(":\n")
	authType := authTypePassword
	if c.ApplicationCredential != nil {
		authType = authTypeApplicationCredential
	}
	w.field("    ", "auth_type", authType)
	w.raw("    auth:\n")
	w.field("      ", "auth_url", c.AuthURL)
	if a := c.ApplicationCredential; a != nil {
		w.field("      ", "application_credential_id", a.ID)
		w.field("      ", "application_credential_secret", a.Secret)
	}
	if p := c.Password; p != nil {
		w.field("      ", "username", p.Username)
		w.field("      ", "user_domain_name", p.UserDomainName)
		w.field("      ", "password", p.Password)
		if p.ProjectName != "" {
			w.field("      ", "project_name", p.ProjectName)
			w.field("      ", "project_domain_name", p.ProjectDomainName)
		}
	}
	if c.RegionName != "" {
		w.field("    ", "region_name", c.RegionName)
	}
	if c.EndpointType != "" {
		w.field("    ", "endpoint_type", c.EndpointType)
	}
	if c.CACert != "" {
		w.field("    ", "cacert", c.CACert)
	}
	if w.badKey != "" {
		return nil, fmt.Errorf("rendering clouds.yaml: %s is not UTF-8", w.badKey)
	}
	return []byte(w.text.String()), nil
}

// Parse reads a document and returns its clouds by name. Keys that Cloud does not know are
// ignored. An entry that names neither a user nor an application credential has both ways to log
// in nil; one that names both has both, and it is for the caller to refuse it.
//
// The error never quotes the document: YAML libraries like to repeat the offending line, which
// here is likely to be the one with the password.
func Parse(document []byte) (map[string]Cloud, error) {
	var parsed struct {
		Clouds map[string]struct {
			Auth struct {
				AuthURL                     string `json:"auth_url"`
				Username                    string `json:"username"`
				UserDomainName              string `json:"user_domain_name"`
				Password                    string `json:"password"`
				ProjectName                 string `json:"project_name"`
				ProjectDomainName           string `json:"project_domain_name"`
				ApplicationCredentialID     string `json:"application_credential_id"`
				ApplicationCredentialSecret string `json:"application_credential_secret"`
			} `json:"auth"`
			RegionName   string `json:"region_name"`
			EndpointType string `json:"endpoint_type"`
			CACert       string `json:"cacert"`
		} `json:"clouds"`
	}
	if err := yaml.Unmarshal(document, &parsed); err != nil {
		return nil, errors.New("the document is not a clouds.yaml")
	}
	if parsed.Clouds == nil {
		return nil, errors.New("the document has no clouds key")
	}
	result := make(map[string]Cloud, len(parsed.Clouds))
	for name, entry := range parsed.Clouds {
		c := Cloud{AuthURL: entry.Auth.AuthURL, RegionName: entry.RegionName, EndpointType: entry.EndpointType, CACert: entry.CACert}
		if entry.Auth.ApplicationCredentialID != "" || entry.Auth.ApplicationCredentialSecret != "" {
			c.ApplicationCredential = &ApplicationCredentialAuth{
				ID:     entry.Auth.ApplicationCredentialID,
				Secret: entry.Auth.ApplicationCredentialSecret,
			}
		}
		if entry.Auth.Username != "" || entry.Auth.Password != "" {
			c.Password = &PasswordAuth{
				Username:          entry.Auth.Username,
				UserDomainName:    entry.Auth.UserDomainName,
				Password:          entry.Auth.Password,
				ProjectName:       entry.Auth.ProjectName,
				ProjectDomainName: entry.Auth.ProjectDomainName,
			}
		}
		result[name] = c
	}
	return result, nil
}

// Digest is the SHA-256 of a document in lower-case hex. It stands for the document where the
// document itself may not appear, in an annotation for example. The secrets that the operator
// generates carry 256 bits of chance, so nobody finds one by trying digests.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// writer collects the document and remembers the first key whose value it could not write.
type writer struct {
	text   strings.Builder
	badKey string
}

func (w *writer) raw(s string) { w.text.WriteString(s) }

func (w *writer) field(indent, key, value string) {
	w.raw(indent + key + ": ")
	w.quoted(key, value)
	w.raw("\n")
}

// quoted writes a double-quoted YAML scalar on one line. Whatever is not plainly printable is
// escaped: raw, a reader might fold it (newline), refuse it (control characters, the byte order
// mark) or end the line at it (U+0085, U+2028, U+2029).
func (w *writer) quoted(key, value string) {
	if !utf8.ValidString(value) && w.badKey == "" {
		w.badKey = key
	}
	w.text.WriteByte('"')
	for _, r := range value {
		switch {
		case r == '"' || r == '\\':
			w.text.WriteByte('\\')
			w.text.WriteRune(r)
		case unicode.IsPrint(r):
			w.text.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&w.text, `\U%08X`, r)
		default:
			fmt.Fprintf(&w.text, `\u%04X`, r)
		}
	}
	w.text.WriteByte('"')
}
