package order

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

type runtimeObject = runtime.Object

// reference describes one reference between orders, as a row of the contract's table.
type reference struct {
	kind      Kind
	condition string
	notFound  string
	waiting   string
	noun      string
}

var (
	userReference = reference{UserKind, v1alpha1.ConditionUserReady,
		v1alpha1.ReasonUserNotFound, v1alpha1.ReasonWaitingForUser, "user"}
	projectReference = reference{ProjectKind, v1alpha1.ConditionProjectReady,
		v1alpha1.ReasonProjectNotFound, v1alpha1.ReasonWaitingForProject, "project"}
)

// User reads the KeystoneUser that the order names, and says what is in the way of using it.
func (p *Pass) User(ctx context.Context, name string) (*v1alpha1.KeystoneUser, *Outcome) {
	user := &v1alpha1.KeystoneUser{}
	return user, p.resolve(ctx, userReference, name, user)
}

// Project reads the KeystoneProject that the order names, and says what is in the way of using it.
func (p *Pass) Project(ctx context.Context, name string) (*v1alpha1.KeystoneProject, *Outcome) {
	project := &v1alpha1.KeystoneProject{}
	return project, p.resolve(ctx, projectReference, name, project)
}

func (p *Pass) resolve(ctx context.Context, ref reference, name string, target Object) *Outcome {
	err := p.Client.Get(ctx, types.NamespacedName{Namespace: p.Key.Namespace, Name: name}, target)
	switch {
	case apierrors.IsNotFound(err):
		return Wait(ref.notFound, WaitRefused,
			"there is no %s %q in namespace %q; create it, this order goes on by itself", ref.kind.Name, name, p.Key.Namespace)
	case err != nil:
		return Fail(p.Kind.ErrorReason, fmt.Errorf("reading %s %s/%s: %w", ref.kind.Name, p.Key.Namespace, name, err))
	}
	own, other := p.Order.GetControlPlaneRef(), target.GetControlPlaneRef()
	if own != other {
		return Wait(v1alpha1.ReasonControlPlaneMismatch, WaitRefused,
			"%s %q belongs to ControlPlane %s/%s and this order to %s/%s; both must name the same",
			ref.kind.Name, name, other.Namespace, other.Name, own.Namespace, own.Name)
	}
	condition := meta.FindStatusCondition(*target.GetConditions(), ref.condition)
	switch {
	case !target.GetDeletionTimestamp().IsZero():
		return Wait(ref.waiting, WaitRefused, "%s %q is being deleted", ref.kind.Name, name)
	case condition == nil:
		return Wait(ref.waiting, WaitRefused, "%s %q is not reconciled yet", ref.kind.Name, name)
	case condition.Status != metav1.ConditionTrue:
		return Wait(ref.waiting, WaitRefused, "%s %q: %s is %s: %s: %s",
			ref.kind.Name, name, ref.condition, condition.Status, condition.Reason, condition.Message)
	}
	return nil
}

// UserKey and ProjectKey are the keys of the orders that this order names: same namespace, same
// cluster.
func (p *Pass) UserKey(name string) Key {
	return Key{Cluster: p.Key.Cluster, Namespace: p.Key.Namespace, Name: name}
}

// ProjectKey is the key of the KeystoneProject that the order names.
func (p *Pass) ProjectKey(name string) Key { return p.UserKey(name) }

// UserChild names a child of the KeystoneUser that the order names.
func (p *Pass) UserChild(user, discriminator string) string {
	return UserKind.Prefix(p.UserKey(user)) + discriminator
}

// ProjectChild names a child of the KeystoneProject that the order names.
func (p *Pass) ProjectChild(project, discriminator string) string {
	return ProjectKind.Prefix(p.ProjectKey(project)) + discriminator
}

// KORCUser reads K-ORC's User of a KeystoneUser. namespace is the ControlPlane's. Its status holds the id
// of the user in Keystone: the one in the order's own status says the same, but whoever may write a status
// on the order's cluster could have the operator ask about somebody else, and take the answer for proof.
// An error that it is not there is NotFound's.
func KORCUser(ctx context.Context, reader client.Reader, namespace string, user Key) (*orcv1alpha1.User, error) {
	found := &orcv1alpha1.User{}
	key := types.NamespacedName{Namespace: namespace, Name: UserKind.Prefix(user) + "user"}
	if err := reader.Get(ctx, key, found); err != nil {
		return nil, fmt.Errorf("reading K-ORC's User %s: %w", key, err)
	}
	return found, nil
}
