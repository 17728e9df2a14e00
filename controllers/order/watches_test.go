package order

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// TestWatches says what wakes whom. An order that wakes itself by its own status would never rest.
func TestWatches(t *testing.T) {
	user := func(changes ...func(*v1alpha1.KeystoneUser)) client.Object {
		user := &v1alpha1.KeystoneUser{ObjectMeta: metav1.ObjectMeta{Name: "workflow", Generation: 1, ResourceVersion: "1"}}
		user.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}}
		for _, change := range changes {
			change(user)
		}
		return user
	}
	plane := func(changes ...func(*v1alpha1.ControlPlane)) client.Object {
		cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "cp", Generation: 1}}
		cp.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue}}
		for _, change := range changes {
			change(cp)
		}
		return cp
	}
	now := metav1.Now()
	var (
		spec       = func(u *v1alpha1.KeystoneUser) { u.Generation = 2 }
		labels     = func(u *v1alpha1.KeystoneUser) { u.Labels = map[string]string{"a": "b"} }
		annotation = func(u *v1alpha1.KeystoneUser) { u.Annotations = map[string]string{"a": "b"} }
		deletion   = func(u *v1alpha1.KeystoneUser) { u.DeletionTimestamp = &now }
		status     = func(u *v1alpha1.KeystoneUser) { u.Status.Conditions[0].Status = metav1.ConditionTrue }
		password   = func(u *v1alpha1.KeystoneUser) { u.Status.PasswordGeneration = 2 }
		version    = func(u *v1alpha1.KeystoneUser) { u.ResourceVersion = "2" }
		admin      = func(status metav1.ConditionStatus) func(*v1alpha1.ControlPlane) {
			return func(cp *v1alpha1.ControlPlane) { cp.Status.Conditions[0].Status = status }
		}
	)
	cases := []struct {
		name          string
		watch         predicate.Predicate
		before, after client.Object
		wakes         bool
	}{
		{"an_orders_spec_wakes_it", OrderChanged(), user(), user(spec), true},
		{"an_orders_labels_wake_it", OrderChanged(), user(), user(labels), true},
		{"an_orders_annotations_wake_it", OrderChanged(), user(), user(annotation), true},
		{"an_orders_deletion_wakes_it", OrderChanged(), user(), user(deletion), true},
		{"an_orders_own_status_does_not_wake_it", OrderChanged(), user(), user(status), false},
		{"a_resync_does_not_wake_it", OrderChanged(), user(), user(version), false},

		{"a_references_spec_wakes", ReferenceChanged(), user(), user(spec), true},
		{"a_references_deletion_wakes", ReferenceChanged(), user(), user(deletion), true},
		{"a_references_condition_wakes", ReferenceChanged(), user(), user(status), true},
		{"a_references_password_wakes", ReferenceChanged(), user(), user(password), true},
		{"a_references_labels_do_not_wake", ReferenceChanged(), user(), user(labels), false},
		{"a_references_resync_does_not_wake", ReferenceChanged(), user(), user(version), false},

		{"a_controlplanes_spec_wakes", ControlPlaneChanged(), plane(), plane(func(cp *v1alpha1.ControlPlane) { cp.Generation = 2 }), true},
		{"a_controlplanes_deletion_wakes", ControlPlaneChanged(), plane(), plane(func(cp *v1alpha1.ControlPlane) { cp.DeletionTimestamp = &now }), true},
		{"a_controlplane_that_gets_in_wakes", ControlPlaneChanged(), plane(admin(metav1.ConditionFalse)), plane(), true},
		{"a_controlplane_that_is_locked_out_wakes", ControlPlaneChanged(), plane(), plane(admin(metav1.ConditionFalse)), true},
		{"a_controlplane_that_stays_out_does_not_wake", ControlPlaneChanged(), plane(admin(metav1.ConditionFalse)), plane(admin(metav1.ConditionUnknown)), false},
		{"a_controlplanes_other_status_does_not_wake", ControlPlaneChanged(), plane(), plane(func(cp *v1alpha1.ControlPlane) { cp.Status.AuthURL = "https://k/v3" }), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.watch.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.wakes {
				t.Errorf("wakes: %t", got)
			}
			if !c.watch.Create(event.CreateEvent{Object: c.after}) || !c.watch.Delete(event.DeleteEvent{Object: c.after}) {
				t.Error("its coming and going must wake")
			}
		})
	}
}
