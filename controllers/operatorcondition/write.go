package operatorcondition

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersionKind is OLM's object. It is read and written without OLM's Go types: for one list of standard
// conditions they would raise a dozen modules of the operator. operator-lib, which sets such a condition,
// writes on every call and works in a pod only.
var groupVersionKind = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}

// starting is the default. OLM takes a missing condition for True, and a replica that has just started
// knows nothing of the orders.
func starting() metav1.Condition {
	return metav1.Condition{
		Type: Upgradeable, Status: metav1.ConditionFalse, Reason: ReasonStarting,
		Message: "the operator has not looked at its orders yet",
	}
}

// When to write a condition.
type when bool

const (
	always        when = false
	onlyIfMissing when = true
)

// operatorCondition is the part of the object that the operator writes.
type operatorCondition struct {
	Spec struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"spec"`
}

// write puts the condition into the OperatorCondition, unless it is there already. A conflict is an error
// like others: the next try reads anew.
func (r *reporter) write(ctx context.Context, condition metav1.Condition, when when) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(groupVersionKind)
	// Live: OLM's Role allows get, update and patch of this one object, and a cache would list and watch.
	if err := r.manager.GetAPIReader().Get(ctx, r.key, object); err != nil {
		return fmt.Errorf("reading OperatorCondition %s: %w", r.key, err)
	}
	changed, err := setCondition(object, condition, when)
	if err != nil {
		return fmt.Errorf("OperatorCondition %s: %w", r.key, err)
	}
	if !changed {
		return nil
	}
	if err := r.manager.GetClient().Update(ctx, object); err != nil {
		return fmt.Errorf("writing OperatorCondition %s: %w", r.key, err)
	}
	r.log.Info("told OLM", "upgradeable", condition.Status, "reason", condition.Reason, "message", condition.Message)
	return nil
}

// setCondition puts a condition among those of the object's spec, where OLM takes it from, and tells whether
// that changed anything. Everything else of the object stays as it is.
func setCondition(object *unstructured.Unstructured, condition metav1.Condition, when when) (bool, error) {
	converter := runtime.DefaultUnstructuredConverter
	var content operatorCondition
	if err := converter.FromUnstructured(object.Object, &content); err != nil {
		return false, fmt.Errorf("reading its conditions: %w", err)
	}
	if when == onlyIfMissing && meta.FindStatusCondition(content.Spec.Conditions, condition.Type) != nil {
		return false, nil
	}
	if !meta.SetStatusCondition(&content.Spec.Conditions, condition) {
		return false, nil
	}
	rendered, err := converter.ToUnstructured(&content)
	if err != nil {
		return false, fmt.Errorf("rendering its conditions: %w", err)
	}
	conditions, _, err := unstructured.NestedSlice(rendered, "spec", "conditions")
	if err != nil {
		return false, fmt.Errorf("rendering its conditions: %w", err)
	}
	return true, unstructured.SetNestedSlice(object.Object, conditions, "spec", "conditions")
}
