package login

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/oidctest"
)

// TestOIDC_people_are_who_they_are_to_the_API_server has the examples of --oidc-username-claim, --oidc-username-prefix,
// --oidc-groups-claim, --oidc-groups-prefix and --oidc-required-claim.
func TestOIDC_people_are_who_they_are_to_the_API_server(t *testing.T) {
	issuer := oidctest.New(t)
	const everybody = `"system:authenticated"`
	for name, c := range map[string]struct {
		settings OIDC
		claims   map[string]any
		want     string
		refused  string
	}{
		"by_default_sub_behind_the_issuer":     {OIDC{}, map[string]any{"email": "alice@example.com"}, issuer.URL + "#alice [" + everybody + "]", ""},
		"with_a_prefix":                        {OIDC{UsernamePrefix: "oidc:"}, nil, "oidc:alice [" + everybody + "]", ""},
		"without_a_prefix":                     {OIDC{UsernamePrefix: "-"}, nil, "alice [" + everybody + "]", ""},
		"an_email_has_no_prefix_by_default":    {OIDC{UsernameClaim: "email"}, map[string]any{"email": "a@example.com"}, "a@example.com [" + everybody + "]", ""},
		"a_verified_email":                     {OIDC{UsernameClaim: "email"}, map[string]any{"email": "a@example.com", "email_verified": true}, "a@example.com [" + everybody + "]", ""},
		"an_email_that_is_not_verified":        {OIDC{UsernameClaim: "email"}, map[string]any{"email": "a@example.com", "email_verified": false}, "", "not verified"},
		"an_email_that_is_verified_as_text":    {OIDC{UsernameClaim: "email"}, map[string]any{"email": "a@example.com", "email_verified": "true"}, "", "not verified"},
		"another_claim_needs_no_verified_mail": {OIDC{UsernamePrefix: "-"}, map[string]any{"email": "a@example.com", "email_verified": false}, "alice [" + everybody + "]", ""},
		"without_the_claim":                    {OIDC{UsernameClaim: "upn"}, nil, "", `no claim "upn"`},
		"with_an_empty_name":                   {OIDC{UsernamePrefix: "-"}, map[string]any{"sub": ""}, "", `no claim "sub"`},
		"with_a_number_for_a_name":             {OIDC{UsernameClaim: "uid"}, map[string]any{"uid": 7}, "", `no claim "uid"`},
		"groups":                               {OIDC{UsernamePrefix: "-", GroupsClaim: "g", GroupsPrefix: "oidc:"}, map[string]any{"g": []string{"a", "b"}}, `alice ["oidc:a" "oidc:b" ` + everybody + "]", ""},
		"one_group_as_text":                    {OIDC{UsernamePrefix: "-", GroupsClaim: "g"}, map[string]any{"g": "a"}, `alice ["a" ` + everybody + "]", ""},
		"no_groups":                            {OIDC{UsernamePrefix: "-", GroupsClaim: "g"}, nil, "alice [" + everybody + "]", ""},
		"groups_that_nobody_asked_for":         {OIDC{UsernamePrefix: "-"}, map[string]any{"groups": []string{"a"}}, "alice [" + everybody + "]", ""},
		"groups_that_are_none":                 {OIDC{UsernamePrefix: "-", GroupsClaim: "g"}, map[string]any{"g": map[string]string{"a": "b"}}, "", "does not list groups"},
		"groups_that_are_elsewhere": {OIDC{GroupsClaim: "g"}, map[string]any{"_claim_names": map[string]string{"g": "src1"},
			"_claim_sources": map[string]any{"src1": map[string]string{"endpoint": "https://graph.example.com"}}}, "", "too many"},
		"a_name_of_the_cluster's":         {OIDC{UsernamePrefix: "-"}, map[string]any{"sub": "system:admin"}, "", "the cluster's own"},
		"a_group_of_the_cluster's":        {OIDC{GroupsClaim: "g"}, map[string]any{"g": []string{"a", "system:masters"}}, "", "the cluster's own"},
		"no_group_of_it_behind_a_prefix":  {OIDC{UsernamePrefix: "-", GroupsClaim: "g", GroupsPrefix: "x:"}, map[string]any{"g": "system:masters"}, `alice ["x:system:masters" ` + everybody + "]", ""},
		"with_a_required_claim":           {OIDC{UsernamePrefix: "-", RequiredClaims: map[string]string{"hd": "example.com"}}, map[string]any{"hd": "example.com"}, "alice [" + everybody + "]", ""},
		"without_a_required_claim":        {OIDC{RequiredClaims: map[string]string{"hd": "example.com"}}, nil, "", `the claim "hd"`},
		"with_another_required_claim":     {OIDC{RequiredClaims: map[string]string{"hd": "example.com"}}, map[string]any{"hd": "other.com"}, "", `the claim "hd"`},
		"with_a_required_claim_in_a_list": {OIDC{RequiredClaims: map[string]string{"hd": "example.com"}}, map[string]any{"hd": []string{"example.com"}}, "", `the claim "hd"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.settings.IssuerURL, c.settings.ClientID, c.settings.ClientSecret, c.settings.Title = issuer.URL, oidctest.ClientID, oidctest.ClientSecret, "Example ID"
			w := newWorld(t, &c.settings, nil)
			issuer.Now, issuer.Claims = w.clock.Now, map[string]any{"sub": "alice"}
			maps.Copy(issuer.Claims, c.claims)
			browser := w.browser()
			status, shown := w.logIn(browser)
			if c.refused == "" {
				if status != http.StatusOK || shown != c.want+" via Example ID" {
					t.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
				}
				return
			}
			if status != http.StatusForbidden || !strings.Contains(shown, c.refused) || !strings.Contains(shown, "Example ID logged you in, but") {
				t.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
			}
			w.out(browser)
		})
	}
}

// TestOIDC_an_answer_that_is_wrong_logs_nobody_in_and_accuses_nobody has one fault of the provider's, or of whoever
// speaks in its name, in each case.
func TestOIDC_an_answer_that_is_wrong_logs_nobody_in_and_accuses_nobody(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, value any) func(*world, *oidctest.Issuer) {
		return func(_ *world, i *oidctest.Issuer) { i.Token = func(claims map[string]any) { claims[name] = value } }
	}
	unsigned := func(header string) func(*world, *oidctest.Issuer) {
		return func(_ *world, i *oidctest.Issuer) {
			i.Sign = func(payload []byte) string {
				return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
			}
		}
	}
	at := func(path string, answer http.HandlerFunc) func(*world, *oidctest.Issuer) {
		return func(_ *world, i *oidctest.Issuer) {
			i.Wrap = func(w http.ResponseWriter, r *http.Request, right http.Handler) {
				if r.URL.Path == path {
					answer(w, r)
					return
				}
				right.ServeHTTP(w, r)
			}
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	const document = "/.well-known/openid-configuration"
	for name, fault := range map[string]func(*world, *oidctest.Issuer){
		"the_nonce_of_another_login": claim("nonce", "another"),
		"no_nonce":                   claim("nonce", ""),
		"for_another_client":         claim("aud", "another-page"),
		"for_several_and_made_for_another": func(_ *world, i *oidctest.Issuer) {
			i.Token = func(claims map[string]any) {
				claims["aud"], claims["azp"] = []string{oidctest.ClientID, "another-page"}, "another-page"
			}
		},
		"of_another_issuer": claim("iss", "https://other.example.com"),
		"expired": func(w *world, i *oidctest.Issuer) {
			i.Token = func(claims map[string]any) { claims["exp"] = w.clock.Now().Add(-time.Second).Unix() }
		},
		"without_an_expiry": func(_ *world, i *oidctest.Issuer) {
			i.Token = func(claims map[string]any) { delete(claims, "exp") }
		},
		"not_valid_yet": func(w *world, i *oidctest.Issuer) {
			i.Token = func(claims map[string]any) { claims["nbf"] = w.clock.Now().Add(10 * time.Minute).Unix() }
		},
		"with_alg_none":         unsigned(`{"alg":"none"}`),
		"with_alg_None":         unsigned(`{"alg":"None"}`),
		"with_an_empty_RS256":   unsigned(`{"alg":"RS256"}`),
		"signed_by_another_key": func(_ *world, i *oidctest.Issuer) { i.Sign = signed(t, jose.RS256, other) },
		"signed_by_RS512":       func(_ *world, i *oidctest.Issuer) { i.Sign = signed(t, jose.RS512, i.Key()) },
		"signed_with_the_secret": func(_ *world, i *oidctest.Issuer) {
			i.Sign = signed(t, jose.HS256, []byte(strings.Repeat(oidctest.ClientSecret, 2)))
		},
		"signed_with_the_public_key": func(_ *world, i *oidctest.Issuer) {
			der, err := x509.MarshalPKIXPublicKey(i.Key().Public())
			if err != nil {
				t.Fatal(err)
			}
			i.Sign = signed(t, jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		},
		"no_ID_token":              func(_ *world, i *oidctest.Issuer) { i.Sign = func([]byte) string { return "" } },
		"an_ID_token_that_is_none": func(_ *world, i *oidctest.Issuer) { i.Sign = func([]byte) string { return "token" } },
		"a_code_that_is_none":      answer("code", "another"),
		"without_a_code":           answer("code", ""),
		"in_another_issuer's_name": answer("iss", "https://other.example.com"),
		"an_error_of_its_own":      answer("error", "server_error"),
		"no_token":                 at("/token", status(http.StatusServiceUnavailable)),
		"a_token_that_is_no_JSON":  at("/token", text("<html>secret-of-a-proxy</html>")),
		"a_refusal_with_a_body": at("/token", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "secret-of-a-proxy", http.StatusBadRequest)
		}),
		"a_login_page_for_a_token": at("/token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		}),
		"a_connection_that_breaks":   at("/token", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"no_keys":                    at("/keys", status(http.StatusInternalServerError)),
		"keys_that_are_none":         at("/keys", text("{}")),
		"no_document":                at(document, status(http.StatusNotFound)),
		"a_document_that_is_no_JSON": at(document, text("<html>")),
		"a_document_of_another": func(_ *world, i *oidctest.Issuer) {
			i.Discovery = func(d map[string]any) { d["issuer"] = "https://other.example.com" }
		},
		"a_document_without_a_place": func(_ *world, i *oidctest.Issuer) {
			i.Discovery = func(d map[string]any) { delete(d, "authorization_endpoint") }
		},
		"a_document_with_a_script": func(_ *world, i *oidctest.Issuer) {
			i.Discovery = func(d map[string]any) { d["authorization_endpoint"] = "javascript:alert(1)" }
		},
		"a_document_with_a_dead_host": func(_ *world, i *oidctest.Issuer) {
			i.Discovery = func(d map[string]any) { d["token_endpoint"] = "http://127.0.0.1:1/token" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, issuer := oidcWorld(t)
			fault(w, issuer)
			browser := w.browser()
			status, shown := w.logIn(browser)
			if status != http.StatusBadGateway || w.failed == nil || w.failed.Err == nil || !strings.HasPrefix(shown, "Example ID could not be asked") {
				t.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
			}
			if said := w.failed.Error(); strings.Contains(said, oidctest.ClientSecret) || strings.Contains(said, "secret-of-a-proxy") {
				t.Errorf("it says %s", said)
			}
			w.out(browser)
			if w.log.Len() > 0 {
				t.Errorf("the log says %s", w.log.String())
			}
		})
	}
}

func signed(t *testing.T, algorithm jose.SignatureAlgorithm, key any) func([]byte) string {
	return func(payload []byte) string { return oidctest.SignWith(t, algorithm, key, payload) }
}

func answer(name, value string) func(*world, *oidctest.Issuer) {
	return func(_ *world, i *oidctest.Issuer) { i.Answer = func(query url.Values) { query.Set(name, value) } }
}

func TestOIDC_who_is_refused_by_the_provider_is_told(t *testing.T) {
	w, issuer := oidcWorld(t)
	answer("error", "access_denied")(w, issuer)
	if status, shown := w.logIn(w.browser()); status != http.StatusForbidden || !strings.Contains(shown, "Example ID") {
		t.Errorf("HTTP %d, %s", status, shown)
	}
}

func TestOIDC_other_algorithms_count_when_they_are_configured(t *testing.T) {
	w, issuer := oidcWorld(t, func(o *OIDC) { o.SigningAlgs = []string{"RS512"} })
	issuer.Sign = signed(t, jose.RS512, issuer.Key())
	if status, shown := w.logIn(w.browser()); status != http.StatusOK {
		t.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
	}
	issuer.Sign = nil
	if status, _ := w.logIn(w.browser()); status != http.StatusBadGateway {
		t.Errorf("RS256 still counts: HTTP %d", status)
	}
}

// TestOIDC_a_login_ends_in_the_browser_that_began_it is about login CSRF and codes that somebody else obtained.
func TestOIDC_a_login_ends_in_the_browser_that_began_it(t *testing.T) {
	const gone = "This login was not begun in this browser"
	// begin goes as far as the provider's answer, which is then in the attacker's hands.
	begin := func(w *world) (*http.Client, string) {
		w.Helper()
		browser, at := w.stops(w.browser(), callbackPath)
		w.logIn(browser)
		if !strings.Contains(*at, "code=") {
			w.Fatalf("the provider sends the browser to %q", *at)
		}
		return browser, *at
	}
	refused := func(w *world, browser *http.Client, address, words string) {
		w.Helper()
		if status, shown := w.get(browser, address, nil); status < 400 || !strings.Contains(shown, words) {
			w.Errorf("HTTP %d, %s", status, shown)
		}
		w.out(browser)
	}

	t.Run("and_in_no_other", func(t *testing.T) {
		w, _ := oidcWorld(t)
		_, address := begin(w)
		refused(w, w.browser(), address, gone)
	})
	t.Run("nor_in_one_that_began_another", func(t *testing.T) {
		w, _ := oidcWorld(t)
		_, address := begin(w)
		victim, _ := begin(w)
		refused(w, victim, address, gone)
	})
	t.Run("nor_with_a_code_of_another", func(t *testing.T) {
		w, _ := oidcWorld(t)
		_, stolen := begin(w)
		attacker, own := begin(w)
		theirs, err := url.Parse(stolen)
		if err != nil {
			t.Fatal(err)
		}
		address, err := url.Parse(own)
		if err != nil {
			t.Fatal(err)
		}
		query := address.Query()
		query.Set("code", theirs.Query().Get("code"))
		address.RawQuery = query.Encode()
		refused(w, attacker, address.String(), "no answer that can be trusted") // PKCE: the verifier is in the other browser
	})
	t.Run("without_a_state", func(t *testing.T) {
		w, _ := oidcWorld(t)
		browser, address := begin(w)
		address, _, _ = strings.Cut(address, "&state=")
		refused(w, browser, address, gone)
	})
	t.Run("once", func(t *testing.T) {
		w, issuer := oidcWorld(t)
		browser, address := begin(w)
		if status, shown := w.get(browser, address, nil); status != http.StatusOK || !strings.HasPrefix(shown, "oidc:alice") {
			t.Fatalf("HTTP %d, %s", status, shown)
		}
		asked := issuer.Asked["/token"]
		if status, shown := w.get(browser, address, nil); status != http.StatusBadRequest || !strings.Contains(shown, gone) || issuer.Asked["/token"] != asked {
			t.Errorf("HTTP %d, %s", status, shown)
		}
	})
	t.Run("and_not_again_after_it_failed", func(t *testing.T) {
		w, issuer := oidcWorld(t)
		browser, address := begin(w)
		refused(w, browser, strings.Replace(address, "state=", "state=x", 1), gone)
		refused(w, browser, address, gone)
		if issuer.Asked["/token"] != 0 {
			t.Error("the code was redeemed")
		}
	})
	t.Run("within_ten_minutes", func(t *testing.T) {
		w, _ := oidcWorld(t)
		browser, address := begin(w)
		w.clock.SetTime(w.clock.Now().Add(attemptLifetime))
		refused(w, browser, address, gone)
	})
}

func TestOIDC_a_provider_that_is_down_stops_nothing_and_is_asked_again(t *testing.T) {
	w, issuer := oidcWorld(t)
	issuer.Wrap = func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
	for range 2 {
		if status, shown := w.logIn(w.browser()); status != http.StatusBadGateway {
			t.Fatalf("HTTP %d, %s", status, shown)
		}
	}
	issuer.Wrap, issuer.Asked = nil, map[string]int{}
	for range 2 {
		if status, shown := w.logIn(w.browser()); status != http.StatusOK {
			t.Fatalf("HTTP %d, %s (%v)", status, shown, w.failed)
		}
	}
	if asked := issuer.Asked["/.well-known/openid-configuration"]; asked != 1 {
		t.Errorf("the document was asked for %d times", asked)
	}
}

func TestOIDC_asks_nothing_without_a_valid_link(t *testing.T) {
	w, issuer := oidcWorld(t)
	old := w.link()
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	for token, want := range map[string]int{"": http.StatusBadRequest, "x.y.z": http.StatusBadRequest, old: http.StatusGone} {
		if status, shown := w.get(w.browser(), ProviderPath, url.Values{link.Parameter: {token}}); status != want {
			t.Errorf("HTTP %d, %s", status, shown)
		}
	}
	if len(issuer.Asked) != 0 {
		t.Errorf("the provider was asked: %v", issuer.Asked)
	}
}

func TestOIDC_says_who_it_is_in_the_way_that_the_provider_takes(t *testing.T) {
	for name, methods := range map[string][]string{"by_default": nil, "basic": {"client_secret_post", "client_secret_basic"}, "post": {"client_secret_post"}} {
		t.Run(name, func(t *testing.T) {
			w, issuer := oidcWorld(t)
			issuer.Discovery = func(d map[string]any) {
				if methods != nil {
					d["token_endpoint_auth_methods_supported"] = methods
				}
			}
			basic := false
			issuer.Wrap = func(w http.ResponseWriter, r *http.Request, right http.Handler) {
				if r.URL.Path == "/token" {
					_, _, basic = r.BasicAuth()
				}
				right.ServeHTTP(w, r)
			}
			if status, shown := w.logIn(w.browser()); status != http.StatusOK || basic != (name != "post") || issuer.Asked["/token"] != 1 {
				t.Errorf("HTTP %d, %s, basic: %v, asked %v", status, shown, basic, issuer.Asked)
			}
		})
	}
}

func TestOIDC_wrong_settings_are_found_at_the_start(t *testing.T) {
	good := OIDC{IssuerURL: "https://sso.example.com/realms/a", ClientID: "c"}
	p, err := newProvider(good, "", nil)
	if err != nil || p.Title != "sso.example.com" || p.UsernamePrefix != "https://sso.example.com/realms/a#" || p.UsernameClaim != "sub" ||
		strings.Join(p.Scopes, " ") != "openid profile email" || strings.Join(p.SigningAlgs, " ") != "RS256" || p.HTTPClient != http.DefaultClient {
		t.Errorf("the defaults are %+v, %v", p, err)
	}
	for name, edit := range map[string]func(*OIDC){
		"no_issuer":             func(o *OIDC) { o.IssuerURL = "" },
		"a_host_alone":          func(o *OIDC) { o.IssuerURL = "sso.example.com" },
		"a_query":               func(o *OIDC) { o.IssuerURL += "?a" },
		"a_user":                func(o *OIDC) { o.IssuerURL = "https://user:password@" + "sso.example.com" },
		"no_URL":                func(o *OIDC) { o.IssuerURL = "https://sso.example.com:port" },
		"no_client":             func(o *OIDC) { o.ClientID = "" },
		"a_symmetric_signature": func(o *OIDC) { o.SigningAlgs = []string{"RS256", "HS256"} },
		"no_signature":          func(o *OIDC) { o.SigningAlgs = []string{"none"} },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			edit(&o)
			if _, err := newProvider(o, "", nil); err == nil || strings.Contains(err.Error(), "password") {
				t.Errorf("it is answered with %v", err)
			}
		})
	}
}

// TestOIDC_over_TLS_names_no_place_without has a provider that would have codes and secrets sent in the clear.
func TestOIDC_over_TLS_names_no_place_without(t *testing.T) {
	for _, field := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri"} {
		w, issuer := oidcWorld(t, func(o *OIDC) { o.IssuerURL = strings.Replace(o.IssuerURL, "http:", "https:", 1) })
		// The provider of this test has no TLS; the transport stands for its terminator.
		w.login.provider.HTTPClient = &http.Client{Transport: downgrade{}}
		secure := strings.Replace(issuer.URL, "http:", "https:", 1)
		issuer.Discovery = func(d map[string]any) {
			for name, value := range d {
				if text, ok := value.(string); ok {
					d[name] = strings.Replace(text, issuer.URL, secure, 1)
				}
			}
		}
		if _, err := w.login.provider.discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		right := issuer.Discovery
		issuer.Discovery = func(d map[string]any) {
			right(d)
			d[field] = "http://sso.example.com/"
		}
		w.login.provider.found.Store(nil)
		if _, err := w.login.provider.discover(t.Context()); err == nil || !strings.Contains(err.Error(), "http://sso.example.com/") {
			t.Errorf("%s is answered with %v", field, err)
		}
	}
}

type downgrade struct{}

func (downgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(r)
}
