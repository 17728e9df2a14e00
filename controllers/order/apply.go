package order

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ForeignError says that an object of a child's name is there and not ours.
type ForeignError struct {
	Kind, Namespace, Name string
}

// Error tells whoever reads the condition what to do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("refusing to adopt pre-existing %s %s/%s: it does not carry the labels of a child; delete or rename it", e.Kind, e.Namespace, e.Name)
}

// Writer writes the children of one owner on the management cluster: an order's, or a
// ControlPlane's own.
type Writer struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads at the API server.
	Live client.Reader
	// Owns tells whether an object is a child of the owner.
	Owns func(client.Object) bool
}

func (p *Pass) writer() Writer {
	return Writer{Client: p.Management, Live: p.Live, Owns: func(object client.Object) bool {
		return p.Kind.owns(p.Key, object)
	}}
}

// Apply writes a child of the order, see Writer.Apply.
func (p *Pass) Apply(ctx context.Context, child client.Object) error {
	return p.writer().Apply(ctx, child)
}

// Delete deletes a child of the order, see Writer.Delete.
func (p *Pass) Delete(ctx context.Context, child client.Object) error {
	return p.writer().Delete(ctx, child)
}

func (p *Pass) getChild(ctx context.Context, child client.Object) (client.Object, error) {
	return p.writer().getChild(ctx, child)
}

func (p *Pass) deleteRead(ctx context.Context, child client.Object) error {
	return p.writer().deleteRead(ctx, child)
}

// Apply writes a child with Server-Side Apply, unless what is there already says the same. It
// refuses an object of that name that is not the owner's, and reads the object back into child.
//
// The comparison comes first because a converged order must write nothing at all: an apply that
// changes nothing still is a request that the API server has to answer, for every order, on every
// wake-up.
func (w Writer) Apply(ctx context.Context, child client.Object) error {
	gvk, err := apiutil.GVKForObject(child, w.Client.Scheme())
	if err != nil {
		return fmt.Errorf("applying %T: %w", child, err)
	}
	desired, err := desiredFields(child)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", gvk.Kind, child.GetName(), err)
	}
	// What is read through a typed client may or may not say its kind; the kind is no difference.
	delete(desired, "apiVersion")
	delete(desired, "kind")
	existing, err := w.getChild(ctx, child)
	if err != nil {
		return err
	}
	if existing != nil {
		current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(existing)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", gvk.Kind, child.GetName(), err)
		}
		if contains(current, desired) {
			return copyInto(existing, child)
		}
	}
	applied := &unstructured.Unstructured{Object: desired}
	applied.SetGroupVersionKind(gvk)
	if err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), FieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %s/%s: %w", gvk.Kind, child.GetNamespace(), child.GetName(), err)
	}
	return fromUnstructured(applied, child)
}

// getChild reads the child of that name, nil when there is none, and refuses a foreign one. The
// cache is asked first. Its silence proves nothing, since foreign Secrets are not cached and it may
// lag; then the API server is asked. That costs one request when a child is created, and none later.
func (w Writer) getChild(ctx context.Context, child client.Object) (client.Object, error) {
	existing := child.DeepCopyObject().(client.Object)
	key := client.ObjectKeyFromObject(child)
	err := w.Client.Get(ctx, key, existing)
	if apierrors.IsNotFound(err) {
		err = w.Live.Get(ctx, key, existing)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	kind := fmt.Sprintf("%T", child)
	if gvk, gvkErr := apiutil.GVKForObject(child, w.Client.Scheme()); gvkErr == nil {
		kind = gvk.Kind
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	if !w.Owns(existing) {
		return nil, &ForeignError{Kind: kind, Namespace: key.Namespace, Name: key.Name}
	}
	return existing, nil
}

// ApplySecret is Apply for a Secret whose whole content is the owner's. Keys that it does not have any
// more are removed: an apply alone would leave one that it finds, and a CA bundle that nobody names any
// longer would go on deciding whom K-ORC trusts.
func (w Writer) ApplySecret(ctx context.Context, secret *corev1.Secret) error {
	wanted := maps.Clone(secret.Data)
	if err := w.Apply(ctx, secret); err != nil {
		return err
	}
	if len(secret.Data) == len(wanted) {
		return nil
	}
	before := secret.DeepCopy()
	secret.Data = wanted
	if err := w.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), FieldManager); err != nil {
		return fmt.Errorf("removing keys of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// IsForeign tells whether an error is a refusal to adopt.
func IsForeign(err error) bool {
	var foreign *ForeignError
	return errors.As(err, &foreign)
}

// CreateOnce creates a child that is never changed afterwards: a Secret with a generated value, or
// an object whose spec is immutable. An object of ours that is there already is left as it is and
// read into child. Server-Side Apply would generate a new value on every pass.
func (p *Pass) CreateOnce(ctx context.Context, child client.Object) (created bool, err error) {
	existing, err := p.getChild(ctx, child)
	if err != nil {
		return false, err
	}
	if existing != nil {
		return false, copyInto(existing, child)
	}
	if err := p.Management.Create(ctx, child, FieldManager); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("creating %T %s/%s: %w", child, child.GetNamespace(), child.GetName(), err)
		}
		// The cache had not seen it yet. Look again, at the API server, whose it is.
		key := client.ObjectKeyFromObject(child)
		if err := p.Live.Get(ctx, key, child); err != nil {
			return false, fmt.Errorf("reading %T %s: %w", child, key, err)
		}
		if !p.Kind.owns(p.Key, child) {
			return false, &ForeignError{Kind: fmt.Sprintf("%T", child), Namespace: key.Namespace, Name: key.Name}
		}
		return false, nil
	}
	return true, nil
}

// Read reads a child from the cache; found is false when there is none. A foreign object is an error.
func (p *Pass) Read(ctx context.Context, child client.Object) (found bool, err error) {
	existing, err := p.getChild(ctx, child)
	if err != nil || existing == nil {
		return false, err
	}
	return true, copyInto(existing, child)
}

// Delete deletes a child. One that is gone or going is fine, and so is a kind that
// is not served any more. A foreign object of the name is left alone. The delete carries the UID
// that was read, so that a stale cache cannot delete a younger object of the same name.
func (w Writer) Delete(ctx context.Context, child client.Object) error {
	key := client.ObjectKeyFromObject(child)
	err := w.Client.Get(ctx, key, child)
	if apierrors.IsNotFound(err) || isNotServed(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", child, key, err)
	}
	if !w.Owns(child) || !child.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return w.deleteRead(ctx, child)
}

func (w Writer) deleteRead(ctx context.Context, child client.Object) error {
	uid := child.GetUID()
	err := w.Client.Delete(ctx, child, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || isNotServed(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %T %s/%s: %w", child, child.GetNamespace(), child.GetName(), err)
	}
	return nil
}

// SecretValue reads one key of a Secret of the operator's in the ControlPlane's namespace, nil when
// there is none. What the cache does not have is looked for at the API server: that a secret is lost
// is a verdict with consequences, and a cache that lags must not give it.
func (p *Pass) SecretValue(ctx context.Context, name, key string) ([]byte, error) {
	for _, reader := range []client.Reader{p.Management, p.Live} {
		secret := &corev1.Secret{}
		err := reader.Get(ctx, types.NamespacedName{Namespace: p.ChildNamespace(), Name: name}, secret)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading Secret %s/%s: %w", p.ChildNamespace(), name, err)
		}
		if value := secret.Data[key]; len(value) > 0 {
			return value, nil
		}
	}
	return nil, nil
}

// isNotServed tells whether the API server does not serve the kind.
func isNotServed(err error) bool {
	return err != nil && (meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err))
}

// desiredFields are the fields that we declare: no status, and nothing that the server sets.
func desiredFields(child client.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	metadata, _ := fields["metadata"].(map[string]any)
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink"} {
		delete(metadata, field)
	}
	return fields, nil
}

// contains tells whether every field of want is in have with the same value. Fields of have that
// want does not mention are others' business. A list must be equal as a whole, but the objects in
// it may hold more.
func contains(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return len(want) == 0 && have == nil
		}
		for key, value := range want {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for i := range want {
			if !contains(have[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(have, want)
	}
}

func copyInto(from, to client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return err
	}
	return fromUnstructured(&unstructured.Unstructured{Object: fields}, to)
}

// fromUnstructured overwrites an object. The type's own reset does not exist, so a fresh value is
// decoded and copied: fields that are gone must not survive from what was there before.
func fromUnstructured(from *unstructured.Unstructured, to client.Object) error {
	if secret, ok := to.(*corev1.Secret); ok {
		*secret = corev1.Secret{}
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to)
}
