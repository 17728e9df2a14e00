package login

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

func TestSession_lasts_half_an_hour_and_not_longer(t *testing.T) {
	w, _ := oidcWorld(t)
	browser := w.browser()
	const alice = `oidc:alice ["system:authenticated"] via Example ID`
	if _, shown := w.logIn(browser); shown != alice {
		t.Fatalf("the page shows %q", shown)
	}
	start := w.clock.Now()
	w.clock.SetTime(start.Add(SessionLifetime - time.Second))
	w.in(browser, alice)
	w.clock.SetTime(start.Add(SessionLifetime))
	w.out(browser)
	if !strings.Contains(w.log.String(), `"user"="oidc:alice" "via"="Example ID"`) {
		t.Errorf("the log says %s", w.log.String())
	}
}

func TestSession_leaves_with_a_logout(t *testing.T) {
	w, _ := oidcWorld(t)
	browser := w.browser()
	w.logIn(browser)
	if status, shown := w.post(browser, LogoutPath, url.Values{link.Parameter: {w.link()}}); status != http.StatusOK || shown != " [] via " {
		t.Errorf("HTTP %d, %s", status, shown)
	}
	if left := w.cookies(browser); len(left) != 0 {
		t.Errorf("these cookies are left: %v", left)
	}
}

// TestLogin_leads_to_the_link_and_nowhere_else passes off other places as a link.
func TestLogin_leads_to_the_link_and_nowhere_else(t *testing.T) {
	w, _ := oidcWorld(t)
	for _, place := range []string{"", "https://evil.example", "//evil.example", `/\evil.example`, "x&next=https://evil.example", "x\r\nLocation: https://evil.example", "../../x"} {
		browser, at := w.stops(w.browser(), link.Path)
		w.post(browser, LogoutPath, url.Values{link.Parameter: {place}, "next": {"https://evil.example"}})
		u, err := url.Parse(*at)
		if err != nil || u.Scheme+"://"+u.Host != w.server.URL || u.Path != link.Path || u.Query().Get(link.Parameter) != place || len(u.Query()) != 1 {
			t.Errorf("%q leads to %q", place, *at)
		}
	}
}

func TestCookies_are_for_this_page_alone(t *testing.T) {
	w, _ := oidcWorld(t)
	browser, _ := w.stops(w.browser(), callbackPath)
	w.logIn(browser)
	if kept := w.cookies(browser); len(kept) != 1 || kept[0].Name != "__Host-c5c3-cards-login" {
		t.Fatalf("a login begins with %v", kept)
	}
	for _, base := range []string{"https://cards.example.com", "http://127.0.0.1:8080"} {
		c := w.login.Config
		c.BaseURL = base
		l, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		if failed := l.enter(recorder, httptest.NewRequest(http.MethodGet, "/", nil), "", Person{UserInfo: authenticationv1.UserInfo{Username: "alice"}, Expires: w.clock.Now().Add(time.Minute)}); failed != nil {
			t.Fatal(failed)
		}
		cookies := recorder.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("the cookies are %v", cookies)
		}
		cookie, https := cookies[0], strings.HasPrefix(base, "https:")
		if cookie.Secure != https || strings.HasPrefix(cookie.Name, "__Host-") != https || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 60 {
			t.Errorf("at %s it is %+v", base, cookie)
		}
		if !strings.HasPrefix(recorder.Header().Get("Location"), base+"/link?") || recorder.Header().Get("Cache-Control") != "no-store" || recorder.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("the header is %v", recorder.Header())
		}
	}
}

// TestSession_is_no_other_thing presents what is right elsewhere, and what is changed, as a session.
func TestSession_is_no_other_thing(t *testing.T) {
	w, _ := oidcWorld(t)
	browser := w.browser()
	w.logIn(browser)
	name, session := w.login.sessions.cookie, w.cookies(browser)[0].Value
	now, expires := w.clock.Now(), w.clock.Now().Add(time.Hour)
	mallory := private{User: &authenticationv1.UserInfo{Username: "mallory"}, Attempt: &attempt{State: "s"}}
	seal := func(s sealer, p private) string {
		text, err := s.seal(now, expires, p)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	otherKey, err := link.NewKey([]byte(strings.Repeat("o", link.MinKey)))
	if err != nil {
		t.Fatal(err)
	}
	ofOther, err := newSealer(otherKey, "session", w.login.base)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := w.login.sessions
	elsewhere.page = "https://other.example.com"
	w.in(w.with(name, seal(w.login.sessions, mallory)), "mallory [] via ") // what follows fails for its own reason
	for what, text := range map[string]string{
		"nothing":                         "",
		"text":                            "alice",
		"a_link":                          w.link(),
		"a_login_that_began":              seal(w.login.attempts, mallory),
		"a_session_of_another_page":       seal(elsewhere, mallory),
		"a_session_of_another_key":        seal(ofOther, mallory),
		"a_session_of_nobody":             seal(w.login.sessions, private{}),
		"a_session_of_somebody_nameless":  seal(w.login.sessions, private{User: &authenticationv1.UserInfo{Groups: []string{"admins"}}}),
		"a_session_that_was_cut":          session[:len(session)-4],
		"a_session_that_was_changed":      session[:len(session)/2] + flip(session[len(session)/2:]),
		"a_session_with_another_header":   "eyJhbGciOiJub25lIn0" + session[strings.Index(session, "."):],
		"an_unsigned_token":               "eyJhbGciOiJub25lIn0.eyJ1c2VyIjp7InVzZXJuYW1lIjoibWFsbG9yeSJ9fQ.",
		"a_session_of_more_than_it_takes": strings.Repeat(session, 20),
	} {
		t.Run(what, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: name, Value: text})
			if person, in := w.login.Visitor(r); in {
				t.Errorf("it lets %+v in", person)
			}
		})
	}
	if _, err := w.login.Key.Verify(session, w.server.URL, now); err == nil {
		t.Error("a session passes for a link")
	}
	// A session is no login that began, either.
	if _, shown := w.get(w.with(w.login.attempts.cookie, session), callbackPath, url.Values{"state": {""}, "code": {"c"}}); !strings.Contains(shown, "not begun in this browser") {
		t.Errorf("a session is taken for a login that began: %s", shown)
	}
	// Nor is the value of a cookie readable.
	if strings.Contains(session, "alice") || strings.Count(session, ".") != 4 {
		t.Errorf("a session reads %s", session)
	}
}

func flip(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}

func TestSession_holds_hundreds_of_groups_and_says_when_they_are_too_many(t *testing.T) {
	w, issuer := oidcWorld(t)
	groups := func(count int) {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("department-%d/team-%d/developers", i%7, i)
		}
		issuer.Claims["groups"] = names
	}
	groups(300)
	browser := w.browser()
	if status, shown := w.logIn(browser); status != http.StatusOK || !strings.Contains(shown, `"department-5/team-299/developers"`) {
		t.Errorf("300 groups: HTTP %d, %s (%v)", status, shown, w.failed)
	}
	groups(10_000)
	browser = w.browser()
	if status, shown := w.logIn(browser); status != http.StatusForbidden || !strings.HasPrefix(shown, "You are in 10001 groups") || !strings.Contains(shown, "kubectl c5c3 answer") {
		t.Errorf("10000 groups: HTTP %d, %s (%v)", status, shown, w.failed)
	}
	w.out(browser)
}

func TestLogin_needs_a_way_a_key_and_an_address(t *testing.T) {
	w, _ := oidcWorld(t)
	for name, edit := range map[string]func(*Config){
		"way":     func(c *Config) { c.OIDC = nil },
		"key":     func(c *Config) { c.Key = link.Key{} },
		"address": func(c *Config) { c.BaseURL = "cards.example.com" },
		"client":  func(c *Config) { c.OIDC = &OIDC{IssuerURL: "https://sso.example.com"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := w.login.Config
			edit(&c)
			if _, err := New(c); err == nil {
				t.Error("it starts without")
			}
		})
	}
}

func TestOptions_are_the_ways_to_log_in_and_no_other_answers(t *testing.T) {
	for name, c := range map[string]struct {
		o      *OIDC
		tokens *Tokens
		want   Options
	}{
		"a_provider": {&OIDC{IssuerURL: "https://sso.example.com", ClientID: "c"}, nil, Options{Provider: "sso.example.com"}},
		"tokens":     {nil, &Tokens{Audiences: []string{"cards"}}, Options{Tokens: true, Audiences: []string{"cards"}}},
		"both":       {&OIDC{Title: "Example ID", IssuerURL: "https://sso.example.com", ClientID: "c"}, &Tokens{}, Options{Provider: "Example ID", Tokens: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.o, c.tokens)
			if got := w.login.Options(); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("they are %+v", got)
			}
			// Without a link each way that there is answers 400.
			for way, there := range map[string]bool{ProviderPath: c.o != nil, callbackPath: c.o != nil, TokenPath: c.tokens != nil} {
				status, _ := w.get(w.browser(), way, nil)
				if way == TokenPath {
					status, _ = w.post(w.browser(), way, nil)
				}
				if (status == http.StatusBadRequest) != there {
					t.Errorf("%s answers HTTP %d", way, status)
				}
			}
		})
	}
}
