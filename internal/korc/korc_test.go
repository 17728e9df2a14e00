// SPDX-License-Identifier: Apache-2.0

package korc

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func condition(kind string, status metav1.ConditionStatus, generation int64, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Reason: reason, Message: message}
}

func TestState(t *testing.T) {
	const gen = 3
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	// The pair that K-ORC v2.6.0 left on a Project whose create was reset by the server.
	const reset = `invalid configuration creating resource: Post "http://keystone.openstack.svc:5000/v3/projects": read tcp 10.244.0.9:40112->10.96.0.20:5000: read: connection reset by peer`

	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       Progress
		reason     string
		message    string
	}{
		"nothing_said_yet_is_pending": {want: Pending},
		"available_at_the_current_generation": {
			conditions: []metav1.Condition{condition("Available", yes, gen, "Success", "OpenStack resource is available"), condition("Progressing", no, gen, "Success", "OpenStack resource is up to date")},
			want:       Available, reason: "Success", message: "OpenStack resource is available",
		},
		"available_of_an_older_generation_is_pending": {
			conditions: []metav1.Condition{condition("Available", yes, gen-1, "Success", "OpenStack resource is available"), condition("Progressing", no, gen-1, "Success", "")},
			want:       Pending,
		},
		"available_stays_so_while_progressing_is_removed_to_wake_korc": {
			conditions: []metav1.Condition{condition("Available", yes, gen, "Success", "ok")},
			want:       Available, reason: "Success", message: "ok",
		},
		"available_and_at_work_again_says_what_the_work_meets": {
			conditions: []metav1.Condition{condition("Available", yes, gen, "Success", "OpenStack resource is available"), condition("Progressing", yes, gen, "TransientError", "503")},
			want:       Available, reason: "TransientError", message: "503",
		},
		"progressing_is_pending_and_lends_its_message": {
			conditions: []metav1.Condition{condition("Available", no, gen, "Progressing", "a"), condition("Progressing", yes, gen, "Progressing", "Waiting for Secret/x to be created")},
			want:       Pending, reason: "Progressing", message: "Waiting for Secret/x to be created",
		},
		"a_transient_error_is_pending": {
			conditions: []metav1.Condition{condition("Available", no, gen, "TransientError", "503"), condition("Progressing", yes, gen, "TransientError", "503")},
			want:       Pending, reason: "TransientError", message: "503",
		},
		"a_latched_reset_is_terminal": {
			conditions: []metav1.Condition{condition("Available", no, gen, "InvalidConfiguration", reset), condition("Progressing", no, gen, "InvalidConfiguration", reset)},
			want:       Terminal, reason: "InvalidConfiguration", message: reset,
		},
		"a_terminal_condition_of_an_older_generation_is_pending": {
			conditions: []metav1.Condition{condition("Progressing", no, gen-1, "InvalidConfiguration", reset)},
			want:       Pending,
		},
		"terminal_goes_before_an_available_left_standing": {
			conditions: []metav1.Condition{condition("Available", yes, gen, "Success", "ok"), condition("Progressing", no, gen, "UnrecoverableError", "resource has been deleted from OpenStack")},
			want:       Terminal, reason: "UnrecoverableError", message: "resource has been deleted from OpenStack",
		},
		"a_cleared_latch_is_pending_with_what_available_says": {
			conditions: []metav1.Condition{condition("Available", no, gen, "InvalidConfiguration", reset)},
			want:       Pending, reason: "InvalidConfiguration", message: reset,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, reason, message := State(test.conditions, gen)
			if state != test.want || reason != test.reason || message != test.message {
				t.Errorf("got %s, %q, %q; want %s, %q, %q", state, reason, message, test.want, test.reason, test.message)
			}
		})
	}
}

// latched is how K-ORC wraps the failure of a create.
func latched(cause string) string {
	return `invalid configuration creating resource: Post "http://keystone.openstack.svc:5000/v3/projects": ` + cause
}

func answered(status int, body string) string {
	return fmt.Sprintf("invalid configuration creating resource: Expected HTTP response code [201] when accessing [POST http://keystone.openstack.svc:5000/v3/projects], but got %d instead: %s", status, body)
}

func TestIsTransport(t *testing.T) {
	for message, want := range map[string]bool{
		latched("read tcp 10.244.0.9:40112->10.96.0.20:5000: read: connection reset by peer"): true,
		latched("EOF"):            true,
		latched("unexpected EOF"): true,
		latched("write tcp 10.244.0.9:40112->10.96.0.20:5000: write: broken pipe"):                                                    true,
		latched("net/http: TLS handshake timeout"):                                                                                    true,
		latched("http: server closed idle connection"):                                                                                true,
		latched("context deadline exceeded"):                                                                                          true,
		latched("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"):                                         true,
		latched("dial tcp: lookup keystone.openstack.svc on 10.96.0.10:53: no such host"):                                             true,
		latched("dial tcp 10.96.0.20:5000: connect: connection refused"):                                                              true,
		latched("dial tcp 10.96.0.20:5000: i/o timeout"):                                                                              true,
		latched("dial tcp 10.96.0.20:5000: connect: no route to host"):                                                                true,
		latched("read tcp 10.244.0.9:4010->10.96.0.20:401: read: connection timed out"):                                               false, // port 401 stands alone
		latched("read tcp 10.244.0.9:4010->10.96.0.20:5000: read: connection timed out"):                                              true,
		latched("net/http: HTTP/1.x transport connection broken: malformed MIME header"):                                              true,
		latched("tls: failed to verify certificate: x509: certificate signed by unknown authority"):                                   false,
		"dial tcp 10.96.0.20:5000: x509: certificate has expired":                                                                     false,
		answered(401, `{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`): false,
		"providerClient authentication err: Unauthorized; context deadline exceeded":                                                  false,
		answered(409, `{"error":{"code":409,"message":"Conflict occurred attempting to store project - it is not permitted to have two projects with the same name","title":"Conflict"}}`): false,
		answered(400, `{"error":{"code":400,"message":"Invalid input for field 'name': 'xEOFx' is too long","title":"Bad Request"}}`):                                                      false,
		"resource has been deleted from OpenStack":                      false,
		"found more than one matching OpenStack resource during import": false,
		"Waiting for OpenStack resource to be created externally":       false,
		"": false,
	} {
		if got := IsTransport(message); got != want {
			t.Errorf("got %v, want %v: %s", got, want, message)
		}
	}
}

func TestIsUntrusted(t *testing.T) {
	for message, want := range map[string]bool{
		latched("tls: failed to verify certificate: x509: certificate signed by unknown authority"):                            true,
		"Unable to re-authenticate: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: 401": true,
		latched("remote error: tls: handshake failure"):                                                                        false,
		answered(400, `{"error":{"code":400,"message":"Invalid input for field 'name': 'ax509b'","title":"Bad Request"}}`):     false,
		"": false,
	} {
		if got := IsUntrusted(message); got != want {
			t.Errorf("got %v, want %v: %s", got, want, message)
		}
	}
}

func TestIsConflict(t *testing.T) {
	for message, want := range map[string]bool{
		answered(409, `{"error":{"code":409,"message":"Conflict occurred attempting to store user - Duplicate entry found with name agent","title":"Conflict"}}`): true,
		answered(409, ""): true,
		answered(400, `{"error":{"code":400,"message":"Invalid input","title":"Bad Request"}}`): false,
		latched("read tcp 10.244.0.9:4090->10.96.0.20:5000: read: connection reset by peer"):    false,
		"found more than one matching OpenStack resource during adoption":                       false,
		"": false,
	} {
		if got := IsConflict(message); got != want {
			t.Errorf("got %v, want %v: %s", got, want, message)
		}
	}
}

func TestExternalCause(t *testing.T) {
	for message, want := range map[string]string{
		"No suitable endpoint could be found in the service catalog.":                                                                 "CatalogEndpointMismatch",
		"No suitable endpoint could be found in the service catalog. (401)":                                                           "CatalogEndpointMismatch",
		answered(403, "You are not authorized to perform the requested action: identity:create_application_credential."):              "CredentialDrift",
		answered(401, "identity:create_application_credential"):                                                                       "CredentialDrift",
		latched("dial tcp 1.2.3.4:443: tls: failed to verify certificate: x509: certificate signed by unknown authority"):             "TLSVerificationFailed",
		answered(401, `{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`): "AuthenticationFailed",
		"Unauthorized": "AuthenticationFailed",
		latched("dial tcp 10.96.0.20:5000: connect: connection refused"):                      "EndpointUnreachable",
		latched("read tcp 10.244.0.9:40112->10.96.0.20:5000: read: connection reset by peer"): "EndpointUnreachable",
		latched("dial tcp 10.96.0.20:4010: i/o timeout"):                                      "EndpointUnreachable",
		"Waiting for OpenStack resource to be created externally":                             "",
		answered(409, "Conflict"):                                                             "",
		"":                                                                                    "",
	} {
		got, ok := ExternalCause(message)
		if got != want || ok != (want != "") {
			t.Errorf("got %q, %v; want %q: %s", got, ok, want, message)
		}
	}
}

func TestWaitingForExternalCreation(t *testing.T) {
	for message, want := range map[string]bool{
		"Waiting for OpenStack resource to be created externally":                                    true,
		"Waiting for Domain/cp-domain-default to be ready":                                           false,
		"Waiting for OpenStack resource to be ready":                                                 false,
		"something first\nWaiting for OpenStack resource to be created externally\nsomething behind": true,
	} {
		if got := WaitingForExternalCreation(message); got != want {
			t.Errorf("got %v, want %v: %s", got, want, message)
		}
	}
}

func TestUnlatchDue(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const uid = "0d3c7f1e-6a52-4a1e-9f43-2f1f1b6d1c11"
	offset := unlatchOffset(uid)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }

	for name, test := range map[string]struct {
		stamp string
		due   bool
		at    time.Time
	}{
		"the_first_is_due_at_once":                   {"", true, now},
		"a_stamp_that_cannot_be_read_counts_as_none": {"yesterday", true, now},
		"a_stamp_in_the_future_counts_as_none":       {at(time.Second), true, now},
		"one_just_set_waits_for_backoff_and_offset":  {at(0), false, now.Add(UnlatchBackoff + offset)},
		"thirty_seconds_alone_are_too_early":         {at(-UnlatchBackoff), offset == 0, now.Add(offset)},
		"a_minute_is_enough_for_every_object":        {at(-2 * UnlatchBackoff), true, now.Add(-UnlatchBackoff + offset)},
	} {
		t.Run(name, func(t *testing.T) {
			due, when := UnlatchDue(test.stamp, uid, now)
			if due != test.due || !when.Equal(test.at) {
				t.Errorf("got %v at %s, want %v at %s", due, when, test.due, test.at)
			}
			if !due {
				// Whoever comes back at the time given must not be sent away again.
				if again, _ := UnlatchDue(test.stamp, uid, when); !again {
					t.Error("not due at the time it gave")
				}
			}
		})
	}
}

func TestUnlatchDue_spreads_objects_over_the_whole_width(t *testing.T) {
	var quarters [4]int
	for i := range 400 {
		offset := unlatchOffset("uid-" + strconv.Itoa(i))
		if offset < 0 || offset >= UnlatchBackoff {
			t.Fatalf("offset %s is outside [0, %s)", offset, UnlatchBackoff)
		}
		quarters[offset*4/UnlatchBackoff]++
	}
	for i, n := range quarters {
		if n < 50 {
			t.Errorf("quarter %d holds %d of 400 objects", i+1, n)
		}
	}
}
