package providers

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/c5c3/c5c3-operator/internal/verdict"
)

const secret = "glpat-0123456789abcdef"

// provider is an entry whose endpoint a test's server answers.
func provider(t *testing.T, v Verify, handler http.HandlerFunc) Provider {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	v.Endpoint = server.URL + "/me"
	return Provider{ID: "x", Title: "X", Shape: ShapeBearer, Verify: &v}
}

func TestProbe_means(t *testing.T) {
	for name, test := range map[string]struct {
		verify Verify
		status int
		body   string
		want   verdict.Probe
		says   string
	}{
		"200":                        {status: 200, want: verdict.ProbeValid, says: "200 OK"},
		"another success":            {status: 204, verify: Verify{SuccessStatuses: []int{204}}, want: verdict.ProbeValid, says: "204 No Content"},
		"a success that is not ours": {status: 204, want: verdict.ProbeIndeterminate, says: "204 No Content"},
		"401":                        {status: 401, body: `{"message": "Bad credentials"}`, want: verdict.ProbeRejected, says: "401 Unauthorized: Bad credentials"},
		"401 without words":          {status: 401, body: `<html>`, want: verdict.ProbeRejected, says: "401 Unauthorized"},
		"401 of OpenAI's":            {status: 401, body: `{"error": {"message": "Incorrect key", "code": "x"}}`, want: verdict.ProbeRejected, says: "401 Unauthorized: Incorrect key"},
		"401 of OAuth's":             {status: 401, body: `{"error": "invalid_token"}`, want: verdict.ProbeRejected, says: "401 Unauthorized: invalid_token"},
		"403":                        {status: 403, body: `{"message": "SSO required"}`, want: verdict.ProbeForbidden, says: "403 Forbidden: SSO required"},
		"403 at the rate limit":      {status: 403, body: `{"message": "API Rate Limit exceeded"}`, want: verdict.ProbeIndeterminate, says: "403 Forbidden: API Rate Limit exceeded"},
		"401 at the rate limit":      {status: 401, body: `{"message": "secondary rate limit"}`, want: verdict.ProbeIndeterminate, says: "401 Unauthorized: secondary rate limit"},
		"429":                        {status: 429, want: verdict.ProbeIndeterminate, says: "429 Too Many Requests"},
		"404":                        {status: 404, want: verdict.ProbeIndeterminate, says: "404 Not Found"},
		"500":                        {status: 500, want: verdict.ProbeIndeterminate, says: "500 Internal Server Error"},
		"503":                        {status: 503, want: verdict.ProbeIndeterminate, says: "503 Service Unavailable"},
		"an answer that quotes it":   {status: 401, body: `{"message": "no such token glpat-01****"}`, want: verdict.ProbeRejected, says: "401 Unauthorized"},
		"text that plays tricks":     {status: 401, body: `{"message": "a\u202e\u001b[31m\n\nb"}`, want: verdict.ProbeRejected, says: "401 Unauthorized: a[31m b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider(t, test.verify, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			got, says := Prober{Transport: http.DefaultTransport}.Probe(t.Context(), p, secret)
			if got != test.want || says != test.says {
				t.Errorf("it is %s (%s), want %s (%s)", got, says, test.want, test.says)
			}
		})
	}
}

func TestProbe_presents_the_credential(t *testing.T) {
	for name, test := range map[string]struct {
		verify        Verify
		method, shows string
	}{
		"as a bearer":   {Verify{}, "GET", "Authorization: Bearer " + secret},
		"as a token":    {Verify{AuthScheme: SchemeToken, Method: "POST"}, "POST", "Authorization: token " + secret},
		"in a header":   {Verify{Header: "PRIVATE-TOKEN"}, "GET", "Private-Token: " + secret},
		"beside others": {Verify{Headers: map[string]string{"anthropic-version": "2023-06-01"}}, "GET", "Anthropic-Version: 2023-06-01"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			p := provider(t, test.verify, func(_ http.ResponseWriter, r *http.Request) {
				var b strings.Builder
				_ = r.Header.Write(&b)
				asked = r.Method + " " + r.URL.Path + "\n" + b.String()
			})
			if got, says := (Prober{Transport: http.DefaultTransport}).Probe(t.Context(), p, secret); got != verdict.ProbeValid {
				t.Errorf("it is %s (%s)", got, says)
			}
			if !strings.HasPrefix(asked, test.method+" /me\n") || !strings.Contains(asked, test.shows+"\r\n") {
				t.Errorf("it was asked with\n%s", asked)
			}
		})
	}
}

// Followed to another host, a redirect would take a header that net/http does not know for secret along.
func TestProbe_follows_no_redirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed with %v", r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	p := provider(t, Verify{Header: "PRIVATE-TOKEN"}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	})
	if got, says := (Prober{Transport: http.DefaultTransport}).Probe(t.Context(), p, secret); got != verdict.ProbeIndeterminate || says != "302 Found" {
		t.Errorf("it is %s (%s)", got, says)
	}
}

func TestProbe_without_an_answer_proves_nothing(t *testing.T) {
	if got, _ := (Prober{}).Probe(t.Context(), Provider{Shape: ShapeBearer}, secret); got != verdict.ProbeUnsupported {
		t.Errorf("without a verify block it is %s", got)
	}
	reset := provider(t, Verify{}, func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = connection.(*net.TCPConn).SetLinger(0)
			_ = connection.Close()
		}
	})
	truncated := provider(t, Verify{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"login": "`)
	})
	refusing := Provider{Verify: &Verify{Endpoint: "http://127.0.0.1:1/"}}
	for name, p := range map[string]Provider{"reset": reset, "truncated": truncated, "refusing": refusing} {
		if got, says := (Prober{Transport: http.DefaultTransport}).Probe(t.Context(), p, secret); got != verdict.ProbeIndeterminate || strings.Contains(says, secret) {
			t.Errorf("%s: it is %s (%s)", name, got, says)
		}
	}
	if got, says := (Prober{Transport: http.DefaultTransport}).Probe(t.Context(), refusing, "two\nlines"); got != verdict.ProbeIndeterminate {
		t.Errorf("a credential that no header takes is %s (%s)", got, says)
	}
}

type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, fmt.Errorf("gave up: %w", r.Context().Err())
}

func TestProbe_gives_up_in_time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Provider{Verify: &Verify{Endpoint: "https://api.example/"}}
		if got, _ := (Prober{Transport: silent{}}).Probe(t.Context(), p, secret); got != verdict.ProbeIndeterminate {
			t.Errorf("silence is %s", got)
		}
	})
}
