package order

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// ControlPlaneIndex is the field index of orders by the ControlPlane they name, as namespace/name.
const ControlPlaneIndex = "spec.controlPlaneRef"

// IndexControlPlanes indexes the orders of a kind on the management cluster. Target clusters are not
// indexed: one that does not serve the kind would fail to engage.
func IndexControlPlanes(ctx context.Context, mgr mcmanager.Manager, kind Kind) error {
	err := mgr.GetLocalManager().GetFieldIndexer().IndexField(ctx, kind.New(), ControlPlaneIndex, func(object client.Object) []string {
		ref := object.(Object).GetControlPlaneRef()
		return []string{ref.Namespace + "/" + ref.Name}
	})
	if err != nil {
		return fmt.Errorf("indexing %ss by ControlPlane: %w", kind.Name, err)
	}
	return nil
}

// OrderChanged passes what an order's own controller has to look at: a change of spec, labels or
// annotations, the beginning of its deletion, and its coming and going.
func OrderChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// ReferenceChanged passes what matters to an order that names another one: a change of its spec, its
// deletion, and a change of its status. Status as a whole, because it is written only when it says
// something new, and which field one kind reads of another is that kind's own business.
func ReferenceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!reflect.DeepEqual(statusOf(e.ObjectOld), statusOf(e.ObjectNew))
	}}
}

func statusOf(object client.Object) any {
	value := reflect.Indirect(reflect.ValueOf(object)).FieldByName("Status")
	if !value.IsValid() {
		return nil
	}
	return value.Interface()
}

// ControlPlaneChanged passes what matters to orders: a change of spec, the beginning of a deletion,
// and AdminCredentialReady turning.
func ControlPlaneChanged() predicate.Predicate {
	admin := func(object client.Object) bool {
		cp, ok := object.(*v1alpha1.ControlPlane)
		return ok && meta.IsStatusConditionTrue(cp.Status.Conditions, v1alpha1.ConditionAdminCredentialReady)
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			admin(e.ObjectOld) != admin(e.ObjectNew)
	}}
}

// OrdersOf wakes the orders of a ControlPlane on the management cluster. Orders on target clusters
// find out on their own refresh.
func OrdersOf(mgr mcmanager.Manager, kind Kind) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(ctx context.Context, object client.Object) []mcreconcile.Request {
		list := kind.NewList()
		err := mgr.GetLocalManager().GetClient().List(ctx, list, client.MatchingFields{ControlPlaneIndex: object.GetNamespace() + "/" + object.GetName()})
		if err != nil {
			mgr.GetLogger().Error(err, "listing the orders of a ControlPlane", "kind", kind.Name, "controlPlane", client.ObjectKeyFromObject(object))
			return nil
		}
		return requests("", list, func(Object) bool { return true })
	})
}

// All wakes every order of a kind on the management cluster, whatever happened.
func All(mgr mcmanager.Manager, kind Kind) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(ctx context.Context, _ client.Object) []mcreconcile.Request {
		list := kind.NewList()
		if err := mgr.GetLocalManager().GetClient().List(ctx, list); err != nil {
			mgr.GetLogger().Error(err, "listing orders", "kind", kind.Name)
			return nil
		}
		return requests("", list, func(Object) bool { return true })
	})
}

// OwnerOf wakes the order that a child on the management cluster belongs to, on whatever cluster that
// order lives. The variant that keeps the cluster is needed: the usual one would overwrite it.
func OwnerOf(kind Kind) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(_ context.Context, object client.Object) []mcreconcile.Request {
		key, ok := kind.KeyFromLabels(object.GetLabels())
		if !ok {
			return nil
		}
		return []mcreconcile.Request{request(key.Cluster, key.Namespace, key.Name)}
	})
}

// Siblings wakes the orders of a kind in the namespace of an order that changed, where match says
// that the change concerns them.
func Siblings(kind Kind, match func(changed, sibling Object) bool) mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request] {
	return func(name multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
		return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(ctx context.Context, object client.Object) []mcreconcile.Request {
			changed, ok := object.(Object)
			if !ok {
				return nil
			}
			list := kind.NewList()
			if err := cl.GetClient().List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
				// The orders find out on their own refresh, and the log says why they are late.
				log.FromContext(ctx).Error(err, "listing the orders that name a changed one", "kind", kind.Name, "namespace", object.GetNamespace())
				return nil
			}
			return requests(string(name), list, func(sibling Object) bool { return match(changed, sibling) })
		})
	}
}

// Names wakes the order that match names by reading the changed one.
func Names(name func(changed Object) []string) mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request] {
	return func(cluster multicluster.ClusterName, _ cluster.Cluster) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
		return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(_ context.Context, object client.Object) []mcreconcile.Request {
			changed, ok := object.(Object)
			if !ok {
				return nil
			}
			var found []mcreconcile.Request
			for _, order := range name(changed) {
				found = append(found, request(string(cluster), object.GetNamespace(), order))
			}
			return found
		})
	}
}

func requests(cluster string, list client.ObjectList, match func(Object) bool) []mcreconcile.Request {
	var found []mcreconcile.Request
	_ = meta.EachListItem(list, func(item runtimeObject) error {
		if order := item.(Object); match(order) {
			found = append(found, request(cluster, order.GetNamespace(), order.GetName()))
		}
		return nil
	})
	return found
}

func request(cluster, namespace, name string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: multicluster.ClusterName(cluster),
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}},
	}
}
