package dependencies

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// readTimeout bounds a read of another project's kind. A read waits for the kind's informer to
// sync, and the informer of a kind that vanished a moment ago never does.
const readTimeout = 30 * time.Second

// Guard makes the manager's cache: the usual one, except that a read of a kind that is not served
// fails at once with a NoKindMatchError.
//
// The usual cache would not: its REST mapper remembers a kind that it has seen once, so after a CRD
// is gone each read would start an informer and wait for it for as long as the reconciler lets it,
// one worker after the other.
func (t *Tracker) Guard(config *rest.Config, options cache.Options) (cache.Cache, error) {
	plain, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	return &guarded{Cache: plain, tracker: t, scheme: options.Scheme}, nil
}

type guarded struct {
	cache.Cache
	tracker *Tracker
	scheme  *runtime.Scheme
}

func (g *guarded) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel, err := g.admit(ctx, object)
	if err != nil {
		return err
	}
	defer cancel()
	return g.Cache.Get(ctx, key, object, options...)
}

func (g *guarded) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	ctx, cancel, err := g.admit(ctx, list)
	if err != nil {
		return err
	}
	defer cancel()
	return g.Cache.List(ctx, list, options...)
}

func (g *guarded) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	ctx, cancel, err := g.admit(ctx, object)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return g.Cache.GetInformer(ctx, object, options...)
}

// admit refuses a kind that is not served, and bounds the wait for one that is another project's.
func (g *guarded) admit(ctx context.Context, object runtime.Object) (context.Context, context.CancelFunc, error) {
	gvk, err := apiutil.GVKForObject(object, g.scheme)
	if err != nil {
		return nil, nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if lookup(gvk) == nil {
		return ctx, func() {}, nil
	}
	if !g.tracker.Serves(gvk) {
		return nil, nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	return ctx, cancel, nil
}

var _ cache.Cache = (*guarded)(nil)
