package keystoneapplicationcredential

import (
	"slices"
	"strings"
	"testing"
	"time"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

func TestEventsAndCountersTellTheLifeOfACredential(t *testing.T) {
	w := newWorld(t, schedule(time.Hour, 10*time.Minute))
	counted := &ordertest.Tally{}
	w.base.Counters = counted
	told := func(what string, do func(), events, counts []string) {
		t.Helper()
		*counted, w.events = nil, nil
		do()
		w.settle()
		var heard []string
		for _, event := range w.events {
			words := strings.SplitN(event, " ", 3)
			heard = append(heard, words[0]+" "+words[1])
		}
		if !slices.Equal(heard, events) {
			t.Errorf("%s: the Events are %q, want %q", what, heard, events)
		}
		if !slices.Equal(*counted, counts) {
			t.Errorf("%s: counted %q, want %q", what, *counted, counts)
		}
	}
	rotates := func(cause string) (events, counts []string) {
		return []string{"Normal CredentialRequested", "Normal CredentialSwitched", "Normal BackupNotSynced", "Normal Delivered"},
			[]string{"started KeystoneApplicationCredential " + cause, "switched KeystoneApplicationCredential"}
	}

	first, counts := rotates("FirstCredential")
	// Both conditions wait, each in its own words.
	first = slices.Concat([]string{first[0], "Normal WaitingForCredential", "Normal WaitingForCredential", first[1], "Normal CredentialMinted"}, first[2:])
	told("the order is fulfilled", func() {}, first, counts)
	told("nothing happens", func() {}, nil, nil)
	told("the Secret is deleted", func() { w.remove(w.delivered()) }, []string{"Warning SecretRepaired"}, nil)

	events, counts := rotates("GenerationRaised")
	told("a generation is raised", func() { w.raise(2) }, events, counts)
	told("the grace period ends", func() { w.advance(10 * time.Minute) }, []string{"Normal CredentialRevoked"}, []string{"proven KeystoneApplicationCredential"})
	events, counts = rotates("ScheduleDue")
	told("the schedule is due", func() { w.advance(50 * time.Minute) }, events, counts)

	told("the consent is withdrawn", func() { w.assign(false) }, []string{"Warning NamespaceNotAssigned"}, nil)
	told("the consent comes back", func() { w.assign(true) }, []string{"Normal NamespaceAssigned", "Normal CredentialMinted", "Normal Delivered"}, nil)
	w.advance(10 * time.Minute) // out of the grace period
	w.settle()
	told("K-ORC refuses a credential", func() {
		w.raise(4)
		for w.korcCredential(4) == nil {
			w.pass()
		}
		w.latch(4, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: 403 Forbidden")
	}, []string{"Normal CredentialRequested", "Warning CredentialFailed"},
		[]string{"started KeystoneApplicationCredential GenerationRaised", "failed KeystoneApplicationCredential TerminalByKORC"})
	w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialFailed)
	told("the order is deleted", func() { w.remove(w.order()) },
		[]string{"Normal WaitingForRevocation", "Normal CredentialRevoked", "Normal TornDown"}, []string{"proven KeystoneApplicationCredential"})
}
