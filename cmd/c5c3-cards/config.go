package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/publish"
	"github.com/c5c3/c5c3-operator/internal/cards/web"
	"github.com/c5c3/c5c3-operator/internal/egress"
)

// config is the configuration file. It names files of secrets and holds none.
type config struct {
	publish.Config `json:",inline"`
	// ExternalURL is where people reach the page. Without it there is no page and there are no cards.
	ExternalURL string `json:"externalURL,omitempty"`
	// Login are the ways to log in; at least one is needed for the page.
	Login login `json:"login"`
	// TrustedProxies are the networks of proxies that may say in X-Forwarded-For whom they speak for.
	TrustedProxies []netip.Prefix `json:"trustedProxies,omitempty"`
}

type login struct {
	// Kubernetes is the login with a token of the API server's.
	Kubernetes *kubernetesLogin `json:"kubernetes,omitempty"`
	// OIDC is the login at an OpenID Connect provider.
	OIDC *oidcLogin `json:"oidc,omitempty"`
}

type kubernetesLogin struct {
	// Audiences are what a token has to be for, at least one of them. Empty is the API server's own audience: then
	// this page is shown tokens that are good for the API server too.
	Audiences []string `json:"audiences,omitempty"`
}

// oidcLogin has the fields of the API server's flags --oidc-*, for people have to get the same names here.
type oidcLogin struct {
	Title            string            `json:"title,omitempty"`
	IssuerURL        string            `json:"issuerURL"`
	ClientID         string            `json:"clientID"`
	ClientSecretFile string            `json:"clientSecretFile,omitempty"`
	Scopes           []string          `json:"scopes,omitempty"`
	UsernameClaim    string            `json:"usernameClaim,omitempty"`
	UsernamePrefix   string            `json:"usernamePrefix,omitempty"`
	GroupsClaim      string            `json:"groupsClaim,omitempty"`
	GroupsPrefix     string            `json:"groupsPrefix,omitempty"`
	RequiredClaims   map[string]string `json:"requiredClaims,omitempty"`
	SigningAlgs      []string          `json:"signingAlgs,omitempty"`
}

// loadConfig reads the configuration. A field that is not known is an error: a channel with a typing error would
// be one that nobody hears.
func loadConfig(path string, out *egress.Guard) (*config, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the path is an option
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c := &config{}
	if err := yaml.UnmarshalStrict(content, c); err != nil {
		return nil, fmt.Errorf("reading the configuration %s: %w", path, err)
	}
	if err := c.check(out); err != nil {
		return nil, fmt.Errorf("the configuration %s: %w", path, err)
	}
	return c, nil
}

func (c *config) check(out *egress.Guard) error {
	problems := []error{c.Check(out)}
	if c.ExternalURL != "" {
		_, err := link.Base(c.ExternalURL)
		problems = append(problems, err)
		if c.Login.Kubernetes == nil && c.Login.OIDC == nil {
			problems = append(problems, errors.New("login: the page needs kubernetes or oidc"))
		}
	}
	if c.Login.OIDC != nil {
		if err := out.CheckURL(c.Login.OIDC.IssuerURL); err != nil {
			problems = append(problems, fmt.Errorf("login.oidc.issuerURL: %w", err))
		}
	}
	return errors.Join(problems...)
}

// settings are web's. The client's secret is read when the process starts, as the rest of it.
func (o *oidcLogin) settings() (*web.OIDC, error) {
	if o == nil {
		return nil, nil
	}
	s := &web.OIDC{
		Title: o.Title, IssuerURL: o.IssuerURL, ClientID: o.ClientID, Scopes: o.Scopes, UsernameClaim: o.UsernameClaim, UsernamePrefix: o.UsernamePrefix,
		GroupsClaim: o.GroupsClaim, GroupsPrefix: o.GroupsPrefix, RequiredClaims: o.RequiredClaims, SigningAlgs: o.SigningAlgs,
	}
	if o.ClientSecretFile != "" {
		secret, err := os.ReadFile(o.ClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("login.oidc.clientSecretFile: %w", err)
		}
		s.ClientSecret = strings.TrimSpace(string(secret))
	}
	return s, nil
}

func (k *kubernetesLogin) settings() *web.TokenLogin {
	if k == nil {
		return nil
	}
	return &web.TokenLogin{Audiences: k.Audiences}
}
