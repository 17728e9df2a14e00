package keystoneroleassignment

import (
	"testing"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// waiting is a world whose order waits for K-ORC to find the role, or with found to assign it.
func waiting(found bool) func(*testing.T) *ordertest.World {
	return func(t *testing.T) *ordertest.World {
		t.Helper()
		w := newWorld(t, true, ordered("workflow", "member", 0))
		w.Pass("workflow") // the finalizer
		w.Pass("workflow") // the import
		if found {
			w.PlayKORC()
		}
		w.KORC.Idle = true
		w.Pass("workflow")
		return w
	}
}

func TestAnExternalKeystonesCauseReplacesTheWait(t *testing.T) {
	const wait = v1alpha1.ReasonWaitingForServiceAccounts
	t.Run("for_the_role", func(t *testing.T) {
		child := &orcv1alpha1.Role{}
		ordertest.ReplacesTheWait(t, "workflow", waiting(false), ordertest.Child(order.RoleAssignmentKind, "workflow", roleChild), child, &child.Status.Conditions, wait)
	})
	t.Run("for_the_assignment", func(t *testing.T) {
		child := &korcapi.RoleAssignment{}
		ordertest.ReplacesTheWait(t, "workflow", waiting(true), ordertest.Child(order.RoleAssignmentKind, "workflow", assignmentChild), child, &child.Status.Conditions, wait)
	})
	t.Run("for_Keystone_itself", func(t *testing.T) {
		w := newWorld(t, false)
		w.External()
		w.Keystone.Down(true)
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonEndpointUnreachable)
		w.Keystone.Down(false)
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	})
}
