package order

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// LateStarter starts something once a kind is served, and again whenever it is served anew.
type LateStarter interface {
	Served
	// WhenServed calls start once the management cluster serves the kind.
	WhenServed(gvk schema.GroupVersionKind, start func() error)
}

// Environment is what the manager hands to the controller of every kind.
type Environment struct {
	Manager mcmanager.Manager
	// Keystone is what the operator asks Keystone itself.
	Keystone *keystone.Service
	// Clock is the operator's clock.
	Clock clock.PassiveClock
	// Late tells which kinds are served, and starts watches on those that come later.
	Late LateStarter
	// AuditInterval is the time between two audits of one order, 0 for none.
	AuditInterval time.Duration
	// Counters are told of what the operator did. Nil counts nothing.
	Counters Counters
}

// NewBase makes the base of a kind's controller.
func (e Environment) NewBase(kind Kind) *Base {
	return &Base{
		Kind: kind, Manager: e.Manager, Keystone: e.Keystone, Clock: e.Clock, Served: e.Late, AuditInterval: e.AuditInterval, Counters: e.Counters,
	}
}

// Watches are what a kind's controller watches beyond its own orders and their ControlPlane.
type Watches struct {
	// Delivers tells whether the kind delivers a Secret beside the order, to be repaired at once.
	Delivers bool
	// Siblings are orders of other kinds in the same namespace.
	Siblings []SiblingWatch
	// Children are kinds on the management cluster whose labels name the order.
	Children []client.Object
	// Sources wake orders for other reasons.
	Sources []source.TypedSource[mcreconcile.Request]
}

// SiblingWatch is a watch on orders of another kind.
type SiblingWatch struct {
	Object  client.Object
	Handler mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request]
}

// Setup registers the controller of an order kind. Each leg says by itself that it engages with the
// management cluster and with target clusters: the default turns to target clusters only as soon as
// there is a provider of clusters, and orders on the management cluster would be lost.
func Setup(ctx context.Context, base *Base, steps Steps, late LateStarter, watches Watches, options controller.TypedOptions[mcreconcile.Request]) error {
	if err := IndexControlPlanes(ctx, base.Manager, base.Kind); err != nil {
		return err
	}
	options.DefaultFromConfig(base.Manager.GetControllerOptions()) // this builder, unlike the one it comes from, takes only some of them
	local, targets := mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(true)
	cache := base.Manager.GetLocalManager().GetCache()

	b := mcbuilder.ControllerManagedBy(base.Manager).
		Named(strings.ToLower(base.Kind.Name)).
		WithOptions(options).
		WithClusterNotFoundWrapper(false).
		For(base.Kind.New(), local, targets, mcbuilder.WithPredicates(OrderChanged())).
		WatchesRawSource(source.TypedKind[client.Object](cache, &v1alpha1.ControlPlane{}, OrdersOf(base.Manager, base.Kind), ControlPlaneChanged())).
		WatchesRawSource(source.TypedKind[client.Object](cache, &corev1.Secret{}, OwnerOf(base.Kind)))
	if watches.Delivers {
		b = b.Owns(&corev1.Secret{}, local, targets)
	}
	for _, sibling := range watches.Siblings {
		b = b.Watches(sibling.Object, sibling.Handler, local, targets, mcbuilder.WithPredicates(ReferenceChanged()))
	}
	for _, other := range watches.Sources {
		b = b.WatchesRawSource(other)
	}
	built, err := b.Build(reconcile.TypedFunc[mcreconcile.Request](func(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
		return base.Reconcile(ctx, request, steps)
	}))
	if err != nil {
		return fmt.Errorf("building the controller of %s: %w", base.Kind.Name, err)
	}
	for _, child := range watches.Children {
		gvk, err := apiutil.GVKForObject(child, base.Manager.GetLocalManager().GetScheme())
		if err != nil {
			return fmt.Errorf("building the controller of %s: %w", base.Kind.Name, err)
		}
		late.WhenServed(gvk, func() error {
			return built.Watch(source.TypedKind(cache, child, OwnerOf(base.Kind), predicate.Predicate(predicate.ResourceVersionChangedPredicate{})))
		})
	}
	return nil
}
