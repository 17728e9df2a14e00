package operatorcondition

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/controllers/keystoneapplicationcredential"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// The rights on the one OperatorCondition come from OLM, which binds a Role for it to the operator's
// ServiceAccount. Without OLM there is neither, so the operator's own roles don't have them.

const (
	// pause is the time between two looks at the orders. Sixty orders that rotate at once come to one
	// write a second. There is no pause that is longer before True than before False: where thousands of
	// orders take turns, that would leave no moment to upgrade at.
	pause = time.Second
	// recheck is the time between two looks when nothing happens: OLM gives no right to watch the
	// condition, and somebody may have changed it.
	recheck = time.Minute
	// firstRetry and lastRetry bound the growing delay after an error.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// defaultTimeout is how long a replica stays unready for want of a default. A hold that cannot be
	// written must not keep orders from being served.
	defaultTimeout = 30 * time.Second
)

// delivering are the kinds that are minted and delivered.
var delivering = []order.Kind{order.UserKind, order.ApplicationCredentialKind}

// minting are the kinds of K-ORC that a mint is seen by.
var minting = []client.Object{&orcv1alpha1.User{}, &orcv1alpha1.ApplicationCredential{}}

// reporter keeps the condition.
type reporter struct {
	key     types.NamespacedName
	manager manager.Manager
	late    order.LateStarter
	log     logr.Logger
	changed chan struct{}
	// hasDefault is set once a replica has seen to it that the condition is there, or gave that up.
	hasDefault atomic.Bool
}

// Setup has the manager keep the condition Upgradeable of an OperatorCondition, and adds a readiness check
// that waits for its default. The leader reports; a replica that waits only writes the default where there
// is none, because with it a new version's pod becomes ready before the old version's gives the lease up.
func Setup(env order.Environment, key types.NamespacedName) error {
	return newReporter(env, key).addTo(env.Manager.GetLocalManager())
}

func newReporter(env order.Environment, key types.NamespacedName) *reporter {
	return &reporter{
		key: key, manager: env.Manager.GetLocalManager(), late: env.Late,
		log:     env.Manager.GetLogger().WithName("operatorcondition").WithValues("OperatorCondition", key.String()),
		changed: make(chan struct{}, 1),
	}
}

func (r *reporter) addTo(local manager.Manager) error {
	if err := errors.Join(local.Add(r), local.Add(defaulter{r}), local.AddReadyzCheck("operatorcondition", r.ready)); err != nil {
		return fmt.Errorf("adding the reporter of OperatorCondition %s: %w", r.key, err)
	}
	return nil
}

func (r *reporter) ready(*http.Request) error {
	if !r.hasDefault.Load() {
		return errors.New("the OperatorCondition has no condition Upgradeable yet")
	}
	return nil
}

// defaulter writes the default on every replica.
type defaulter struct{ *reporter }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (defaulter) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (d defaulter) Start(ctx context.Context) error {
	timeout, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	retry(timeout, func() error {
		return d.write(timeout, starting(), onlyIfMissing)
	}, func(err error) { d.log.Error(err, "writing the default of Upgradeable; it is tried again") })
	d.hasDefault.Store(true)
	<-ctx.Done()
	return nil
}

// retry calls do until it succeeds or the context ends.
func retry(ctx context.Context, do func() error, failed func(error)) {
	for delay := firstRetry; ; delay = min(2*delay, lastRetry) {
		err := do()
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			failed(err)
		}
		if !sleep(ctx, delay) {
			return
		}
	}
}

// sleep tells whether the context lives on.
func sleep(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Start implements manager.Runnable. It runs on the leader.
func (r *reporter) Start(ctx context.Context) error {
	if err := r.watch(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for {
		retry(ctx, func() error { return r.report(ctx) }, func(err error) {
			r.log.Error(err, "reporting whether the operator may be upgraded; it is tried again")
		})
		if !sleep(ctx, pause) {
			return nil
		}
		timer.Reset(recheck)
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		case <-timer.C:
		}
	}
}

// watch asks for a look whenever an order or an object of a mint changes. The informers are those of the
// orders' own controllers.
func (r *reporter) watch(ctx context.Context) error {
	for _, kind := range delivering {
		if err := r.watchKind(ctx, kind.New()); err != nil {
			return err
		}
	}
	for _, object := range minting {
		gvk, err := r.gvk(object)
		if err != nil {
			return err
		}
		r.late.WhenServed(gvk, func() error { return r.watchKind(ctx, object) })
	}
	return nil
}

func (r *reporter) gvk(object client.Object) (schema.GroupVersionKind, error) {
	return r.manager.GetClient().GroupVersionKindFor(object)
}

func (r *reporter) watchKind(ctx context.Context, object client.Object) error {
	informer, err := r.manager.GetCache().GetInformer(ctx, object)
	if err != nil {
		return fmt.Errorf("watching %T for its OperatorCondition: %w", object, err)
	}
	notice := func() {
		select {
		case r.changed <- struct{}{}:
		default: // a look is asked for already
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notice() },
		UpdateFunc: func(any, any) { notice() },
		DeleteFunc: func(any) { notice() },
	})
	if err != nil {
		return fmt.Errorf("watching %T for its OperatorCondition: %w", object, err)
	}
	return nil
}

// report looks at the orders and writes what that comes to.
func (r *reporter) report(ctx context.Context) error {
	orders, err := r.observe(ctx)
	if err != nil {
		return err
	}
	return r.write(ctx, judge(orders), always)
}

// observe lists from the cache, without copying, since nothing is changed.
func (r *reporter) observe(ctx context.Context) ([]observed, error) {
	minted, err := r.minted(ctx)
	if err != nil {
		return nil, err
	}
	var orders []observed
	for _, kind := range delivering {
		list := kind.NewList()
		if err := r.manager.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Name, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(order.Object) // the kind's own list
			orders = append(orders, observed{kind: kind, object: object, minted: minted[kind.Name][order.KeyOf("", object)]})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return orders, nil
}

// minted is the highest generation that K-ORC was asked for, by kind and order. While K-ORC's kinds are not
// served nothing is minted.
func (r *reporter) minted(ctx context.Context) (map[string]map[order.Key]int64, error) {
	highest := map[string]map[order.Key]int64{order.UserKind.Name: {}, order.ApplicationCredentialKind.Name: {}}
	record := func(kind order.Kind, key order.Key, generation int64, ok bool) {
		if ok {
			highest[kind.Name][key] = max(highest[kind.Name][key], generation)
		}
	}
	credentials, users := &orcv1alpha1.ApplicationCredentialList{}, &orcv1alpha1.UserList{}
	for _, list := range []client.ObjectList{credentials, users} {
		err := r.manager.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy, client.MatchingLabels{order.ManagedByLabel: order.ManagedByValue})
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("listing what K-ORC was asked for: %w", err)
		}
	}
	for i := range credentials.Items {
		// One on its way out is a superseded one, or one that is given up.
		if object := &credentials.Items[i]; object.DeletionTimestamp.IsZero() {
			key, generation, ok := keystoneapplicationcredential.MintedGeneration(object)
			record(order.ApplicationCredentialKind, key, generation, ok)
		}
	}
	for i := range users.Items {
		key, generation, ok := keystoneuser.MintedGeneration(&users.Items[i])
		record(order.UserKind, key, generation, ok)
	}
	return highest, nil
}
