// Package credentialupdaterequest determines CredentialUpdateRequests: it believes nothing of a claim but
// the name of the tool that failed, finds the credential by itself, repairs what a machine can repair, and
// opens a request only when something or somebody can bring a new value.
//
// What a claim deserves is decided by internal/verdict. This package finds out what the decision rests on,
// records it, and follows an open request until its credential has changed or its time is over. It shows
// nobody a card.
package credentialupdaterequest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/egress"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/providers"
	"github.com/c5c3/c5c3-operator/internal/refresh"
)

// There are no RBAC markers here on purpose. They would put the rights into the role of every installation,
// and most have no agents: config/agentprimitives grants them, to those that switch this controller on.

// Kind is the kind that this controller reconciles.
const Kind = "CredentialUpdateRequest"

// Settings are what whoever runs the operator says about determinations.
type Settings struct {
	// Catalog knows how to ask providers.
	Catalog *providers.Catalog
	// Egress lets requests to providers out.
	Egress *egress.Guard
}

// reconciler reads everything live: a determination is rare, ends for good, and must not rest on a cache
// that is behind its own last write, or it would redeem a refresh token and count an ask twice.
type reconciler struct {
	client   client.Client
	live     client.Reader
	events   events.EventRecorder
	keystone *keystone.Service
	clock    clock.PassiveClock
	catalog  *providers.Catalog
	prober   providers.Prober
	redeemer *refresh.Redeemer
	// refreshTokens are digests, by open request about an OAuth token; see noteRefreshToken. Without a lock: there is
	// one worker.
	refreshTokens map[types.NamespacedName]string
}

func newReconciler(env order.Environment, settings Settings) *reconciler {
	local := env.Manager.GetLocalManager()
	return &reconciler{
		client: local.GetClient(), live: local.GetAPIReader(), events: local.GetEventRecorder("c5c3-operator"),
		keystone: env.Keystone, clock: env.Clock, catalog: settings.Catalog,
		prober: providers.Prober{Transport: settings.Egress},
		// One for the process: it is what knows which refresh tokens were redeemed.
		redeemer:      &refresh.Redeemer{Transport: settings.Egress, Now: env.Clock.Now},
		refreshTokens: map[types.NamespacedName]string{},
	}
}

// Setup registers the controller with the management cluster's manager. It begins to work when the kind is
// served.
func Setup(env order.Environment, settings Settings) error {
	local := env.Manager.GetLocalManager()
	return setup(local, env, newReconciler(env, settings))
}

func setup(local manager.Manager, env order.Environment, r *reconciler) error {
	built, err := controller.New("credentialupdaterequest", local, controller.Options{
		Reconciler: r,
		// One at a time: that two asks about one credential never open side by side rests on it.
		MaxConcurrentReconciles: 1,
		ReconciliationTimeout:   reconcileTimeout,
	})
	if err != nil {
		return fmt.Errorf("building the controller of %s: %w", Kind, err)
	}
	env.Late.WhenServed(v1alpha1.GroupVersion.WithKind(Kind), func() error {
		for _, wakes := range []handler.EventHandler{&handler.EnqueueRequestForObject{}, handler.EnqueueRequestsFromMapFunc(r.followers)} {
			if err := built.Watch(source.Kind[client.Object](local.GetCache(), &v1alpha1.CredentialUpdateRequest{}, wakes)); err != nil {
				return fmt.Errorf("watching %s: %w", Kind, err)
			}
		}
		return nil
	})
	return nil
}

// followers are the requests that wait for a request which changed or is gone. They are found by listing:
// a list on the request itself would be another thing to keep right. Whatever gets lost here, the timer of
// each follower makes good.
func (r *reconciler) followers(ctx context.Context, changed client.Object) []reconcile.Request {
	list := &v1alpha1.CredentialUpdateRequestList{}
	if err := r.client.List(ctx, list, client.InNamespace(changed.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "looking for requests that wait for another one", "namespace", changed.GetNamespace(), "name", changed.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		status := list.Items[i].Status
		if status.Phase == v1alpha1.PhaseCollapsed && status.CollapsedInto != nil && status.CollapsedInto.Name == changed.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: changed.GetNamespace(), Name: list.Items[i].Name}})
		}
	}
	return requests
}
