// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"
)

// fakeClock is a clock that stands still until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func mustAdmin(t *testing.T, s *Service, k *fakeKeystone) *Session {
	t.Helper()
	session, err := s.Admin(t.Context(), "openstack/cp", k.adminCloud(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestAdmin_logs_in_once_until_something_changes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *Service, *fakeKeystone, *fakeClock)
		want   int // logins in all
	}{
		"nothing_changes":                          {func(*testing.T, *Service, *fakeKeystone, *fakeClock) {}, 1},
		"more_than_five_minutes_before_the_expiry": {func(_ *testing.T, _ *Service, _ *fakeKeystone, c *fakeClock) { c.move(54 * time.Minute) }, 1},
		"five_minutes_before_the_expiry":           {func(_ *testing.T, _ *Service, _ *fakeKeystone, c *fakeClock) { c.move(55 * time.Minute) }, 2},
		"it_is_forgotten":                          {func(_ *testing.T, s *Service, _ *fakeKeystone, _ *fakeClock) { s.Forget("openstack/cp") }, 2},
		"another_key_is_forgotten":                 {func(_ *testing.T, s *Service, _ *fakeKeystone, _ *fakeClock) { s.Forget("openstack/cp2") }, 1},
		"another_document_under_the_same_key": {func(t *testing.T, s *Service, k *fakeKeystone, _ *fakeClock) {
			cloud := k.adminCloud()
			cloud.RegionName = "RegionTwo"
			if _, err := s.Admin(t.Context(), "openstack/cp", cloud, nil); err != nil {
				t.Fatal(err)
			}
		}, 3}, // the other document, and the first one again
	} {
		t.Run(name, func(t *testing.T) {
			keystone, clock := newFakeKeystone(t), &fakeClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
			keystone.now = clock.Now
			service := New(Config{Now: clock.Now})
			mustAdmin(t, service, keystone)
			test.change(t, service, keystone, clock)
			mustAdmin(t, service, keystone)
			if n := keystone.count(loginRequest); n != test.want {
				t.Errorf("logged in %d times, want %d", n, test.want)
			}
		})
	}
}

func TestAdmin_counts_the_expiry_on_keystones_clock(t *testing.T) {
	keystone, clock := newFakeKeystone(t), &fakeClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	// Its clock is two hours behind, so each token looks expired to ours from the start.
	keystone.now = func() time.Time { return clock.Now().Add(-2 * time.Hour) }
	service := New(Config{Now: clock.Now})
	for range 3 {
		mustAdmin(t, service, keystone)
	}
	if n := keystone.count(loginRequest); n != 1 {
		t.Errorf("logged in %d times", n)
	}
}

func TestAdmin_uses_a_short_lived_token_for_half_its_life(t *testing.T) {
	keystone, clock := newFakeKeystone(t), &fakeClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	keystone.now, keystone.lifetime = clock.Now, 4*time.Minute
	service := New(Config{Now: clock.Now})
	mustAdmin(t, service, keystone)
	clock.move(time.Minute)
	mustAdmin(t, service, keystone)
	if n := keystone.count(loginRequest); n != 1 {
		t.Errorf("logged in %d times after a minute", n)
	}
	clock.move(time.Minute)
	mustAdmin(t, service, keystone)
	if n := keystone.count(loginRequest); n != 2 {
		t.Errorf("logged in %d times after two minutes", n)
	}
}

func TestAdmin_shares_one_login_among_all_who_wait(t *testing.T) {
	keystone := newFakeKeystone(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	keystone.fault = func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { close(arrived) })
		<-release
		return false
	}
	service := New(Config{})

	// The first caller starts the login and leaves; its leaving must not fail the others.
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := service.Admin(ctx, "openstack/cp", keystone.adminCloud(), nil)
		first <- err
	}()
	<-arrived
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}

	const callers = 20
	results := make(chan error, callers)
	sessions := make(chan *Session, callers)
	for range callers {
		go func() {
			session, err := service.Admin(t.Context(), "openstack/cp", keystone.adminCloud(), nil)
			sessions <- session
			results <- err
		}()
	}
	close(release)
	seen := map[*Session]bool{}
	for range callers {
		if err := <-results; err != nil {
			t.Error(err)
		}
		seen[<-sessions] = true
	}
	if n := keystone.count(loginRequest); n != 1 || len(seen) != 1 {
		t.Errorf("%d logins gave %d sessions", n, len(seen))
	}
}

func TestAdmin_remembers_no_failure(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool { fakeRefusal(w, 503, "Down."); return true }
	service := New(Config{})
	_, err := service.Admin(t.Context(), "openstack/cp", keystone.adminCloud(), nil)
	want(t, err, EndpointUnreachable)
	keystone.set(func() { keystone.fault = nil })
	mustAdmin(t, service, keystone)
}

func TestAdmin_replaces_a_revoked_token_once(t *testing.T) {
	keystone := newFakeKeystone(t)
	service := New(Config{})
	session := mustAdmin(t, service, keystone)

	t.Run("and_the_operation_succeeds", func(t *testing.T) {
		keystone.set(func() { delete(keystone.tokens, "gAAAAA-token-0"); keystone.tokens["spent"] = false })
		for range 2 { // the session in hand is the old one both times, the login is shared
			if _, err := session.User(t.Context(), "u-agent"); err != nil {
				t.Fatal(err)
			}
		}
		if n := keystone.count(loginRequest); n != 2 {
			t.Errorf("logged in %d times", n)
		}
	})
	t.Run("and_a_refused_login_is_the_answer", func(t *testing.T) {
		keystone.set(func() { clear(keystone.tokens); keystone.password = "another" })
		_, err := session.User(t.Context(), "u-agent")
		if e := want(t, err, AuthenticationFailed); e.Operation != "login" {
			t.Errorf("the failure is of %s", e.Operation)
		}
	})
	t.Run("and_a_token_refused_again_ends_it", func(t *testing.T) {
		keystone.set(func() {
			keystone.password = adminPassword
			keystone.requests = map[string]int{}
			keystone.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					return false
				}
				fakeRefusal(w, 401, "The request you have made requires authentication.")
				return true
			}
		})
		_, err := session.User(t.Context(), "u-agent")
		want(t, err, AuthenticationFailed)
		if n := keystone.count(loginRequest); n != 1 {
			t.Errorf("logged in %d times", n)
		}
	})
}

func TestLogin_session_keeps_its_token(t *testing.T) {
	// Only an administrator's session renews itself: one from Login was asked for to learn whether
	// exactly this credential works.
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	keystone.set(func() { clear(keystone.tokens) })
	_, err := session.User(t.Context(), "u-agent")
	want(t, err, AuthenticationFailed)
	if n := keystone.count(loginRequest); n != 1 {
		t.Errorf("logged in %d times", n)
	}
}
