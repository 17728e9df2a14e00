package dependencies

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery is the part of client-go's discovery client that is asked which kinds are served. It
// does not cache: a cached answer is what the tracker is there to avoid.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Tracker remembers which kinds are served, and tells those who asked when that changes.
type Tracker struct {
	discovery Discovery
	log       logr.Logger
	// forget removes what the cache holds of a kind; nil until the tracker runs in a manager.
	forget func(schema.GroupVersionKind)

	// refreshing keeps one Refresh at a time, so that start functions run in order.
	refreshing sync.Mutex

	mu     sync.RWMutex
	served map[schema.GroupVersionKind]bool
	// running is set once the manager runs: a watch that starts before its controller does would
	// make that controller's start wait for it, and fail with it.
	running  bool
	starts   map[schema.GroupVersionKind][]*lateStart
	onChange []func(context.Context)
}

// NewTracker makes a tracker that knows of no kind until Refresh was called.
func NewTracker(discovery Discovery, log logr.Logger) *Tracker {
	return &Tracker{
		discovery: discovery,
		log:       log.WithName("dependencies"),
		served:    map[schema.GroupVersionKind]bool{},
		starts:    map[schema.GroupVersionKind][]*lateStart{},
	}
}

// Serves tells whether a kind is served. A kind that is not in Kinds is the operator's own or
// Kubernetes', and counts as served.
func (t *Tracker) Serves(gvk schema.GroupVersionKind) bool {
	if lookup(gvk) == nil {
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.served[gvk]
}

// Missing are the kinds that the operator needs and that are not served, in the order of Kinds.
func (t *Tracker) Missing() []Kind {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var missing []Kind
	for _, kind := range Kinds {
		if !kind.Optional && !t.served[kind.GroupVersionKind] {
			missing = append(missing, kind)
		}
	}
	return missing
}

// WhenServed calls start once the manager runs and the kind is served, and again whenever the kind
// is served anew. An error of start is tried again with the next look at the API server.
func (t *Tracker) WhenServed(gvk schema.GroupVersionKind, start func() error) {
	t.mu.Lock()
	t.starts[gvk] = append(t.starts[gvk], &lateStart{run: start})
	now := t.running && (t.served[gvk] || lookup(gvk) == nil)
	t.mu.Unlock()
	if now {
		t.start(gvk)
	}
}

// OnChange calls react whenever a kind appeared or went away. Register before the manager starts.
func (t *Tracker) OnChange(react func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onChange = append(t.onChange, react)
}

// Refresh asks the API server which kinds it serves. The answer for an API version that could not be
// had stays what it was: an API server that is busy does not take kinds away.
func (t *Tracker) Refresh(ctx context.Context) error {
	t.refreshing.Lock()
	defer t.refreshing.Unlock()

	answer, failure := t.ask()
	var appeared, gone []schema.GroupVersionKind
	t.mu.Lock()
	for _, kind := range Kinds {
		gvk := kind.GroupVersionKind
		serves, known := answer[gvk]
		switch {
		case !known || serves == t.served[gvk]:
		case serves:
			appeared = append(appeared, gvk)
		default:
			gone = append(gone, gvk)
		}
		if known {
			t.served[gvk] = serves
		}
	}
	running, react := t.running, t.onChange
	t.mu.Unlock()

	for _, gvk := range gone {
		t.log.Info("a kind is not served any more", "kind", gvk.String())
		t.stop(gvk)
	}
	for _, gvk := range appeared {
		t.log.Info("a kind is served", "kind", gvk.String())
	}
	if running {
		// Every served kind, not only what appeared: a start that failed is tried again.
		for _, kind := range Kinds {
			t.start(kind.GroupVersionKind)
		}
		if len(gone)+len(appeared) > 0 {
			for _, call := range react {
				call(ctx)
			}
		}
	}
	return failure
}

// ask returns what is served of the API versions that gave an answer, and the last failure.
func (t *Tracker) ask() (map[schema.GroupVersionKind]bool, error) {
	answer := map[schema.GroupVersionKind]bool{}
	var failure error
	for _, version := range groupVersions() {
		list, err := t.discovery.ServerResourcesForGroupVersion(version.String())
		if err != nil && !apierrors.IsNotFound(err) {
			failure = fmt.Errorf("asking the API server for the kinds of %s: %w", version, err)
			continue
		}
		for _, kind := range Kinds {
			if kind.GroupVersion() == version {
				answer[kind.GroupVersionKind] = err == nil && lists(list, kind.Kind)
			}
		}
	}
	return answer, failure
}

func lists(list *metav1.APIResourceList, kind string) bool {
	for _, resource := range list.APIResources {
		if resource.Kind == kind {
			return true
		}
	}
	return false
}

// begin lets watches start.
func (t *Tracker) begin(forget func(schema.GroupVersionKind)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.forget = true, forget
}

// start calls the start functions of a kind that is served, each once.
func (t *Tracker) start(gvk schema.GroupVersionKind) {
	if !t.Serves(gvk) {
		return
	}
	for _, late := range t.lateStarts(gvk) {
		if err := late.once(); err != nil {
			t.log.Error(err, "starting to watch a kind", "kind", gvk.String())
		}
	}
}

// stop forgets what is known of a kind that is gone, and lets its start functions run again.
func (t *Tracker) stop(gvk schema.GroupVersionKind) {
	t.mu.RLock()
	forget := t.forget
	t.mu.RUnlock()
	if forget != nil {
		forget(gvk)
	}
	for _, late := range t.lateStarts(gvk) {
		late.reset()
	}
}

func (t *Tracker) lateStarts(gvk schema.GroupVersionKind) []*lateStart {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.starts[gvk])
}

// lateStart is a start function and whether it ran since the kind was last served anew.
type lateStart struct {
	run func() error

	mu  sync.Mutex
	ran bool
}

func (l *lateStart) once() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ran {
		return nil
	}
	if err := l.run(); err != nil {
		return err
	}
	l.ran = true
	return nil
}

func (l *lateStart) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran = false
}
