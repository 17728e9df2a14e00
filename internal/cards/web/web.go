// Package web is the page on which a person answers a CredentialUpdateRequest. A link of a card leads to it
// (internal/cards/link); it finds out who the visitor is (internal/cards/login), has the API server say on each view
// and on each submission whether that person may answer, and has internal/answer judge, try and store the value.
//
// The page is written on the server and needs no script. A value that somebody entered is in no response, no log
// and no error; it goes to the provider that it is tried at, and into the one key of the Secret.
package web

import (
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
	"github.com/c5c3/c5c3-operator/internal/providers"
)

// Verb is what a person must be allowed to do with a CredentialUpdateRequest to see and to answer it here.
const Verb = "answer"

type (
	// OIDC is the login at an OpenID Connect provider.
	OIDC = login.OIDC
	// TokenLogin is the login with a token of the API server's.
	TokenLogin = login.Tokens
)

// Config is what a page is made of. All fields but OIDC, Tokens (one of them is needed), TrustedProxies, Log and Clock
// are required.
type Config struct {
	// BaseURL is where people reach the page.
	BaseURL string
	// Key signs links, sessions and results, each with a key that is derived for it.
	Key link.Key
	// Client reads and writes without a cache (answer.Desk). Its rights are those that answer names, create on
	// TokenReviews and SubjectAccessReviews, and list on AgentSessions and AgentClasses.
	Client client.Client
	// Catalog and Prober are answer.Desk's.
	Catalog *providers.Catalog
	Prober  providers.Prober
	// OIDC and Tokens are the ways to log in.
	OIDC   *OIDC
	Tokens *TokenLogin
	// TrustedProxies are networks of proxies whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Log gets a line for each answer and each refused visitor (its "audit" is true), and one for each failure.
	Log logr.Logger
	// Clock is the time; nil is the system's.
	Clock clock.PassiveClock
}

// page is the handler of all that is below the base URL.
type page struct {
	Config
	base  *url.URL
	desk  *answer.Desk
	login *login.Login
	// results is the key of what a person is told after an answer.
	results []byte

	visits, attempts, answers *limits
}

// New makes the page. An error is one of the configuration.
func New(c Config) (http.Handler, error) {
	base, err := link.Base(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	p := &page{
		Config: c, base: base,
		desk:     &answer.Desk{Client: c.Client, Catalog: c.Catalog, Prober: c.Prober, Clock: c.Clock},
		visits:   newLimits(visitRate, visitBurst),
		attempts: newLimits(attemptRate, attemptBurst),
		answers:  newLimits(answerRate, answerBurst),
	}
	if p.results, err = c.Key.Derive("result"); err != nil {
		return nil, err
	}
	if p.login, err = p.newLogin(); err != nil {
		return nil, err
	}
	return p.guarded(p.routes())
}

func (p *page) routes() http.Handler {
	mux := http.NewServeMux()
	at := func(method, path string, handler http.HandlerFunc) {
		mux.HandleFunc(method+" "+p.base.Path+path, handler)
	}
	at(http.MethodGet, link.Path, p.show)
	at(http.MethodPost, link.Path, p.submit)
	at(http.MethodGet, resultPath, p.result)
	p.login.Register(at)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { p.say(w, r, nothingHere) })
	return mux
}

// NewServer is a server for the page, with limits on what one connection can hold up. The longest that is waited for is
// an answer: a provider, and the API server a few times.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}
