package keystoneproject

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
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	}
	t.Run("a_child_that_cannot_be_written", func(t *testing.T) {
		w := newWorld(t)
		w.Pass("workflow")
		w.Fail = func(write string) error {
			if strings.HasPrefix(write, "apply") {
				return errRefused
			}
			return nil
		}
		if _, err := w.TryPass("workflow"); !errors.Is(err, errRefused) {
			t.Errorf("the pass ended with %v", err)
		}
		if message := w.Wants("workflow", v1alpha1.ReasonProjectError); !strings.Contains(message, errRefused.Error()) {
			t.Errorf("the message is %q", message)
		}
		recovers(w)
	})
	t.Run("a_latch_that_may_not_be_cleared", func(t *testing.T) {
		w := ready(t)
		giveUp(w, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: read tcp: connection reset by peer")
		project := managed(w, "workflow")
		w.Fail = func(write string) error {
			if write == "patch-status "+project.Name {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "projects"}, project.Name, errRefused)
			}
			return nil
		}
		w.Pass("workflow")
		w.Wants("workflow", v1alpha1.ReasonTransportErrorRetryFailed)
		recovers(w)
	})
	t.Run("a_kind_that_is_not_served", func(t *testing.T) {
		w := newWorld(t)
		w.NotServed["Project"] = true
		w.Settle("workflow")
		if message := w.Wants("workflow", v1alpha1.ReasonWaitingForDependencies); !strings.Contains(message, "Project") {
			t.Errorf("the message is %q", message)
		}
		w.NotServed["Project"] = false
		recovers(w)
	})
}
