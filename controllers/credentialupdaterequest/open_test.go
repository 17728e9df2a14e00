package credentialupdaterequest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
)

func TestOpen(t *testing.T) {
	shown := func(w *world) {
		w.sets("r", func(s *agents.CredentialUpdateRequestStatus) { s.InteractionRef = "card-1" })
	}
	late := func(w *world) { w.clock.SetTime(w.clock.Now().Add(credupdate.AskWindow)) }
	fixed := func(w *world) { w.changes("bot-token", "value", "another-token") }
	for name, c := range map[string]struct {
		given func(*world)
		phase string
		says  string
	}{
		"nothing_happens":          {func(*world) {}, "Open", ""},
		"a_second_before_its_time": {func(w *world) { w.clock.SetTime(w.clock.Now().Add(credupdate.AskWindow - time.Second)) }, "Open", ""},
		"the_value_changes":        {fixed, "Fulfilled", "before anybody was shown"},
		"it_changes_after_a_card":  {both(shown, fixed), "Fulfilled", "was replaced"},
		"a_namesake_changes": {func(w *world) {
			namesake := &corev1.Secret{ObjectMeta: inIdentities("bot-token"), Data: map[string][]byte{"value": []byte("another-token")}}
			w.must(w.client.Create(w.t.Context(), namesake))
		}, "Open", ""},
		"another_key_changes": {func(w *world) { w.changes("bot-token", "other", "y") }, "Open", ""},
		"metadata_changes": {func(w *world) {
			s := w.secret("bot-token")
			s.Labels = map[string]string{"a": "b"}
			w.must(w.client.Update(w.t.Context(), s))
		}, "Open", ""},
		"the_secret_goes": {func(w *world) { w.must(w.client.Delete(w.t.Context(), &corev1.Secret{ObjectMeta: named("bot-token")})) }, "Open", ""},
		"the_key_goes": {func(w *world) {
			s := w.secret("bot-token")
			delete(s.Data, "value")
			w.must(w.client.Update(w.t.Context(), s))
		}, "Open", ""},
		"the_value_is_emptied":          {func(w *world) { w.changes("bot-token", "value", " \n") }, "Open", ""},
		"nobody_was_asked_in_time":      {late, "Expired", "nobody was ever shown a card"},
		"somebody_was_asked":            {both(shown, late), "Expired", "A card was shown"},
		"it_changes_in_the_last_second": {both(late, fixed), "Fulfilled", ""},
		"opened_before_that_was_noted": {func(w *world) {
			w.sets("r", func(s *agents.CredentialUpdateRequestStatus) { s.OpenedAt = nil })
			late(w)
		}, "Expired", ""},
		"a_record_without_a_secret": {func(w *world) {
			w.sets("r", func(s *agents.CredentialUpdateRequestStatus) { s.CredentialSecretRef = nil })
			fixed(w)
		}, "Open", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.files("r", session, "mcpserver/git")
			w.wants(w.pass("r"), "Open", "RejectedVerified")
			c.given(w)
			result, err := w.try("r")
			w.must(err)
			status := w.status("r")
			w.wants(status, c.phase, "RejectedVerified", c.says)
			if w.asked.Load() != 1 {
				t.Error("an open request was probed again")
			}
			if open := status.Phase == "Open"; open != (result.RequeueAfter > 0 && result.RequeueAfter <= openPoll) {
				t.Errorf("it comes back after %s", result.RequeueAfter)
			}
			settled := agents.Settled(status.Phase)
			if got := len(w.events); got != 1 && !settled || got != 2 && settled {
				t.Errorf("it made the Events %q", w.events)
			}
			if settled {
				// A fix after the end does not bring it back.
				fixed(w)
				if again := w.pass("r"); again.Phase != status.Phase || again.Reason != status.Reason {
					t.Errorf("it became %+v", again)
				}
			}
		})
	}
}

// A value that comes while the old one is being probed is not what the probe was about.
func TestOpen_about_a_value_that_changed_during_the_probe(t *testing.T) {
	w := newWorld(t)
	w.answer = func(rw http.ResponseWriter, _ *http.Request) {
		w.changes("bot-token", "value", "another-token") //nolint:contextcheck // it is the test that changes it, not the provider
		rw.WriteHeader(http.StatusUnauthorized)
	}
	w.files("r", session, "mcpserver/git")
	w.wants(w.pass("r"), "Open", "RejectedVerified")
	w.wants(w.pass("r"), "Fulfilled", "RejectedVerified")
}

// An OAuth token's Secret is one credential as a whole, in whatever namespace it is, and a platform refreshes it too.
func TestOpen_about_an_OAuth_token(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		change func(map[string][]byte)
		phase  string
		says   string
	}{
		"refreshed": {503, ``, func(d map[string][]byte) { d[keyAccessToken] = []byte("another") }, "Fulfilled", "token was refreshed in the background"},
		"both_tokens_are_new": {503, ``, func(d map[string][]byte) {
			d[keyAccessToken], d[keyRefreshToken] = []byte("another"), []byte("another")
		}, "Fulfilled", "in the background, or authorized anew"},
		"authorized_anew":                {400, `{"error":"invalid_grant"}`, func(d map[string][]byte) { d[keyAccessToken] = []byte("another") }, "Fulfilled", "credential was authorized anew"},
		"nothing_happens":                {503, ``, func(map[string][]byte) {}, "Open", ""},
		"the_token_is_revoked_and_wiped": {503, ``, func(d map[string][]byte) { delete(d, keyAccessToken) }, "Open", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refreshing(c.status, c.body)(w)
			w.persons()
			w.files("r", session, "mcpserver/oauth")
			opened := w.pass("r")
			if opened.Phase != agents.PhaseOpen {
				t.Fatalf("it is %+v", opened)
			}
			master := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: credupdate.IdentitiesNamespace, Name: "alice-oauth"}, master))
			c.change(master.Data)
			w.must(w.client.Update(t.Context(), master))
			status := w.pass("r")
			w.wants(status, c.phase, opened.Determination, c.says)
		})
	}
}

// Without a refresh token nothing can be refreshed. What the operator does not remember it does not claim.
func TestOpen_about_an_OAuth_token_says_what_it_knows(t *testing.T) {
	for name, c := range map[string]struct {
		before, between func(*world)
		says            string
	}{
		"without_a_refresh_token": {func(w *world) { w.changes("bot-oauth", keyRefreshToken, "") }, func(*world) {}, "credential was authorized anew"},
		"after_a_restart":         {func(*world) {}, func(w *world) { clear(w.r.refreshTokens) }, "in the background, or authorized anew"},
		"while_another_one_goes":  {func(*world) {}, func(w *world) { _, err := w.try("none"); w.must(err) }, "token was refreshed in the background"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refreshing(http.StatusServiceUnavailable, ``)(w)
			c.before(w)
			w.persons()
			w.files("r", session, "mcpserver/oauth")
			w.pass("r")
			c.between(w)
			master := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: credupdate.IdentitiesNamespace, Name: "alice-oauth"}, master))
			master.Data[keyAccessToken] = []byte("another")
			w.must(w.client.Update(t.Context(), master))
			w.wants(w.pass("r"), "Fulfilled", "RejectedVerified", c.says)
			if len(w.r.refreshTokens) > 0 {
				t.Error("a settled request is remembered")
			}
		})
	}
}

func FuzzParseOrigin(f *testing.F) {
	for _, seed := range []string{"mcpserver/git", "", "/", "mcpserver/", "/git", "mcpserver/..", "mcpserver/a/b", "mcpserver/%2e%2e", "x/git\n", "toolkit/A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		from, ok := parseOrigin(text)
		if !ok {
			if from != (origin{}) {
				t.Errorf("%q is refused and gives %+v", text, from)
			}
			return
		}
		// What is taken is taken whole, and its name cannot leave its place in a URL.
		if from.kind+"/"+from.name != text || from.kind == "" || !objectName(from.name) || strings.ContainsAny(from.name, "/%?#\\ \n") || from.name == ".." {
			t.Errorf("%q gives %+v", text, from)
		}
	})
}
