package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// Times of a failed message: doubled from one try to the next, between these.
const (
	minBackOff = 2 * time.Second
	maxBackOff = 2 * time.Minute
)

// workers are how many requests are worked on at once: a channel that hangs holds up those of its requests.
const workers = 4

// reconcileTimeout bounds a pass over all channels, with a question before the message on one of them.
const reconcileTimeout = 2 * time.Minute

// Settings are what the publisher needs.
type Settings struct {
	// Client writes the status of requests, and reads them live: what was just written must not be missing,
	// or a card is sent twice.
	Client client.Client
	// Events records what becomes of the condition CardDelivered.
	Events events.EventRecorder
	Clock  clock.PassiveClock
	// Channels show the cards.
	Channels []Channel
	// Link makes the link to the page on which a request is answered. It is nil where nobody has said at which
	// address the page is.
	Link func(request *v1alpha1.CredentialUpdateRequest) (string, error)
	// ProviderTitle is what people call a provider of the catalog; empty for one that is not in it.
	ProviderTitle func(id string) string
	// Messages counts what became of messages (metrics.NewCardMessages).
	Messages *prometheus.CounterVec
}

// Publisher publishes the cards of requests and closes them.
type Publisher struct {
	Settings

	mutex    sync.Mutex
	memories map[types.NamespacedName]*memory
}

// memory is what this process knows about a request beyond its status.
type memory struct {
	uid types.UID
	// request is how it was last seen with a card that is, or may be, out there; nil without one.
	request *v1alpha1.CredentialUpdateRequest
	// tried are the channels on which this process began to send, and is not sending any more.
	tried map[string]bool
	// sent are the references of messages that went out and are not recorded.
	sent map[string]string
	// closed are the channels on which the end was told, recorded or not.
	closed map[string]bool
	// lasting are the channels that will go on refusing until somebody changes something.
	lasting map[string]bool
}

// New makes a Publisher. Its counters begin at 0, since the first failure of one that begins with it is no increase.
func New(settings Settings) *Publisher {
	for _, channel := range settings.Channels {
		for _, action := range []string{actionPublish, actionClose} {
			for _, outcome := range []string{outcomeDelivered, outcomeNotSent, outcomeUnknown} {
				settings.Messages.WithLabelValues(channel.Name(), action, outcome)
			}
		}
	}
	return &Publisher{Settings: settings, memories: map[types.NamespacedName]*memory{}}
}

// Setup registers the controller. It works on the leader only: two would send two cards.
func (p *Publisher) Setup(mgr manager.Manager) error {
	err := builder.ControllerManagedBy(mgr).
		Named("cards").
		For(&v1alpha1.CredentialUpdateRequest{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc:  func(e event.CreateEvent) bool { return concerns(e.Object) },
			UpdateFunc:  func(e event.UpdateEvent) bool { return concerns(e.ObjectNew) },
			DeleteFunc:  func(event.DeleteEvent) bool { return true },
			GenericFunc: func(event.GenericEvent) bool { return false },
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   reconcileTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackOff, maxBackOff),
		}).
		Complete(reconcile.Func(p.Reconcile))
	if err != nil {
		return fmt.Errorf("building the controller of cards: %w", err)
	}
	return nil
}

// concerns tells whether a request may need a message: it asks for a person, or it is over and has a ledger.
func concerns(object client.Object) bool {
	request, ok := object.(*v1alpha1.CredentialUpdateRequest)
	if !ok {
		return false
	}
	status := request.Status
	return status.Phase == v1alpha1.PhaseOpen && verdict.AsksHuman(status.Determination) ||
		v1alpha1.Settled(status.Phase) && slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
			return strings.HasPrefix(c.Type, ConditionPrefix) && State(c.Reason) != StateClosed
		})
}

// recall returns what is known about a request, and separately about another one that had its name before.
func (p *Publisher) recall(key types.NamespacedName, uid types.UID) (current, former *memory) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if m := p.memories[key]; m != nil && m.uid != uid {
		return nil, m
	} else if m != nil {
		return m, nil
	}
	m := &memory{uid: uid, tried: map[string]bool{}, sent: map[string]string{}, closed: map[string]bool{}, lasting: map[string]bool{}}
	p.memories[key] = m
	return m, nil
}

// remembered returns what is known about whatever had a name; nil when that is nothing.
func (p *Publisher) remembered(key types.NamespacedName) *memory {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.memories[key]
}

func (p *Publisher) forget(key types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.memories, key)
}

// Reconcile looks at one request once, live.
func (p *Publisher) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	request := &v1alpha1.CredentialUpdateRequest{}
	if err := p.Client.Get(ctx, key.NamespacedName, request); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the request: %w", err)
	} else if err != nil {
		return reconcile.Result{}, p.vanished(ctx, key.NamespacedName)
	}
	m, former := p.recall(key.NamespacedName, request.UID)
	if former != nil {
		if err := p.vanished(ctx, key.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
		m, _ = p.recall(key.NamespacedName, request.UID)
	}
	look := &pass{Publisher: p, request: request, memory: m}
	switch {
	case foreign(request):
	case request.Status.Phase == v1alpha1.PhaseOpen && request.DeletionTimestamp.IsZero():
		return look.open(ctx)
	case v1alpha1.Settled(request.Status.Phase):
		return look.settled(ctx)
	}
	return reconcile.Result{}, nil
}
