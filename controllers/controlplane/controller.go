// Package controlplane reconciles ControlPlanes: it brings the administrator's password to K-ORC and
// to the operator itself, proves that both get into Keystone with it, says what is missing of what
// orders need, and keeps a ControlPlane until its orders are gone.
package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// +kubebuilder:rbac:groups=c5c3.io,resources=controlplanes,verbs=list;watch;patch
// +kubebuilder:rbac:groups=c5c3.io,resources=controlplanes/status,verbs=patch
// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneusers;keystoneprojects;keystoneroleassignments;keystoneapplicationcredentials,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=domains;users,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=domains/status;users/status,verbs=patch
// +kubebuilder:rbac:groups=external-secrets.io,resources=secretstores;clustersecretstores,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup registers the controller of ControlPlane with the manager. ControlPlanes live on the
// management cluster only. The order kinds have to be indexed by ControlPlane, which their own
// controllers do.
func Setup(_ context.Context, env order.Environment, tracker *dependencies.Tracker, options controller.TypedOptions[mcreconcile.Request]) error {
	r := &reconciler{env: env, tracker: tracker}
	cache := env.Manager.GetLocalManager().GetCache()
	options.DefaultFromConfig(env.Manager.GetControllerOptions()) // as for the orders

	b := mcbuilder.ControllerManagedBy(env.Manager).
		Named("controlplane").
		WithOptions(options).
		WithClusterNotFoundWrapper(false).
		For(&v1alpha1.ControlPlane{}, mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(false),
			mcbuilder.WithPredicates(order.OrderChanged())).
		WatchesRawSource(source.TypedKind[client.Object](cache, &corev1.Secret{}, mapped(ownerOf))).
		WatchesRawSource(source.TypedFunc[mcreconcile.Request](r.wakeWithDependencies))
	for _, kind := range order.Kinds {
		b = b.WatchesRawSource(source.TypedKind[client.Object](cache, kind.New(), mapped(r.heldBy), deleted()))
	}
	built, err := b.Build(r)
	if err != nil {
		return fmt.Errorf("building the controller of ControlPlane: %w", err)
	}
	for _, late := range []struct {
		object client.Object
		owner  handler.MapFunc
	}{
		{&orcv1alpha1.Domain{}, ownerOf},
		{&orcv1alpha1.User{}, ownerOf},
		{&externalsecrets.SecretStore{}, r.backedBy},
		{&externalsecrets.ClusterSecretStore{}, r.backedBy},
	} {
		gvk, err := apiutil.GVKForObject(late.object, env.Manager.GetLocalManager().GetScheme())
		if err != nil {
			return fmt.Errorf("building the controller of ControlPlane: %w", err)
		}
		tracker.WhenServed(gvk, func() error {
			return built.Watch(source.TypedKind(cache, late.object, mapped(late.owner), predicate.Predicate(predicate.ResourceVersionChangedPredicate{})))
		})
	}
	return nil
}

// mapped lifts a map of objects to ControlPlanes on the management cluster.
func mapped(to handler.MapFunc) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(ctx context.Context, object client.Object) []mcreconcile.Request {
		var requests []mcreconcile.Request
		for _, request := range to(ctx, object) {
			requests = append(requests, mcreconcile.Request{Request: request})
		}
		return requests
	})
}

// ownerOf is the ControlPlane whose own child an object is.
func ownerOf(_ context.Context, object client.Object) []reconcile.Request {
	name, ok := object.GetLabels()[nameLabel]
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// heldBy is the ControlPlane that an order holds, if that is being deleted.
func (r *reconciler) heldBy(ctx context.Context, object client.Object) []reconcile.Request {
	placed, ok := object.(order.Object)
	if !ok {
		return nil
	}
	ref := placed.GetControlPlaneRef()
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	cp := &v1alpha1.ControlPlane{}
	if err := r.env.Manager.GetLocalManager().GetClient().Get(ctx, key, cp); err != nil || cp.DeletionTimestamp.IsZero() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// deleted passes only that an object is gone.
func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// backedBy are the ControlPlanes whose backups go to a store.
func (r *reconciler) backedBy(ctx context.Context, store client.Object) []reconcile.Request {
	kind := externalsecrets.SecretStoreKind
	if store.GetNamespace() == "" {
		kind = externalsecrets.ClusterSecretStoreKind
	}
	return r.controlPlanes(ctx, func(cp *v1alpha1.ControlPlane) bool {
		ref := order.StoreRef(cp)
		return ref.Kind == kind && ref.Name == store.GetName() && (store.GetNamespace() == "" || store.GetNamespace() == cp.Namespace)
	})
}

// wakeWithDependencies wakes all ControlPlanes when a kind of another project appears or goes away.
func (r *reconciler) wakeWithDependencies(_ context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	r.tracker.OnChange(func(ctx context.Context) {
		for _, request := range r.controlPlanes(ctx, func(*v1alpha1.ControlPlane) bool { return true }) {
			queue.Add(mcreconcile.Request{Request: request})
		}
	})
	return nil
}

func (r *reconciler) controlPlanes(ctx context.Context, match func(*v1alpha1.ControlPlane) bool) []reconcile.Request {
	list := &v1alpha1.ControlPlaneList{}
	local := r.env.Manager.GetLocalManager()
	if err := local.GetClient().List(ctx, list); err != nil {
		local.GetLogger().Error(err, "listing ControlPlanes")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
