package keystoneroleassignment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
// the same promises, so whatever an order promises is tested here and nowhere for one of them alone. What
// only K-ORC can do, giving up on its object for example, is in throughkorc_test.go, and the way from one
// to the other in migration_test.go.
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
			withBoth(t, func(t *testing.T, korcAssigns bool) {
				w := newWorld(t, korcAssigns)
				allow(w, test.roles...)
				w.Settle("member")
				if message := w.Wants("member", v1alpha1.ReasonRoleNotAllowed); message != test.message {
					t.Errorf("the message is\n%s, want\n%s", message, test.message)
				}
				nothingMade(w, "member")
			})
		})
	}
}

func TestRole_taken_off_the_list_freezes_and_revokes_nothing(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		freezes(t, korcAssigns, v1alpha1.ReasonRoleNotAllowed, func(w *ordertest.World) { allow(w) })
	})
}

func TestEntry_taken_away_freezes_and_revokes_nothing(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		freezes(t, korcAssigns, v1alpha1.ReasonNamespaceNotAssigned, func(w *ordertest.World) {
			cp := w.ControlPlane()
			cp.Spec.NamespaceAssignments = nil
			w.Must(w.Client.Update(w.T.Context(), cp))
		})
	})
}

// freezes takes the consent away, then all that a frozen order could be tempted to repair: the role in
// Keystone, the children, and the kind that assigns. It gives the consent back, and takes it again to show
// that a deletion revokes all the same.
func freezes(t *testing.T, korcAssigns bool, reason string, withdraw func(*ordertest.World)) {
	t.Helper()
	w := ready(t, korcAssigns)
	consent := w.ControlPlane().Spec
	withdraw(w)
	w.Pass("member")
	w.Wants("member", reason)
	w.Keystone.Grant("p-1", "u-1", "r-member", false)
	w.NotServed[korcapi.Kind] = korcAssigns
	w.Advance(3 * ordertest.AuditInterval)
	read := reads(w)
	w.Quiet(func() { w.Pass("member"); w.Pass("member") })
	if len(*read) > 0 {
		t.Errorf("a frozen order read %v", *read)
	}
	if granted(w) || status(w, "member").RoleID == "" {
		t.Error("repaired while frozen, or the status forgotten")
	}

	w.NotServed[korcapi.Kind] = !korcAssigns
	cp := w.ControlPlane()
	cp.Spec = consent
	w.Must(w.Client.Update(t.Context(), cp))
	w.Settle("member")
	w.Advance(2 * ordertest.AuditInterval)
	w.Settle("member")
	w.Wants("member", v1alpha1.ReasonRoleAssigned)
	if !granted(w) {
		t.Error("not repaired once the consent was back")
	}

	withdraw(w)
	remove(w, "member")
	w.Settle("member")
	if !w.Gone("member") || granted(w) {
		t.Error("deleting a frozen order revokes")
	}
}

// reads notes what is read in the ControlPlane's namespace from here on, but for the ControlPlane itself.
func reads(w *ordertest.World) *[]string {
	read := &[]string{}
	w.Client = interceptor.NewClient(w.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, plane := object.(*v1alpha1.ControlPlane); !plane && key.Namespace == ordertest.PlaneNamespace {
				*read = append(*read, fmt.Sprintf("%T %s", object, key))
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var applied client.ListOptions
			if applied.ApplyOptions(options); applied.Namespace != ordertest.TenantNamespace {
				*read = append(*read, fmt.Sprintf("%T in %q", list, applied.Namespace))
			}
			return c.List(ctx, list, options...)
		},
	})
	w.Restart()
	return read
}

// nothingOf fails when an order has children.
func nothingOf(w *ordertest.World, name string) {
	w.T.Helper()
	if roleImport(w, name) != nil || korcAssignment(w, name) != nil {
		w.T.Errorf("%s has children", name)
	}
}

// nothingMade fails when an order has children, or the role is assigned.
func nothingMade(w *ordertest.World, name string) {
	w.T.Helper()
	nothingOf(w, name)
	if granted(w) {
		w.T.Error("the role is assigned")
	}
}

func changeUser(w *ordertest.World, change func(*v1alpha1.KeystoneUser)) {
	w.T.Helper()
	object := &v1alpha1.KeystoneUser{}
	w.Get(ordertest.Tenant("workflow"), object)
	change(object)
	w.Must(w.Client.Status().Update(w.T.Context(), object))
	change(object)
	w.Must(w.Client.Update(w.T.Context(), object))
}

func changeProject(w *ordertest.World, change func(*v1alpha1.KeystoneProject)) {
	w.T.Helper()
	object := &v1alpha1.KeystoneProject{}
	w.Get(ordertest.Tenant("workflow-project"), object)
	change(object)
	w.Must(w.Client.Status().Update(w.T.Context(), object))
	change(object)
	w.Must(w.Client.Update(w.T.Context(), object))
}

func notReady(conditions []metav1.Condition, why string) {
	conditions[0].Status, conditions[0].Reason = metav1.ConditionFalse, why
}

func TestReferences_are_judged_before_anything_is_created(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ordertest.World)
		reason string
		says   string
	}{
		"no_user": {func(w *ordertest.World) { w.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneUser{}) },
			v1alpha1.ReasonUserNotFound, `no KeystoneUser "workflow"`},
		"no_project": {func(w *ordertest.World) {
			w.Delete(ordertest.Tenant("workflow-project"), &v1alpha1.KeystoneProject{})
		}, v1alpha1.ReasonProjectNotFound, `no KeystoneProject "workflow-project"`},
		"another_control_plane": {func(w *ordertest.World) {
			changeUser(w, func(u *v1alpha1.KeystoneUser) { u.Spec.ControlPlaneRef.Name = "other" })
		}, v1alpha1.ReasonControlPlaneMismatch, "openstack/other"},
		"another_control_plane_of_the_project": {func(w *ordertest.World) {
			changeProject(w, func(p *v1alpha1.KeystoneProject) { p.Spec.ControlPlaneRef.Name = "other" })
		}, v1alpha1.ReasonControlPlaneMismatch, "openstack/other"},
		"a_user_that_is_not_ready": {func(w *ordertest.World) {
			changeUser(w, func(u *v1alpha1.KeystoneUser) { notReady(u.Status.Conditions, v1alpha1.ReasonServiceAccountCollision) })
		}, v1alpha1.ReasonWaitingForUser, v1alpha1.ReasonServiceAccountCollision},
		"a_project_that_is_not_ready": {func(w *ordertest.World) {
			changeProject(w, func(p *v1alpha1.KeystoneProject) { notReady(p.Status.Conditions, v1alpha1.ReasonProjectCollision) })
		}, v1alpha1.ReasonWaitingForProject, v1alpha1.ReasonProjectCollision},
		"a_user_that_nobody_looked_at": {func(w *ordertest.World) {
			changeUser(w, func(u *v1alpha1.KeystoneUser) { u.Status.Conditions = nil })
		}, v1alpha1.ReasonWaitingForUser, "not reconciled yet"},
		"a_user_that_is_being_deleted": {func(w *ordertest.World) {
			changeUser(w, func(u *v1alpha1.KeystoneUser) { u.Finalizers = []string{"c5c3.io/test"} })
			w.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneUser{})
		}, v1alpha1.ReasonWaitingForUser, "being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, korcAssigns bool) {
				w := newWorld(t, korcAssigns)
				test.change(w)
				w.Settle("member")
				if message := w.Wants("member", test.reason); !strings.Contains(message, test.says) {
					t.Errorf("the message %q does not say %q", message, test.says)
				}
				nothingMade(w, "member")
			})
		})
	}
}

// TestGates_come_in_the_contracts_order has everything wrong at once and mends one thing after another:
// each time the next gate speaks, and nothing is made before the last.
func TestGates_come_in_the_contracts_order(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		w := newWorld(t, korcAssigns, ordered("member", "member", 0), ordered("older", "member", time.Hour))
		plane, user, project := w.ControlPlane(), &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}
		w.Get(ordertest.Tenant("workflow"), user)
		w.Get(ordertest.Tenant("workflow-project"), project)
		admin := plane.Status
		w.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneUser{})
		w.Delete(ordertest.Tenant("workflow-project"), &v1alpha1.KeystoneProject{})
		w.Must(w.Client.Delete(t.Context(), w.ControlPlane()))

		create := func(object client.Object) {
			object.SetResourceVersion("")
			w.Must(w.Client.Create(t.Context(), object))
		}
		for _, gate := range []struct {
			reason string
			mend   func()
		}{
			{v1alpha1.ReasonControlPlaneNotFound, func() {
				bare := plane.DeepCopy()
				bare.Spec.NamespaceAssignments, bare.Status = nil, v1alpha1.ControlPlaneStatus{}
				create(bare)
			}},
			{v1alpha1.ReasonNamespaceNotAssigned, func() {
				cp := w.ControlPlane()
				cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: ordertest.TenantNamespace}}
				w.Must(w.Client.Update(t.Context(), cp))
			}},
			{v1alpha1.ReasonWaitingForAdminCredential, func() {
				cp := w.ControlPlane()
				cp.Status = admin
				w.Must(w.Client.Status().Update(t.Context(), cp))
			}},
			{v1alpha1.ReasonRoleNotAllowed, func() { allow(w, "member") }},
			{v1alpha1.ReasonUserNotFound, func() {
				elsewhere := user.DeepCopy()
				elsewhere.Spec.ControlPlaneRef.Name = "other"
				create(elsewhere)
			}},
			{v1alpha1.ReasonControlPlaneMismatch, func() {
				changeUser(w, func(u *v1alpha1.KeystoneUser) {
					u.Spec.ControlPlaneRef.Name, u.Status.Conditions = ordertest.PlaneName, nil
				})
			}},
			{v1alpha1.ReasonWaitingForUser, func() {
				changeUser(w, func(u *v1alpha1.KeystoneUser) { u.Status = user.Status })
			}},
			{v1alpha1.ReasonProjectNotFound, func() {
				elsewhere := project.DeepCopy()
				elsewhere.Spec.ControlPlaneRef.Name = "other"
				create(elsewhere)
			}},
			{v1alpha1.ReasonControlPlaneMismatch, func() {
				changeProject(w, func(p *v1alpha1.KeystoneProject) {
					p.Spec.ControlPlaneRef.Name, p.Status.Conditions = ordertest.PlaneName, nil
				})
			}},
			{v1alpha1.ReasonWaitingForProject, func() {
				changeProject(w, func(p *v1alpha1.KeystoneProject) { p.Status = project.Status })
			}},
			{v1alpha1.ReasonDuplicateRoleAssignment, func() { remove(w, "older") }},
		} {
			for range 3 { // one adds the finalizer
				w.Pass("member")
				w.PlayKORC()
			}
			w.Wants("member", gate.reason)
			nothingMade(w, "member")
			gate.mend()
		}
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	})
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
			nothingOf(w, "younger")
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
			if korcAssignment(w, "older") == nil && roleImport(w, "older") == nil {
				t.Fatal("the older is gone already; nothing is shown")
			}
			// Nothing but an event wakes it in time: its own clock comes round in ten minutes.
			if result := w.Pass("younger"); result.RequeueAfter != order.WaitRefused {
				t.Errorf("the younger looks again after %s", result.RequeueAfter)
			}
			if message := w.Wants("younger", v1alpha1.ReasonDuplicateRoleAssignment); !strings.Contains(message, "takes over once it is gone") {
				t.Errorf("the message is %q", message)
			}
			nothingOf(w, "younger")
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
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns, ordered("member", "unheard-of", 0))
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
	})
	t.Run("a_name_longer_than_korcs_limit_fails", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			long := strings.Repeat("r", 65)
			w := newWorld(t, korcAssigns, ordered("member", long, 0))
			allow(w, long)
			w.Settle("member")
			w.Wants("member", v1alpha1.ReasonRoleAssignmentFailed)
		})
	})
	giveUp := func(w *ordertest.World) {
		role := roleImport(w, "member")
		ordertest.GiveUp(role, &role.Status.Conditions, orcv1alpha1.ConditionReasonUnrecoverableError, "resource has been deleted from OpenStack")
		w.Must(w.Client.Status().Update(w.T.Context(), role))
	}
	t.Run("what_korc_gave_up_on_is_asked_of_keystone", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			giveUp(w)
			w.Keystone.Down(true)
			w.Pass("member")
			w.Wants("member", v1alpha1.ReasonWaitingForServiceAccounts)
			w.Keystone.Down(false)
			w.Settle("member")
			w.Wants("member", v1alpha1.ReasonRoleAssigned)
		})
	})
	t.Run("a_role_that_keystone_does_not_have_fails", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			giveUp(w)
			w.Keystone.With(func() { delete(w.Keystone.Roles, "r-member") })
			w.Pass("member")
			w.Wants("member", v1alpha1.ReasonRoleAssignmentFailed)
		})
	})
}

func TestIds_of_the_status_are_never_believed(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		// The owner of an order may be able to write its status.
		w := newWorld(t, korcAssigns)
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
	})
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

// Through K-ORC too Keystone itself is asked before the order is called fulfilled.
func TestKeystone_away_while_assigning(t *testing.T) {
	withBoth(t, func(t *testing.T, korcAssigns bool) {
		w := newWorld(t, korcAssigns)
		w.Keystone.Down(true)
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonWaitingForServiceAccounts)
		if status(w, "member").RoleID != "" {
			t.Error("the status says assigned")
		}
		w.Keystone.Down(false)
		w.Settle("member")
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
	})
}

func TestMade_anew(t *testing.T) {
	t.Run("the_user_gets_the_role_again", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			user := &orcv1alpha1.User{}
			w.Get(ordertest.Child(order.UserKind, "workflow", userChild), user)
			user.Status.ID = ptr.To("u-2")
			w.Must(w.Client.Status().Update(t.Context(), user))
			w.Keystone.Grant("p-1", "u-1", "r-member", false) // the old user went with its assignments
			w.Settle("member")
			w.Wants("member", v1alpha1.ReasonRoleAssigned)
			if !w.Keystone.Granted("p-1", "u-2", "r-member") || granted(w) || status(w, "member").UserID != "u-2" {
				t.Error("the role is not the new user's")
			}
			remove(w, "member")
			w.Settle("member")
			if !w.Gone("member") || w.Keystone.Granted("p-1", "u-2", "r-member") {
				t.Error("the new user's role is left")
			}
		})
	})
	t.Run("the_project_gets_the_role_again", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			project := &orcv1alpha1.Project{}
			w.Keystone.Grant("p-1", "u-1", "r-member", false) // the old project went with its assignments
			w.Keystone.With(func() { delete(w.Keystone.Projects, "p-1") })
			w.Get(ordertest.Child(order.ProjectKind, "workflow-project", projectChild), project)
			id := w.Keystone.CreateProject("workflow-project", "")
			project.Status.ID = ptr.To(id)
			w.Must(w.Client.Status().Update(t.Context(), project))
			w.Settle("member")
			w.Wants("member", v1alpha1.ReasonRoleAssigned)
			if !w.Keystone.Granted(id, "u-1", "r-member") || status(w, "member").ProjectID != id {
				t.Error("the role is not on the new project")
			}
		})
	})
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
			if !w.Get(ordertest.Child(order.UserKind, "workflow", userChild), &orcv1alpha1.User{}) || w.Keystone.FindProject("workflow-project") == "" {
				t.Error("the user or the project went along")
			}
		})
	})
	t.Run("lets_go_of_the_import_only_after_the_role_was_taken_away", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			swept, release := false, "delete "+roleImport(w, "member").Name
			w.Fail = func(write string) error {
				if write == release {
					swept = true
					if granted(w) || korcAssignment(w, "member") != nil {
						t.Error("the import, with the record of the ids, goes before the role")
					}
				}
				return nil
			}
			remove(w, "member")
			w.Settle("member")
			if !w.Gone("member") || !swept {
				t.Errorf("gone %v, swept %v", w.Gone("member"), swept)
			}
		})
	})
	t.Run("holds_the_finalizer_while_a_child_is_listed", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			w.KORC.Idle = true
			remove(w, "member")
			w.Settle("member")
			w.Wants("member", v1alpha1.ReasonWaitingForRevocation)
			if w.Gone("member") {
				t.Error("the order is gone before its children")
			}
			w.KORC.Idle = false
			w.Settle("member")
			if !w.Gone("member") || granted(w) {
				t.Error("something is left")
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
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns)
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
	})
	t.Run("takes_away_what_is_recorded_when_the_users_object_is_gone", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := ready(t, korcAssigns)
			w.Delete(ordertest.Child(order.UserKind, "workflow", userChild), &orcv1alpha1.User{})
			remove(w, "member")
			w.Settle("member")
			if !w.Gone("member") || granted(w) {
				t.Error("the role is left")
			}
		})
	})
	t.Run("owes_keystone_no_question_when_nothing_was_made", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns)
			allow(w)
			w.Settle("member")
			w.Keystone.Down(true)
			remove(w, "member")
			w.Pass("member")
			if !w.Gone("member") {
				t.Error("the order hangs")
			}
		})
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
			for name, child := range map[string]client.Object{roleChild: &orcv1alpha1.Role{}, assignmentChild: &korcapi.RoleAssignment{}} {
				if w.Get(ordertest.Child(order.RoleAssignmentKind, "member", name), child) && child.GetDeletionTimestamp().IsZero() {
					t.Errorf("%s was left alone", name)
				}
			}
		})
	})
}

func TestObstacles(t *testing.T) {
	t.Run("a_foreign_object_of_the_imports_name", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			w := newWorld(t, korcAssigns)
			key := ordertest.Child(order.RoleAssignmentKind, "member", roleChild)
			foreign := &orcv1alpha1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			w.Must(w.Client.Create(t.Context(), foreign))
			w.Pass("member")
			if _, err := w.TryPass("member"); err == nil {
				t.Error("no error")
			}
			if message := w.Wants("member", v1alpha1.ReasonRoleAssignmentError); !strings.Contains(message, "refusing to adopt pre-existing Role") {
				t.Errorf("the message is %q", message)
			}
			remove(w, "member")
			w.Pass("member")
			if !w.Gone("member") || roleImport(w, "member") == nil {
				t.Error("the deletion took the foreign object along, or hangs on it")
			}
		})
	})
	t.Run("each_kind_of_korc_that_is_not_served", func(t *testing.T) {
		withBoth(t, func(t *testing.T, korcAssigns bool) {
			for _, kind := range []string{"Role", "User", "Project"} {
				w := newWorld(t, korcAssigns)
				w.NotServed[kind] = true
				w.Settle("member")
				if message := w.Wants("member", v1alpha1.ReasonWaitingForDependencies); !strings.Contains(message, kind) {
					t.Errorf("without %s the message is %q", kind, message)
				}
				w.NotServed[kind] = false
				w.Settle("member")
				w.Wants("member", v1alpha1.ReasonRoleAssigned)
				w.NotServed[kind] = true
				remove(w, "member")
				w.Pass("member")
				if w.Gone("member") {
					t.Errorf("without %s an order goes whose role nobody took away", kind)
				}
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
