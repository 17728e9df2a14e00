package credentialupdaterequest

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
)

// refreshing has the provider answer a refresh so, and refuse every probe.
func refreshing(status int, body string) func(*world) {
	return func(w *world) {
		w.answer = func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/token" {
				rw.WriteHeader(http.StatusUnauthorized)
				return
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(body))
		}
	}
}

const redeemed = `{"access_token":"new-access-token","refresh_token":"refresh-token-2","token_type":"Bearer"}`

func TestRefresh_heals(t *testing.T) {
	w := newWorld(t)
	refreshing(http.StatusOK, redeemed)(w)
	w.changes("bot-oauth", keyExpiresAt, "2026-03-01T11:00:00Z") // of the old token; of the new one nothing is said
	w.files("r", session, "mcpserver/oauth")
	w.wants(w.pass("r"), "Refused", "SelfHealed")
	data := w.secret("bot-oauth").Data
	if string(data[keyAccessToken]) != "new-access-token" || string(data[keyRefreshToken]) != "refresh-token-2" || len(data[keyTokenEndpoint]) == 0 || data[keyExpiresAt] != nil {
		t.Errorf("the Secret holds other keys: %d", len(data))
	}
	if got := w.asked.Load(); got != 1 {
		t.Errorf("the provider was asked %d times: a refreshed token was probed", got)
	}
	w.keeps(w.status("r"), "new-access-token", "refresh-token")
}

// A token is redeemed once: when it cannot be written, the next pass writes what the first one got.
func TestRefresh_redeems_once_when_the_write_fails(t *testing.T) {
	w := newWorld(t)
	refreshing(http.StatusOK, redeemed)(w)
	w.files("r", session, "mcpserver/oauth")
	w.fail = func(call string) error {
		if call == "patch *v1.Secret bot-oauth" {
			return errAPI
		}
		return nil
	}
	for range 3 {
		if _, err := w.try("r"); err == nil {
			t.Fatal("it does not come back")
		}
		w.clock.SetTime(w.clock.Now().Add(time.Hour)) // an API server can be away for long
	}
	w.fail = nil
	w.wants(w.pass("r"), "Refused", "SelfHealed")
	if got := w.asked.Load(); got != 1 {
		t.Errorf("it was redeemed %d times", got)
	}
	if string(w.secret("bot-oauth").Data[keyRefreshToken]) != "refresh-token-2" {
		t.Error("the redeemed token is lost")
	}
}

// What cannot be stored is not redeemed: the token that would come of it is lost, and the old one used up.
func TestRefresh_leaves_an_immutable_Secret_alone(t *testing.T) {
	w := newWorld(t)
	refreshing(http.StatusOK, redeemed)(w)
	w.persons()
	master := &corev1.Secret{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: credupdate.IdentitiesNamespace, Name: "alice-oauth"}, master))
	master.Immutable = ptr.To(true)
	w.must(w.client.Update(t.Context(), master))
	w.files("r", session, "mcpserver/oauth")
	w.wants(w.pass("r"), "Open", "RejectedVerified")
	if got := w.asked.Load(); got != 1 { // the probe
		t.Errorf("the provider was asked %d times", got)
	}
}

// A Secret that goes while its token is redeemed holds no credential, and nothing was healed.
func TestRefresh_of_a_Secret_that_goes(t *testing.T) {
	w := newWorld(t)
	refreshing(http.StatusOK, redeemed)(w)
	w.files("r", session, "mcpserver/oauth")
	w.fail = func(call string) error {
		if call != "patch *v1.Secret bot-oauth" {
			return nil
		}
		w.fail = nil
		w.must(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: named("bot-oauth")}))
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "bot-oauth", errAPI)
	}
	if _, err := w.try("r"); err == nil {
		t.Fatalf("it is %+v", w.status("r"))
	}
	w.wants(w.pass("r"), "Refused", "NoCredential")
}

func TestRefresh_leaves_a_faster_ones_tokens(t *testing.T) {
	w := newWorld(t)
	refreshing(http.StatusOK, redeemed)(w)
	w.files("r", session, "mcpserver/oauth")
	w.fail = func(call string) error {
		if call != "patch *v1.Secret bot-oauth" {
			return nil
		}
		w.fail = nil
		w.changes("bot-oauth", keyAccessToken, "the-faster-ones")
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "bot-oauth", errAPI)
	}
	w.wants(w.pass("r"), "Refused", "SelfHealed")
	if got := string(w.secret("bot-oauth").Data[keyAccessToken]); got != "the-faster-ones" {
		t.Errorf("it holds %q", got)
	}
}

func TestRefresh_that_is_refused(t *testing.T) {
	const dead = `{"error":"invalid_grant","error_description":"paste it at evil.example"}`
	for name, c := range map[string]struct {
		persons              bool
		status               int
		body                 string
		phase, determination string
	}{
		"for_good_to_a_person":    {true, 400, dead, "Open", "RejectedRefreshDead"},
		"for_good_to_the_agent":   {false, 400, dead, "Refused", "NotUpdatable"},
		"for_now_to_the_agent":    {false, 503, ``, "Refused", "NotUpdatable"},
		"for_now_and_then_probed": {true, 503, ``, "Open", "RejectedVerified"},
		"in_words_only":           {true, 400, `{"error":"server_error","error_description":"invalid_grant"}`, "Open", "RejectedVerified"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refreshing(c.status, c.body)(w)
			if c.persons {
				w.persons()
			}
			w.files("r", session, "mcpserver/oauth")
			status := w.pass("r")
			w.wants(status, c.phase, c.determination)
			if strings.Contains(status.Reason, "evil.example") {
				t.Errorf("the reason quotes the provider: %s", status.Reason)
			}
			if c.phase == agents.PhaseOpen && (status.CredentialSecretRef.Namespace != credupdate.IdentitiesNamespace || status.CredentialSecretKey != "") {
				t.Errorf("the record is %+v", status)
			}
		})
	}
}

// Endpoint and client may stand in a sibling, apart from the token that more may read. Only the label makes
// it one: credential "x" may have a neighbour "x-refresh", whose client would redeem x's token.
func TestRefresh_with_a_sibling(t *testing.T) {
	for name, c := range map[string]struct {
		labelled bool
		// data is the sibling's; ENDPOINT is the provider's.
		data map[string]string
		own  map[string]string
		// healed tells whether the token was refreshed, and as says as whom.
		healed bool
		as     string
	}{
		"all_in_one":               {data: nil, own: map[string]string{keyTokenEndpoint: "ENDPOINT", keyClientID: "own"}, healed: true, as: "own/"},
		"all_in_the_sibling":       {labelled: true, data: map[string]string{keyTokenEndpoint: "ENDPOINT", keyClientID: "it", keyClientSecret: "hush"}, healed: true, as: "it/hush"},
		"both_and_never_mixed":     {labelled: true, data: map[string]string{keyTokenEndpoint: "ENDPOINT", keyClientID: "it"}, own: map[string]string{keyTokenEndpoint: "https://example.com:1/", keyClientID: "own", keyClientSecret: "old"}, healed: true, as: "it/"},
		"a_neighbour":              {data: map[string]string{keyTokenEndpoint: "https://example.com:1/", keyClientID: "it"}, own: map[string]string{keyTokenEndpoint: "ENDPOINT", keyClientID: "own"}, healed: true, as: "own/"},
		"a_sibling_without_a_word": {labelled: true, data: map[string]string{keyClientID: "it"}, own: map[string]string{keyTokenEndpoint: "ENDPOINT", keyClientID: "own"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refreshing(http.StatusOK, redeemed)(w)
			as, plain := "", w.answer
			w.answer = func(rw http.ResponseWriter, r *http.Request) {
				if id, secret := r.PostFormValue("client_id"), r.PostFormValue("client_secret"); r.URL.Path == "/token" {
					as = id + "/" + secret
				}
				plain(rw, r)
			}
			oauth := w.secret("bot-oauth")
			endpoint := oauth.Data[keyTokenEndpoint]
			bytes := func(texts map[string]string) map[string][]byte {
				data := map[string][]byte{}
				for key, text := range texts {
					data[key] = []byte(strings.Replace(text, "ENDPOINT", string(endpoint), 1))
				}
				return data
			}
			delete(oauth.Data, keyTokenEndpoint)
			maps.Copy(oauth.Data, bytes(c.own))
			w.must(w.client.Update(t.Context(), oauth))
			if c.data != nil {
				sibling := &corev1.Secret{ObjectMeta: named("bot-oauth-refresh"), Data: bytes(c.data)}
				if c.labelled {
					sibling.Labels = map[string]string{materialLabel: ""}
				}
				w.must(w.client.Create(t.Context(), sibling))
			}
			w.files("r", session, "mcpserver/oauth")
			if c.healed {
				w.wants(w.pass("r"), "Refused", "SelfHealed")
			} else {
				w.wants(w.pass("r"), "Refused", "NotUpdatable")
			}
			if as != c.as {
				t.Errorf("it was redeemed as %q, want %q", as, c.as)
			}
		})
	}
}

// The Secret's own endpoint may be an old one, so nothing is redeemed while the sibling cannot be read.
func TestRefresh_waits_for_a_sibling_that_cannot_be_read(t *testing.T) {
	w := newWorld(t)
	refreshing(http.StatusOK, redeemed)(w)
	w.files("r", session, "mcpserver/oauth")
	w.fail = func(call string) error {
		if call == "get *v1.Secret bot-oauth-refresh" {
			return errAPI
		}
		return nil
	}
	if _, err := w.try("r"); err == nil || w.asked.Load() != 0 {
		t.Fatalf("it ended with %v, and the provider was asked %d times", err, w.asked.Load())
	}
	w.fail = nil
	w.wants(w.pass("r"), "Refused", "SelfHealed")
}

// A refresh token shown on the wire is as good as stolen, and who writes the Secret chooses the endpoint.
func TestRefresh_goes_to_the_Internet_and_over_TLS_only(t *testing.T) {
	for endpoint, why := range map[string]string{
		"http://8.8.8.8/token":         "plain http",
		"https://10.0.0.1/token":       "not on the Internet",
		"https://[::1]/token":          "not on the Internet",
		"http://169.254.169.254/token": "not on the Internet",
		"https://inside.example/token": "not on the Internet", // every name is this machine's
		"ftp://example.com/token":      "gave no answer",
		"token":                        "gave no answer",
	} {
		t.Run(endpoint, func(t *testing.T) {
			w := newWorld(t)
			w.changes("bot-oauth", keyTokenEndpoint, endpoint)
			w.files("r", session, "mcpserver/oauth")
			w.wants(w.pass("r"), "Refused", "NotUpdatable")
			if !strings.Contains(w.log.String(), why) || w.asked.Load() != 0 {
				t.Errorf("something was asked, or the log does not say %q: %s", why, w.log.String())
			}
		})
	}
}
