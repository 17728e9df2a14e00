package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// finalizer holds a ControlPlane until its orders are gone.
const finalizer = "c5c3.io/controlplane-teardown"

// refresh is the time between two passes when nothing happens: how long a new admin password may go
// unseen. Its Secret is somebody else's and not in the cache, and a watch on all Secrets of a
// namespace, for one of them, would bring every secret of it into the operator's memory. One live
// read per ControlPlane and half minute is cheaper than that.
const refresh = 30 * time.Second

// reconciler works on ControlPlanes of the management cluster.
type reconciler struct {
	env     order.Environment
	tracker *dependencies.Tracker

	memories sync.Map // types.NamespacedName -> *memory
}

// memory is what the operator remembers of a ControlPlane between two passes. Losing it costs one
// login and one look at each namespace. Only one pass at a time works on a ControlPlane, so it needs
// no lock.
type memory struct {
	uid        types.UID
	attempt    attempt
	namespaces lookedAt
}

// lookedAt says of which generation the namespaces were looked at, and when to look again.
type lookedAt struct {
	generation int64
	again      time.Time
}

// pass is one look at one ControlPlane.
type pass struct {
	*reconciler
	// cp is the pass's own copy; steps write its status. original is what was read.
	cp, original *v1alpha1.ControlPlane
	memory       *memory
	now          time.Time
	seen         observation
	// namespaces is remembered once the status that it describes is written.
	namespaces *lookedAt

	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	log      logr.Logger
	after    time.Duration
	err      error
}

// Reconcile is one pass: hold or tear down, observe, decide, report.
func (r *reconciler) Reconcile(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	p, err := r.begin(ctx, request.NamespacedName)
	if err != nil || p == nil {
		return reconcile.Result{}, err
	}
	var holding *order.Outcome
	if !p.cp.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(p.cp, finalizer) {
			return reconcile.Result{}, nil
		}
		if holding, err = p.hold(ctx); err != nil {
			return reconcile.Result{}, err
		}
		if holding == nil {
			return p.tearDown(ctx)
		}
		// A ControlPlane that holds its deletion goes on serving: its orders need it to be revoked.
	} else if err := p.addFinalizer(ctx); err != nil {
		return p.conflictOr(err)
	}
	p.observe(ctx)
	p.report(v1alpha1.ConditionDependenciesReady, decideDependencies(p.seen))
	p.report(v1alpha1.ConditionAdminCredentialReady, decideAdmin(p.held(), p.seen))
	p.report(v1alpha1.ConditionKeystoneReachable, decideReachable(p.seen))
	p.report(v1alpha1.ConditionSecretStoreReady, decideStore(p.seen))
	return p.finish(ctx, holding)
}

func (r *reconciler) begin(ctx context.Context, key types.NamespacedName) (*pass, error) {
	local := r.env.Manager.GetLocalManager()
	cp := &v1alpha1.ControlPlane{}
	if err := local.GetClient().Get(ctx, key, cp); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(key)
			return nil, nil
		}
		return nil, fmt.Errorf("reading ControlPlane %s: %w", key, err)
	}
	found, _ := r.memories.LoadOrStore(key, &memory{uid: cp.UID})
	remembered := found.(*memory) // nothing else is stored
	if remembered.uid != cp.UID { // deleted and created again
		r.forget(key)
		remembered = &memory{uid: cp.UID}
		r.memories.Store(key, remembered)
	}
	return &pass{
		reconciler: r, cp: cp.DeepCopy(), original: cp, memory: remembered,
		now:    r.env.Clock.Now().Truncate(time.Second),
		client: local.GetClient(), live: local.GetAPIReader(),
		recorder: local.GetEventRecorder(string(order.FieldManager)),
		log:      log.FromContext(ctx).WithValues("namespace", key.Namespace, "name", key.Name),
		after:    refresh,
	}, nil
}

// forget drops what is remembered of a ControlPlane that is gone, its administrator's session first.
func (r *reconciler) forget(key types.NamespacedName) {
	if found, ok := r.memories.LoadAndDelete(key); ok {
		r.env.Keystone.Forget(string(found.(*memory).uid)) // nothing else is stored
	}
}

func (p *pass) addFinalizer(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(p.cp, finalizer) {
		return nil
	}
	controllerutil.AddFinalizer(p.cp, finalizer)
	written := p.cp.DeepCopy()
	lock := client.MergeFromWithOptions(p.original, client.MergeFromWithOptimisticLock{})
	if err := p.client.Patch(ctx, written, lock, order.FieldManager); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	p.cp.ResourceVersion = written.ResourceVersion
	p.original = p.cp.DeepCopy()
	return nil
}

// observe reads, and writes what the operator owns: the admin's cloud and the imports with it.
func (p *pass) observe(ctx context.Context) {
	p.seen.authURL, p.seen.externalURL = order.AuthURL(p.cp, ""), order.ExternalURL(p.cp)
	p.seen.missing = p.tracker.Missing()
	p.seen.store, p.seen.storeWhy, p.seen.storeErr = order.StoreState(ctx, p.client, p.cp)
	p.cp.Status.AuthURL = p.seen.authURL
	p.mirrorNamespaces(ctx)

	p.seen.login = p.memory.attempt.result
	if p.seen.authURL == "" {
		return
	}
	document, err := p.adminCloud(ctx)
	p.seen.cloudErr = err
	if document == nil {
		return
	}
	p.seen.login = p.logIn(ctx, *document)
	p.importAdmin(ctx)
}

// held tells whether AdminCredentialReady is True before this pass.
func (p *pass) held() bool {
	return meta.IsStatusConditionTrue(p.original.Status.Conditions, v1alpha1.ConditionAdminCredentialReady)
}

func (p *pass) comeBack(after time.Duration) {
	if after > 0 && after < p.after {
		p.after = after
	}
}
