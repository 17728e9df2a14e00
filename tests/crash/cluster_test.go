package crash

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	applyconfigurations "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/c5c3-operator/controllers/order"
)

// history is every version of every object of one life. It is what caches are made of here: a cache that
// lags by n is the history without its last n versions.
type history struct {
	scheme   *runtime.Scheme
	length   int
	versions map[schema.GroupVersionKind]map[types.NamespacedName][]version
	// order of the keys, so that lists come out the same in every run.
	keys map[schema.GroupVersionKind][]types.NamespacedName
}

// version is an object as it was from a moment on; nil when it was gone.
type version struct {
	moment int
	object client.Object
}

func newHistory(scheme *runtime.Scheme) *history {
	return &history{
		scheme:   scheme,
		versions: map[schema.GroupVersionKind]map[types.NamespacedName][]version{},
		keys:     map[schema.GroupVersionKind][]types.NamespacedName{},
	}
}

func (h *history) kind(object runtime.Object) schema.GroupVersionKind {
	gvk, err := apiutil.GVKForObject(object, h.scheme)
	if err != nil {
		panic(err)
	}
	return gvk
}

// add takes an answer of the API server's for the newest version. It says that an object is gone with the
// last finalizer.
func (h *history) add(object client.Object) {
	object = object.DeepCopyObject().(client.Object)
	object.SetManagedFields(nil)
	if !object.GetDeletionTimestamp().IsZero() && len(object.GetFinalizers()) == 0 {
		h.remove(object)
		return
	}
	h.put(h.kind(object), client.ObjectKeyFromObject(object), object)
}

func (h *history) remove(object client.Object) {
	h.put(h.kind(object), client.ObjectKeyFromObject(object), nil)
}

func (h *history) put(kind schema.GroupVersionKind, key types.NamespacedName, object client.Object) {
	if last := h.at(kind, key, h.length); last == nil && object == nil || last != nil && object != nil && last.GetResourceVersion() == object.GetResourceVersion() {
		return // nothing changed
	}
	h.length++
	if h.versions[kind] == nil {
		h.versions[kind] = map[types.NamespacedName][]version{}
	}
	if h.versions[kind][key] == nil {
		h.keys[kind] = append(h.keys[kind], key)
	}
	h.versions[kind][key] = append(h.versions[kind][key], version{h.length, object})
}

// at is an object as it was at a moment, nil when it was not there.
func (h *history) at(kind schema.GroupVersionKind, key types.NamespacedName, moment int) client.Object {
	for _, v := range slices.Backward(h.versions[kind][key]) {
		if v.moment <= moment {
			return v.object
		}
	}
	return nil
}

// recorded is a client that writes down what its writes made of the objects.
func (h *history) recorded(raw client.WithWatch) client.WithWatch {
	noted := func(object client.Object, err error) error {
		if err == nil {
			h.add(object)
		}
		return err
	}
	return interceptor.NewClient(raw, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return noted(o, c.Create(ctx, o, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return noted(o, c.Update(ctx, o, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return noted(o, c.Patch(ctx, o, patch, options...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return noted(o, c.SubResource(sub).Patch(ctx, o, patch, options...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return noted(o, c.SubResource(sub).Update(ctx, o, options...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if err := c.Apply(ctx, o, options...); err != nil {
				return err
			}
			h.add(h.typed(o))
			return nil
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := c.Delete(ctx, o, options...); err != nil {
				return err
			}
			left := o.DeepCopyObject().(client.Object)
			err := c.Get(ctx, client.ObjectKeyFromObject(o), left)
			if apierrors.IsNotFound(err) {
				h.remove(o)
				return nil
			}
			return noted(left, err)
		},
	})
}

// typed turns what was applied, which holds the answer by then, into the kind's own type.
func (h *history) typed(applied runtime.ApplyConfiguration) client.Object {
	content := applied.(runtime.Unstructured) // the operator applies nothing else
	object, err := h.scheme.New(content.GetObjectKind().GroupVersionKind())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content.UnstructuredContent(), object)
	}
	if err != nil {
		panic(err)
	}
	return object.(client.Object)
}

// view reads from the history and writes through a client.
type view struct {
	client.Client
	history *history
	// moment is up to when a kind is seen.
	moment func(schema.GroupVersionKind) int
	// own leaves out Secrets that are not the operator's, as its cache does.
	own bool
}

// Get implements client.Reader.
func (v view) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	kind := v.history.kind(object)
	found := v.history.at(kind, key, v.moment(kind))
	if found == nil || v.hidden(found) {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader.
func (v view) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	if o.FieldSelector != nil {
		return fmt.Errorf("the harness has no field selectors, and %T was listed with one", list)
	}
	kind := v.history.kind(list)
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	var items []runtime.Object
	for _, key := range v.history.keys[kind] {
		object := v.history.at(kind, key, v.moment(kind))
		switch {
		case object == nil, v.hidden(object), o.Namespace != "" && o.Namespace != key.Namespace:
		case o.LabelSelector != nil && !o.LabelSelector.Matches(labelSet(object.GetLabels())):
		default:
			items = append(items, object.DeepCopyObject())
		}
	}
	return meta.SetList(list, items)
}

func (v view) hidden(object client.Object) bool {
	_, secret := object.(*corev1.Secret)
	return v.own && secret && object.GetLabels()[order.ManagedByLabel] != order.ManagedByValue
}

// labelSet is a set of labels as selectors read it.
type labelSet map[string]string

func (l labelSet) Has(label string) bool   { _, ok := l[label]; return ok }
func (l labelSet) Get(label string) string { return l[label] }
func (l labelSet) Lookup(label string) (string, bool) {
	value, ok := l[label]
	return value, ok
}

// tracker is what the client in memory keeps its objects in. It counts generations and gives UIDs as a real
// API server does, which everything that compares an observedGeneration or a controller reference relies on.
//
// The client's own tracker works out who owns which field at each write. Only an apply asks for that, and
// only the operator applies here, by force; so this one does it for applies alone. A life takes 60 % of the time that way.
type tracker struct {
	testing.ObjectTracker
	fields *fieldManagers
	uids   int
}

// Create implements testing.ObjectTracker.
func (t *tracker) Create(gvr schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	created := object.(client.Object)
	t.uids++
	created.SetUID(types.UID("uid-" + strconv.Itoa(t.uids)))
	created.SetGeneration(1)
	created.SetCreationTimestamp(metav1.Now())
	return t.ObjectTracker.Create(gvr, created, namespace, options...)
}

// Update implements testing.ObjectTracker.
func (t *tracker) Update(gvr schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	if err := t.count(gvr, object.(client.Object), namespace); err != nil {
		return err
	}
	return t.ObjectTracker.Update(gvr, object, namespace, options...)
}

// Patch implements testing.ObjectTracker.
func (t *tracker) Patch(gvr schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	if err := t.count(gvr, object.(client.Object), namespace); err != nil {
		return err
	}
	return t.ObjectTracker.Patch(gvr, object, namespace, options...)
}

// count gives an object that is written what only the API server changes.
func (t *tracker) count(gvr schema.GroupVersionResource, object client.Object, namespace string) error {
	last, err := t.Get(gvr, namespace, object.GetName())
	if err != nil {
		return err
	}
	stored := last.(client.Object)
	generation := stored.GetGeneration()
	if !equality.Semantic.DeepEqual(specOf(stored), specOf(object)) || stored.GetDeletionTimestamp().IsZero() != object.GetDeletionTimestamp().IsZero() {
		generation++
	}
	object.SetGeneration(generation)
	object.SetUID(stored.GetUID())
	object.SetCreationTimestamp(stored.GetCreationTimestamp())
	return nil
}

// Apply implements testing.ObjectTracker.
func (t *tracker) Apply(gvr schema.GroupVersionResource, applied runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	kind := applied.GetObjectKind().GroupVersionKind()
	stored, err := t.Get(gvr, namespace, applied.(client.Object).GetName())
	missing := apierrors.IsNotFound(err)
	if missing {
		stored, err = t.fields.scheme.New(kind)
	}
	if err != nil {
		return err
	}
	stored.GetObjectKind().SetGroupVersionKind(kind)
	manager, err := t.fields.of(kind)
	if err != nil {
		return err
	}
	merged, err := manager.Apply(stored, applied, options[0].FieldManager, *options[0].Force)
	if err != nil {
		return err
	}
	if missing {
		return t.Create(gvr, merged, namespace)
	}
	return t.Update(gvr, merged, namespace)
}

// fieldManagers merge what is applied. All lives share them, as all requests do on an API server.
type fieldManagers struct {
	scheme *runtime.Scheme
	// core knows the kinds of Kubernetes; of all others it is deduced what their fields are.
	core, deduced managedfields.TypeConverter
	made          sync.Map
}

func newFieldManagers(scheme *runtime.Scheme) *fieldManagers {
	return &fieldManagers{scheme: scheme, core: applyconfigurations.NewTypeConverter(scheme), deduced: managedfields.NewDeducedTypeConverter()}
}

func (f *fieldManagers) of(kind schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	if made, ok := f.made.Load(kind); ok {
		return made.(*managedfields.FieldManager), nil
	}
	converter := f.deduced
	if kind.Group == corev1.GroupName {
		converter = f.core
	}
	manager, err := managedfields.NewDefaultFieldManager(converter, f.scheme, noDefaults{}, f.scheme, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return nil, err
	}
	f.made.Store(kind, manager)
	return manager, nil
}

// noDefaults are the defaults of kinds: CRDs' come with the real API server only.
type noDefaults struct{}

// Default implements runtime.ObjectDefaulter.
func (noDefaults) Default(runtime.Object) {}

// specOf is an object's spec, nil for a kind without one.
func specOf(object client.Object) any {
	spec := reflect.ValueOf(object).Elem().FieldByName("Spec")
	if !spec.IsValid() {
		return nil
	}
	return spec.Interface()
}
