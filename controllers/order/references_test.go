package order

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

func TestReferences(t *testing.T) {
	user := func(change func(*v1alpha1.KeystoneUser)) *v1alpha1.KeystoneUser {
		user := &v1alpha1.KeystoneUser{ObjectMeta: metav1.ObjectMeta{Name: "workflow", Namespace: "tenant-a"}}
		user.Spec.ControlPlaneRef = v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: "openstack"}
		user.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUserReady, Status: metav1.ConditionTrue}}
		change(user)
		return user
	}
	cases := map[string]struct {
		user            *v1alpha1.KeystoneUser
		reason, message string
	}{
		"a_user_that_is_there": {user(func(*v1alpha1.KeystoneUser) {}), "", ""},
		// What is delivered beside the user is its own consumers' business.
		"a_user_whose_secret_is_not_delivered": {user(func(u *v1alpha1.KeystoneUser) {
			u.Status.Conditions = append(u.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDeliveryReady, Status: metav1.ConditionFalse})
		}), "", ""},
		"no_user": {nil, v1alpha1.ReasonUserNotFound,
			`there is no KeystoneUser "workflow" in namespace "tenant-a"; create it, this order goes on by itself`},
		"a_user_of_another_namespace": {user(func(u *v1alpha1.KeystoneUser) { u.Namespace = "tenant-b" }), v1alpha1.ReasonUserNotFound,
			`there is no KeystoneUser "workflow" in namespace "tenant-a"; create it, this order goes on by itself`},
		"a_user_of_another_controlplane": {user(func(u *v1alpha1.KeystoneUser) { u.Spec.ControlPlaneRef.Name = "other" }), v1alpha1.ReasonControlPlaneMismatch,
			`KeystoneUser "workflow" belongs to ControlPlane openstack/other and this order to openstack/cp; both must name the same`},
		"a_user_of_a_controlplane_of_the_same_name_elsewhere": {user(func(u *v1alpha1.KeystoneUser) { u.Spec.ControlPlaneRef.Namespace = "" }), v1alpha1.ReasonControlPlaneMismatch,
			`KeystoneUser "workflow" belongs to ControlPlane tenant-a/cp and this order to openstack/cp; both must name the same`},
		"a_user_that_nobody_looked_at": {user(func(u *v1alpha1.KeystoneUser) { u.Status.Conditions = nil }), v1alpha1.ReasonWaitingForUser,
			`KeystoneUser "workflow" is not reconciled yet`},
		"a_user_that_is_not_ready": {user(func(u *v1alpha1.KeystoneUser) {
			u.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionUserReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonServiceAccountCollision, Message: "a user of that name exists"}
		}), v1alpha1.ReasonWaitingForUser,
			`KeystoneUser "workflow": UserReady is False: ServiceAccountCollision: a user of that name exists`},
		"a_user_that_is_being_deleted": {user(func(u *v1alpha1.KeystoneUser) {
			now := metav1.Now()
			u.DeletionTimestamp, u.Finalizers = &now, []string{UserKind.Finalizer()}
		}), v1alpha1.ReasonWaitingForUser, `KeystoneUser "workflow" is being deleted`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var stored []client.Object
			if c.user != nil {
				stored = append(stored, c.user)
			}
			p := orderOf(t, "")
			p.Client = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(stored...).Build()
			_, outcome := p.User(t.Context(), "workflow")
			if c.reason == "" {
				if outcome != nil {
					t.Errorf("refused: %s: %s", outcome.Reason, outcome.Message)
				}
				return
			}
			if outcome == nil {
				t.Fatal("taken")
			}
			want := Outcome{Status: metav1.ConditionFalse, Reason: c.reason, Message: c.message, After: WaitRefused}
			if *outcome != want {
				t.Errorf("got  %+v\nwant %+v", *outcome, want)
			}
		})
	}
	t.Run("the_children_of_a_reference_are_on_the_orders_cluster", func(t *testing.T) {
		p := orderOf(t, "edge")
		if got, want := p.UserChild("workflow", "user"), UserKind.Prefix(Key{"edge", "tenant-a", "workflow"})+"user"; got != want {
			t.Errorf("user child %s, want %s", got, want)
		}
		if got, want := p.ProjectChild("p", "project"), ProjectKind.Prefix(Key{"edge", "tenant-a", "p"})+"project"; got != want {
			t.Errorf("project child %s, want %s", got, want)
		}
	})
}
