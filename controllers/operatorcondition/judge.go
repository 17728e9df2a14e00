package operatorcondition

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// Upgradeable is the condition type that OLM reads before it replaces an operator. Only the status False
// holds an upgrade; a condition that is missing does not.
const Upgradeable = "Upgradeable"

// Reasons of Upgradeable.
const (
	// ReasonStarting stands from the start of a replica until the leader has looked at the orders.
	ReasonStarting = "Starting"
	// ReasonAwaitingDelivery says that orders stand between a mint and its delivery.
	ReasonAwaitingDelivery = "AwaitingDelivery"
	// ReasonNothingUnderWay says that no order does.
	ReasonNothingUnderWay = "NothingUnderWay"
)

// observed is an order and the highest generation of its credential or password that K-ORC was asked for,
// 0 for none. A status tells only of what Keystone has accepted, so it does not know of a mint.
type observed struct {
	kind   order.Kind
	object order.Object
	minted int64
}

// frozen are the reasons for which the operator leaves an order alone.
var frozen = map[string]bool{
	v1alpha1.ReasonControlPlaneNotFound: true,
	v1alpha1.ReasonNamespaceNotAssigned: true,
}

// forAPerson are the reasons for which an order stands still until somebody acts. They hold no upgrade:
// nothing is under way, and otherwise one tenant's mistake would keep everybody from the next version.
var forAPerson = map[string]bool{
	v1alpha1.ReasonControlPlaneMismatch:    true,
	v1alpha1.ReasonUserNotFound:            true,
	v1alpha1.ReasonProjectNotFound:         true,
	v1alpha1.ReasonNoRoleOnProject:         true,
	v1alpha1.ReasonServiceAccountCollision: true,
	v1alpha1.ReasonServiceAccountsFailed:   true,
	v1alpha1.ReasonCredentialFailed:        true,
	v1alpha1.ReasonKeystoneNotPublished:    true,
	v1alpha1.ReasonDeliveryRefused:         true,
}

// underWay tells whether an order stands between a mint and its delivery. One that is being deleted does
// not: nothing is delivered any more, and its teardown survives an upgrade as it survives a restart.
func underWay(o observed) bool {
	conditions := *o.object.GetConditions()
	halted := slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return frozen[c.Reason] })
	if halted || !o.object.GetDeletionTimestamp().IsZero() {
		return false
	}
	moves := func(stage string) bool {
		condition := meta.FindStatusCondition(conditions, stage)
		return condition == nil || !forAPerson[condition.Reason]
	}
	accepted, delivered := progress(o.object)
	switch {
	case o.minted > accepted:
		return moves(o.kind.Conditions[0])
	case accepted > 0 && !delivered:
		return moves(v1alpha1.ConditionDeliveryReady)
	}
	return false
}

// progress is the generation that Keystone has accepted, 0 for none, and whether the Secret beside the order
// carries it. A credential order says so by the name of its Secret, which is empty from the switch to the
// delivery. A user order keeps the name, and says so by its condition.
func progress(o order.Object) (accepted int64, delivered bool) {
	switch o := o.(type) {
	case *v1alpha1.KeystoneApplicationCredential:
		return o.Status.CredentialGeneration, o.Status.SecretName != ""
	case *v1alpha1.KeystoneUser:
		return o.Status.PasswordGeneration, meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionDeliveryReady)
	}
	return 0, true // the other kinds deliver nothing
}

// judge is what Upgradeable says of the orders of the cluster. It names the first in the alphabet, so that
// the sentence changes as seldom as it can.
func judge(orders []observed) metav1.Condition {
	waiting := slices.DeleteFunc(slices.Clone(orders), func(o observed) bool { return !underWay(o) })
	if len(waiting) == 0 {
		return metav1.Condition{
			Type: Upgradeable, Status: metav1.ConditionTrue, Reason: ReasonNothingUnderWay,
			Message: "no order stands between a mint and its delivery",
		}
	}
	first := slices.MinFunc(waiting, func(a, b observed) int {
		return cmp.Or(cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()), cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.kind.Name, b.kind.Name))
	})
	name := fmt.Sprintf("%s %s/%s", first.kind.Name, first.object.GetNamespace(), first.object.GetName())
	message := name + " stands between a mint and its delivery"
	if len(waiting) > 1 {
		message = fmt.Sprintf("%d orders stand between a mint and its delivery, %s among them", len(waiting), name)
	}
	return metav1.Condition{Type: Upgradeable, Status: metav1.ConditionFalse, Reason: ReasonAwaitingDelivery, Message: message}
}
