package keystoneroleassignment

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

func TestErrors(t *testing.T) {
	errRefused := errors.New("the API server is in a bad mood")
	recovers := func(w *ordertest.World) {
		w.T.Helper()
		w.Fail = nil
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	}
	t.Run("a_child_that_cannot_be_written", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns)
			w.Pass("member")
			w.Fail = func(write string) error {
				if strings.HasPrefix(write, "apply") {
					return errRefused
				}
				return nil
			}
			if _, err := w.TryPass("member"); !errors.Is(err, errRefused) {
				t.Errorf("the pass ended with %v", err)
			}
			if message := w.Wants("member", v1alpha1.ReasonRoleAssignmentError); !strings.Contains(message, errRefused.Error()) {
				t.Errorf("the message is %q", message)
			}
			recovers(w)
		})
	})
	t.Run("a_latch_that_may_not_be_cleared", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns)
			w.KORC.Idle = true
			w.Settle("member")
			role := roleImport(w, "member")
			ordertest.GiveUp(role, &role.Status.Conditions, orcv1alpha1.ConditionReasonInvalidConfiguration, "dial tcp: connection refused")
			w.Must(w.Client.Status().Update(t.Context(), role))
			w.Fail = func(write string) error {
				if write == "patch-status "+role.Name {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, role.Name, errRefused)
				}
				return nil
			}
			w.Pass("member")
			w.Wants("member", v1alpha1.ReasonTransportErrorRetryFailed)
			w.KORC.Idle = false
			recovers(w)
		})
	})
}
