package order

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// Steps is what a kind adds to the scaffold.
type Steps interface {
	// Provision runs when all gates are passed and the finalizer is there. It reports on the
	// kind's conditions.
	Provision(ctx context.Context, p *Pass)
	// Teardown runs while an order with the finalizer is being deleted, whatever the consent says.
	// It returns true once nothing is left that the order owns. p.ControlPlane is nil when the
	// ControlPlane is gone; what can still be deleted is then deleted, and true is returned.
	Teardown(ctx context.Context, p *Pass) (done bool)
}

// Served tells which kinds the management cluster's API server serves.
type Served interface {
	// Serves tells whether a kind is served at this moment.
	Serves(gvk schema.GroupVersionKind) bool
}

// Base is what the controller of an order kind is made of.
type Base struct {
	Kind    Kind
	Manager mcmanager.Manager
	// Keystone is what the operator asks Keystone itself.
	Keystone *keystone.Service
	// Clock is the operator's clock.
	Clock clock.PassiveClock
	// Served tells which kinds of K-ORC and ESO are there.
	Served Served
	// AuditInterval is the time between two audits of one order, 0 for none.
	AuditInterval time.Duration
	// Counters are told of what was done. Nil counts nothing.
	Counters Counters

	audits sync.Map   // Key -> time.Time of the next audit
	skews  sync.Map   // UID of a ControlPlane -> time.Duration
	claims sync.Mutex // one order of the kind at a time takes a name, see Pass.Claim
}

// Reconcile runs one pass: read, gates or teardown, steps, report.
func (b *Base) Reconcile(ctx context.Context, request mcreconcile.Request, steps Steps) (reconcile.Result, error) {
	pass, err := b.begin(ctx, request)
	if err != nil || pass == nil {
		return reconcile.Result{}, err
	}
	if !pass.Order.GetDeletionTimestamp().IsZero() {
		return b.tearDown(ctx, pass, steps)
	}
	if outcome := pass.gates(ctx); outcome != nil {
		pass.ReportAll(outcome)
		return pass.finish(ctx)
	}
	added, err := b.addFinalizer(ctx, pass)
	if err != nil {
		pass.ReportAll(Fail(b.Kind.ErrorReason, err))
		return pass.finish(ctx)
	}
	if added {
		// No condition is written on this pass: its order is one version old by now.
		return reconcile.Result{RequeueAfter: waitFinalizer}, nil
	}
	if outcome := pass.adminCredentialGate(); outcome != nil {
		pass.ReportAll(outcome)
		return pass.finish(ctx)
	}
	steps.Provision(ctx, pass)
	return pass.finish(ctx)
}

func (b *Base) begin(ctx context.Context, request mcreconcile.Request) (*Pass, error) {
	logger := log.FromContext(ctx).WithValues("namespace", request.Namespace, "name", request.Name, "cluster", request.ClusterName)
	cluster, err := b.Manager.GetCluster(ctx, request.ClusterName)
	if err != nil {
		// A deregistered cluster's orders cannot be read any more; nothing to come back for.
		logger.Info("the order's cluster is not registered", "cluster", request.ClusterName, "cause", err.Error())
		return nil, nil
	}
	local := b.Manager.GetLocalManager()
	order := b.Kind.New()
	if err := cluster.GetClient().Get(ctx, request.NamespacedName, order); err != nil {
		if apierrors.IsNotFound(err) {
			b.audits.Delete(Key{Cluster: string(request.ClusterName), Namespace: request.Namespace, Name: request.Name})
			return nil, nil
		}
		return nil, fmt.Errorf("reading %s %s: %w", b.Kind.Name, request.NamespacedName, err)
	}
	original := order.DeepCopyObject().(Object)
	return &Pass{
		Base: b, Kind: b.Kind, Key: KeyOf(string(request.ClusterName), order),
		Order: order, original: original,
		Now:    b.Clock.Now().Truncate(time.Second),
		Client: cluster.GetClient(), Reader: cluster.GetAPIReader(),
		Management: local.GetClient(), Live: local.GetAPIReader(),
		recorder: cluster.GetEventRecorder("c5c3-operator"),
		log:      logger,
	}, nil
}

func (b *Base) addFinalizer(ctx context.Context, p *Pass) (added bool, err error) {
	if controllerutil.ContainsFinalizer(p.Order, b.Kind.Finalizer()) {
		return false, nil
	}
	order := p.original.DeepCopyObject().(Object)
	controllerutil.AddFinalizer(order, b.Kind.Finalizer())
	patch := client.MergeFromWithOptions(p.original, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Patch(ctx, order, patch, FieldManager); err != nil {
		return false, fmt.Errorf("adding the finalizer: %w", err)
	}
	return true, nil
}

func (b *Base) tearDown(ctx context.Context, p *Pass, steps Steps) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(p.Order, b.Kind.Finalizer()) {
		return reconcile.Result{}, nil
	}
	controlPlane, err := p.getControlPlane(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.ControlPlane = controlPlane
	if !steps.Teardown(ctx, p) {
		if p.after == 0 {
			// A step that is held says itself how long it can wait.
			p.ComeBack(WaitShort)
		}
		return p.finish(ctx)
	}
	order := p.original.DeepCopyObject().(Object)
	controllerutil.RemoveFinalizer(order, b.Kind.Finalizer())
	patch := client.MergeFromWithOptions(p.original, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(p.Client.Patch(ctx, order, patch, FieldManager)); err != nil {
		if outcome := Fail("", err); outcome.Err == nil {
			return reconcile.Result{RequeueAfter: outcome.After}, nil
		}
		return reconcile.Result{}, fmt.Errorf("releasing the finalizer: %w", err)
	}
	p.tornDown()
	return reconcile.Result{}, nil
}

// getControlPlane reads the ControlPlane of the order, nil when there is none.
func (p *Pass) getControlPlane(ctx context.Context) (*v1alpha1.ControlPlane, error) {
	ref := p.Order.GetControlPlaneRef()
	controlPlane := &v1alpha1.ControlPlane{}
	err := p.Management.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, controlPlane)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ControlPlane %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return controlPlane, nil
}

// AuditDue tells whether the order is to be compared with what Keystone holds on this pass, and
// arranges for the next time. The first audit after a start falls at a random point of the interval,
// so that a restart does not bring every order to Keystone at once.
func (p *Pass) AuditDue() bool {
	if p.Base.AuditInterval <= 0 {
		return false
	}
	jittered := func() time.Time {
		return p.Now.Add(p.Base.AuditInterval/2 + rand.N(p.Base.AuditInterval)) //nolint:gosec // spread, not secrecy
	}
	next, seen := p.Base.audits.LoadOrStore(p.Key, jittered())
	due := seen && !p.Now.Before(next.(time.Time))
	if due {
		next = jittered()
		p.Base.audits.Store(p.Key, next)
	}
	p.ComeBackAt(next.(time.Time))
	return due
}

// Skew is how far a ControlPlane's Keystone was ahead of the operator's clock when it last answered, 0
// before it did.
func (b *Base) Skew(cp *v1alpha1.ControlPlane) time.Duration {
	skew, _ := b.skews.Load(cp.UID)
	d, _ := skew.(time.Duration)
	return d
}

// RememberSkew keeps what Keystone's Date header told.
func (b *Base) RememberSkew(cp *v1alpha1.ControlPlane, skew time.Duration) {
	b.skews.Store(cp.UID, skew)
}
