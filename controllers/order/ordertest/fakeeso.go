package ordertest

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// FakeESO imitates External Secrets Operator as orders meet it: it pushes the Secret of a PushSecret that
// changed to its store, says what it pushed in the form of its own that status.syncedResourceVersion has,
// and removes what it pushed with the PushSecret. Nothing in it runs by itself.
type FakeESO struct {
	Client client.Client
	// Namespace is the one that it works in.
	Namespace string
	// Store holds what was pushed, by path.
	Store map[string]map[string][]byte
	// Now is its clock.
	Now func() time.Time
	// Late lets a push take until the next look. What it reports then is what it read at its beginning,
	// the document and the version, whatever the PushSecret says by now.
	Late bool

	underWay map[types.UID]push
}

// push is what ESO read when it began.
type push struct {
	version, path string
	document      map[string][]byte
}

const (
	esoFinalizer = "pushsecret.externalsecrets.io/finalizer"
	esoBacksOff  = 5 * time.Second
)

// Play is one look at every PushSecret. It returns when ESO would look again by itself, zero for never.
func (e *FakeESO) Play(ctx context.Context) (next time.Time, err error) {
	if e.underWay == nil {
		e.underWay = map[types.UID]push{}
	}
	list := &externalsecrets.PushSecretList{}
	if err := e.Client.List(ctx, list, client.InNamespace(e.Namespace)); err != nil {
		return time.Time{}, err
	}
	for i := range list.Items {
		again, err := e.look(ctx, &list.Items[i])
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return time.Time{}, err
		}
		if again {
			next = e.Now().Add(esoBacksOff)
		}
	}
	return next, nil
}

func (e *FakeESO) look(ctx context.Context, ps *externalsecrets.PushSecret) (again bool, err error) {
	path := ps.Spec.Data[0].Match.RemoteRef.RemoteKey
	if !ps.DeletionTimestamp.IsZero() {
		if why := e.storeAway(ctx, ps); why != "" {
			return true, e.report(ctx, ps, corev1.ConditionFalse, why)
		}
		delete(e.Store, path)
		controllerutil.RemoveFinalizer(ps, esoFinalizer)
		return false, e.Client.Update(ctx, ps)
	}
	if controllerutil.AddFinalizer(ps, esoFinalizer) {
		if err := e.Client.Update(ctx, ps); err != nil {
			return true, err
		}
	}
	begun, ok := e.underWay[ps.UID]
	if !ok {
		if ps.Status.SyncedResourceVersion == externalsecrets.ResourceVersion(ps.ObjectMeta) {
			return false, nil
		}
		source := &corev1.Secret{}
		key := types.NamespacedName{Namespace: ps.Namespace, Name: ps.Spec.Selector.Secret.Name}
		if err := e.Client.Get(ctx, key, source); err != nil {
			return true, e.report(ctx, ps, corev1.ConditionFalse, "could not get source secret")
		}
		begun = push{externalsecrets.ResourceVersion(ps.ObjectMeta), path, maps.Clone(source.Data)}
		if e.Late {
			e.underWay[ps.UID] = begun
			return true, nil
		}
	}
	delete(e.underWay, ps.UID)
	if why := e.storeAway(ctx, ps); why != "" {
		return true, e.report(ctx, ps, corev1.ConditionFalse, why)
	}
	e.Store[begun.path] = begun.document
	before := ps.DeepCopy()
	ps.Status.SyncedResourceVersion = begun.version
	ps.Status.Conditions = e.ready(corev1.ConditionTrue, "Synced", "PushSecret synced successfully")
	return true, e.Client.Status().Patch(ctx, ps, client.MergeFrom(before))
}

// storeAway tells why the store takes nothing, empty when it does.
func (e *FakeESO) storeAway(ctx context.Context, ps *externalsecrets.PushSecret) string {
	store := &externalsecrets.SecretStore{}
	name := ps.Spec.SecretStoreRefs[0].Name
	if err := e.Client.Get(ctx, types.NamespacedName{Namespace: ps.Namespace, Name: name}, store); err != nil {
		return fmt.Sprintf("could not get SecretStore %q", name)
	}
	if ready, message := externalsecrets.StoreReady(store); !ready {
		return fmt.Sprintf("SecretStore %q %s", name, message)
	}
	return ""
}

func (e *FakeESO) report(ctx context.Context, ps *externalsecrets.PushSecret, status corev1.ConditionStatus, message string) error {
	before := ps.DeepCopy()
	ps.Status.Conditions = e.ready(status, "Errored", message)
	if equality.Semantic.DeepEqual(before, ps) {
		return nil
	}
	return e.Client.Status().Patch(ctx, ps, client.MergeFrom(before))
}

func (*FakeESO) ready(status corev1.ConditionStatus, reason, message string) []externalsecrets.StatusCondition {
	return []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: status, Reason: reason, Message: message}}
}
