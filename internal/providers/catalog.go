package providers

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Shape is how a provider's credential is presented.
type Shape string

// Shapes of credentials.
const (
	ShapeBearer   Shape = "bearer"
	ShapeOAuth    Shape = "oauth"
	ShapeKeystone Shape = "keystone"
)

// Scheme is the word before a credential in the header Authorization.
type Scheme string

// Schemes. The empty one means SchemeBearer.
const (
	SchemeBearer Scheme = "Bearer"
	SchemeToken  Scheme = "token"
)

// Verify is a request that tells whether the provider accepts a credential.
type Verify struct {
	// Endpoint is an absolute https URL. It is part of the catalog and never of a claim.
	Endpoint string `json:"endpoint"`
	// Method is GET, HEAD or POST; empty is GET.
	Method string `json:"method,omitempty"`
	// Header carries the credential; empty is Authorization.
	Header string `json:"header,omitempty"`
	// AuthScheme stands before the credential in the header Authorization; empty is Bearer. Another header
	// carries the credential alone.
	AuthScheme Scheme `json:"authScheme,omitempty"`
	// Headers are sent beside it.
	Headers map[string]string `json:"headers,omitempty"`
	// SuccessStatuses are the HTTP statuses of an accepted credential; empty is 200.
	SuccessStatuses []int `json:"successStatuses,omitempty"`
}

// AuthFailure is what a refused credential looks like to a session's own calls.
type AuthFailure struct {
	// HTTPStatuses; empty is 401.
	HTTPStatuses []int `json:"httpStatuses,omitempty"`
	// ExitCodes of the provider's program.
	ExitCodes []int `json:"exitCodes,omitempty"`
	// StderrPatterns are regular expressions (RE2) on what it prints.
	StderrPatterns []string `json:"stderrPatterns,omitempty"`
}

// TokenShape is what a credential of the provider's looks like.
type TokenShape struct {
	// Pattern is a regular expression (RE2) that matches a whole credential.
	Pattern string `json:"pattern"`
	// Description says it in words.
	Description string `json:"description,omitempty"`
}

// Provider is an entry of the catalog.
type Provider struct {
	ID           string       `json:"id"`
	Title        string       `json:"title"`
	Description  string       `json:"description,omitempty"`
	DocsURL      string       `json:"docsURL,omitempty"`
	Shape        Shape        `json:"shape"`
	Instructions string       `json:"instructions,omitempty"`
	TokenShape   *TokenShape  `json:"tokenShape,omitempty"`
	Verify       *Verify      `json:"verify,omitempty"`
	AuthFailure  *AuthFailure `json:"authFailure,omitempty"`
}

//go:embed catalog/*.yaml
var embedded embed.FS

// Catalog is a set of providers by id.
type Catalog struct{ byID map[string]Provider }

// Load reads the embedded catalog and then extra, a file per entry, as a ConfigMap holds them. An entry
// of extra replaces an embedded one of its id. All complaints are returned together, and then there is no
// catalog: half a catalog would suppress claims in silence.
func Load(extra map[string]string) (*Catalog, error) {
	catalog := &Catalog{byID: map[string]Provider{}}
	var problems []error
	files, err := fs.Glob(embedded, "catalog/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		raw, err := embedded.ReadFile(file)
		if err != nil {
			return nil, err
		}
		problems = append(problems, catalog.add(path.Base(file), raw))
	}
	for _, file := range slices.Sorted(maps.Keys(extra)) {
		problems = append(problems, catalog.add(file, []byte(extra[file])))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return catalog, nil
}

// LoadDirectory is Load with the entries of a directory, as a ConfigMap is mounted: a file each. Kubernetes'
// own links begin with two dots. No directory, or one that is not there, has none: the ConfigMap is optional.
func LoadDirectory(directory string) (*Catalog, error) {
	if directory == "" {
		return Load(nil)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for providers in %s: %w", directory, err)
	}
	found := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a provider: %w", err)
		}
		found[filepath.Base(file)] = string(content)
	}
	catalog, err := Load(found)
	if err != nil {
		return nil, fmt.Errorf("loading the providers of %s: %w", directory, err)
	}
	return catalog, nil
}

// Provider returns the entry of an id, and false when the catalog has none.
func (c *Catalog) Provider(id string) (Provider, bool) {
	provider, ok := c.byID[id]
	return provider, ok
}

// IDs are the ids of all entries, sorted.
func (c *Catalog) IDs() []string { return slices.Sorted(maps.Keys(c.byID)) }

func (c *Catalog) add(file string, raw []byte) error {
	var p Provider
	if err := yaml.UnmarshalStrict(raw, &p); err != nil {
		return fmt.Errorf("provider catalog: %s: %w", file, err)
	}
	if want := strings.TrimSuffix(file, ".yaml"); p.ID != want {
		return fmt.Errorf("provider catalog: %s: the id is %q, and the file's name says %q", file, p.ID, want)
	}
	if err := errors.Join(p.problems()...); err != nil {
		return fmt.Errorf("provider catalog: %s: %w", file, err)
	}
	c.byID[p.ID] = p
	return nil
}

func (p Provider) problems() []error {
	var problems []error
	complain := func(wrong bool, text string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(text, args...))
		}
	}
	complain(p.Title == "", "title is missing")
	complain(!slices.Contains([]Shape{ShapeBearer, ShapeOAuth, ShapeKeystone}, p.Shape), "shape %q is not bearer, oauth or keystone", p.Shape)
	if p.TokenShape != nil {
		_, err := regexp.Compile(p.TokenShape.Pattern)
		complain(err != nil || p.TokenShape.Pattern == "", "tokenShape.pattern %q is no regular expression: %v", p.TokenShape.Pattern, err)
	}
	if v := p.Verify; v != nil {
		endpoint, err := url.Parse(v.Endpoint)
		complain(err != nil || endpoint.Scheme != "https" || endpoint.Host == "" || endpoint.User != nil, "verify.endpoint %q is no absolute https URL", v.Endpoint)
		complain(!slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodPost}, v.Method), "verify.method %q is not GET, HEAD or POST", v.Method)
		complain(!slices.Contains([]Scheme{"", SchemeBearer, SchemeToken}, v.AuthScheme), "verify.authScheme %q is not Bearer or token", v.AuthScheme)
		complain(v.Header != "" && v.AuthScheme != "", "verify.authScheme belongs to the header Authorization, and verify.header is %q", v.Header)
		complain(p.Shape == ShapeKeystone, "verify has no place in an entry of shape keystone: a login asks")
		for _, status := range v.SuccessStatuses {
			complain(status < 200 || status > 299, "verify.successStatuses: %d is no success", status)
		}
	}
	if f := p.AuthFailure; f != nil {
		for _, status := range f.HTTPStatuses {
			complain(status < 100 || status > 599, "authFailure.httpStatuses: %d is no HTTP status", status)
		}
		for _, code := range f.ExitCodes {
			complain(code < 1 || code > 255, "authFailure.exitCodes: %d is not between 1 and 255", code)
		}
		for _, pattern := range f.StderrPatterns {
			expression, err := regexp.Compile(pattern)
			complain(err != nil, "authFailure.stderrPatterns: %q: %v", pattern, err)
			complain(err == nil && expression.MatchString(""), "authFailure.stderrPatterns: %q matches when nothing was printed", pattern)
		}
		// An agent chooses what it runs and so what that prints: without a probe nothing else would speak.
		complain(p.Verify == nil && len(f.ExitCodes)+len(f.StderrPatterns) > 0, "authFailure.exitCodes and stderrPatterns need verify: an agent could forge them")
	}
	return problems
}

// Matches tells whether a credential looks like one of the provider's. Without a shape everything does, but for
// Keystone: what is no document to log in with never is one.
func (p Provider) Matches(credential string) bool {
	if p.Shape == ShapeKeystone {
		if _, ok := cloudOf(credential); !ok {
			return false
		}
	}
	if p.TokenShape == nil {
		return true
	}
	return regexp.MustCompile(`^(?:` + p.TokenShape.Pattern + `)$`).MatchString(credential)
}
