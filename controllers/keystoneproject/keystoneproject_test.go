package keystoneproject

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

func ordered(name, projectName string) *v1alpha1.KeystoneProject {
	return &v1alpha1.KeystoneProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: ordertest.TenantNamespace, Name: name, UID: types.UID("uid-" + name)},
		Spec: v1alpha1.KeystoneProjectSpec{
			ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: ordertest.PlaneName, Namespace: ordertest.PlaneNamespace},
			ProjectName:     projectName,
		},
	}
}

func newWorld(t *testing.T, orders ...client.Object) *ordertest.World {
	t.Helper()
	if len(orders) == 0 {
		orders = []client.Object{ordered("workflow", "")}
	}
	return ordertest.NewWorld(t, order.ProjectKind, steps{}, orders...)
}

func status(t *testing.T, w *ordertest.World) v1alpha1.KeystoneProjectStatus {
	t.Helper()
	project := &v1alpha1.KeystoneProject{}
	w.Get(ordertest.Tenant("workflow"), project)
	return project.Status
}

func managed(w *ordertest.World, name string) *orcv1alpha1.Project {
	project := &orcv1alpha1.Project{}
	if !w.Get(ordertest.Child(order.ProjectKind, name, projectChild), project) {
		return nil
	}
	return project
}

func giveUp(w *ordertest.World, reason, message string) {
	w.T.Helper()
	project := managed(w, "workflow")
	ordertest.GiveUp(project, &project.Status.Conditions, reason, message)
	w.Must(w.Client.Status().Update(w.T.Context(), project))
}

func ready(t *testing.T) *ordertest.World {
	t.Helper()
	w := newWorld(t)
	w.Settle("workflow")
	w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	return w
}

func TestProvision_makes_the_project_and_then_costs_nothing(t *testing.T) {
	w := ready(t)
	got, id := status(t, w), w.Keystone.FindProject("workflow")
	if got.ProjectID != id || got.ProjectName != "workflow" || got.DomainName != "Default" {
		t.Errorf("status is %+v, the project's id %s", got, id)
	}
	if w.Get(ordertest.Child(order.ProjectKind, "workflow", probeChild), &orcv1alpha1.Project{}) {
		t.Error("the probe is left")
	}
	w.Quiet(func() {
		for range 3 {
			if result := w.Pass("workflow"); result.RequeueAfter < ordertest.AuditInterval/2 {
				t.Errorf("comes back after %s, before the next audit", result.RequeueAfter)
			}
		}
	})
}

func TestTheAudit_finds_a_project_that_is_gone(t *testing.T) {
	w := ready(t)
	id := status(t, w).ProjectID
	w.Keystone.Down(true)
	w.Advance(2 * ordertest.AuditInterval)
	w.Settle("workflow")
	w.Wants("workflow", v1alpha1.ReasonProjectProvisioned) // no answer is no finding
	w.Keystone.Down(false)
	w.Keystone.With(func() { delete(w.Keystone.Projects, id) })
	w.Settle("workflow")
	w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)

	w.Advance(2 * ordertest.AuditInterval)
	w.Settle("workflow")
	if message := w.Wants("workflow", v1alpha1.ReasonProjectFailed); !strings.Contains(message, "somebody deleted project") {
		t.Errorf("the message is %q", message)
	}

	// What the condition advises helps.
	w.Must(w.Client.Delete(t.Context(), managed(w, "workflow")))
	w.Settle("workflow")
	w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	if now := status(t, w).ProjectID; now == id || !w.Keystone.HasProject(now) {
		t.Errorf("the project's id was %s and is %s", id, now)
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"admin": true, "Ádmin": true, "ADMIN ": true, "SERVICE-nova": true, "service-glance": true,
		"service-keystone": false, "administrator": false, "workflow": false, "nova": false,
	} {
		if got := reserved(name, "admin"); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if !reserved("Cloud-Ádmin", "cloud-admin") || reserved("admin", "cloud-admin") {
		t.Error("the administrator's project is what the ControlPlane says")
	}
}

func TestProvision_refuses_before_asking_anybody(t *testing.T) {
	for name, test := range map[string]struct{ project, reason, message string }{
		"a_reserved_name":             {"Service-Nova", v1alpha1.ReasonProjectCollision, "reserved"},
		"a_name_longer_than_keystone": {strings.Repeat("ä", 65), v1alpha1.ReasonProjectFailed, "limit is 64"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ordered("workflow", test.project))
			w.Settle("workflow")
			if message := w.Wants("workflow", test.reason); !strings.Contains(message, test.message) {
				t.Errorf("the message is %q", message)
			}
			if asked := w.Keystone.Asked(); len(asked) > 0 || managed(w, "workflow") != nil {
				t.Errorf("asked %v", asked)
			}
		})
	}
	t.Run("64_characters_are_fine_whatever_their_bytes", func(t *testing.T) {
		w := newWorld(t, ordered("workflow", strings.Repeat("ä", 64)))
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
}

func TestProvision_never_takes_over(t *testing.T) {
	t.Run("a_project_of_the_name_in_another_case", func(t *testing.T) {
		w := newWorld(t)
		id := w.Keystone.CreateProject("Workflow", "somebody's")
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectCollision)
		if managed(w, "workflow") != nil {
			t.Error("K-ORC was given the project")
		}
		// The probe never looks again once it has found something; Keystone does.
		w.Keystone.With(func() { delete(w.Keystone.Projects, id) })
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
	t.Run("one_that_korc_does_not_see", func(t *testing.T) {
		w := newWorld(t)
		w.KORC.Swallows = true
		w.Keystone.CreateProject("workflow", "somebody's")
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectCollision)
	})
	t.Run("one_whose_id_somebody_wrote_into_the_status", func(t *testing.T) {
		project := ordered("workflow", "")
		w := newWorld(t, project)
		project.Status.ProjectID = w.Keystone.CreateProject("workflow", "somebody's")
		w.Must(w.Client.Status().Update(t.Context(), project))
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectCollision)
	})
	t.Run("while_keystone_does_not_say_that_the_name_is_free", func(t *testing.T) {
		w := newWorld(t)
		w.Keystone.Down(true)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProbingForCollision)
		if managed(w, "workflow") != nil {
			t.Error("created on a guess")
		}
		w.Keystone.Down(false)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
	t.Run("the_project_of_an_order_that_was_first_by_a_moment", func(t *testing.T) {
		w := newWorld(t, ordered("workflow", "shared"), ordered("another", "Shared"))
		w.KORC.Idle = true // nobody has told Keystone of the first one yet
		for _, name := range []string{"workflow", "another"} {
			w.Pass(name)
			w.Pass(name)
		}
		w.KORC.Idle = false
		w.PlayKORC() // both probes find the name free
		w.KORC.Idle = true
		for _, name := range []string{"workflow", "another"} {
			w.Pass(name)
		}
		w.Wants("another", v1alpha1.ReasonProjectCollision)
		w.KORC.Idle = false
		w.Settle("workflow", "another")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
		w.Wants("another", v1alpha1.ReasonProjectCollision)
	})
	t.Run("a_korc_object_of_the_childs_name", func(t *testing.T) {
		key := ordertest.Child(order.ProjectKind, "workflow", projectChild)
		w := newWorld(t, ordered("workflow", ""), &orcv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		w.Pass("workflow")
		_, err := w.TryPass("workflow")
		if !order.IsForeign(err) {
			t.Errorf("the error is %v", err)
		}
		w.Wants("workflow", v1alpha1.ReasonProjectError)
	})
}

func TestProvision_takes_its_own_project_back(t *testing.T) {
	// K-ORC's object is lost, as with a backup of Kubernetes that is older than the order's children.
	w := ready(t)
	id := status(t, w).ProjectID
	w.KORC.LetsGo = true
	w.Delete(ordertest.Child(order.ProjectKind, "workflow", projectChild), &orcv1alpha1.Project{})
	w.Settle("workflow")
	w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	if got := status(t, w).ProjectID; got != id {
		t.Errorf("project %s became %s", id, got)
	}
}

func TestTerminal_is_a_hint(t *testing.T) {
	const deleted = "resource has been deleted from OpenStack"
	t.Run("the_project_is_there_so_korc_looks_again", func(t *testing.T) {
		w := ready(t)
		giveUp(w, orcv1alpha1.ConditionReasonUnrecoverableError, deleted)
		w.Pass("workflow")
		w.Wants("workflow", v1alpha1.ReasonWaitingForProject)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
	t.Run("keystone_does_not_answer_so_nobody_knows", func(t *testing.T) {
		w := ready(t)
		giveUp(w, orcv1alpha1.ConditionReasonUnrecoverableError, deleted)
		w.Keystone.Down(true)
		w.Pass("workflow")
		w.Wants("workflow", v1alpha1.ReasonWaitingForProject)
	})
	t.Run("the_project_is_gone", func(t *testing.T) {
		w := ready(t)
		id := status(t, w).ProjectID
		w.Keystone.With(func() { delete(w.Keystone.Projects, id) })
		giveUp(w, orcv1alpha1.ConditionReasonUnrecoverableError, deleted)
		w.Pass("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectFailed)
	})
	t.Run("a_conflict_with_our_own_create_is_adopted", func(t *testing.T) {
		w := ready(t)
		project := managed(w, "workflow")
		project.Status.ID = nil
		w.Must(w.Client.Status().Update(t.Context(), project))
		giveUp(w, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: 409 Conflict")
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
	t.Run("a_conflict_with_somebody_elses_is_not", func(t *testing.T) {
		w := ready(t)
		project := managed(w, "workflow")
		project.Status.ID = nil
		w.Must(w.Client.Status().Update(t.Context(), project))
		w.Keystone.With(func() {
			w.Keystone.Projects = map[string]ordertest.FakeProject{"p-x": {Name: "workflow", Description: "theirs"}}
		})
		giveUp(w, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: 409 Conflict")
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectFailed)
	})
	t.Run("a_reset_connection_is_cleared_without_asking", func(t *testing.T) {
		w := ready(t)
		giveUp(w, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: read: connection reset by peer")
		w.Keystone.Down(true)
		w.Pass("workflow")
		w.Keystone.Down(false)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
	})
}

func TestTeardown(t *testing.T) {
	remove := func(w *ordertest.World) { w.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneProject{}) }

	t.Run("takes_the_project_away", func(t *testing.T) {
		w := ready(t)
		remove(w)
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") != "" || managed(w, "workflow") != nil {
			t.Error("something is left")
		}
		if len(w.Events) > 0 && w.Announced(order.EventRevocationRepaired) {
			t.Error("nothing had to be repaired")
		}
	})
	t.Run("waits_for_the_orders_that_name_it", func(t *testing.T) {
		w := ready(t)
		assignment := &v1alpha1.KeystoneRoleAssignment{ObjectMeta: metav1.ObjectMeta{Namespace: ordertest.TenantNamespace, Name: "member"}}
		assignment.Spec.ProjectRef.Name = "workflow"
		credential := &v1alpha1.KeystoneApplicationCredential{ObjectMeta: metav1.ObjectMeta{Namespace: ordertest.TenantNamespace, Name: "agent"}}
		credential.Spec.ProjectRef.Name = "workflow"
		w.Must(w.Client.Create(t.Context(), assignment))
		w.Must(w.Client.Create(t.Context(), credential))
		remove(w)
		w.Settle("workflow")
		if message := w.Wants("workflow", v1alpha1.ReasonReferencedByRoleAssignments); !strings.Contains(message, "member") {
			t.Errorf("the message is %q", message)
		}
		w.Must(w.Client.Delete(t.Context(), assignment))
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonReferencedByApplicationCredentials)
		if managed(w, "workflow") == nil {
			t.Error("the project is gone")
		}
		w.Must(w.Client.Delete(t.Context(), credential))
		w.Settle("workflow")
		if !w.Gone("workflow") {
			t.Error("still held")
		}
	})
	t.Run("deletes_what_korc_let_go_of", func(t *testing.T) {
		w := ready(t)
		w.KORC.LetsGo = true
		remove(w)
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") != "" || !w.Announced(order.EventRevocationRepaired) {
			t.Errorf("gone %v, events %v", w.Gone("workflow"), w.Events)
		}
	})
	t.Run("waits_until_keystone_says_so", func(t *testing.T) {
		w := ready(t)
		w.KORC.LetsGo = true
		w.Keystone.Down(true)
		remove(w)
		w.Settle("workflow")
		w.Wants("workflow", v1alpha1.ReasonWaitingForRevocation)
		w.Keystone.Down(false)
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") != "" {
			t.Error("something is left")
		}
	})
	t.Run("asks_also_when_the_last_pass_crashed_before_it_saw_the_id", func(t *testing.T) {
		w := newWorld(t)
		w.Pass("workflow")
		w.Pass("workflow")
		w.PlayKORC()
		w.Pass("workflow") // claims
		w.PlayKORC()       // K-ORC makes the project, and the order's status knows nothing of it
		w.KORC.LetsGo = true
		remove(w)
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") != "" {
			t.Error("something is left")
		}
	})
	t.Run("owes_keystone_no_question_when_nothing_was_made", func(t *testing.T) {
		w := newWorld(t)
		w.Keystone.CreateProject("workflow", "somebody's")
		w.Settle("workflow")
		w.Keystone.Down(true)
		remove(w)
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") == "" {
			t.Error("the order hangs, or somebody's project is gone")
		}
	})
	t.Run("deletes_nothing_that_only_the_status_names", func(t *testing.T) {
		w := ready(t)
		victim := w.Keystone.CreateProject("victim", "somebody's")
		project := &v1alpha1.KeystoneProject{}
		w.Get(ordertest.Tenant("workflow"), project)
		remove(w)
		w.Pass("workflow")
		w.Get(ordertest.Tenant("workflow"), project)
		project.Status.ProjectID = victim
		w.Must(w.Client.Status().Update(t.Context(), project))
		w.PlayKORC()
		w.Settle("workflow")
		if w.Keystone.FindProject("victim") == "" {
			t.Error("the victim is gone")
		}
		if message := w.Wants("workflow", v1alpha1.ReasonWaitingForRevocation); strings.Contains(message, "victim") {
			t.Errorf("the message tells of somebody's project: %q", message)
		}
	})
	t.Run("leaves_a_namesake_alone_that_came_later", func(t *testing.T) {
		w := ready(t)
		remove(w)
		w.Pass("workflow")
		w.PlayKORC()
		w.PlayKORC()
		w.Keystone.CreateProject("workflow", "somebody's")
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") == "" {
			t.Error("the order hangs, or somebody's project is gone")
		}
	})
	t.Run("with_the_control_plane_gone_tells_what_is_not_proven", func(t *testing.T) {
		w := ready(t)
		w.Must(w.Client.Delete(t.Context(), w.ControlPlane()))
		remove(w)
		w.Pass("workflow")
		if !w.Gone("workflow") || !w.Announced("RevocationUnproven") {
			t.Errorf("gone %v, events %v", w.Gone("workflow"), w.Events)
		}
	})
	t.Run("works_while_the_order_is_frozen", func(t *testing.T) {
		w := ready(t)
		cp := w.ControlPlane()
		cp.Spec.NamespaceAssignments = nil
		w.Must(w.Client.Update(t.Context(), cp))
		remove(w)
		w.Settle("workflow")
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") != "" {
			t.Error("something is left")
		}
	})
}

func TestCrash_at_any_write_is_repaired(t *testing.T) {
	// Each write of a life fails once, before it happens.
	life := ready(t)
	life.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneProject{})
	life.Settle("workflow")
	writes := len(life.Writes)
	if writes < 6 {
		t.Fatalf("a life has %v only", life.Writes)
	}
	for at := range writes {
		w := newWorld(t)
		seen := 0
		w.Fail = func(string) error {
			seen++
			if seen == at+1 {
				return errors.New("crashed")
			}
			return nil
		}
		settle := func() {
			for range 12 {
				if _, err := w.TryPass("workflow"); err != nil {
					w.Restart()
				}
				w.PlayKORC()
				w.Advance(40 * time.Second)
			}
		}
		settle()
		w.Wants("workflow", v1alpha1.ReasonProjectProvisioned)
		w.Delete(ordertest.Tenant("workflow"), &v1alpha1.KeystoneProject{})
		settle()
		if !w.Gone("workflow") || w.Keystone.FindProject("workflow") != "" {
			t.Errorf("a crash at write %d (%v) left something", at+1, w.Writes[min(at, len(w.Writes)-1)])
		}
	}
}

func TestFrozen_order_reads_and_writes_nothing(t *testing.T) {
	w := ready(t)
	cp := w.ControlPlane()
	cp.Spec.NamespaceAssignments = nil
	w.Must(w.Client.Update(t.Context(), cp))
	w.Pass("workflow")
	w.Wants("workflow", v1alpha1.ReasonNamespaceNotAssigned)
	w.Delete(ordertest.Child(order.ProjectKind, "workflow", projectChild), &orcv1alpha1.Project{})
	w.PlayKORC()
	w.Quiet(func() { w.Pass("workflow") })
	if status(t, w).ProjectID == "" {
		t.Error("the status was forgotten")
	}
}

func TestMark_names_the_order_and_fits_korc(t *testing.T) {
	w := ready(t)
	mark := ptr.Deref(managed(w, "workflow").Spec.Resource.Description, "")
	if mark != "KeystoneProject tenant-a/workflow (uid uid-workflow)" {
		t.Errorf("the mark is %q", mark)
	}
	if !slices.ContainsFunc(w.Writes, func(write string) bool { return strings.HasPrefix(write, "apply") }) {
		t.Error("nothing was applied")
	}
}
