package keystoneproject

import (
	"testing"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// probing is a world whose order waits for what K-ORC says of the name.
func probing(t *testing.T) *ordertest.World {
	t.Helper()
	w := newWorld(t)
	w.KORC.Idle = true
	w.Pass("workflow") // the finalizer
	w.Pass("workflow") // the probe
	return w
}

func TestAnExternalKeystonesCauseReplacesTheWait(t *testing.T) {
	for name, c := range map[string]struct {
		child, wait string
		await       func(*testing.T) *ordertest.World
	}{
		"for_the_probe":   {probeChild, v1alpha1.ReasonProbingForCollision, probing},
		"for_the_project": {projectChild, v1alpha1.ReasonWaitingForProject, ready},
	} {
		t.Run(name, func(t *testing.T) {
			child := &orcv1alpha1.Project{}
			ordertest.ReplacesTheWait(t, "workflow", c.await, ordertest.Child(order.ProjectKind, "workflow", c.child), child, &child.Status.Conditions, c.wait)
		})
	}
	t.Run("for_Keystones_own_word_on_the_name", func(t *testing.T) {
		w := newWorld(t)
		w.External()
		w.Keystone.Down(true)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonEndpointUnreachable)
		w.Keystone.Down(false)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
	t.Run("for_Keystones_own_word_on_a_project_that_K-ORC_gave_up_on", func(t *testing.T) {
		w := ready(t)
		w.External()
		giveUp(w, orcv1alpha1.ConditionReasonUnrecoverableError, "resource has been deleted from OpenStack")
		w.Keystone.Down(true)
		w.Pass("workflow")
		w.Wants("workflow", v1alpha1.ReasonEndpointUnreachable)
	})
}

// Whoever mends the CA bundle mends it in one place, and not in every child.
func TestAProjectIsMadeOnceTheCertificateVerifies(t *testing.T) {
	w := ready(t)
	w.External()
	giveUp(w, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: "+ordertest.Causes[v1alpha1.ReasonTLSVerificationFailed])
	w.Pass("workflow")
	w.Wants("workflow", v1alpha1.ReasonTLSVerificationFailed)
	w.Settle("workflow") // K-ORC has the bundle now
	w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
}
