package web

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
)

func TestHeaders_of_every_response(t *testing.T) {
	w := newWorld(t)
	p := w.enters()
	token := w.link(w.clock.Now())
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	foreign := p.form(answertest.Good)
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	for name, request := range map[string]*http.Request{
		"the form":             p.request(http.MethodGet, link.Path+"?token="+token, ""),
		"a value of no use":    p.form("hunter2"),
		"a value that is good": p.form(answertest.Good),
		"another site's form":  foreign,
		"a login that fails":   p.request(http.MethodPost, login.TokenPath, "token="+token+"&bearer=nobody's"),
		"a login":              p.request(http.MethodPost, login.TokenPath, url.Values{link.Parameter: {token}, login.BearerField: {p.token}}.Encode()),
		"a logout":             p.request(http.MethodPost, login.LogoutPath, "token="+token),
		"a forged link":        p.request(http.MethodGet, link.Path+"?token=x", ""),
		"nothing":              p.request(http.MethodGet, "/favicon.ico", ""),
		"a method of no use":   p.request(http.MethodDelete, link.Path, ""),
	} {
		response, err := p.browser.Do(request)
		w.must(err)
		_ = response.Body.Close()
		for header, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": contentSecurityPolicy,
		} {
			if got := response.Header.Get(header); got != want {
				t.Errorf("%s, %d: %s is %q", name, response.StatusCode, header, got)
			}
		}
		if got := response.Header.Get("Referrer-Policy"); got != "same-origin" && (got != "no-referrer" || response.StatusCode != http.StatusSeeOther) {
			t.Errorf("%s, %d: Referrer-Policy is %q", name, response.StatusCode, got)
		}
		for _, cookie := range response.Cookies() {
			if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
				t.Errorf("%s sets the cookie %s", name, cookie)
			}
		}
	}
}

func TestForms_change_a_cookie_each_so_that_no_browser_keeps_what_was_entered(t *testing.T) {
	w := newWorld(t)
	p := w.enters()
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	bad := p.request(http.MethodPost, login.TokenPath, url.Values{link.Parameter: {w.link(w.clock.Now())}, login.BearerField: {"nobody's"}}.Encode())
	seen := map[string]string{}
	for _, c := range []struct {
		name    string
		status  int
		request *http.Request
	}{
		{"a value that is refused", http.StatusUnprocessableEntity, p.form(answertest.Bad)},
		{"the same again", http.StatusUnprocessableEntity, p.form(answertest.Bad)},
		{"one that is stored", http.StatusSeeOther, p.form(answertest.Good)},
		{"a token that is refused", http.StatusForbidden, bad},
	} {
		p.do(c.status, c.request)
		i := slices.IndexFunc(p.last.Cookies(), func(cookie *http.Cookie) bool { return cookie.Name == forgetCookie })
		if i < 0 {
			t.Errorf("%s changes no cookie", c.name)
			continue
		}
		cookie := p.last.Cookies()[i]
		if before, known := seen[cookie.Value]; known {
			t.Errorf("%s leaves the cookie as %s did", c.name, before)
		}
		seen[cookie.Value] = c.name
		if !cookie.HttpOnly || cookie.Path != "/" || cookie.MaxAge <= 0 {
			t.Errorf("%s sets the cookie %s", c.name, cookie)
		}
	}
}

func TestContentSecurityPolicy_allows_the_style_of_the_pages_and_nothing_else(t *testing.T) {
	w := newWorld(t)
	p := w.stranger()
	p.opens(http.StatusOK, w.link(w.clock.Now()))
	response, err := p.browser.Get(w.server.URL + link.Path)
	w.must(err)
	defer func() { _ = response.Body.Close() }()
	var text strings.Builder
	w.must(response.Write(&text))
	_, style, _ := strings.Cut(text.String(), "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	digest := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if got := response.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("it is %q, and the page's style needs %q", got, want)
	}
	for _, forbidden := range []string{"<script", " style=", " onclick", "javascript:", " src="} {
		if strings.Contains(strings.ToLower(text.String()), forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
}

func TestHTTPS_is_insisted_on_where_there_is_HTTPS(t *testing.T) {
	w := newWorld(t, func(_ *world, c *Config) { c.BaseURL = "https://cards.example.com/agents" })
	p := w.stranger()
	p.do(http.StatusOK, p.request(http.MethodGet, "/agents/link?token="+w.link(w.clock.Now(), func(c *link.Claims) { c.Audience = "https://cards.example.com/agents" }), ""))
	p.reads(signIn, `action="/agents/login/token"`)
	if got := p.last.Header.Get("Strict-Transport-Security"); got == "" {
		t.Error("a browser is not told")
	}
	p.opens(http.StatusNotFound, w.link(w.clock.Now()))
	// The Host that a proxy leaves behind need not be the page's.
	request := p.request(http.MethodPost, "/agents"+link.Path, "token=x")
	request.Header.Del("Sec-Fetch-Site")
	request.Header.Set("Origin", "https://cards.example.com")
	p.do(http.StatusBadRequest, request)
	p.reads("This link is not valid")
}

func TestRates(t *testing.T) {
	t.Run("of_a_person_who_submits_from_anywhere", func(t *testing.T) {
		w := newWorld(t, func(_ *world, c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
		p := w.enters()
		submit := func(i, status int) {
			t.Helper()
			request := p.form("hunter2")
			request.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
			p.do(status, request)
		}
		for i := range answerBurst {
			submit(i, http.StatusUnprocessableEntity)
		}
		submit(answerBurst, http.StatusTooManyRequests)
		p.reads("Nothing was stored")
		w.audited(`"outcome":"TooFast"`, p.account, `"address":"203.0.113.10"`)
		if p.last.Header.Get("Retry-After") != "10" {
			t.Errorf("it says to wait %q", p.last.Header.Get("Retry-After"))
		}
		// Others are not kept waiting, and neither is whoever waited.
		other := w.enters()
		other.submits(http.StatusUnprocessableEntity, "hunter2")
		w.clock.SetTime(w.clock.Now().Add(retryAfter))
		submit(answerBurst, http.StatusUnprocessableEntity)
		submit(answerBurst, http.StatusTooManyRequests)
	})

	t.Run("of_an_address_that_logs_in", func(t *testing.T) {
		w := newWorld(t)
		p := w.stranger()
		p.token = "nobody's"
		for range attemptBurst {
			p.logsIn(http.StatusForbidden)
		}
		p.logsIn(http.StatusTooManyRequests)
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		p.reads(signIn)
	})

	t.Run("of_an_address_that_looks", func(t *testing.T) {
		w := newWorld(t)
		p := w.stranger()
		for range visitBurst {
			p.opens(http.StatusNotFound, "")
		}
		p.opens(http.StatusTooManyRequests, "")
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		p.opens(http.StatusNotFound, "")
	})

	t.Run("of_many_in_a_table_that_does_not_grow", func(t *testing.T) {
		l, now := newLimits(answerRate, 1), time.Now()
		for i := range 2 * remembered {
			if !l.allow(i, now) {
				t.Fatalf("the %dth is refused", i)
			}
		}
		if l.table.Len() != remembered {
			t.Errorf("it remembers %d", l.table.Len())
		}
		if l.allow(2*remembered-1, now) {
			t.Error("who came last is forgotten")
		}
	})
}

func TestAddress(t *testing.T) {
	p := &page{Config: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for _, c := range []struct {
		connected string
		forwarded []string
		address   string
		counted   string
	}{
		{"203.0.113.7:1", nil, "203.0.113.7", "203.0.113.7/32"},
		{"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7", "203.0.113.7/32"}, // of somebody whom nobody trusts
		{"10.1.2.3:1", nil, "10.1.2.3", "10.1.2.3/32"},
		{"10.1.2.3:1", []string{"198.51.100.1"}, "198.51.100.1", "198.51.100.1/32"},
		{"[::ffff:10.1.2.3]:1", []string{"198.51.100.1"}, "198.51.100.1", "198.51.100.1/32"},
		{"10.1.2.3:1", []string{"192.0.2.66, 198.51.100.1, 10.9.9.9"}, "198.51.100.1", "198.51.100.1/32"}, // the first is the visitor's invention
		{"10.1.2.3:1", []string{"192.0.2.66", "198.51.100.1"}, "198.51.100.1", "198.51.100.1/32"},
		{"10.1.2.3:1", []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.1", "10.0.0.1/32"},
		{"10.1.2.3:1", []string{"nonsense"}, "10.1.2.3", "10.1.2.3/32"},
		{"10.1.2.3:1", []string{"198.51.100.1, "}, "10.1.2.3", "10.1.2.3/32"},
		{"[2001:db8:1:2:3::4]:1", nil, "2001:db8:1:2:3::4", "2001:db8:1:2::/64"}, // whoever has one address there has all of them
		{"[fd00::1]:1", []string{"2001:db8:1:2::9"}, "2001:db8:1:2::9", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1", nil, "fe80::1", "fe80::/64"},
		{"@", nil, "invalid IP", "invalid Prefix"}, // a Unix socket: all are one
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.RemoteAddr = c.connected
		request.Header["X-Forwarded-For"] = c.forwarded
		got := p.address(request)
		if got.String() != c.address || network(got).String() != c.counted {
			t.Errorf("%s with X-Forwarded-For %q is %s, counted as %s; want %s and %s", c.connected, c.forwarded, got, network(got), c.address, c.counted)
		}
	}
}
