// Package oidctest is an OpenID Connect provider that logs in whoever comes, and that tests can have misbehave. That
// logins work with a provider of somebody else's making, tests/browser shows.
package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// What the page is at the provider.
const (
	ClientID     = "the-page"
	ClientSecret = "the-page's-own-secret"
)

// Issuer is a provider. The fields that are functions change what is right into what a test wants; they are set
// while nobody logs in.
type Issuer struct {
	*httptest.Server
	// Claims are in each ID token, beside those that have to be.
	Claims map[string]any
	// Now is the provider's time.
	Now func() time.Time
	// Discovery changes the discovery document.
	Discovery func(document map[string]any)
	// Answer changes what the browser is sent back with.
	Answer func(query url.Values)
	// Token changes the claims of an ID token.
	Token func(claims map[string]any)
	// Sign signs an ID token otherwise than by RS256 with the key of the provider.
	Sign func(payload []byte) string
	// Wrap handles a request in place of the provider, which is passed to it.
	Wrap func(w http.ResponseWriter, r *http.Request, right http.Handler)
	// Asked counts the requests to each path.
	Asked map[string]int

	t     testing.TB
	key   *rsa.PrivateKey
	mutex sync.Mutex
	codes map[string]url.Values
}

// New starts a provider that ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Claims: map[string]any{"sub": "alice"}, Now: time.Now, Asked: map[string]int{}, t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mutex.Lock()
		i.Asked[r.URL.Path]++
		i.mutex.Unlock()
		if i.Wrap != nil {
			i.Wrap(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

// Key is the provider's.
func (i *Issuer) Key() *rsa.PrivateKey { return i.key }

// SignWith signs a payload as a JWS.
func SignWith(t testing.TB, algorithm jose.SignatureAlgorithm, key any, payload []byte) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Error(err)
		return ""
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Error(err)
	}
	return text
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
	}
	if i.Discovery != nil {
		i.Discovery(document)
	}
	respond(w, http.StatusOK, document)
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public()}}})
}

// authorize is where a provider would ask who is there.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	if asked.Get("response_type") != "code" || asked.Get("client_id") != ClientID || asked.Get("code_challenge_method") != "S256" || asked.Get("state") == "" ||
		asked.Get("nonce") == "" || !strings.Contains(asked.Get("scope"), "openid") {
		http.Error(w, "it is not asked as it should be: "+r.URL.RawQuery, http.StatusTeapot)
		return
	}
	back, err := url.Parse(asked.Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	code := rand.Text()
	i.mutex.Lock()
	i.codes[code] = asked
	i.mutex.Unlock()
	answer := url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {i.URL}}
	if i.Answer != nil {
		i.Answer(answer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != ClientID || secret != ClientSecret {
		respond(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	i.mutex.Lock()
	asked, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	i.mutex.Unlock()
	if !known || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
		oauth2.S256ChallengeFromVerifier(r.PostFormValue("code_verifier")) != asked.Get("code_challenge") {
		respond(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": i.URL, "aud": ClientID, "nonce": asked.Get("nonce"), "iat": i.Now().Unix(), "exp": i.Now().Add(5 * time.Minute).Unix()}
	maps.Copy(claims, i.Claims)
	if i.Token != nil {
		i.Token(claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Error(err)
	}
	answer := map[string]any{"access_token": "unused", "token_type": "Bearer"}
	if i.Sign == nil {
		answer["id_token"] = SignWith(i.t, jose.RS256, i.key, payload)
	} else if text := i.Sign(payload); text != "" {
		answer["id_token"] = text
	}
	respond(w, http.StatusOK, answer)
}

func respond(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(document); err != nil {
		fmt.Fprintln(w, err)
	}
}
