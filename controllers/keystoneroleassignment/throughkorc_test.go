package keystoneroleassignment

import (
	"testing"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

func TestKORC_gave_up_on_the_assignment(t *testing.T) {
	giveUp := func(w *ordertest.World, reason, message string) {
		object := korcAssignment(w, "member")
		ordertest.GiveUp(object, &object.Status.Conditions, reason, message)
		w.Must(w.Client.Status().Update(w.T.Context(), object))
	}
	t.Run("it_was_taken_away_so_it_is_assigned_again", func(t *testing.T) {
		w := ready(t, true)
		w.Keystone.Grant("p-1", "u-1", "r-member", false)
		giveUp(w, orcv1alpha1.ConditionReasonUnrecoverableError, "role assignment has been deleted from OpenStack")
		w.Pass("member")
		if !granted(w) || !w.Announced(assignmentRepaired) {
			t.Errorf("granted %v, events %v", granted(w), w.Events)
		}
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	})
	t.Run("it_was_never_made_so_korc_is_right", func(t *testing.T) {
		w := newWorld(t, true)
		w.Settle("member")
		object := korcAssignment(w, "member")
		object.Status.Resource = nil
		w.Must(w.Client.Status().Update(t.Context(), object))
		w.Keystone.Grant("p-1", "u-1", "r-member", false)
		giveUp(w, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: 403 Forbidden")
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonRoleAssignmentFailed)
	})
}
