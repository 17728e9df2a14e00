package credentialupdaterequest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneapplicationcredential"
)

// heal asks an order to replace a dead credential. It names the id, so that asking twice rotates once, and
// the order finds out by itself whether it is dead: this is a request, as all annotations are.
func (r *reconciler) heal(ctx context.Context, o *v1alpha1.KeystoneApplicationCredential, id string) error {
	if o.Annotations[keystoneapplicationcredential.RotateAnnotation] == id {
		return nil
	}
	changed := o.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[keystoneapplicationcredential.RotateAnnotation] = id
	if err := r.client.Patch(ctx, changed, client.MergeFrom(o)); err != nil {
		return fmt.Errorf("asking KeystoneApplicationCredential %s/%s to rotate: %w", o.Namespace, o.Name, err)
	}
	return nil
}

// healAgain asks again while the Secret is still the old one, in case the first time failed. The Secret of a
// rotation that is on its way is unchanged too, but its order's id is not the dead one any more.
func (r *reconciler) healAgain(ctx context.Context, secret *corev1.Secret) error {
	placed, _, err := r.deliveredOrder(ctx, secret)
	if err != nil {
		return err
	}
	o, ok := placed.(*v1alpha1.KeystoneApplicationCredential)
	if !ok || o.Status.SecretName != secret.Name || o.Status.CredentialID == "" {
		return nil
	}
	for _, value := range secret.Data {
		if string(value) == o.Status.CredentialID {
			return r.heal(ctx, o, o.Status.CredentialID)
		}
	}
	return nil // the order is further than this reading of its Secret
}
