package login

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/oidctest"
)

// world is a page that shows who visits, at an address of its own.
type world struct {
	*testing.T
	login  *Login
	server *httptest.Server
	clock  *clocktesting.FakePassiveClock
	failed *Error
	log    strings.Builder
}

var secret = bytes.Repeat([]byte("k"), link.MinKey)

func newWorld(t *testing.T, o *OIDC, tokens *Tokens, edits ...func(*Config)) *world {
	t.Helper()
	mux := http.NewServeMux()
	w := &world{T: t, server: httptest.NewTLSServer(mux), clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))}
	t.Cleanup(w.server.Close)
	key, err := link.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		BaseURL: w.server.URL, Key: key, Clock: w.clock, OIDC: o, Tokens: tokens,
		Fail: func(rw http.ResponseWriter, _ *http.Request, err *Error) {
			w.failed = err
			rw.WriteHeader(err.Status)
			_, _ = io.WriteString(rw, err.Message)
		},
		Log: funcr.New(func(prefix, args string) { fmt.Fprintln(&w.log, prefix, args) }, funcr.Options{}),
	}
	for _, edit := range edits {
		edit(&c)
	}
	if w.login, err = New(c); err != nil {
		t.Fatal(err)
	}
	w.login.Register(func(method, path string, handler http.HandlerFunc) { mux.HandleFunc(method+" "+path, handler) })
	mux.HandleFunc("GET "+link.Path, func(rw http.ResponseWriter, r *http.Request) {
		person, in := w.login.Visitor(r)
		if in != (person.Username != "") {
			t.Errorf("%+v is in: %v", person, in)
		}
		_, _ = fmt.Fprintf(rw, "%s %q via %s", person.Username, person.Groups, person.Via)
	})
	return w
}

// oidcWorld is one with a provider, which is the same for both.
func oidcWorld(t *testing.T, edits ...func(*OIDC)) (*world, *oidctest.Issuer) {
	t.Helper()
	issuer := oidctest.New(t)
	o := &OIDC{Title: "Example ID", IssuerURL: issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, UsernamePrefix: "oidc:", GroupsClaim: "groups"}
	for _, edit := range edits {
		edit(o)
	}
	w := newWorld(t, o, nil)
	w.clock.SetTime(w.clock.Now().Add(240 * time.Hour)) // what looked at the system's clock would go wrong
	issuer.Now = w.clock.Now
	return w, issuer
}

// link is a valid one's token.
func (w *world) link() string {
	w.Helper()
	text, err := w.login.Key.Sign(link.Claims{
		Audience: w.server.URL, Request: types.NamespacedName{Namespace: "tenant-a", Name: "cur-1"}, UID: "uid-1", IssuedAt: w.clock.Now(), Expires: w.clock.Now().Add(time.Hour),
	})
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// browser is one with cookies of its own.
func (w *world) browser() *http.Client {
	w.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	return &http.Client{Transport: w.server.Client().Transport, Jar: jar}
}

// get returns what is shown in the end, after all redirects.
func (w *world) get(browser *http.Client, path string, query url.Values) (int, string) {
	w.Helper()
	w.failed = nil
	address := path
	if !strings.HasPrefix(path, "https:") {
		address = w.server.URL + path + "?" + query.Encode()
	}
	response, err := browser.Get(address) //nolint:bodyclose // read closes it
	return w.read(response, err)
}

func (w *world) post(browser *http.Client, path string, form url.Values) (int, string) {
	w.Helper()
	w.failed = nil
	response, err := browser.PostForm(w.server.URL+path, form) //nolint:bodyclose // read closes it
	return w.read(response, err)
}

func (w *world) read(response *http.Response, err error) (int, string) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// logIn goes through the provider.
func (w *world) logIn(browser *http.Client) (int, string) {
	w.Helper()
	return w.get(browser, ProviderPath, url.Values{link.Parameter: {w.link()}})
}

// in fails unless the page shows that somebody is logged in.
func (w *world) in(browser *http.Client, want string) {
	w.Helper()
	if _, got := w.get(browser, link.Path, nil); got != want {
		w.Errorf("the page shows %q and not %q (%v)", got, want, w.failed)
	}
}

// out fails unless nobody is logged in.
func (w *world) out(browser *http.Client) {
	w.Helper()
	w.in(browser, " [] via ")
}

// stops has a browser follow redirects no further than to an address that ends so, and returns that.
func (w *world) stops(browser *http.Client, path string) (*http.Client, *string) {
	stopped, at := *browser, new(string)
	stopped.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path != path {
			return nil
		}
		*at = r.URL.String()
		return http.ErrUseLastResponse
	}
	return &stopped, at
}

// cookies are the page's in a browser.
func (w *world) cookies(browser *http.Client) []*http.Cookie {
	w.Helper()
	page, err := url.Parse(w.server.URL)
	if err != nil {
		w.Fatal(err)
	}
	return browser.Jar.Cookies(page)
}

// with is a browser with one cookie.
func (w *world) with(name, value string) *http.Client {
	w.Helper()
	browser := w.browser()
	page, err := url.Parse(w.server.URL)
	if err != nil {
		w.Fatal(err)
	}
	browser.Jar.SetCookies(page, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
	return browser
}
