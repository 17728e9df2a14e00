package keystoneroleassignment

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

var plane = v1alpha1.ControlPlaneRefSpec{Name: ordertest.PlaneName, Namespace: ordertest.PlaneNamespace}

func tenant(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ordertest.TenantNamespace, Name: name, UID: types.UID("uid-" + name)}
}

// ordered is an order for the role of "workflow" on "workflow-project"; age is how long before the
// world's beginning it was created.
func ordered(name, role string, age time.Duration) *v1alpha1.KeystoneRoleAssignment {
	assignment := &v1alpha1.KeystoneRoleAssignment{ObjectMeta: tenant(name), Spec: v1alpha1.KeystoneRoleAssignmentSpec{
		ControlPlaneRef: plane, UserRef: v1alpha1.OrderRef{Name: "workflow"}, ProjectRef: v1alpha1.OrderRef{Name: "workflow-project"}, Role: role,
	}}
	assignment.CreationTimestamp = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(-age))
	return assignment
}

// newWorld has a ready user and a ready project, with K-ORC's objects behind them.
func newWorld(t *testing.T, korcAssigns bool, orders ...client.Object) *ordertest.World {
	t.Helper()
	user := &v1alpha1.KeystoneUser{ObjectMeta: tenant("workflow"), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: plane}}
	user.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUserReady, Status: metav1.ConditionTrue}}
	project := &v1alpha1.KeystoneProject{ObjectMeta: tenant("workflow-project"), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: plane}}
	project.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProjectReady, Status: metav1.ConditionTrue}}
	korcUser := &orcv1alpha1.User{ObjectMeta: child(order.UserKind, "workflow", userChild), Status: orcv1alpha1.UserStatus{ID: ptr.To("u-1")}}
	korcProject := &orcv1alpha1.Project{
		ObjectMeta: child(order.ProjectKind, "workflow-project", projectChild),
		Spec:       orcv1alpha1.ProjectSpec{Resource: &orcv1alpha1.ProjectResourceSpec{Name: ptr.To(orcv1alpha1.KeystoneName("workflow-project"))}},
	}
	objects := []client.Object{user, project, korcUser, korcProject}
	if len(orders) == 0 {
		orders = []client.Object{ordered("member", "member", 0)}
	}
	w := ordertest.NewWorld(t, order.RoleAssignmentKind, steps{}, append(objects, orders...)...)
	w.NotServed[korcapi.Kind] = !korcAssigns
	w.PlayKORC() // makes the project, id p-1
	return w
}

func child(kind order.Kind, name, discriminator string) metav1.ObjectMeta {
	key := ordertest.Child(kind, name, discriminator)
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: kind.Labels(order.Key{Namespace: ordertest.TenantNamespace, Name: name})}
}

func granted(w *ordertest.World) bool { return w.Keystone.Granted("p-1", "u-1", "r-member") }

func status(w *ordertest.World, name string) v1alpha1.KeystoneRoleAssignmentStatus {
	w.T.Helper()
	assignment := &v1alpha1.KeystoneRoleAssignment{}
	w.Get(ordertest.Tenant(name), assignment)
	return assignment.Status
}

func korcAssignment(w *ordertest.World, name string) *korcapi.RoleAssignment {
	w.T.Helper()
	object := &korcapi.RoleAssignment{}
	if !w.Get(ordertest.Child(order.RoleAssignmentKind, name, assignmentChild), object) {
		return nil
	}
	return object
}

func roleImport(w *ordertest.World, name string) *orcv1alpha1.Role {
	w.T.Helper()
	object := &orcv1alpha1.Role{}
	if !w.Get(ordertest.Child(order.RoleAssignmentKind, name, roleChild), object) {
		return nil
	}
	return object
}

func remove(w *ordertest.World, name string) {
	w.T.Helper()
	w.Delete(ordertest.Tenant(name), &v1alpha1.KeystoneRoleAssignment{})
}

func allow(w *ordertest.World, roles ...string) {
	w.T.Helper()
	cp := w.ControlPlane()
	cp.Spec.NamespaceAssignments[0].AllowedRoles = roles
	w.Must(w.Client.Update(w.T.Context(), cp))
}

// withBoth runs a test with the operator assigning the role itself, and with K-ORC doing it. Both hold
// the same promises.
func withBoth(t *testing.T, test func(t *testing.T, korcAssigns bool)) {
	t.Helper()
	t.Run("directly", func(t *testing.T) { test(t, false) })
	t.Run("through_korc", func(t *testing.T) { test(t, true) })
}

func ready(t *testing.T, korcAssigns bool) *ordertest.World {
	t.Helper()
	w := newWorld(t, korcAssigns)
	w.Settle("member")
	w.Wants("member", v1alpha1.ReasonRoleAssigned)
	if !granted(w) {
		t.Fatal("the role is not assigned")
	}
	return w
}

func TestProvision_assigns_the_role_and_then_costs_nothing(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		w := ready(t, korcAssigns)
		if got := status(w, "member"); got.RoleID != "r-member" || got.UserID != "u-1" || got.ProjectID != "p-1" {
			t.Errorf("status is %+v", got)
		}
		if there := korcAssignment(w, "member") != nil; there != korcAssigns {
			t.Errorf("K-ORC's RoleAssignment is there: %v", there)
		}
		w.Quiet(func() {
			for range 3 {
				w.Pass("member")
			}
		})
	})
}

func TestRoleNotAllowed(t *testing.T) {
	for name, test := range map[string]struct {
		roles   []string
		message string
	}{
		"an_absent_list_admits_none": {nil, `ControlPlane openstack/cp admits roles [] from namespace "tenant-a" on the management cluster (spec.namespaceAssignments); ["member"] is not on that list`},
		"another_role":               {[]string{"reader", "admin"}, `ControlPlane openstack/cp admits roles ["reader" "admin"] from namespace "tenant-a" on the management cluster (spec.namespaceAssignments); ["member"] is not on that list`},
		"another_case":               {[]string{"Member"}, `ControlPlane openstack/cp admits roles ["Member"] from namespace "tenant-a" on the management cluster (spec.namespaceAssignments); ["member"] is not on that list`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			allow(w, test.roles...)
			w.Settle("member")
			if message := w.Wants("member", v1alpha1.ReasonRoleNotAllowed); message != test.message {
				t.Errorf("the message is\n%s, want\n%s", message, test.message)
			}
			if roleImport(w, "member") != nil || granted(w) {
				t.Error("something was created")
			}
		})
	}
}

func TestRole_taken_off_the_list_freezes_and_revokes_nothing(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		w := ready(t, korcAssigns)
		allow(w)
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonRoleNotAllowed)
		w.Keystone.Grant("p-1", "u-1", "r-member", false)
		w.NotServed[korcapi.Kind] = korcAssigns // no move while frozen either way
		w.Advance(3 * ordertest.AuditInterval)
		w.Quiet(func() { w.Pass("member"); w.Pass("member") })
		if granted(w) || status(w, "member").RoleID == "" {
			t.Error("repaired while frozen, or the status forgotten")
		}
		w.NotServed[korcapi.Kind] = !korcAssigns
		w.Keystone.Grant("p-1", "u-1", "r-member", true)
		remove(w, "member")
		w.Settle("member")
		if !w.Gone("member") || granted(w) {
			t.Error("deleting a frozen order revokes")
		}
	})
}

func TestReferences_are_judged_before_anything_is_created(t *testing.T) {
	user := func(w *ordertest.World, change func(*v1alpha1.KeystoneUser)) {
		object := &v1alpha1.KeystoneUser{}
		w.Get(ordertest.Tenant("workflow"), object)
		change(object)
		w.Must(w.Client.Status().Update(w.T.Context(), object))
		change(object)
		w.Must(w.Client.Update(w.T.Context(), object))
	}
	for name, test := range map[string]struct {
		change func(*ordertest.World)
		reason string
	}{
		"no_user": {func(w *ordertest.World) { w.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneUser{}) }, v1alpha1.ReasonUserNotFound},
		"no_project": {func(w *ordertest.World) {
			w.Delete(ordertest.Tenant("workflow-project"), &v1alpha1.KeystoneProject{})
		}, v1alpha1.ReasonProjectNotFound},
		"another_control_plane": {func(w *ordertest.World) {
			user(w, func(u *v1alpha1.KeystoneUser) { u.Spec.ControlPlaneRef.Name = "other" })
		}, v1alpha1.ReasonControlPlaneMismatch},
		"a_user_that_is_not_ready": {func(w *ordertest.World) {
			user(w, func(u *v1alpha1.KeystoneUser) { u.Status.Conditions[0].Status = metav1.ConditionFalse })
		}, v1alpha1.ReasonWaitingForUser},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			test.change(w)
			w.Settle("member")
			w.Wants("member", test.reason)
			if roleImport(w, "member") != nil || granted(w) {
				t.Error("something was created")
			}
		})
	}
}

func TestElder(t *testing.T) {
	base := ordered("m", "member", 0)
	with := func(name string, age time.Duration, change func(*v1alpha1.KeystoneRoleAssignment)) v1alpha1.KeystoneRoleAssignment {
		other := ordered(name, "member", age)
		if change != nil {
			change(other)
		}
		return *other
	}
	for name, test := range map[string]struct {
		others []v1alpha1.KeystoneRoleAssignment
		want   string
	}{
		"alone":                        {nil, ""},
		"a_younger_one_does_not_count": {[]v1alpha1.KeystoneRoleAssignment{with("a", -time.Minute, nil)}, ""},
		"an_older_one_does":            {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, nil)}, "z"},
		"the_oldest_is_named":          {[]v1alpha1.KeystoneRoleAssignment{with("y", time.Minute, nil), with("z", time.Hour, nil)}, "z"},
		"names_decide_within_a_second": {[]v1alpha1.KeystoneRoleAssignment{with("a", 0, nil), with("z", 0, nil)}, "a"},
		"a_terminating_one_counts": {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, func(o *v1alpha1.KeystoneRoleAssignment) {
			o.DeletionTimestamp = ptr.To(metav1.Now())
		})}, "z"},
		"another_role":    {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, func(o *v1alpha1.KeystoneRoleAssignment) { o.Spec.Role = "reader" })}, ""},
		"another_case":    {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, func(o *v1alpha1.KeystoneRoleAssignment) { o.Spec.Role = "Member" })}, ""},
		"another_user":    {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, func(o *v1alpha1.KeystoneRoleAssignment) { o.Spec.UserRef.Name = "x" })}, ""},
		"another_project": {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, func(o *v1alpha1.KeystoneRoleAssignment) { o.Spec.ProjectRef.Name = "x" })}, ""},
		"another_control_plane_never_assigns": {[]v1alpha1.KeystoneRoleAssignment{with("z", time.Minute, func(o *v1alpha1.KeystoneRoleAssignment) {
			o.Spec.ControlPlaneRef.Name = "other"
		})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := elder(base, append(test.others, *base)); found != nil {
				got = found.Name
			}
			if got != test.want {
				t.Errorf("the elder is %q, want %q", got, test.want)
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	two := func(t *testing.T, korcAssigns bool) *ordertest.World {
		w := newWorld(t, korcAssigns, ordered("older", "member", time.Hour), ordered("younger", "member", 0))
		w.Settle("younger", "older")
		w.Wants("older", v1alpha1.ReasonRoleAssigned)
		return w
	}
	t.Run("projects_nothing_and_names_the_older", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := two(t, korcAssigns)
			if message := w.Wants("younger", v1alpha1.ReasonDuplicateRoleAssignment); !strings.Contains(message, `"older"`) {
				t.Errorf("the message is %q", message)
			}
			if roleImport(w, "younger") != nil || korcAssignment(w, "younger") != nil {
				t.Error("the younger projected something")
			}
		})
	})
	t.Run("takes_nothing_away_when_it_goes", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := two(t, korcAssigns)
			remove(w, "younger")
			w.Settle("younger")
			if !w.Gone("younger") || !granted(w) {
				t.Errorf("gone %v, granted %v", w.Gone("younger"), granted(w))
			}
		})
	})
	t.Run("takes_over_only_when_the_older_is_gone", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := two(t, korcAssigns)
			remove(w, "older")
			w.Pass("older")
			w.Pass("younger")
			w.Wants("younger", v1alpha1.ReasonDuplicateRoleAssignment)
			w.Settle("older", "younger")
			w.Wants("younger", v1alpha1.ReasonRoleAssigned)
			if !w.Gone("older") || !granted(w) {
				t.Errorf("gone %v, granted %v", w.Gone("older"), granted(w))
			}
		})
	})
	t.Run("that_was_first_within_a_second_hands_over_and_takes_over_again", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns, ordered("second", "member", 0))
			w.Settle("second")
			w.Wants("second", v1alpha1.ReasonRoleAssigned)
			w.Must(w.Client.Create(t.Context(), ordered("first", "member", 0)))
			w.Settle("first", "second")
			w.Wants("first", v1alpha1.ReasonRoleAssigned)
			w.Wants("second", v1alpha1.ReasonDuplicateRoleAssignment)
			remove(w, "first")
			w.Settle("first", "second")
			w.Wants("second", v1alpha1.ReasonRoleAssigned)
			if !w.Gone("first") || !granted(w) {
				t.Errorf("gone %v, granted %v", w.Gone("first"), granted(w))
			}
		})
	})
	t.Run("that_was_first_within_a_second_takes_nothing_away_when_it_goes", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns, ordered("second", "member", 0))
			w.Settle("second")
			w.Must(w.Client.Create(t.Context(), ordered("first", "member", 0)))
			w.Settle("first", "second")
			remove(w, "second")
			w.Settle("second")
			if !w.Gone("second") || !granted(w) {
				t.Errorf("gone %v, granted %v", w.Gone("second"), granted(w))
			}
		})
	})
}

func TestRoleImport(t *testing.T) {
	t.Run("a_role_that_is_not_there_is_said_to_be_missing_after_two_minutes", func(t *testing.T) {
		w := newWorld(t, false, ordered("member", "unheard-of", 0))
		allow(w, "unheard-of")
		w.Settle("member")
		role := roleImport(w, "member")
		role.CreationTimestamp = metav1.NewTime(w.Clock.Now())
		w.Must(w.Client.Update(t.Context(), role))
		for after, missing := range map[time.Duration]bool{2 * time.Minute: false, 2*time.Minute + time.Second: true} {
			w.Clock.SetTime(role.CreationTimestamp.Add(after))
			w.Pass("member")
			if message := w.Wants("member", v1alpha1.ReasonWaitingForServiceAccounts); strings.Contains(message, "may not exist") != missing {
				t.Errorf("after %s: %q", after, message)
			}
		}
	})
	t.Run("a_name_longer_than_korcs_limit_fails", func(t *testing.T) {
		long := strings.Repeat("r", 65)
		w := newWorld(t, false, ordered("member", long, 0))
		allow(w, long)
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssignmentFailed)
	})
	giveUp := func(w *ordertest.World) {
		role := roleImport(w, "member")
		ordertest.GiveUp(role, &role.Status.Conditions, orcv1alpha1.ConditionReasonUnrecoverableError, "resource has been deleted from OpenStack")
		w.Must(w.Client.Status().Update(w.T.Context(), role))
	}
	t.Run("what_korc_gave_up_on_is_asked_of_keystone", func(t *testing.T) {
		w := ready(t, false)
		giveUp(w)
		w.Keystone.Down(true)
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonWaitingForServiceAccounts)
		w.Keystone.Down(false)
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	})
	t.Run("a_role_that_keystone_does_not_have_fails", func(t *testing.T) {
		w := ready(t, false)
		giveUp(w)
		w.Keystone.With(func() { delete(w.Keystone.Roles, "r-member") })
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonRoleAssignmentFailed)
	})
}

func TestIds_of_the_status_are_never_believed(t *testing.T) {
	// The owner of an order may be able to write its status.
	w := newWorld(t, false)
	assignment := &v1alpha1.KeystoneRoleAssignment{}
	w.Get(ordertest.Tenant("member"), assignment)
	assignment.Status.RoleID, assignment.Status.UserID, assignment.Status.ProjectID = "r-member", "u-victim", "p-admin"
	w.Must(w.Client.Status().Update(t.Context(), assignment))
	w.Keystone.Grant("p-admin", "u-victim", "r-member", true)
	w.Settle("member")
	w.Wants("member", v1alpha1.ReasonRoleAssigned)
	if !granted(w) || status(w, "member").UserID != "u-1" {
		t.Error("the status was believed")
	}
	w.Get(ordertest.Tenant("member"), assignment)
	assignment.Status.UserID, assignment.Status.ProjectID = "u-victim", "p-admin"
	w.Must(w.Client.Status().Update(t.Context(), assignment))
	remove(w, "member")
	w.Settle("member")
	if !w.Gone("member") || granted(w) || !w.Keystone.Granted("p-admin", "u-victim", "r-member") {
		t.Error("another role was taken away than the order's")
	}
}

func TestAudit_assigns_again_what_was_taken_away(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		w := ready(t, korcAssigns)
		w.Keystone.Grant("p-1", "u-1", "r-member", false)
		w.Advance(2 * ordertest.AuditInterval)
		w.Pass("member")
		if !granted(w) || !w.Announced(assignmentRepaired) {
			t.Errorf("granted %v, events %v", granted(w), w.Events)
		}
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	})
}

func TestAudit_without_an_answer_changes_nothing(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		w := ready(t, korcAssigns)
		w.Keystone.Down(true)
		w.Advance(2 * ordertest.AuditInterval)
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
		if w.Announced(assignmentRepaired) {
			t.Error("a repair was announced")
		}
	})
}

func TestKeystone_away_while_assigning(t *testing.T) {
	w := newWorld(t, false)
	w.Keystone.Down(true)
	w.Settle("member")
	w.Wants("member", v1alpha1.ReasonWaitingForServiceAccounts)
	if status(w, "member").RoleID != "" {
		t.Error("the status says assigned")
	}
	w.Keystone.Down(false)
	w.Settle("member")
	w.Wants("member", v1alpha1.ReasonRoleAssigned)
}

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

func TestKind_comes_and_goes(t *testing.T) {
	t.Run("an_order_moves_to_korc_without_a_gap", func(t *testing.T) {
		w := ready(t, false)
		w.NotServed[korcapi.Kind] = false
		w.KORC.Idle = true
		for range 3 {
			w.Pass("member")
			w.Wants("member", v1alpha1.ReasonRoleAssigned)
			if !granted(w) || status(w, "member").RoleID == "" {
				t.Fatal("a gap")
			}
		}
		if korcAssignment(w, "member") == nil {
			t.Fatal("K-ORC was not asked")
		}
		w.KORC.Idle = false
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
		if recordOf(roleImport(w, "member")).Progress != byKORC {
			t.Error("K-ORC has not taken over")
		}
		w.Quiet(func() { w.Pass("member") })
	})
	gone := func(w *ordertest.World) {
		// A CRD takes its objects with it, and K-ORC unassigns what they stood for.
		w.Delete(ordertest.Child(order.RoleAssignmentKind, "member", assignmentChild), &korcapi.RoleAssignment{})
		w.PlayKORC()
		w.NotServed[korcapi.Kind] = true
	}
	t.Run("the_role_is_assigned_directly_at_once_when_the_kind_goes", func(t *testing.T) {
		w := ready(t, true)
		gone(w)
		if granted(w) {
			t.Fatal("the role is still there")
		}
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
		if !granted(w) {
			t.Error("not assigned")
		}
	})
	t.Run("also_when_the_kind_goes_in_the_middle_of_the_move", func(t *testing.T) {
		w := ready(t, false)
		w.NotServed[korcapi.Kind] = false
		w.Pass("member")
		w.PlayKORC() // assigns, and nobody has seen it yet
		gone(w)
		w.Pass("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
		if !granted(w) {
			t.Error("not assigned")
		}
	})
	t.Run("what_was_assigned_directly_is_taken_away_after_the_kind_came", func(t *testing.T) {
		w := ready(t, false)
		w.NotServed[korcapi.Kind] = false
		remove(w, "member")
		w.Settle("member")
		if !w.Gone("member") || granted(w) {
			t.Error("something is left")
		}
	})
}

func TestObject_of_another_user_is_replaced(t *testing.T) {
	w := ready(t, true)
	user := &orcv1alpha1.User{}
	w.Get(ordertest.Child(order.UserKind, "workflow", userChild), user)
	user.Status.ID = ptr.To("u-2")
	w.Must(w.Client.Status().Update(t.Context(), user))
	w.Settle("member")
	w.Wants("member", v1alpha1.ReasonRoleAssigned)
	if !w.Keystone.Granted("p-1", "u-2", "r-member") || granted(w) || status(w, "member").UserID != "u-2" {
		t.Error("the role is not the new user's")
	}
}

func TestTeardown(t *testing.T) {
	t.Run("takes_the_role_away", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			remove(w, "member")
			w.Settle("member")
			if !w.Gone("member") || granted(w) || roleImport(w, "member") != nil || korcAssignment(w, "member") != nil {
				t.Error("something is left")
			}
			if w.Announced(revocationRepaired) {
				t.Error("nothing had to be repaired")
			}
			if w.Keystone.FindRole("member") == "" {
				t.Error("the role itself is gone")
			}
		})
	})
	t.Run("waits_for_the_credential_orders_of_the_pair", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			for name, project := range map[string]string{"zebra": "workflow-project", "agent": "workflow-project", "other": "elsewhere"} {
				credential := &v1alpha1.KeystoneApplicationCredential{ObjectMeta: tenant(name)}
				credential.Spec.UserRef.Name, credential.Spec.ProjectRef.Name = "workflow", project
				w.Must(w.Client.Create(t.Context(), credential))
			}
			remove(w, "member")
			w.Settle("member")
			if message := w.Wants("member", v1alpha1.ReasonReferencedByApplicationCredentials); !strings.Contains(message, "agent, zebra;") {
				t.Errorf("the message is %q", message)
			}
			if !granted(w) || roleImport(w, "member") == nil {
				t.Error("something was deleted")
			}
			for _, name := range []string{"zebra", "agent"} {
				w.Delete(ordertest.Tenant(name), &v1alpha1.KeystoneApplicationCredential{})
			}
			w.Settle("member")
			if !w.Gone("member") || granted(w) {
				t.Error("still held")
			}
		})
	})
	t.Run("waits_until_keystone_says_so", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			w.KORC.LetsGo = true
			w.Keystone.Down(true)
			remove(w, "member")
			w.Settle("member")
			w.Wants("member", v1alpha1.ReasonWaitingForRevocation)
			if roleImport(w, "member") == nil {
				t.Error("the record is gone before the proof")
			}
			w.Keystone.Down(false)
			w.Settle("member")
			if !w.Gone("member") || granted(w) || w.Announced(revocationRepaired) != korcAssigns {
				t.Errorf("gone %v, granted %v, events %v", w.Gone("member"), granted(w), w.Events)
			}
		})
	})
	t.Run("takes_away_what_a_crash_left_without_a_status", func(t *testing.T) {
		w := newWorld(t, false)
		w.Fail = func(write string) error {
			if strings.HasPrefix(write, "patch-status") && granted(w) {
				return errors.New("crashed")
			}
			return nil
		}
		for range 4 {
			_, _ = w.TryPass("member") // the crash is the point
			w.PlayKORC()
		}
		if !granted(w) || status(w, "member").RoleID != "" {
			t.Fatal("the crash did not come between the assignment and the status")
		}
		w.Fail = nil
		remove(w, "member")
		w.Settle("member")
		if !w.Gone("member") || granted(w) {
			t.Error("the role is left")
		}
	})
	t.Run("takes_away_what_is_recorded_when_the_users_object_is_gone", func(t *testing.T) {
		w := ready(t, false)
		w.Delete(ordertest.Child(order.UserKind, "workflow", userChild), &orcv1alpha1.User{})
		remove(w, "member")
		w.Settle("member")
		if !w.Gone("member") || granted(w) {
			t.Error("the role is left")
		}
	})
	t.Run("owes_keystone_no_question_when_nothing_was_made", func(t *testing.T) {
		w := newWorld(t, false)
		allow(w)
		w.Settle("member")
		w.Keystone.Down(true)
		remove(w, "member")
		w.Pass("member")
		if !w.Gone("member") {
			t.Error("the order hangs")
		}
	})
	t.Run("with_the_control_plane_gone_tells_what_is_not_proven", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			w.Must(w.Client.Delete(t.Context(), w.ControlPlane()))
			remove(w, "member")
			w.Pass("member")
			if !w.Gone("member") || !w.Announced("RevocationUnproven") {
				t.Errorf("gone %v, events %v", w.Gone("member"), w.Events)
			}
		})
	})
}

func TestCrash_at_any_write_is_repaired(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		life := ready(t, korcAssigns)
		remove(life, "member")
		life.Settle("member")
		writes := len(life.Writes)
		if writes < 7 {
			t.Fatalf("a life has %v only", life.Writes)
		}
		for at := range writes {
			w := newWorld(t, korcAssigns)
			seen := 0
			w.Fail = func(string) error {
				if seen++; seen == at+1 {
					return errors.New("crashed")
				}
				return nil
			}
			settle := func() {
				for range 10 {
					if _, err := w.TryPass("member"); err != nil {
						w.Restart()
					}
					w.PlayKORC()
					w.Advance(40 * time.Second)
				}
			}
			settle()
			w.Wants("member", v1alpha1.ReasonRoleAssigned)
			if !granted(w) {
				t.Errorf("after a crash at write %d the role is not assigned", at+1)
			}
			remove(w, "member")
			settle()
			if !w.Gone("member") || granted(w) || roleImport(w, "member") != nil {
				t.Errorf("a crash at write %d left something", at+1)
			}
		}
	})
}

func TestRecord_survives_the_annotation(t *testing.T) {
	for _, r := range []record{{direct, tuple{"r", "u", "p"}}, {byKORC, tuple{"r", "u", "p"}}} {
		role := &orcv1alpha1.Role{}
		role.Annotations = map[string]string{recordAnnotation: r.String()}
		if got := recordOf(role); got != r {
			t.Errorf("%v became %v", r, got)
		}
	}
	for _, damaged := range []string{"", "direct", "direct r u", "direct r u p x"} {
		role := &orcv1alpha1.Role{}
		role.Annotations = map[string]string{recordAnnotation: damaged}
		if got := recordOf(role); got != (record{}) {
			t.Errorf("%q is %v", damaged, got)
		}
	}
}
