package keystoneapplicationcredential

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

func TestReport(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	live := rotation.Status{ID: "id-1", Generation: 1, LastRotation: &now}
	expired := live
	past := now.Add(-time.Minute)
	expired.ExpiresAt = &past

	cases := map[string]struct {
		status   rotation.Status
		plan     rotation.Plan
		live     rotation.Existence
		children map[int64]child
		external bool
		asked    error

		want     metav1.ConditionStatus
		reason   string
		mentions []string
	}{
		"a_delivered_credential_is_minted": {
			status: live, plan: rotation.Plan{Desired: 1},
			want: metav1.ConditionTrue, reason: v1alpha1.ReasonCredentialMinted, mentions: []string{"generation 1", "id-1"},
		},
		"a_successor_under_way_keeps_it_true_and_names_both": {
			status: live, plan: rotation.Plan{Desired: 2, Trigger: rotation.ScheduleDue},
			want: metav1.ConditionTrue, reason: v1alpha1.ReasonCredentialMinted, mentions: []string{"generation 1", "generation 2", "ScheduleDue"},
		},
		"the_first_credential_is_waited_for": {
			plan: rotation.Plan{Desired: 1, Wait: &rotation.Wait{Detail: "K-ORC has not made generation 1 available yet"}},
			want: metav1.ConditionFalse, reason: v1alpha1.ReasonWaitingForCredential, mentions: []string{"generation 1", "K-ORC has not"},
		},
		"an_external_keystone_s_cause_replaces_the_wait": {
			plan: rotation.Plan{Desired: 1}, external: true,
			children: map[int64]child{1: {state: order.ChildState{Progress: korc.Pending, Message: "tls: x509: certificate signed by unknown authority"}}},
			want:     metav1.ConditionFalse, reason: v1alpha1.ReasonTLSVerificationFailed, mentions: []string{"external Keystone at https://keystone.example.com/v3", "x509"},
		},
		"k_orc_s_terminal_error_is_a_failure_even_beside_a_delivered_credential": {
			status: live, plan: rotation.Plan{Desired: 2, Failed: &rotation.Failure{Generation: 2, Kind: rotation.TerminalByKORC, Message: "quota", Confirmed: true}},
			want: metav1.ConditionFalse, reason: v1alpha1.ReasonCredentialFailed, mentions: []string{"quota", "delivered generation 1 stays", "spec.credentialGeneration above 2"},
		},
		"a_refused_login_is_a_failure_that_says_what_to_check": {
			plan: rotation.Plan{Desired: 1, Failed: &rotation.Failure{Generation: 1, Kind: rotation.LoginRefused, Confirmed: true}},
			want: metav1.ConditionFalse, reason: v1alpha1.ReasonCredentialFailed, mentions: []string{"enabled", "role on the project"},
		},
		"a_latch_that_cannot_be_cleared_is_named": {
			status: live, plan: rotation.Plan{Desired: 2},
			children: map[int64]child{2: {state: order.ChildState{UnlatchError: errors.New("forbidden")}}},
			want:     metav1.ConditionFalse, reason: v1alpha1.ReasonTransportErrorRetryFailed, mentions: []string{"forbidden"},
		},
		"a_credential_that_is_gone_is_not_ready": {
			status: live, plan: rotation.Plan{Desired: 2, Trigger: rotation.LiveGone}, live: rotation.Gone,
			want: metav1.ConditionFalse, reason: v1alpha1.ReasonWaitingForCredential, mentions: []string{"generation 1", "generation 2 replaces it"},
		},
		"an_expired_credential_is_not_ready": {
			status: expired, plan: rotation.Plan{Desired: 2, Trigger: rotation.LiveExpired},
			want: metav1.ConditionFalse, reason: v1alpha1.ReasonWaitingForCredential, mentions: []string{"expired"},
		},
		"a_wait_says_why_keystone_did_not_answer": {
			status: live, plan: rotation.Plan{Desired: 1, Wait: &rotation.Wait{Detail: "generation 0 is not proven gone"}}, asked: errors.New("Keystone is unreachable"),
			want: metav1.ConditionTrue, reason: v1alpha1.ReasonCredentialMinted, mentions: []string{"not proven gone", "Keystone is unreachable"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cp := &v1alpha1.ControlPlane{}
			if c.external {
				cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{
					Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: "https://keystone.example.com/v3"},
				}
			}
			o := &v1alpha1.KeystoneApplicationCredential{}
			s := &state{
				Pass:  &order.Pass{Order: o, ControlPlane: cp, Now: now},
				order: o, children: c.children, plan: c.plan,
				input: rotation.Input{Now: now, KeystoneNow: now, Status: c.status, LiveID: c.live},
				asked: questions{unanswered: c.asked},
			}
			got := s.report()
			if got.Status != c.want || got.Reason != c.reason {
				t.Errorf("reports %s/%s (%s), want %s/%s", got.Status, got.Reason, got.Message, c.want, c.reason)
			}
			for _, text := range c.mentions {
				if !strings.Contains(got.Message, text) {
					t.Errorf("the message does not mention %q: %s", text, got.Message)
				}
			}
			if got.Status == metav1.ConditionFalse && got.After == 0 {
				t.Error("nobody comes back to a credential that is not ready")
			}
		})
	}
}

func TestAnExternalKeystonesCauseReplacesTheWaitForTheFirstCredential(t *testing.T) {
	const url = "https://keystone.example.com/v3"
	waiting := func(mode v1alpha1.KeystoneMode) *state {
		cp, o := &v1alpha1.ControlPlane{}, &v1alpha1.KeystoneApplicationCredential{}
		cp.Spec.Services.Keystone.Mode, cp.Spec.Services.Keystone.External = mode, &v1alpha1.ExternalKeystone{AuthURL: url}
		return &state{Pass: &order.Pass{Order: o, ControlPlane: cp}, order: o, plan: rotation.Plan{Desired: 1}}
	}
	for cause, message := range ordertest.Causes {
		t.Run("when_K-ORC_says_"+cause, func(t *testing.T) {
			said := map[int64]child{1: {state: order.ChildState{Progress: korc.Pending, Message: message}}}
			s := waiting(v1alpha1.KeystoneExternal)
			s.children = said
			if got := s.report(); got.Reason != cause || got.Message != "external Keystone at "+url+": "+message {
				t.Errorf("got %s: %s", got.Reason, got.Message)
			}
			s = waiting(v1alpha1.KeystoneManaged)
			s.children = said
			if got := s.report(); got.Reason != v1alpha1.ReasonWaitingForCredential || !strings.Contains(got.Message, message) {
				t.Errorf("a managed one reads %s: %s", got.Reason, got.Message)
			}
			// A delivered credential stays what it is; what is in the way of the next is told.
			s = waiting(v1alpha1.KeystoneExternal)
			s.input.Status, s.plan.Desired, s.children = rotation.Status{ID: "id-1", Generation: 1}, 2, map[int64]child{2: said[1]}
			if got := s.report(); got.Reason != v1alpha1.ReasonCredentialMinted || !strings.Contains(got.Message, message) {
				t.Errorf("a successor's reads %s: %s", got.Reason, got.Message)
			}
		})
	}
	for class, want := range map[keystone.Class]string{
		keystone.AuthenticationFailed:    v1alpha1.ReasonAuthenticationFailed,
		keystone.Forbidden:               v1alpha1.ReasonAuthenticationFailed,
		keystone.TLSVerificationFailed:   v1alpha1.ReasonTLSVerificationFailed,
		keystone.CatalogEndpointMismatch: v1alpha1.ReasonCatalogEndpointMismatch,
		keystone.EndpointUnreachable:     v1alpha1.ReasonEndpointUnreachable,
		keystone.Conflict:                v1alpha1.ReasonWaitingForCredential,
	} {
		t.Run("when_Keystone_answers_the_operator_"+string(class), func(t *testing.T) {
			err := &keystone.Error{Operation: "list_application_credentials", Class: class, Message: "as it says"}
			s := waiting(v1alpha1.KeystoneExternal)
			s.asked.unanswered = err
			if got := s.report(); got.Reason != want || !strings.Contains(got.Message, "as it says") {
				t.Errorf("got %s: %s", got.Reason, got.Message)
			}
		})
	}
	t.Run("and_not_for_what_is_no_answer_of_Keystones", func(t *testing.T) {
		s := waiting(v1alpha1.KeystoneExternal)
		s.asked.unanswered = errors.New("reading K-ORC's User: etcd is away")
		if got := s.report(); got.Reason != v1alpha1.ReasonWaitingForCredential || !strings.Contains(got.Message, "etcd is away") {
			t.Errorf("got %s: %s", got.Reason, got.Message)
		}
	})
}
