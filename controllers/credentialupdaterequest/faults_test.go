package credentialupdaterequest

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/egress"
)

// faultyTransport injects one fault into every request.
type faultyTransport struct {
	fail   error
	status int
	calls  int
}

// RoundTrip implements http.RoundTripper. The words of an answer would be damning under another status.
func (f *faultyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	f.calls++
	if f.fail != nil {
		return nil, f.fail
	}
	words := fmt.Sprintf(`{"error": "invalid_grant", "message": "Bad credentials, code %d"}`, f.status)
	return &http.Response{
		StatusCode: f.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(words)), Request: r,
	}, nil
}

// everyFault is what can go wrong on the way to a provider, and what a provider answers that does not say that a
// credential is dead.
func everyFault() map[string]*faultyTransport {
	faults := map[string]*faultyTransport{
		"dns":                  {fail: &net.DNSError{Err: "no such host", Name: "example.com", IsNotFound: true}},
		"a_certificate":        {fail: x509.UnknownAuthorityError{}},
		"a_certificates_time":  {fail: x509.CertificateInvalidError{Reason: x509.Expired}},
		"a_handshake_of_http":  {fail: errors.New("tls: first record does not look like a TLS handshake")},
		"a_time_out":           {fail: os.ErrDeadlineExceeded},
		"a_refused_connection": {fail: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		"a_reset_connection":   {fail: &net.OpError{Op: "read", Err: syscall.ECONNRESET}},
		"half_an_answer":       {fail: io.ErrUnexpectedEOF},
	}
	for _, status := range []int{301, 307, 402, 403, 404, 407, 408, 418, 421, 425, 429, 451, 500, 501, 502, 503, 504, 511} {
		faults[fmt.Sprint(status)] = &faultyTransport{status: status}
	}
	return faults
}

// theirs puts a credential of Keystone's into the agent's Secret that no order delivers. Its document says where
// Keystone is; "example.com" is this machine.
func (w *world) theirs(cloud clouds.Cloud) {
	w.t.Helper()
	cloud.AuthURL = strings.Replace(w.keystone.URL, "127.0.0.1", "example.com", 1) + "/v3"
	document, err := clouds.Render(order.CloudName, cloud)
	w.must(err)
	w.must(w.client.Create(w.t.Context(), &corev1.Secret{ObjectMeta: named(delivery), Data: map[string][]byte{order.CloudsKey: document}}))
	w.keystone.With(func() {
		w.keystone.Users["u-1"] = &ordertest.FakeUser{Name: "workflow", Password: robotSecret}
		w.keystone.Projects["p-1"] = ordertest.FakeProject{Name: "p"}
		w.keystone.Grants["p-1/u-1/r-member"] = true
		w.keystone.Credentials[robotID] = ordertest.FakeCredential{UserID: "u-1", ProjectID: "p-1", Name: "robot", Secret: robotSecret}
	})
}

func (w *world) theirCredential() {
	w.theirs(clouds.Cloud{ApplicationCredential: &clouds.ApplicationCredentialAuth{ID: robotID, Secret: robotSecret}})
}

func (w *world) theirPassword() {
	w.theirs(clouds.Cloud{Password: &clouds.PasswordAuth{Username: "workflow", UserDomainName: "Default", Password: robotSecret, ProjectName: "p", ProjectDomainName: "Default"}})
}

// persons has the session act as alice, whose OAuth token a person could authorize anew.
func (w *world) persons() {
	w.passthrough(agents.IdentityCredential{Name: "oauth", Type: agents.CredentialOAuth, OAuth: &agents.OAuthCredential{SecretRef: agents.SecretReference{Name: "alice-oauth"}}})
	w.must(w.client.Create(w.t.Context(), &corev1.Secret{ObjectMeta: inIdentities("alice-oauth"), Data: w.secret("bot-oauth").Data}))
}

// Whatever goes wrong on the way to a provider, nobody is asked: what did not answer said nothing of a credential.
func TestNobodyIsAskedBecauseOfAFault(t *testing.T) {
	for path, c := range map[string]struct {
		origin string
		given  func(*world)
		calls  int
	}{
		"a_probe":                   {"mcpserver/git", func(*world) {}, 1},
		"a_refresh_and_a_probe":     {"mcpserver/oauth", (*world).persons, 2},
		"a_login_with_a_credential": {"mcpserver/keystone", (*world).theirCredential, 1},
		"a_login_with_a_password":   {"mcpserver/keystone", (*world).theirPassword, 1},
	} {
		for name, fault := range everyFault() {
			t.Run(path+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				c.given(w)
				w.r.prober.Transport, w.r.redeemer.Transport = fault, fault
				w.files("r", session, c.origin)
				status := w.pass("r")
				w.wants(status, "Refused", "Unverified")
				if fault.calls != c.calls {
					t.Errorf("the provider was asked %d times", fault.calls)
				}
			})
		}
	}
}

// Each call to Keystone of a determination about a delivered credential fails in turn. It is dead, so that no fault at
// all has it rotate.
func TestDelivered_whichever_call_to_Keystone_fails(t *testing.T) {
	for path, c := range map[string]struct {
		world func(*testing.T) *world
		dies  func(*world)
		calls int
	}{
		"a_credential": {newDelivery, revoked, 4}, // the login, the administrator's, the user, the list
		"a_password":   {newPasswordDelivery, keystoneUser(func(u *ordertest.FakeUser) { u.Password = "by hand" }), 3},
	} {
		for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
			"503":   ordertest.Refused(http.StatusServiceUnavailable, "later"),
			"403":   ordertest.Refused(http.StatusForbidden, "no"),
			"proxy": ordertest.Proxied(http.StatusNotFound),
			"reset": func(w http.ResponseWriter, _ *http.Request) bool { ordertest.Reset(w); return true },
		} {
			for failing := 1; failing <= c.calls+1; failing++ {
				t.Run(fmt.Sprintf("%s/%s/%d", path, name, failing), func(t *testing.T) {
					w := c.world(t)
					c.dies(w)
					call := 0
					w.keystone.With(func() {
						w.keystone.Fault = func(rw http.ResponseWriter, r *http.Request) bool {
							call++
							return call == failing && fault(rw, r)
						}
					})
					w.files("r", session, "mcpserver/keystone")
					status := w.pass("r")
					if failing > c.calls {
						w.wants(status, "Open", "HealingByRotation")
						if call != c.calls {
							t.Errorf("it asks %d times", call)
						}
						return
					}
					w.wants(status, "Refused", "Unverified")
					if len(w.order().Annotations)+len(w.user().Annotations) > 0 {
						t.Error("the order is asked to rotate")
					}
				})
			}
		}
	}
}

// Each call to the API server of a determination fails in turn. That says nothing of a claim: it is tried again, and
// ends as it would have.
func TestDetermination_whichever_call_to_the_API_server_fails(t *testing.T) {
	for name, c := range map[string]struct {
		world                func(*testing.T) *world
		origin               string
		given                func(*world)
		phase, determination string
	}{
		"of_a_tool_server":         {world: plainWorld, origin: "mcpserver/git", phase: "Open", determination: "RejectedVerified"},
		"of_a_toolkit":             {world: plainWorld, origin: "toolkit/one", phase: "Open", determination: "RejectedVerified"},
		"of_a_toolbox":             {world: plainWorld, origin: "sidecartoolbox/box", phase: "Open", determination: "RejectedVerified"},
		"refreshed":                {world: plainWorld, origin: "mcpserver/oauth", given: refreshing(http.StatusOK, redeemed), phase: "Refused", determination: "SelfHealed"},
		"refused_a_refresh":        {world: plainWorld, origin: "mcpserver/oauth", given: both((*world).persons, refreshing(400, `{"error":"invalid_grant"}`)), phase: "Open", determination: "RejectedRefreshDead"},
		"delivered":                {world: newDelivery, origin: "mcpserver/keystone", given: revoked, phase: "Open", determination: "HealingByRotation"},
		"a_delivered_password":     {world: newPasswordDelivery, origin: "mcpserver/keystone", given: keystoneUser(func(u *ordertest.FakeUser) { u.Password = "x" }), phase: "Open", determination: "HealingByRotation"},
		"collapsed":                {world: plainWorld, origin: "mcpserver/git", given: other, phase: "Collapsed", determination: "Collapsed"},
		"delivered_and_accepted":   {world: newDelivery, origin: "mcpserver/keystone", phase: "Refused", determination: "CredentialLive"},
		"delivered_without_a_role": {world: newDelivery, origin: "mcpserver/keystone", given: func(w *world) { w.keystone.Grant("p-1", "u-1", "r-member", false) }, phase: "Refused", determination: "NotUpdatable"},
	} {
		t.Run(name, func(t *testing.T) {
			eachCallFails(t, c.phase, c.determination, func(t *testing.T) *world {
				w := c.world(t)
				if c.given != nil {
					c.given(w)
				}
				w.files("r", session, c.origin)
				return w
			})
		})
	}
}

// eachCallFails has each call to the API server of a pass on the request "r" fail in turn. The pass comes back, and the
// request is as before or as it ends, which is how it does end.
func eachCallFails(t *testing.T, phase, determination string, given func(*testing.T) *world) {
	t.Helper()
	for failing := 1; ; failing++ {
		w := given(t)
		before := w.status("r").Phase
		var calls []string
		w.fail = func(call string) error {
			if calls = append(calls, call); len(calls) == failing {
				return errAPI
			}
			return nil
		}
		_, err := w.try("r")
		w.fail = nil
		if len(calls) < failing {
			w.must(err)
			w.wants(w.status("r"), phase, determination)
			return
		}
		if err == nil {
			t.Errorf("%q failed, and it does not come back", calls[failing-1])
		}
		if got := w.status("r").Phase; got != before && got != phase {
			t.Errorf("%q failed, and it is %s", calls[failing-1], got)
		}
		w.wants(w.pass("r"), phase, determination)
	}
}

// The same of a request that waits.
func TestOpen_whichever_call_to_the_API_server_fails(t *testing.T) {
	changes := func(w *world) { w.changes("bot-token", "value", "another-token") }
	ends := func(w *world) {
		w.sets("a", func(s *agents.CredentialUpdateRequestStatus) { s.Phase = agents.PhaseFulfilled })
	}
	forgets := func(w *world) {
		o := w.order()
		o.Annotations = nil
		w.must(w.client.Update(w.t.Context(), o))
	}
	rotates := func(w *world) {
		w.holds("ac-2")
		orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) { s.CredentialID = "ac-2" })(w)
	}
	for name, c := range map[string]struct {
		world func(*testing.T) *world
		// given is before it waits, and then after.
		given, then          func(*world)
		origin               string
		phase, determination string
	}{
		"nothing_happens":              {world: plainWorld, origin: "mcpserver/git", phase: "Open", determination: "RejectedVerified"},
		"its_value_changes":            {world: plainWorld, origin: "mcpserver/git", then: changes, phase: "Fulfilled", determination: "RejectedVerified"},
		"its_time_is_over":             {world: plainWorld, origin: "mcpserver/git", then: passing(credupdate.AskWindow), phase: "Expired", determination: "RejectedVerified"},
		"it_heals":                     {world: newDelivery, given: revoked, origin: "mcpserver/keystone", then: forgets, phase: "Open", determination: "HealingByRotation"},
		"it_is_healed":                 {world: newDelivery, given: revoked, origin: "mcpserver/keystone", then: rotates, phase: "Fulfilled", determination: "HealingByRotation"},
		"it_follows":                   {world: plainWorld, given: other, origin: "mcpserver/git", phase: "Collapsed", determination: "Collapsed"},
		"it_follows_to_an_end":         {world: plainWorld, given: other, origin: "mcpserver/git", then: ends, phase: "Fulfilled", determination: "RejectedVerified"},
		"it_followed_one_that_is_gone": {world: plainWorld, given: other, origin: "mcpserver/git", then: deleting(&agents.CredentialUpdateRequest{ObjectMeta: named("a")}), phase: "Open", determination: "RejectedVerified"},
	} {
		t.Run(name, func(t *testing.T) {
			eachCallFails(t, c.phase, c.determination, func(t *testing.T) *world {
				w := c.world(t)
				if c.given != nil {
					c.given(w)
				}
				w.files("r", session, c.origin)
				w.pass("r")
				if c.then != nil {
					c.then(w)
				}
				return w
			})
		})
	}
}

// other opens the request "a" of another session about the credential of "mcpserver/git".
func other(w *world) { w.files("a", "s2", "mcpserver/git"); w.pass("a") }

func passing(d time.Duration) func(*world) {
	return func(w *world) { w.clock.SetTime(w.clock.Now().Add(d)) }
}

// Whose clock is right does not matter: ours, the provider's and Keystone's are ten minutes apart, and what works works.
func TestNobodyIsAskedBecauseOfAClock(t *testing.T) {
	for path, c := range map[string]struct {
		origin        string
		given         func(*world)
		determination string
	}{
		"a_probe":                   {"mcpserver/git", answering(http.StatusOK), "CredentialLive"},
		"a_refresh":                 {"mcpserver/oauth", both((*world).persons, refreshing(http.StatusOK, `{"access_token":"new","refresh_token":"next","token_type":"Bearer","expires_in":60}`)), "SelfHealed"},
		"a_login_with_a_credential": {"mcpserver/keystone", both((*world).theirCredential, expiringAt(15*time.Minute)), "CredentialLive"},
		"a_login_with_a_password":   {"mcpserver/keystone", (*world).theirPassword, "CredentialLive"},
	} {
		for name, off := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
			t.Run(path+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				c.given(w)
				skewed(-off)(w)
				plain := w.answer
				w.answer = func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Date", w.clock.Now().Add(-off).UTC().Format(http.TimeFormat))
					plain(rw, r)
				}
				w.files("r", session, c.origin)
				w.wants(w.pass("r"), "Refused", c.determination)
			})
		}
	}
}

func plainWorld(t *testing.T) *world { return newWorld(t) }

// A credential of Keystone's that no order delivers is asked about where its document says, as what it is.
func TestKeystones_credential_of_nobodys(t *testing.T) {
	for name, c := range map[string]struct {
		given                func(*world)
		phase, determination string
		says                 string
	}{
		"it_works":                 {(*world).theirCredential, "Refused", "CredentialLive", "accepts"},
		"it_is_gone":               {both((*world).theirCredential, revoked), "Open", "RejectedVerified", "404 Not Found"},
		"its_secret_is_no":         {both((*world).theirCredential, credential(func(c *ordertest.FakeCredential) { c.Secret = "x" })), "Open", "RejectedVerified", "no role"},
		"the_password_works":       {(*world).theirPassword, "Refused", "CredentialLive", "accepts"},
		"it_works_without_a_role":  {both((*world).theirPassword, func(w *world) { w.keystone.Grant("p-1", "u-1", "r-member", false) }), "Refused", "CredentialLive", "what it may do"},
		"the_password_was_changed": {both((*world).theirPassword, func(w *world) { w.keystone.With(func() { w.keystone.Users["u-1"].Password = "x" }) }), "Open", "RejectedVerified", "401 Unauthorized"},
		"no_document":              {func(w *world) { w.theirCredential(); w.changes(delivery, order.CloudsKey, "hush: ["+robotSecret) }, "Refused", "Unverified", "clouds.yaml"},
		"two_clouds":               {func(w *world) { w.theirCredential(); w.changes(delivery, order.CloudsKey, "clouds: {a: {}, b: {}}") }, "Refused", "Unverified", "one cloud"},
		"an_empty_cloud": {func(w *world) {
			w.theirCredential()
			w.changes(delivery, order.CloudsKey, "clouds: {a: {auth: {auth_url: 'https://example.com'}}}")
		}, "Refused", "Unverified", "one cloud"},
		"an_address_inside": {func(w *world) {
			w.theirCredential()
			w.r.prober.Transport = &egress.Guard{Resolve: w.r.prober.Transport.(*egress.Guard).Resolve}
			revoked(w)
		}, "Refused", "Unverified", "EndpointUnreachable"},
		"our_clock_is_ten_minutes_ahead":  {both((*world).theirCredential, both(expiringAt(5*time.Minute), skewed(-10*time.Minute))), "Refused", "CredentialLive", ""},
		"our_clock_is_ten_minutes_behind": {both((*world).theirCredential, both(expiringAt(-5*time.Minute), skewed(-10*time.Minute))), "Refused", "CredentialLive", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.given(w)
			w.files("r", session, "mcpserver/keystone")
			status := w.pass("r")
			w.wants(status, c.phase, c.determination, c.says)
			w.keeps(status, robotSecret)
		})
	}
}
