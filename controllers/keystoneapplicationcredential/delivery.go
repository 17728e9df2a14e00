package keystoneapplicationcredential

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// Keys of the delivered Secret beside clouds.yaml.
const (
	keyCredentialID     = "application_credential_id"
	keyCredentialSecret = "application_credential_secret"
)

// deliver brings the live credential to the backup and then into the Secret beside the order. It runs
// on every pass, also while a rotation waits: an edited Secret is repaired whatever else goes on.
func (s *state) deliver(ctx context.Context) *order.Outcome {
	delivery, outcome := s.delivery(ctx)
	if outcome != nil {
		return outcome
	}
	if outcome := s.Backup(ctx, delivery); outcome != nil {
		return outcome
	}
	if outcome := s.restartGrace(ctx, delivery); outcome != nil {
		return outcome
	}
	if outcome := s.Deliver(ctx, delivery); outcome != nil {
		return outcome
	}
	if s.order.Status.SecretName == "" && s.order.Status.PreviousCredentialDeleteAt != nil {
		// The superseded credential may go from here on; with a grace period of 0, now.
		s.ComeBack(soon)
		s.ComeBackAt(s.order.Status.PreviousCredentialDeleteAt.Time)
	}
	s.order.Status.SecretName = s.DeliveredName()
	s.order.Status.SecretKeys = delivery.SecretKeys()
	return order.Done(v1alpha1.ReasonDelivered, "Secret %s carries generation %d", s.DeliveredName(), s.order.Status.CredentialGeneration)
}

// delivery is the document of the live credential, as this order's cluster needs it.
func (s *state) delivery(ctx context.Context) (order.Delivery, *order.Outcome) {
	authURL, status := order.AuthURL(s.ControlPlane, s.Key.Cluster), s.order.Status
	if authURL == "" {
		return order.Delivery{}, order.Wait(v1alpha1.ReasonKeystoneNotPublished, order.WaitRefused,
			"Keystone runs inside another cluster and ControlPlane %s/%s publishes no endpoint; set spec.services.keystone.publicEndpoint or its gateway",
			s.ControlPlane.Namespace, s.ControlPlane.Name)
	}
	if status.CredentialID == "" {
		return order.Delivery{}, order.Wait(v1alpha1.ReasonWaitingForCredential, 0, "there is no credential to deliver yet")
	}
	if s.plan.Switch == nil && s.input.LiveID == rotation.Gone {
		// In a grace period the Secret may still carry the superseded credential, which works.
		return order.Delivery{}, order.Wait(v1alpha1.ReasonWaitingForCredential, order.WaitShort,
			"Keystone says that the credential of generation %d is gone; it is not delivered, a new generation replaces it", status.CredentialGeneration)
	}
	secret, err := s.SecretValue(ctx, s.Child(secretChild(status.CredentialGeneration)), secretKey)
	switch {
	case err != nil:
		return order.Delivery{}, order.Fail(v1alpha1.ReasonDeliveryError, err)
	case len(secret) == 0:
		return order.Delivery{}, order.Wait(v1alpha1.ReasonWaitingForCredential, order.WaitShort,
			"the secret of generation %d is lost and Keystone cannot hand it back; a new generation replaces it", status.CredentialGeneration)
	}
	document, err := clouds.Render(order.CloudName, clouds.Cloud{
		AuthURL:               authURL,
		RegionName:            order.Region(s.ControlPlane),
		ApplicationCredential: &clouds.ApplicationCredentialAuth{ID: status.CredentialID, Secret: string(secret)},
	})
	if err != nil {
		return order.Delivery{}, order.Fail(v1alpha1.ReasonDeliveryError, err)
	}
	return order.Delivery{
		BackupPath: "application-credential",
		Source:     map[string][]byte{order.CloudsKey: document},
		Delivered: map[string][]byte{
			order.CloudsKey:     document,
			keyCredentialID:     []byte(status.CredentialID),
			keyCredentialSecret: secret,
		},
	}, nil
}

// restartGrace lets the grace period begin with the Secret and not with the switch in status, for
// consumers see the Secret only. It is persisted before the Secret is written: a crash in between
// prolongs the grace period, and never shortens it. A Secret that carried the credential before and
// is repaired now does not start it again.
func (s *state) restartGrace(ctx context.Context, delivery order.Delivery) *order.Outcome {
	if s.order.Status.PreviousCredentialDeleteAt == nil || s.order.Status.SecretName != "" {
		return nil
	}
	carries, err := s.Carries(ctx, delivery)
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonDeliveryError, err)
	case carries:
		return nil
	}
	_, grace := s.order.Spec.Rotation.Resolved()
	var superseded, delivered *time.Time
	for _, child := range s.input.Children {
		if child.Generation == s.order.Status.PreviousCredentialGeneration {
			superseded = child.ExpiresAt
		}
	}
	if expiry := s.order.Status.CredentialExpiresAt; expiry != nil {
		delivered = &expiry.Time
	}
	s.order.Status.PreviousCredentialDeleteAt = &metav1.Time{Time: rotation.GraceEnd(s.Now, grace, s.keystoneSkew(), superseded, delivered)}
	if err := s.Persist(ctx); err != nil {
		return order.Fail(v1alpha1.ReasonDeliveryError, err)
	}
	s.ComeBackAt(s.order.Status.PreviousCredentialDeleteAt.Time)
	return nil
}

// sourceSecret is the child that the backup pushes.
func (s *state) sourceSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: s.ChildMeta(order.SourceChild)}
}
