package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// AddProbes answers /healthz as long as the process answers at all, and /readyz once the caches are
// filled. A kind that vanishes later does not take readiness away.
func AddProbes(mgr manager.Manager) error {
	var synced atomic.Bool
	err := mgr.Add(everywhere{func(ctx context.Context) error {
		// The manager starts this after its caches are synced.
		synced.Store(true)
		<-ctx.Done()
		return nil
	}})
	if err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	ready := func(*http.Request) error {
		if !synced.Load() {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", ready)); err != nil {
		return fmt.Errorf("adding the probes: %w", err)
	}
	return nil
}

// everywhere runs on every replica, the leader or not.
type everywhere struct{ manager.RunnableFunc }

func (everywhere) NeedLeaderElection() bool { return false }
