package credentialupdaterequest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// dead is what an order delivers and Keystone does not take any more.
type dead struct {
	order order.Object
	// name is an application credential's id, or a password's generation.
	name string
}

// heal asks an order to replace what is dead. It names it, so that asking twice rotates once, and the order
// finds out by itself whether that is so: this is a request, as all annotations are.
func (r *reconciler) heal(ctx context.Context, request *agents.CredentialUpdateRequest, d dead) error {
	value, asked := d.name, d.order.GetAnnotations()[order.RotateAnnotation]
	if _, ok := d.order.(*v1alpha1.KeystoneUser); ok {
		generation, err := strconv.ParseInt(d.name, 10, 64)
		if err != nil {
			return fmt.Errorf("password generation %q: %w", d.name, err)
		}
		// A claim that came later is left: it says the same, and two requests would else take turns.
		value = keystoneuser.DeadPassword(generation, request.Status.OpenedAt.Time)
		if _, claimed, ok := keystoneuser.ParseDeadPassword(asked); ok && !claimed.Before(request.Status.OpenedAt.Truncate(time.Second)) {
			return nil
		}
	}
	if asked == value {
		return nil
	}
	changed, _ := d.order.DeepCopyObject().(order.Object)
	annotations := changed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[order.RotateAnnotation] = value
	changed.SetAnnotations(annotations)
	if err := r.client.Patch(ctx, changed, client.MergeFrom(d.order)); err != nil {
		return fmt.Errorf("asking %T %s/%s to rotate: %w", d.order, d.order.GetNamespace(), d.order.GetName(), err)
	}
	return nil
}

// healAgain asks again while the Secret is still the old one, in case the first time failed. The Secret of a
// rotation that is on its way is unchanged too, but its order is further, or was asked.
func (r *reconciler) healAgain(ctx context.Context, request *agents.CredentialUpdateRequest, secret *corev1.Secret) error {
	placed, _, err := r.deliveredOrder(ctx, secret)
	if err != nil {
		return err
	}
	switch o := placed.(type) {
	case *v1alpha1.KeystoneApplicationCredential:
		if o.Status.SecretName != secret.Name || o.Status.CredentialID == "" {
			return nil
		}
		for _, value := range secret.Data {
			if string(value) == o.Status.CredentialID {
				return r.heal(ctx, request, dead{order: o, name: o.Status.CredentialID})
			}
		}
	case *v1alpha1.KeystoneUser:
		// The generation of the status is that of the Secret, until the Secret changes. Nothing is proven by
		// it: the order knows its password, and asks Keystone before it changes it.
		if generation := o.Status.PasswordGeneration; generation > 0 && request.Status.OpenedAt != nil {
			return r.heal(ctx, request, dead{order: o, name: strconv.FormatInt(generation, 10)})
		}
	}
	return nil
}

// rotated tells whether the order that delivers a changed Secret has replaced what it was asked to. Somebody who edits
// the Secret changes it as well, and brings no credential. A Secret that no order delivers any more is its writer's.
func (r *reconciler) rotated(ctx context.Context, secret *corev1.Secret) (bool, error) {
	placed, _, err := r.deliveredOrder(ctx, secret)
	switch o := placed.(type) {
	case *v1alpha1.KeystoneApplicationCredential:
		return o.Status.SecretName == secret.Name && o.Status.CredentialID != o.Annotations[order.RotateAnnotation], err
	case *v1alpha1.KeystoneUser:
		generation, _, asked := keystoneuser.ParseDeadPassword(o.Annotations[order.RotateAnnotation])
		return o.Status.SecretName == secret.Name && !(asked && o.Status.PasswordGeneration <= generation), err
	}
	return true, err
}
