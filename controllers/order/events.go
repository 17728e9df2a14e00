package order

import (
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// Reasons of Events about what no condition has a reason for. All others are the condition's, see
// Announce. docs/events.md lists both.
const (
	// EventNamespaceAssigned: the consent is back, or came; the order goes on.
	EventNamespaceAssigned = "NamespaceAssigned"
	// EventCredentialRequested: a generation of an application credential is being made, and why.
	EventCredentialRequested = "CredentialRequested"
	// EventCredentialSwitched: a generation became the live one.
	EventCredentialSwitched = "CredentialSwitched"
	// EventCredentialRevoked: Keystone confirmed that a superseded credential is gone.
	EventCredentialRevoked = "CredentialRevoked"
	// EventPasswordRequested: a password generation is being set, and why.
	EventPasswordRequested = "PasswordRequested"
	// EventPasswordAccepted: Keystone accepted a login with it.
	EventPasswordAccepted = "PasswordAccepted"
	// EventBackupFailing: the store or External Secrets Operator refuses the current document.
	EventBackupFailing = "BackupFailing"
	// EventSecretRepaired: somebody changed or deleted the Secret beside the order.
	EventSecretRepaired = "SecretRepaired"
	// EventProjectDrifted: an audit found the project gone in Keystone.
	EventProjectDrifted = "ProjectDrifted"
	// EventUserDrifted: an audit found the user gone or disabled in Keystone.
	EventUserDrifted = "UserDrifted"
	// EventAssignmentRepaired: an audit found a role taken away, and gave it back.
	EventAssignmentRepaired = "AssignmentRepaired"
	// EventRevocationRepaired: Keystone still held what K-ORC had let go of, and the operator deleted it.
	EventRevocationRepaired = "RevocationRepaired"
	// EventRevocationUnproven: an order was let go without Keystone's word.
	EventRevocationUnproven = "RevocationUnproven"
	// EventTornDown: an order or a ControlPlane is let go.
	EventTornDown = "TornDown"
)

// maxEventNote is the API's limit on an Event's note, in bytes.
const maxEventNote = 1024

// Eventf records an Event on the order, on the order's cluster. The reason is a condition's reason
// wherever one says the same.
func (p *Pass) Eventf(eventType, reason, action, format string, args ...any) {
	p.recorder.Eventf(p.original, nil, eventType, reason, action, "%s", firstBytes(fmt.Sprintf(format, args...), maxEventNote))
}

// RevocationRepaired tells and counts that the operator deleted in Keystone what K-ORC had let go of.
// Somebody who asks whether the old one is really dead reads it in the Events.
func (p *Pass) RevocationRepaired(format string, args ...any) {
	p.Eventf(corev1.EventTypeWarning, EventRevocationRepaired, "Revoke", format, args...)
	p.Count().RevocationRepaired(p.Kind.Name)
}

// ChangedConditions are the conditions whose status or reason changed. A message alone is no news.
func ChangedConditions(before, after []metav1.Condition) []metav1.Condition {
	var changed []metav1.Condition
	for _, condition := range after {
		old := meta.FindStatusCondition(before, condition.Type)
		if old == nil || old.Status != condition.Status || old.Reason != condition.Reason {
			changed = append(changed, condition)
		}
	}
	return changed
}

// Announce writes a log line for each condition that changed, and an Event for each thing that they
// say: a gate turns all conditions of an order at once, and one Event tells that. The aggregate is left
// out, for it would say everything twice, unless its reason is its own, as that of a ControlPlane is
// that holds its deletion.
func Announce(log logr.Logger, changed []metav1.Condition, record func(eventType, reason, action, note string)) {
	said := map[string]bool{}
	for _, condition := range changed {
		if condition.Reason == v1alpha1.ReasonAllReady || condition.Reason == v1alpha1.ReasonNotAllReady {
			continue
		}
		log.Info("condition changed", "condition", condition.Type, "status", condition.Status, "reason", condition.Reason, "message", condition.Message)
		if said[condition.Reason+condition.Message] {
			continue
		}
		said[condition.Reason+condition.Message] = true
		kind := corev1.EventTypeNormal
		if condition.Status == metav1.ConditionFalse && !expected(condition.Reason) {
			kind = corev1.EventTypeWarning
		}
		record(kind, condition.Reason, condition.Type, firstBytes(condition.Message, maxEventNote))
	}
}

// thawed tells whether the consent came between two sets of conditions.
func thawed(before, after []metav1.Condition) bool { return unassigned(before) && !unassigned(after) }

func unassigned(conditions []metav1.Condition) bool {
	for _, condition := range conditions {
		if condition.Reason == v1alpha1.ReasonNamespaceNotAssigned {
			return true
		}
	}
	return false
}

// tornDown tells that the order is let go, and counts Keystone's word. An order that had anything to
// be revoked has waited for that for at least one pass, and its condition still says so.
func (p *Pass) tornDown() {
	note := "the order is let go; it had made nothing in Keystone"
	switch ref := p.Order.GetControlPlaneRef(); {
	case p.ControlPlane == nil:
		note = fmt.Sprintf("the order is let go; ControlPlane %s/%s is gone, so nobody could ask Keystone", ref.Namespace, ref.Name)
	case p.waitedForRevocation():
		note = "the order is let go; Keystone confirms that nothing of it is left"
		p.Count().RevocationProven(p.Kind.Name)
	}
	p.Eventf(corev1.EventTypeNormal, EventTornDown, "Teardown", "%s", note)
	p.log.Info("torn down")
}

func (p *Pass) waitedForRevocation() bool {
	for _, condition := range *p.Order.GetConditions() {
		if condition.Reason == v1alpha1.ReasonWaitingForRevocation {
			return true
		}
	}
	return false
}
