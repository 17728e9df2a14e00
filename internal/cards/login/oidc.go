package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

// OIDC is the login at an OpenID Connect provider, by the authorization code flow with PKCE. The fields from UsernameClaim
// on mean what the API server's flags --oidc-* of these names mean, with the same defaults: set them alike, and people
// are here who they are there.
type OIDC struct {
	// Title names the provider to people; empty is the issuer's host.
	Title string
	// IssuerURL is where its discovery document is, below /.well-known/openid-configuration, and the issuer of its tokens.
	// When it is https, so has to be all that the document names.
	IssuerURL string
	// ClientID and ClientSecret are this page's at the provider. A public client has no secret.
	ClientID, ClientSecret string
	// Scopes are what the provider is asked for beside "openid"; nil is profile and email.
	Scopes []string
	// UsernameClaim is the claim of the ID token that names somebody; empty is "sub". An "email" that the token says is not
	// verified is refused.
	UsernameClaim string
	// UsernamePrefix stands before it; empty is "<IssuerURL>#", or nothing when the claim is "email", and "-" is nothing.
	UsernamePrefix string
	// GroupsClaim is the claim that lists somebody's groups, an array of strings or one; empty is none.
	GroupsClaim string
	// GroupsPrefix stands before each of them.
	GroupsPrefix string
	// RequiredClaims have to be in the ID token, with these values.
	RequiredClaims map[string]string
	// SigningAlgs are those that an ID token may be signed with; empty is RS256 alone.
	SigningAlgs []string
	// HTTPClient asks the provider; nil is http.DefaultClient.
	HTTPClient *http.Client
}

// provider is OIDC, checked and with defaults, and what its discovery document said.
type provider struct {
	OIDC
	callback string
	clock    clock.PassiveClock
	asking   singleflight.Group
	found    atomic.Pointer[discovered]
}

type discovered struct {
	oauth2.Config
	verifier *oidc.IDTokenVerifier
}

func newProvider(o OIDC, callback string, clock clock.PassiveClock) (*provider, error) {
	issuer, err := url.Parse(o.IssuerURL)
	if err != nil {
		return nil, fmt.Errorf("the issuer's URL: %w", err)
	}
	if issuer.Scheme != "https" && issuer.Scheme != "http" || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" || issuer.Fragment != "" {
		return nil, fmt.Errorf("the issuer's URL %q is not an absolute https URL without a user, a query and a fragment", issuer.Redacted())
	}
	if o.ClientID == "" {
		return nil, errors.New("the client ID is missing")
	}
	if o.Title == "" {
		o.Title = issuer.Host
	}
	if o.Scopes == nil {
		o.Scopes = []string{"profile", "email"}
	}
	if !slices.Contains(o.Scopes, oidc.ScopeOpenID) {
		o.Scopes = append([]string{oidc.ScopeOpenID}, o.Scopes...)
	}
	if o.UsernameClaim == "" {
		o.UsernameClaim = "sub"
	}
	switch {
	case o.UsernamePrefix == "-":
		o.UsernamePrefix = ""
	case o.UsernamePrefix == "" && o.UsernameClaim != "email":
		o.UsernamePrefix = o.IssuerURL + "#"
	}
	if len(o.SigningAlgs) == 0 {
		o.SigningAlgs = []string{oidc.RS256}
	}
	for _, alg := range o.SigningAlgs {
		if !slices.Contains(asymmetric, jose.SignatureAlgorithm(alg)) {
			return nil, fmt.Errorf("ID tokens cannot be signed with %q, but with %v", alg, asymmetric)
		}
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	return &provider{OIDC: o, callback: callback, clock: clock}, nil
}

// context bounds how long the provider is waited for, and has it asked by the configured client.
func (p *provider) context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(ctx, p.HTTPClient), askTimeout)
}

// discover asks the provider for its discovery document, until it has answered once. All who wait share one request,
// which none of them ends by leaving.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	if d := p.found.Load(); d != nil {
		return d, nil
	}
	d, err, _ := p.asking.Do("", func() (any, error) {
		ctx, cancel := p.context(context.WithoutCancel(ctx))
		defer cancel()
		d, err := p.ask(ctx)
		if err == nil {
			p.found.Store(d)
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	return d.(*discovered), nil
}

func (p *provider) ask(ctx context.Context) (*discovered, error) {
	answer, err := oidc.NewProvider(ctx, p.IssuerURL)
	if err != nil {
		return nil, fmt.Errorf("asking for the discovery document: %w", err)
	}
	var document struct {
		JWKS    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := answer.Claims(&document); err != nil {
		return nil, fmt.Errorf("reading the discovery document: %w", err)
	}
	endpoint := answer.Endpoint()
	secure := strings.HasPrefix(p.IssuerURL, "https:")
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL, document.JWKS} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && (secure || u.Scheme != "http") {
			return nil, fmt.Errorf("the discovery document names %q, which is no https URL", untrusted.Line(address, 200))
		}
	}
	// The library would try both ways. A code is good once: the second try could only fail.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if p.ClientSecret == "" || len(document.Methods) > 0 && !slices.Contains(document.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &discovered{
		oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: endpoint, RedirectURL: p.callback, Scopes: p.Scopes},
		answer.Verifier(&oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: p.SigningAlgs, Now: p.clock.Now}),
	}, nil
}

// attempt is a login that began: what has to come back, and where it goes on. It is bound to the browser by being in its
// cookie, so nobody can have somebody else finish a login that they began.
type attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Link     string `json:"link"`
}

// toProvider begins a login, and ends the one that the browser may have begun before.
func (l *Login) toProvider(w http.ResponseWriter, r *http.Request) *Error {
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Link: r.URL.Query().Get(link.Parameter)}
	if err := l.checkLink(a.Link); err != nil {
		return err
	}
	d, err := l.provider.discover(r.Context())
	if err != nil {
		return l.provider.unusable(err)
	}
	now := l.Clock.Now()
	sealed, err := l.attempts.seal(now, now.Add(attemptLifetime), private{Attempt: &a})
	if err != nil || !l.attempts.setCookie(w, sealed, attemptLifetime) {
		return &Error{http.StatusInternalServerError, "The login could not be begun.", err}
	}
	redirect(w, r, d.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)))
	return nil
}

// fromProvider ends a login. The cookie goes first: whatever is wrong, nothing is tried twice.
func (l *Login) fromProvider(w http.ResponseWriter, r *http.Request) *Error {
	begun, _, err := l.attempts.fromCookie(r, l.Clock.Now())
	l.attempts.clearCookie(w)
	query := r.URL.Query()
	if err != nil || begun.Attempt == nil || subtle.ConstantTimeCompare([]byte(begun.Attempt.State), []byte(query.Get("state"))) != 1 {
		return &Error{http.StatusBadRequest, "This login was not begun in this browser, or it took more than ten minutes, or it is over. Open the link of the card again.", err}
	}
	// RFC 9207: an answer that another provider gave in this one's name.
	if issuer := query.Get("iss"); issuer != "" && issuer != l.provider.IssuerURL {
		return l.provider.unusable(fmt.Errorf("the answer is of the issuer %q", untrusted.Line(issuer, 200)))
	}
	if code := query.Get("error"); code != "" {
		reason := fmt.Errorf("it answered %s: %s", untrusted.Line(code, 100), untrusted.Line(query.Get("error_description"), 200))
		if code != "access_denied" {
			return l.provider.unusable(reason)
		}
		return &Error{http.StatusForbidden, l.provider.Title + " logged you in nowhere: it was refused there.", reason}
	}
	user, failed := l.provider.redeem(r.Context(), query.Get("code"), begun.Attempt)
	if failed != nil {
		return failed
	}
	return l.enter(w, r, begun.Attempt.Link, Person{UserInfo: user, Via: l.provider.Title, Expires: l.Clock.Now().Add(SessionLifetime)})
}

// redeem trades a code for an ID token, and verifies it.
func (p *provider) redeem(ctx context.Context, code string, begun *attempt) (authenticationv1.UserInfo, *Error) {
	nobody := authenticationv1.UserInfo{}
	d, err := p.discover(ctx)
	if err != nil {
		return nobody, p.unusable(err)
	}
	ctx, cancel := p.context(ctx)
	defer cancel()
	tokens, err := d.Exchange(ctx, code, oauth2.VerifierOption(begun.Verifier))
	if err != nil {
		return nobody, p.unusable(fmt.Errorf("redeeming the code: %w", withoutBody(err)))
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return nobody, p.unusable(errors.New("it gave no ID token"))
	}
	token, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return nobody, p.unusable(fmt.Errorf("verifying the ID token: %w", err))
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(begun.Nonce)) != 1 {
		return nobody, p.unusable(errors.New("the ID token is of another login"))
	}
	claims := claims{}
	if err := token.Claims(&claims); err != nil {
		return nobody, p.unusable(fmt.Errorf("reading the ID token: %w", err))
	}
	// The library checks that this page is one of those that the token is for; this, that it was made for it.
	if party := ""; claims.read("azp", &party) && party != p.ClientID {
		return nobody, p.unusable(fmt.Errorf("the ID token was made for the client %q", untrusted.Line(party, 100)))
	}
	user, err := p.user(claims)
	if err != nil {
		return nobody, &Error{http.StatusForbidden, fmt.Sprintf("%s logged you in, but this page cannot let you in: %v.", p.Title, err), err}
	}
	return user, nil
}

// unusable is what goes wrong between this page and the provider. It is no verdict on the visitor.
func (p *provider) unusable(err error) *Error {
	return &Error{http.StatusBadGateway, p.Title + " could not be asked who you are, or gave no answer that can be trusted. Open the link again; if it stays so, tell whoever runs this page.", err}
}

// withoutBody is an error of the token endpoint's without what else it answered.
func withoutBody(err error) error {
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("HTTP %d, %q", refused.Response.StatusCode, untrusted.Line(refused.ErrorCode, 100))
	}
	return err
}
