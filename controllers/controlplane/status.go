package controlplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// judged are the conditions that Ready is made of. What is missing from the cluster comes first: the
// others follow from it.
var judged = []string{
	v1alpha1.ConditionDependenciesReady,
	v1alpha1.ConditionAdminCredentialReady,
	v1alpha1.ConditionKeystoneReachable,
	v1alpha1.ConditionSecretStoreReady,
}

// report turns an outcome into a condition and a time to come back.
func (p *pass) report(condition string, outcome *order.Outcome) {
	p.comeBack(outcome.After)
	if outcome.Err != nil {
		p.err = outcome.Err
	}
	if outcome.Status == "" {
		return
	}
	meta.SetStatusCondition(&p.cp.Status.Conditions, metav1.Condition{
		Type: condition, Status: outcome.Status, Reason: outcome.Reason,
		Message: order.Truncate(outcome.Message), ObservedGeneration: p.cp.Generation,
	})
}

// aggregate is Ready. A deletion that is held back says so, whatever else holds.
func (p *pass) aggregate(holding *order.Outcome) *order.Outcome {
	if holding != nil {
		return holding
	}
	for _, kind := range judged {
		condition := meta.FindStatusCondition(p.cp.Status.Conditions, kind)
		switch {
		case condition == nil:
			return order.Wait(v1alpha1.ReasonNotAllReady, 0, "%s is not reported yet", kind)
		case condition.Status != metav1.ConditionTrue:
			return order.Wait(v1alpha1.ReasonNotAllReady, 0, "%s: %s: %s", kind, condition.Reason, condition.Message)
		}
	}
	return order.Done(v1alpha1.ReasonAllReady, "orders of the assigned namespaces are fulfilled")
}

// finish writes the status when it changed, and says when to come back.
func (p *pass) finish(ctx context.Context, holding *order.Outcome) (reconcile.Result, error) {
	p.report(v1alpha1.ConditionReady, p.aggregate(holding))
	p.cp.Status.ObservedGeneration = p.cp.Generation
	if !equality.Semantic.DeepEqual(p.original.Status, p.cp.Status) {
		changed := order.ChangedConditions(p.original.Status.Conditions, p.cp.Status.Conditions)
		lock := client.MergeFromWithOptions(p.original, client.MergeFromWithOptimisticLock{})
		if err := p.client.Status().Patch(ctx, p.cp.DeepCopy(), lock, order.FieldManager); err != nil {
			return p.conflictOr(fmt.Errorf("writing the status of ControlPlane %s/%s: %w", p.cp.Namespace, p.cp.Name, err))
		}
		order.Announce(p.log, changed, func(eventType, reason, action, note string) {
			p.recorder.Eventf(p.original, nil, eventType, reason, action, "%s", note)
		})
	}
	if p.namespaces != nil {
		p.memory.namespaces = *p.namespaces
	}
	if p.err != nil {
		return reconcile.Result{}, p.err
	}
	return reconcile.Result{RequeueAfter: p.after}, nil
}

// conflictOr comes back soon after somebody else wrote the object first, and not at all when it is
// gone.
func (p *pass) conflictOr(err error) (reconcile.Result, error) {
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if outcome := order.Fail("", err); outcome.Err == nil {
		return reconcile.Result{RequeueAfter: outcome.After}, nil
	}
	return reconcile.Result{}, err
}
