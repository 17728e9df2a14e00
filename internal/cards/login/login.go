// Package login finds out who visits the page: somebody whom an OpenID Connect provider knows, or who presents a token
// of the API server's. Both become the user that the API server would see in their place, by the rules of its
// --oidc-* flags and of its TokenReviews, since its SubjectAccessReviews then say what they may do.
//
// What it remembers is in cookies of the visitor's and nowhere else, so each replica knows each visitor and none can be
// made to hold a million sessions. They are encrypted and authenticated, each for one purpose and one page.
package login

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

// What the page's forms and links lead to, below its base URL. Each wants the link's token in link.Parameter.
const (
	// TokenPath takes a POST with a token of the API server's in BearerField.
	TokenPath = "/login/token"
	// BearerField is the field of that form.
	BearerField = "bearer"
	// ProviderPath takes a GET and leads to the OpenID Connect provider.
	ProviderPath = "/login/oidc"
	// LogoutPath takes a POST, and leads back to the link.
	LogoutPath = "/logout"

	// callbackPath is where the provider sends people back to. It is registered with the provider.
	callbackPath = "/oidc/callback"
)

const (
	// SessionLifetime is how long somebody stays logged in: as long as a request stays open. What they may do is
	// asked anew all the time; that they are who they were is not.
	SessionLifetime = 30 * time.Minute
	// attemptLifetime is how long a login at the provider may take.
	attemptLifetime = 10 * time.Minute
	// askTimeout bounds what one visit waits for the provider or the API server.
	askTimeout = 15 * time.Second
)

// Config is what a Login is made of. Log and one of OIDC and Tokens may be missing.
type Config struct {
	// BaseURL is where people reach the page (link.Base).
	BaseURL string
	// Key verifies links, and keys for the cookies are derived from it.
	Key link.Key
	// Client creates TokenReviews.
	Client client.Writer
	Clock  clock.PassiveClock
	OIDC   *OIDC
	Tokens *Tokens
	// Fail answers a visit that logs nobody in.
	Fail func(http.ResponseWriter, *http.Request, *Error)
	// Log gets a line for whoever logs in.
	Log logr.Logger
}

// Error is why nobody was logged in.
type Error struct {
	// Status is the HTTP status to answer with: 403 for who was refused, 400 and 410 for what cannot be gone on with, 502
	// and 503 when whoever was asked gave no usable answer, which says nothing about the visitor.
	Status int
	// Message tells the visitor, in whole sentences.
	Message string
	// Err is for the log: what happened, without anything secret. It may be missing.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return fmt.Sprintf("%s (%v)", e.Message, e.Err)
}

// Unwrap returns what happened; it is link.ErrExpired or link.ErrForged when the link was at fault.
func (e *Error) Unwrap() error { return e.Err }

// Person is who visits, as the API server would see them.
type Person struct {
	authenticationv1.UserInfo
	// Via is the way they logged in: the provider's title, or ViaToken.
	Via string
	// Expires is when they have to log in again.
	Expires time.Time
}

// ViaToken is Person.Via of who presented a token.
const ViaToken = "Kubernetes token"

// Options are the ways to log in that the page offers.
type Options struct {
	// Provider is the title of the OpenID Connect provider; empty when there is none.
	Provider string
	// Tokens tells whether tokens are taken, and Audiences what they have to be for; none is the API server itself.
	Tokens    bool
	Audiences []string
}

// Login finds out who visits.
type Login struct {
	Config
	base     *url.URL
	sessions sealer
	attempts sealer
	provider *provider
}

// New checks the configuration. It asks the provider nothing: one that is down keeps nobody from logging in by other
// means, and is asked again by whoever wants to log in there.
func New(c Config) (*Login, error) {
	l := &Login{Config: c}
	var err error
	if l.base, err = link.Base(c.BaseURL); err != nil {
		return nil, err
	}
	if l.sessions, err = newSealer(c.Key, "session", l.base); err != nil {
		return nil, err
	}
	if l.attempts, err = newSealer(c.Key, "login", l.base); err != nil {
		return nil, err
	}
	if c.OIDC == nil && c.Tokens == nil {
		return nil, errors.New("there is no way to log in")
	}
	if c.OIDC != nil {
		if l.provider, err = newProvider(*c.OIDC, l.base.JoinPath(callbackPath).String(), c.Clock); err != nil {
			return nil, fmt.Errorf("the login by OpenID Connect: %w", err)
		}
	}
	return l, nil
}

// Register adds what logs people in and out, by a function that adds a handler for a method and a path below the base
// URL. The caller refuses cross-origin POSTs (http.CrossOriginProtection) and bounds bodies and rates.
func (l *Login) Register(at func(method, path string, handler http.HandlerFunc)) {
	if l.Tokens != nil {
		at(http.MethodPost, TokenPath, l.failing(l.byToken))
	}
	if l.provider != nil {
		at(http.MethodGet, ProviderPath, l.failing(l.toProvider))
		at(http.MethodGet, callbackPath, l.failing(l.fromProvider))
	}
	at(http.MethodPost, LogoutPath, l.logout)
}

// Options says what to offer to who is not logged in.
func (l *Login) Options() Options {
	o := Options{}
	if l.provider != nil {
		o.Provider = l.provider.Title
	}
	if l.Tokens != nil {
		o.Tokens, o.Audiences = true, l.Tokens.Audiences
	}
	return o
}

// Visitor is who visits, if they are logged in.
func (l *Login) Visitor(r *http.Request) (Person, bool) {
	p, expires, err := l.sessions.fromCookie(r, l.Clock.Now())
	if err != nil || p.User == nil || p.User.Username == "" {
		return Person{}, false
	}
	return Person{UserInfo: *p.User, Via: p.Via, Expires: expires}, true
}

func (l *Login) failing(handler func(http.ResponseWriter, *http.Request) *Error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handler(w, r); err != nil {
			l.Fail(w, r, err)
		}
	}
}

// checkLink verifies the link that somebody wants to log in for. Who has none makes the API server and the provider
// do no work.
func (l *Login) checkLink(token string) *Error {
	_, err := l.Key.Verify(token, l.BaseURL, l.Clock.Now())
	switch {
	case errors.Is(err, link.ErrExpired):
		return &Error{http.StatusGone, "This link has expired.", err}
	case err != nil:
		return &Error{http.StatusBadRequest, "This link is not valid.", err}
	}
	return nil
}

// enter starts a session and leads back to the link, which is the only place that a login leads to.
func (l *Login) enter(w http.ResponseWriter, r *http.Request, token string, person Person) *Error {
	sealed, err := l.sessions.seal(l.Clock.Now(), person.Expires, private{User: &person.UserInfo, Via: person.Via})
	if err != nil {
		return &Error{http.StatusInternalServerError, "The session could not be made.", err}
	}
	if !l.sessions.setCookie(w, sealed, person.Expires.Sub(l.Clock.Now())) {
		return &Error{
			Status:  http.StatusForbidden,
			Message: fmt.Sprintf("You are in %d groups, and their names are more than a session can hold. Answer with “kubectl c5c3 answer”, or have the provider name fewer groups to this page.", len(person.Groups)),
			Err:     fmt.Errorf("the session of %q takes %d bytes", person.Username, len(sealed)),
		}
	}
	l.Log.Info("somebody logged in", "audit", true, "user", person.Username, "via", person.Via)
	l.toLink(w, r, token)
	return nil
}

func (l *Login) logout(w http.ResponseWriter, r *http.Request) {
	l.sessions.clearCookie(w)
	l.toLink(w, r, r.PostFormValue(link.Parameter))
}

func (l *Login) toLink(w http.ResponseWriter, r *http.Request, token string) {
	target := l.base.JoinPath(link.Path)
	target.RawQuery = url.Values{link.Parameter: {token}}.Encode()
	redirect(w, r, target.String())
}

// redirect leads elsewhere without a trace of where from: this address has the link in it, or a code.
func redirect(w http.ResponseWriter, r *http.Request, target string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, target, http.StatusSeeOther)
}
