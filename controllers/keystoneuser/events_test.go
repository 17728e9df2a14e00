package keystoneuser

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// heard are the Events since it was asked last, as "Type Reason".
func (w *fakeWorld) heard() []string {
	var heard []string
	for len(w.events.Events) > 0 {
		words := strings.SplitN(<-w.events.Events, " ", 3)
		heard = append(heard, words[0]+" "+words[1])
	}
	return heard
}

func TestEventsAndCountersTellTheLifeOfAUser(t *testing.T) {
	w := newFakeWorld(t)
	counted := &ordertest.Tally{}
	w.base.Counters = counted
	told := func(what string, do func(), events, counts []string) {
		t.Helper()
		*counted = nil
		w.heard()
		do()
		w.settle()
		if heard := w.heard(); !slices.Equal(heard, events) {
			t.Errorf("%s: the Events are %q, want %q", what, heard, events)
		}
		if !slices.Equal(*counted, counts) {
			t.Errorf("%s: counted %q, want %q", what, *counted, counts)
		}
	}
	assign := func(assignments ...v1alpha1.NamespaceAssignment) func() {
		return func() {
			cp := &v1alpha1.ControlPlane{}
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: planeNamespace, Name: "cp"}, cp))
			cp.Spec.NamespaceAssignments = assignments
			w.must(w.client.Update(t.Context(), cp))
		}
	}
	nothing := func() {}

	told("the order is fulfilled", nothing, []string{
		"Normal ProbingForCollision", "Normal WaitingForServiceAccounts",
		"Normal PasswordRequested", "Normal WaitingForServiceAccounts",
		"Normal PasswordAccepted", "Normal UserProvisioned", "Normal BackupNotSynced", "Normal Delivered",
	}, []string{"started KeystoneUser FirstCredential", "switched KeystoneUser"})
	told("nothing happens", nothing, nil, nil)
	told("the Secret is deleted", func() { w.must(w.client.Delete(t.Context(), w.delivered())) }, []string{"Warning SecretRepaired"}, nil)
	told("the consent is withdrawn", assign(), []string{"Warning NamespaceNotAssigned"}, nil)
	told("the consent comes back", assign(v1alpha1.NamespaceAssignment{Namespace: orderKey.Namespace}),
		[]string{"Normal NamespaceAssigned", "Normal UserProvisioned", "Normal Delivered"}, nil)
	told("a generation is raised", func() { w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 2 }) }, []string{
		"Normal PasswordRequested", "Normal WaitingForServiceAccounts", "Normal WaitingForServiceAccounts",
		"Normal PasswordAccepted", "Normal UserProvisioned", "Normal BackupNotSynced", "Normal Delivered",
	}, []string{"started KeystoneUser GenerationRaised", "switched KeystoneUser"})
	told("K-ORC refuses a password", func() {
		w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 3 })
		w.pass()
		w.giveUp("InvalidConfiguration", "the password does not match the requirements")
	}, []string{"Normal PasswordRequested", "Normal WaitingForServiceAccounts", "Normal WaitingForServiceAccounts", "Warning ServiceAccountsFailed"},
		[]string{"started KeystoneUser GenerationRaised", "failed KeystoneUser TerminalByKORC"})
	told("the order is deleted", func() { w.must(w.client.Delete(t.Context(), w.order())) },
		[]string{"Normal WaitingForRevocation", "Normal TornDown"}, []string{"proven KeystoneUser"})
}

func TestAnEventTellsThatABackupFails(t *testing.T) {
	w := fulfilled(t)
	w.esoIdle = true
	w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 2 })
	w.settle()
	if heard := w.heard(); slices.Contains(heard, "Warning "+order.EventBackupFailing) {
		t.Errorf("a push that is under way is announced as failing: %q", heard)
	}
	push := &externalsecrets.PushSecret{}
	w.must(w.client.Get(t.Context(), child(order.BackupChild), push))
	push.Status.Conditions = []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: "False", Reason: "Errored", Message: "permission denied"}}
	w.must(w.client.Status().Update(t.Context(), push))
	w.settle()
	if heard := w.heard(); !slices.Equal(heard, []string{"Warning " + order.EventBackupFailing}) {
		t.Errorf("the Events are %q, want one that says that the backup fails", heard)
	}
}
