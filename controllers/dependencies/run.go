package dependencies

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

const (
	// slowCheck is the time between two looks at the API server when nothing happens: the net for an
	// event that was lost, and for kinds that an aggregated API server brings without a CRD.
	slowCheck = time.Minute
	// fastCheck is that time after a CRD changed. Discovery follows a CRD with a delay of its own.
	fastCheck = time.Second
	// fastChecks is how many looks follow one another that fast.
	fastChecks = 15
)

// runner looks at the API server for as long as the manager runs.
type runner struct {
	tracker *Tracker
	manager manager.Manager
	changed chan struct{}
}

// Run has the manager keep the tracker up to date. The manager's cache must be the one that Guard
// made.
func (t *Tracker) Run(mgr manager.Manager) error {
	if err := mgr.Add(&runner{tracker: t, manager: mgr, changed: make(chan struct{}, 1)}); err != nil {
		return fmt.Errorf("adding the watch for other projects' kinds: %w", err)
	}
	return nil
}

// Start implements manager.Runnable. It runs on the leader, like the controllers whose watches it
// starts; a replica that waits answers from what it found when it was started.
func (r *runner) Start(ctx context.Context) error {
	if err := r.watchDefinitions(ctx); err != nil {
		return err
	}
	r.tracker.begin(func(gvk schema.GroupVersionKind) { r.forget(ctx, gvk) })

	timer := time.NewTimer(0)
	defer timer.Stop()
	fast := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
			fast = fastChecks
		case <-timer.C:
		}
		if err := r.tracker.Refresh(ctx); err != nil {
			r.tracker.log.Error(err, "looking for other projects' kinds")
		}
		next := slowCheck
		if fast > 0 {
			fast--
			next = fastCheck
		}
		timer.Reset(next)
	}
}

// watchDefinitions asks for a look whenever a CRD of the groups of Kinds changes. Metadata is
// enough, since discovery has the last word: a CRD that is there may not be served yet.
func (r *runner) watchDefinitions(ctx context.Context) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	informer, err := r.manager.GetCache().GetInformer(ctx, definition)
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	notice := func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if definition, ok := object.(client.Object); ok && concerns(definition.GetName()) {
			select {
			case r.changed <- struct{}{}:
			default: // a look is asked for already
			}
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    notice,
		UpdateFunc: func(_, now any) { notice(now) },
		DeleteFunc: notice,
	})
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	return nil
}

// concerns tells whether a CRD, called <plural>.<group>, is of a group of Kinds.
func concerns(definition string) bool {
	_, group, _ := strings.Cut(definition, ".")
	for _, version := range groupVersions() {
		if version.Group == group {
			return true
		}
	}
	return false
}

// forget removes the informers of a kind. Without that, their watches would be tried again for ever,
// and a read would hand out what was there before the kind went away.
func (r *runner) forget(ctx context.Context, gvk schema.GroupVersionKind) {
	whole, metadata := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	whole.SetGroupVersionKind(gvk)
	metadata.SetGroupVersionKind(gvk)
	objects := []client.Object{whole, metadata}
	if typed, err := r.manager.GetScheme().New(gvk); err == nil {
		objects = append(objects, typed.(client.Object)) // every kind of Kinds is an object
	}
	for _, object := range objects {
		if err := r.manager.GetCache().RemoveInformer(ctx, object); err != nil {
			r.tracker.log.Error(err, "forgetting a kind", "kind", gvk.String())
		}
	}
}
