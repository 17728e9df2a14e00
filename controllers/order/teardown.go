package order

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// Children lists the order's children of one kind, live: a verdict that nothing is left must not
// come from a cache. Ownership for sweeping is the three labels and the name's prefix; a kind that
// is not served has none.
func (p *Pass) Children(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	return p.children(ctx, p.Live, list)
}

// CachedChildren lists the order's children of one kind from the cache.
func (p *Pass) CachedChildren(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	return p.children(ctx, p.Management, list)
}

func (p *Pass) children(ctx context.Context, reader client.Reader, list client.ObjectList) ([]client.Object, error) {
	err := reader.List(ctx, list, client.InNamespace(p.ChildNamespace()), p.Kind.selector(p.Key))
	if isNotServed(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %T of %s %s/%s: %w", list, p.Kind.Name, p.Key.Namespace, p.Key.Name, err)
	}
	var children []client.Object
	err = meta.EachListItem(list, func(item runtimeObject) error {
		child := item.(client.Object)
		if strings.HasPrefix(child.GetName(), p.Kind.Prefix(p.Key)) {
			children = append(children, child)
		}
		return nil
	})
	return children, err
}

// Sweep deletes the order's children of one kind, and returns how many are still listed. A delete
// that this pass issued counts as still there.
func (p *Pass) Sweep(ctx context.Context, list client.ObjectList, keep ...string) (left int, err error) {
	children, err := p.Children(ctx, list)
	if err != nil {
		return 0, err
	}
	for _, child := range children {
		if slices.Contains(keep, child.GetName()) {
			continue
		}
		left++
		if !child.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := p.deleteRead(ctx, child); err != nil {
			return left, err
		}
	}
	return left, nil
}

// OrphanWarning tells, on an order whose ControlPlane is gone, what was deleted without proof that
// Keystone let go of it.
func (p *Pass) OrphanWarning(what []string) {
	if len(what) == 0 {
		return
	}
	slices.Sort(what)
	ref := p.Order.GetControlPlaneRef()
	p.Eventf(corev1.EventTypeWarning, EventRevocationUnproven, "Teardown",
		"ControlPlane %s/%s is gone, so nobody could ask Keystone whether these are gone too; look for them there: %s", ref.Namespace, ref.Name, strings.Join(what, ", "))
	p.Count().RevocationUnproven(p.Kind.Name)
}

// Referencing lists the names of orders of a kind in the order's namespace that match, sorted. A
// kind that the cluster does not serve has none.
func (p *Pass) Referencing(ctx context.Context, kind Kind, match func(Object) bool) ([]string, error) {
	list := kind.NewList()
	err := p.Client.List(ctx, list, client.InNamespace(p.Key.Namespace))
	if isNotServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %ss in namespace %s: %w", kind.Name, p.Key.Namespace, err)
	}
	var names []string
	err = meta.EachListItem(list, func(item runtimeObject) error {
		if object := item.(Object); match(object) {
			names = append(names, object.GetName())
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// Held is the outcome of an order that is being deleted while others need it.
func (p *Pass) Held(reason string, kind Kind, names []string) *Outcome {
	return Wait(reason, WaitLong, "the deletion waits until these %ss are gone: %s; delete them first", kind.Name, strings.Join(names, ", "))
}

// References names the user and project of a role assignment or a credential order.
func References(object Object) (user, project string) {
	switch order := object.(type) {
	case *v1alpha1.KeystoneRoleAssignment:
		return order.Spec.UserRef.Name, order.Spec.ProjectRef.Name
	case *v1alpha1.KeystoneApplicationCredential:
		return order.Spec.UserRef.Name, order.Spec.ProjectRef.Name
	}
	return "", ""
}
