package keystoneapplicationcredential

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// soon is when a pass comes back after an effect whose sequel no watch announces.
const soon = time.Second

// act carries the plan out, in the order that internal/rotation asks for. It may stop after any
// effect: the next pass decides anew from what is there.
func (s *state) act(ctx context.Context) *order.Outcome {
	for _, effect := range []func(context.Context) error{
		s.refute, s.mark, s.remove, s.mint, s.switchOver, s.clearPrevious, s.forget,
	} {
		if err := effect(ctx); err != nil {
			return order.Fail(v1alpha1.ReasonCredentialError, err)
		}
	}
	s.order.Status.NextRotation = metaTime(s.plan.NextRotation)
	for _, moment := range s.plan.Wake {
		s.ComeBackAt(moment)
	}
	return nil
}

// refute clears terminal conditions that Keystone contradicts: the credential is there, so K-ORC
// adopts it when it looks again, or its name is free, so K-ORC can create it.
func (s *state) refute(ctx context.Context) error {
	for _, generation := range s.plan.Refuted {
		c := s.children[generation]
		if c.object == nil {
			continue
		}
		if err := s.Unlatch(ctx, c.object); err != nil {
			c.state.UnlatchError = err
			s.children[generation] = c
		}
	}
	return nil
}

// mark puts generations on record by their Secrets, before the effects that follow make everything
// else about them disappear.
func (s *state) mark(ctx context.Context) error {
	for _, generation := range s.plan.Mark {
		if _, err := s.GenerateSecret(ctx, secretChild(generation), secretKey); err != nil {
			return err
		}
		s.ComeBack(soon)
	}
	return nil
}

// remove deletes K-ORC's objects. Their Secrets stay: they are the record that Keystone's word is
// still outstanding.
func (s *state) remove(ctx context.Context) error {
	for _, generation := range s.plan.Delete {
		c := s.children[generation]
		if c.object == nil {
			continue
		}
		if err := s.Delete(ctx, c.object.DeepCopy()); err != nil {
			return err
		}
		s.Log().Info("deleting a credential", "generation", generation)
		s.ComeBack(order.WaitShort)
	}
	return nil
}

// mint creates the next generation: first its secret, so that it is on record and never lost, then
// K-ORC's object, which is never changed afterwards.
func (s *state) mint(ctx context.Context) error {
	mint := s.plan.Mint
	if mint == nil {
		return nil
	}
	if _, err := s.GenerateSecret(ctx, secretChild(mint.Generation), secretKey); err != nil {
		return err
	}
	created, err := s.CreateOnce(ctx, &orcv1alpha1.ApplicationCredential{
		ObjectMeta: s.ChildMeta(credentialChild(mint.Generation)),
		Spec: orcv1alpha1.ApplicationCredentialSpec{
			ManagementPolicy:    orcv1alpha1.ManagementPolicyManaged,
			CloudCredentialsRef: s.mintCloudRef(),
			// Name, roles and access rules are left to K-ORC: it names the credential after its
			// object, and the roles are the token's.
			Resource: &orcv1alpha1.ApplicationCredentialResourceSpec{
				Description:  ptr.To(s.description(mint.Generation)),
				UserRef:      orcv1alpha1.KubernetesNameRef(s.UserChild(s.user.Name, "user")),
				Unrestricted: ptr.To(false),
				SecretRef:    orcv1alpha1.KubernetesNameRef(s.Child(secretChild(mint.Generation))),
				ExpiresAt:    metaTime(mint.ExpiresAt),
			},
		},
	})
	if err != nil {
		return err
	}
	if created {
		s.Eventf(corev1.EventTypeNormal, order.EventCredentialRequested, "Mint",
			"generation %d is being created in Keystone (%s)", mint.Generation, s.plan.Trigger)
		s.Count().RotationStarted(s.Kind.Name, string(s.plan.Trigger))
	}
	s.ComeBack(order.WaitShort)
	return nil
}

func (s *state) description(generation int64) string {
	return fmt.Sprintf("KeystoneApplicationCredential %s/%s generation %d", s.Key.Namespace, s.Key.Name, generation)
}

// switchOver makes the successor the live credential, and persists that before anything else: what is
// pruned is judged by the status.
func (s *state) switchOver(ctx context.Context) error {
	if s.plan.Switch == nil {
		return nil
	}
	setStatus(s.order, *s.plan.Switch)
	s.order.Status.SecretName, s.order.Status.SecretKeys = "", nil
	s.order.Status.NextRotation = metaTime(s.plan.NextRotation)
	if err := s.Persist(ctx); err != nil {
		return err
	}
	s.input.Status = *s.plan.Switch
	s.Eventf(corev1.EventTypeNormal, order.EventCredentialSwitched, "Switch",
		"generation %d (%s) is the live credential; its Secret follows when the backup holds it", s.plan.Switch.Generation, s.plan.Switch.ID)
	// K-ORC's object was made when the rotation started, and outlives a restart of the operator.
	started := s.children[s.plan.Switch.Generation].object.CreationTimestamp
	s.Count().RotationSwitched(s.Kind.Name, s.Now.Sub(started.Time))
	s.ComeBack(soon)
	return nil
}

func (s *state) clearPrevious(ctx context.Context) error {
	previous := s.input.Status.Previous
	if !s.plan.ClearPrevious || previous == nil {
		return nil
	}
	status := s.input.Status
	status.Previous = nil
	setStatus(s.order, status)
	if err := s.Persist(ctx); err != nil {
		return err
	}
	s.input.Status = status
	s.Eventf(corev1.EventTypeNormal, order.EventCredentialRevoked, "Revoke",
		"Keystone confirms that generation %d (%s) is gone", previous.Generation, previous.ID)
	s.Count().RevocationProven(s.Kind.Name)
	s.ComeBack(soon)
	return nil
}

// forget deletes the Secrets of generations that Keystone confirmed gone.
func (s *state) forget(ctx context.Context) error {
	for _, generation := range s.plan.Forget {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ChildNamespace(), Name: s.Child(secretChild(generation))}}
		if err := s.Delete(ctx, secret); err != nil {
			return err
		}
		s.ComeBack(soon)
	}
	return nil
}

// successor is the generation under way, 0 for none.
func (s *state) successor() int64 {
	if s.plan.Desired == s.input.Status.Generation {
		return 0
	}
	return s.plan.Desired
}

// dead tells whether the live credential does not work any more, as far as Keystone was heard.
func (s *state) dead() bool {
	status := s.input.Status
	expired := status.ExpiresAt != nil && !s.input.KeystoneNow.Before(*status.ExpiresAt)
	return s.input.LiveID == rotation.Gone || expired
}
