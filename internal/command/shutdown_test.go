package command

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// A process that is told to end while its queues are full has to end. One that hangs keeps the Lease for the whole
// grace period, in which nobody rotates.
func TestOptions_a_busy_manager_ends_when_it_is_told_to(t *testing.T) {
	const (
		rounds  = 30
		workers = 10
		enough  = 1000
	)
	for range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		o := parse(t, "--metrics-bind-address=0", "--health-probe-bind-address=0")
		mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, o.Manager(runtime.NewScheme(), "lease"))
		if err != nil {
			t.Fatal(err)
		}
		var (
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]
			done  atomic.Int64
			same  = true // the name of the controller, in each round
		)
		busy, err := controller.New("busy", mgr, controller.Options{
			SkipNameValidation: &same, MaxConcurrentReconciles: workers,
			Reconciler: reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
				if done.Add(1) == enough {
					cancel()
				}
				queue.Add(request)
				return reconcile.Result{}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		err = busy.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue = q
			for i := range workers {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}})
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Start(ctx); err != nil {
			t.Fatalf("after %d reconciliations: %v", done.Load(), err)
		}
	}
}
