package refresh_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/internal/refresh"
)

// server is an authorization server that notes what it was asked.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	answer http.HandlerFunc
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		s.mu.Lock()
		s.asked = append(s.asked, r.PostForm.Encode())
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func (s *server) grant() refresh.Grant {
	return refresh.Grant{TokenEndpoint: s.URL, ClientID: "client", ClientSecret: "hush", RefreshToken: "first"}
}

func answer(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

func rotating() http.HandlerFunc {
	return answer(http.StatusOK, map[string]any{"access_token": "new", "token_type": "Bearer", "refresh_token": "second", "expires_in": 3600})
}

func TestRedeem(t *testing.T) {
	s := serve(t, rotating())
	tokens, err := (&refresh.Redeemer{}).Redeem(t.Context(), s.grant())
	if err != nil {
		t.Fatal(err)
	}
	if tokens.AccessToken != "new" || tokens.RefreshToken != "second" || time.Until(tokens.ExpiresAt) < 50*time.Minute {
		t.Errorf("it gave %q, %q until %s", tokens.AccessToken, tokens.RefreshToken, tokens.ExpiresAt)
	}
	if got := strings.Join(s.requests(), "\n"); got != "client_id=client&client_secret=hush&grant_type=refresh_token&refresh_token=first" {
		t.Errorf("it was asked with %s", got)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if shown := fmt.Sprintf(verb+verb, tokens, s.grant()); strings.Contains(shown, "new") || strings.Contains(shown, "hush") || strings.Contains(shown, "first") {
			t.Errorf("%s shows a secret: %s", verb, shown)
		}
	}
}

func TestRedeem_keeps_a_refresh_token_that_is_not_replaced(t *testing.T) {
	s := serve(t, answer(http.StatusOK, map[string]any{"access_token": "new", "token_type": "Bearer", "expires_in": 0}))
	r := &refresh.Redeemer{}
	for range 2 { // such a token may be redeemed as often as it is needed
		tokens, err := r.Redeem(t.Context(), s.grant())
		if err != nil || tokens.RefreshToken != "first" || !tokens.ExpiresAt.IsZero() {
			t.Errorf("it gave %q until %s, %v", tokens.RefreshToken, tokens.ExpiresAt, err)
		}
	}
	if len(s.requests()) != 2 {
		t.Errorf("it was asked %d times", len(s.requests()))
	}
}

func TestRedeem_redeems_a_rotating_token_once(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(arrived) })
		<-release
		rotating()(w, r)
	})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &refresh.Redeemer{Now: func() time.Time { return now }}

	// The first to ask goes away; its redemption goes on.
	impatient, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := r.Redeem(impatient, s.grant())
		gone <- err
	}()
	<-arrived
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("whoever left was told %v", err)
	}
	results := make(chan string)
	for range 5 {
		go func() {
			tokens, err := r.Redeem(t.Context(), s.grant())
			results <- fmt.Sprint(tokens.AccessToken, err)
		}()
	}
	close(release)
	for range 5 {
		if got := <-results; got != "new<nil>" {
			t.Errorf("one of many was told %s", got)
		}
	}
	late := func(by time.Duration) {
		t.Helper()
		now = now.Add(by)
		if tokens, err := r.Redeem(t.Context(), s.grant()); err != nil || tokens.RefreshToken != "second" {
			t.Errorf("a late one was told %q, %v", tokens.RefreshToken, err)
		}
	}
	late(24 * time.Hour) // nobody could store them yet
	r.Stored(s.grant())
	late(9 * time.Minute) // with a Secret from before
	r.Stored(s.grant())   // again, which prolongs nothing
	if len(s.requests()) != 1 {
		t.Errorf("it was redeemed %d times", len(s.requests()))
	}
	// Whoever comes with that token now has it from elsewhere, and these are held no more.
	late(2 * time.Minute)
	if len(s.requests()) != 2 {
		t.Errorf("it was redeemed %d times", len(s.requests()))
	}
}

func TestRedeem_says_dead_for_invalid_grant_only(t *testing.T) {
	echo := map[string]any{"error": "invalid_request", "error_description": "what is invalid_grant first hush?"}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		dead   bool
		says   string
	}{
		"invalid_grant":           {answer(400, map[string]any{"error": "invalid_grant"}), true, ""},
		"invalid_grant with 401":  {answer(401, map[string]any{"error": "Invalid_Grant"}), true, ""},
		"invalid_grant with 200":  {answer(200, map[string]any{"error": "invalid_grant"}), true, ""},
		"invalid_grant with 403":  {answer(403, map[string]any{"error": "invalid_grant"}), false, "403"},
		"invalid_grant with 429":  {answer(429, map[string]any{"error": "invalid_grant"}), false, "429"},
		"invalid_grant with 503":  {answer(503, map[string]any{"error": "invalid_grant"}), false, "503"},
		"another error":           {answer(401, map[string]any{"error": "invalid_client"}), false, "401 invalid_client"},
		"invalid_grant in a text": {answer(400, echo), false, "400 invalid_request"},
		"a proxy's 503": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "invalid_grant", http.StatusServiceUnavailable)
		}, false, "503"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, false, "307"},
		"success without a token": {answer(200, map[string]any{"token_type": "Bearer"}), false, "without a token"},
		"no JSON":                 {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, false, "without a token"},
		"more than anybody reads": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, false, "without a token"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.answer)
			_, err := (&refresh.Redeemer{}).Redeem(t.Context(), s.grant())
			if err == nil || errors.Is(err, refresh.ErrDead) != test.dead || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("it failed with %v, want dead: %t, saying %q", err, test.dead, test.says)
			}
			if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "first") {
				t.Errorf("the error shows a secret: %v", err)
			}
			if len(s.requests()) != 1 {
				t.Errorf("it was asked %d times", len(s.requests()))
			}
		})
	}
	closed := serve(t, rotating())
	closed.Close()
	if _, err := (&refresh.Redeemer{}).Redeem(t.Context(), closed.grant()); err == nil || errors.Is(err, refresh.ErrDead) {
		t.Errorf("nobody at the endpoint: %v", err)
	}
}
