package order

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

const resetByPeer = "invalid configuration creating resource: Post \"http://keystone:5000/v3/users\": read tcp: connection reset by peer"

// latched is a K-ORC user that K-ORC gave up on with a message.
func latched(message string) *orcv1alpha1.User {
	child := &orcv1alpha1.User{}
	child.Name, child.Namespace, child.UID, child.Generation = "workflow-user", "openstack", "some-uid", 1
	child.Status.Conditions = []metav1.Condition{
		{Type: orcv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: orcv1alpha1.ConditionReasonInvalidConfiguration, Message: message, ObservedGeneration: 1},
		{Type: orcv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: orcv1alpha1.ConditionReasonInvalidConfiguration, Message: message, ObservedGeneration: 1},
	}
	return child
}

func settle(t *testing.T, child *orcv1alpha1.User, faults interceptor.Funcs) (state ChildState, stored *orcv1alpha1.User, p *Pass) {
	t.Helper()
	scheme := testScheme(t)
	if err := orcv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p = orderOf(t, "")
	p.Management = fake.NewClientBuilder().WithScheme(scheme).WithObjects(child).WithStatusSubresource(child).WithInterceptorFuncs(faults).Build()
	read := &orcv1alpha1.User{}
	if err := p.Management.Get(t.Context(), client.ObjectKeyFromObject(child), read); err != nil {
		t.Fatal(err)
	}
	state = p.Settle(t.Context(), read)
	stored = &orcv1alpha1.User{}
	if err := p.Management.Get(t.Context(), client.ObjectKeyFromObject(child), stored); err != nil {
		t.Fatal(err)
	}
	return state, stored, p
}

func TestSettle(t *testing.T) {
	given := func(stored *orcv1alpha1.User) bool {
		return meta.FindStatusCondition(stored.Status.Conditions, orcv1alpha1.ConditionProgressing) == nil
	}
	t.Run("clears_a_transport_failure_at_once_and_stamps_it", func(t *testing.T) {
		state, stored, p := settle(t, latched(resetByPeer), interceptor.Funcs{})
		if state.Progress != korc.Pending || !state.Transport || state.UnlatchError != nil {
			t.Errorf("state %+v", state)
		}
		if !given(stored) || meta.FindStatusCondition(stored.Status.Conditions, orcv1alpha1.ConditionAvailable) == nil {
			t.Errorf("only Progressing goes: %v", stored.Status.Conditions)
		}
		if got, want := stored.Annotations[korc.UnlatchedAtAnnotation], p.Now.UTC().Format(time.RFC3339); got != want {
			t.Errorf("stamped %q, want %q", got, want)
		}
		if p.after != WaitShort {
			t.Errorf("comes back after %s", p.after)
		}
	})
	t.Run("waits_before_it_clears_a_second_time", func(t *testing.T) {
		child := latched(resetByPeer)
		child.Annotations = map[string]string{korc.UnlatchedAtAnnotation: time.Unix(990, 0).UTC().Format(time.RFC3339)}
		state, stored, p := settle(t, child, interceptor.Funcs{})
		if state.Progress != korc.Pending || given(stored) {
			t.Errorf("state %+v, conditions %v", state, stored.Status.Conditions)
		}
		if p.after < 20*time.Second || p.after > 50*time.Second {
			t.Errorf("comes back after %s, want when it is due: 30s to 60s after the last time", p.after)
		}
	})
	t.Run("clears_a_certificate_that_k_orc_does_not_trust", func(t *testing.T) {
		const message = "invalid configuration creating resource: Post \"https://keystone/v3/users\": tls: failed to verify certificate: x509: certificate signed by unknown authority"
		state, stored, p := settle(t, latched(message), interceptor.Funcs{})
		if state.Progress != korc.Pending || state.Transport || state.Message != message || !given(stored) || p.after != WaitShort {
			t.Errorf("state %+v, conditions %v, comes back after %s", state, stored.Status.Conditions, p.after)
		}
	})
	t.Run("leaves_what_a_person_has_to_mend", func(t *testing.T) {
		for _, message := range []string{
			"invalid configuration creating resource: Bad request with: [POST http://keystone:5000/v3/users], error message: name is too long",
			"invalid configuration creating resource: Unable to re-authenticate: Expected HTTP response code [201] but got 401 instead",
		} {
			state, stored, _ := settle(t, latched(message), interceptor.Funcs{})
			if state.Progress != korc.Terminal || state.Message != message || given(stored) || stored.Annotations[korc.UnlatchedAtAnnotation] != "" {
				t.Errorf("%s: state %+v", message, state)
			}
		}
	})
	for name, c := range map[string]struct {
		err     error
		reports bool
	}{
		"may_lose_a_race":                       {apierrors.NewConflict(schema.GroupResource{}, "x", nil), false},
		"may_meet_an_object_that_is_gone":       {apierrors.NewNotFound(schema.GroupResource{}, "x"), false},
		"may_meet_a_busy_API_server":            {apierrors.NewTooManyRequests("slow down", 1), false},
		"may_meet_an_API_server_that_times_out": {apierrors.NewServerTimeout(schema.GroupResource{}, "patch", 1), false},
		"reports_what_will_not_pass_by_itself":  {apierrors.NewForbidden(schema.GroupResource{}, "x", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			state, _, p := settle(t, latched(resetByPeer), interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return c.err
				},
			})
			if (state.UnlatchError != nil) != c.reports || state.Progress != korc.Pending {
				t.Errorf("state %+v", state)
			}
			if !c.reports && p.after == 0 {
				t.Error("nobody comes back")
			}
		})
	}
}

func TestWaitOnChild(t *testing.T) {
	const authURL = "https://keystone.example.com/v3"
	managed := planeWith(v1alpha1.KeystoneServiceSpec{})
	external := planeWith(v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: authURL}})
	const reason, what = v1alpha1.ReasonWaitingForCredential, "the credential is not there yet"
	cases := map[string]struct {
		cp              *v1alpha1.ControlPlane
		state           ChildState
		reason, message string
	}{
		"nothing_is_known":                    {managed, ChildState{}, reason, what},
		"k_orc_says_something":                {managed, ChildState{Message: "Waiting for User"}, reason, what + ": Waiting for User"},
		"the_way_is_broken":                   {managed, ChildState{Message: "connection refused", Transport: true}, reason, what + ": connection refused (Keystone is not reachable from K-ORC; it is tried again)"},
		"a_managed_keystone_keeps_the_reason": {managed, ChildState{Message: "x509: unknown authority"}, reason, what + ": x509: unknown authority"},
		"an_external_one_without_a_cause":     {external, ChildState{Message: "Waiting for User"}, reason, what + ": Waiting for User"},
		"an_external_one_cannot_be_reached": {external, ChildState{Message: "dial tcp: connection refused", Transport: true}, v1alpha1.ReasonEndpointUnreachable,
			"external Keystone at " + authURL + ": dial tcp: connection refused"},
		"an_external_one_has_a_strange_certificate": {external, ChildState{Message: "dial tcp: x509: unknown authority"}, v1alpha1.ReasonTLSVerificationFailed,
			"external Keystone at " + authURL + ": dial tcp: x509: unknown authority"},
		"an_external_one_refuses_the_login": {external, ChildState{Message: "Expected HTTP response code [201] but got 401 instead"}, v1alpha1.ReasonAuthenticationFailed,
			"external Keystone at " + authURL + ": Expected HTTP response code [201] but got 401 instead"},
		"an_external_one_has_no_such_endpoint": {external, ChildState{Message: "No suitable endpoint could be found in the service catalog."}, v1alpha1.ReasonCatalogEndpointMismatch,
			"external Keystone at " + authURL + ": No suitable endpoint could be found in the service catalog."},
		"an_external_one_forbids_minting": {external, ChildState{Message: "403: identity:create_application_credential"}, v1alpha1.ReasonCredentialDrift,
			"external Keystone at " + authURL + ": 403: identity:create_application_credential"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := orderOf(t, "")
			p.ControlPlane = c.cp
			want := Outcome{Status: metav1.ConditionFalse, Reason: c.reason, Message: c.message, After: WaitShort}
			if got := p.WaitOnChild(reason, what, c.state); *got != want {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
	t.Run("a_latch_that_cannot_be_cleared_goes_before_everything", func(t *testing.T) {
		for _, cp := range []*v1alpha1.ControlPlane{managed, external} {
			p := orderOf(t, "")
			p.ControlPlane = cp
			got := p.WaitOnChild(reason, what, ChildState{Message: resetByPeer, Transport: true, UnlatchError: apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "x", nil)})
			if got.Reason != v1alpha1.ReasonTransportErrorRetryFailed || got.Err != nil || !strings.Contains(got.Message, "is forbidden") {
				t.Errorf("got %+v", *got)
			}
		}
	})
}
