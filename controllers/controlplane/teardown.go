package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// AbandonAnnotation with the value "true" lets a ControlPlane go before its orders. What the orders
// hold in Keystone then stays there unproven.
const AbandonAnnotation = "c5c3.io/abandon-orders"

// listedOrders is how many orders a message names.
const listedOrders = 10

func (p *pass) abandoned() bool { return p.cp.Annotations[AbandonAnnotation] == "true" }

// hold is the outcome of a deletion that waits for orders, nil when it need not wait. Without the
// ControlPlane nobody could revoke what they hold.
func (p *pass) hold(ctx context.Context) (*order.Outcome, error) {
	if p.abandoned() {
		return nil, nil
	}
	orders, err := p.orders(ctx)
	if err != nil || len(orders) == 0 {
		return nil, err
	}
	named := strings.Join(orders[:min(len(orders), listedOrders)], ", ")
	if more := len(orders) - listedOrders; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return order.Wait(v1alpha1.ReasonReferencedByOrders, order.WaitLong,
		"the deletion waits until the %d orders of this ControlPlane are gone: %s; delete them, or set the annotation %s=true to leave behind what they hold in Keystone",
		len(orders), named, AbandonAnnotation), nil
}

// orders names the ControlPlane's orders on the management cluster, sorted by kind. Nothing is
// released on the word of a cache: when it knows of no order, the API server is asked.
func (p *pass) orders(ctx context.Context) ([]string, error) {
	key := p.cp.Namespace + "/" + p.cp.Name
	cached, err := listOrders(ctx, p.client, key, client.MatchingFields{order.ControlPlaneIndex: key})
	if err != nil || len(cached) > 0 {
		return cached, err
	}
	return listOrders(ctx, p.live, key)
}

func listOrders(ctx context.Context, reader client.Reader, controlPlane string, options ...client.ListOption) ([]string, error) {
	var names []string
	for _, kind := range order.Kinds {
		list := kind.NewList()
		if err := reader.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Name, err)
		}
		var ofKind []string
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(order.Object) // the kinds of order.Kinds are orders
			if ref := object.GetControlPlaneRef(); ref.Namespace+"/"+ref.Name == controlPlane {
				ofKind = append(ofKind, fmt.Sprintf("%s %s/%s", kind.Name, object.GetNamespace(), object.GetName()))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Name, err)
		}
		slices.Sort(ofKind)
		names = append(names, ofKind...)
	}
	return names, nil
}

// tearDown deletes what the ControlPlane owns, and releases it. The admin's cloud goes last: K-ORC
// needs it to let go of the imports.
//
// An abandoned ControlPlane is released at once. K-ORC then keeps the domain and the cloud for as
// long as what the orders made refers to them.
func (p *pass) tearDown(ctx context.Context) (reconcile.Result, error) {
	name := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: p.cp.Namespace}
	}
	for _, child := range []client.Object{
		&orcv1alpha1.User{ObjectMeta: name(order.UserImportName(p.cp))},
		&orcv1alpha1.Domain{ObjectMeta: name(order.DomainImportName(p.cp))},
		&corev1.Secret{ObjectMeta: name(order.AdminCloudName(p.cp))},
	} {
		gone, err := p.remove(ctx, child)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !gone && !p.abandoned() {
			return p.finish(ctx, order.Wait(v1alpha1.ReasonWaitingForKORC, order.WaitShort,
				"the deletion waits until K-ORC lets go of %s; if K-ORC is gone for good, set the annotation %s=true", child.GetName(), AbandonAnnotation))
		}
	}
	return p.release(ctx)
}

// remove deletes a child, and tells whether it is gone, by the API server's word.
func (p *pass) remove(ctx context.Context, child client.Object) (gone bool, err error) {
	if err := p.writer().Delete(ctx, child.DeepCopyObject().(client.Object)); err != nil { // a copy is of its type
		return false, err
	}
	err = p.live.Get(ctx, client.ObjectKeyFromObject(child), child)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading %T %s: %w", child, child.GetName(), err)
	}
	return !p.writer().Owns(child), nil
}

func (p *pass) release(ctx context.Context) (reconcile.Result, error) {
	released := p.original.DeepCopy()
	controllerutil.RemoveFinalizer(released, finalizer)
	lock := client.MergeFromWithOptions(p.original, client.MergeFromWithOptimisticLock{})
	if err := p.client.Patch(ctx, released, lock, order.FieldManager); err != nil {
		return p.conflictOr(fmt.Errorf("releasing the finalizer: %w", err))
	}
	p.forget(client.ObjectKeyFromObject(p.cp))
	note := "nothing of the ControlPlane is left"
	if p.abandoned() {
		note = fmt.Sprintf("the annotation %s lets the ControlPlane go before its orders; what they hold in Keystone stays there", AbandonAnnotation)
	}
	p.recorder.Eventf(p.original, nil, corev1.EventTypeNormal, order.EventTornDown, "Teardown", "%s", note)
	p.log.Info("torn down", "abandoned", p.abandoned())
	return reconcile.Result{}, nil
}
