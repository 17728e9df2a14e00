package keystoneuser

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// Annotations of the K-ORC User, after the kind's prefix.
const (
	// generationAnnotation is the generation that passwordRef names, for people.
	generationAnnotation = "password-generation"
	// adoptedAnnotation is the generation with which K-ORC took up a user that was there. K-ORC
	// calls such a password applied and never sends it.
	adoptedAnnotation = "adopted-with-password-generation"
)

// storeReadyForFirst keeps an order from starting while its password could not be backed up. A user
// that exists is looked after whatever the store is up to; its next rotation asks again.
func (s *pass) storeReadyForFirst(ctx context.Context) *order.Outcome {
	if s.seen.managed != nil {
		return nil
	}
	return s.storeReady(ctx)
}

func (s *pass) storeReady(ctx context.Context) *order.Outcome {
	ready, why, err := order.StoreReady(ctx, s.Management, s.ControlPlane)
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	case !ready:
		return order.Wait(v1alpha1.ReasonSecretStoreNotReady, order.WaitShort, "no password is made that could not be backed up: %s", why)
	}
	return nil
}

// password gives the user the generation that it is to have. An order without a K-ORC User claims the
// name with it, before a password is made: the loser of two orders is left with nothing.
func (s *pass) password(ctx context.Context) *order.Outcome {
	if s.seen.managed != nil {
		return s.rotate(ctx)
	}
	outcome := s.Claim(ctx, order.Claim{
		Name: s.user.EffectiveUserName(), Noun: "user", Domain: s.domainRef(),
		Child: s.Child(userChild), Objects: &orcv1alpha1.UserList{}, Collision: v1alpha1.ReasonServiceAccountCollision,
	}, func() *order.Outcome { return s.rotate(ctx) })
	if outcome != nil {
		return outcome
	}
	if err := s.Delete(ctx, &orcv1alpha1.User{ObjectMeta: s.ChildMeta(probeChild)}); err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	return nil
}

// rotate decides which password generation the user is to have, and points K-ORC to it.
func (s *pass) rotate(ctx context.Context) *order.Outcome {
	plan, outcome := s.plan(ctx)
	if outcome != nil {
		return outcome
	}
	if plan.Repoint {
		if outcome := s.storeReady(ctx); outcome != nil {
			if plan.Trigger != rotation.ScheduleDue {
				return outcome
			}
			// The password is as good as it was yesterday. An order that turns unready for a
			// schedule would stop every credential order of the user.
			s.notes = append(s.notes, "the scheduled rotation waits: "+outcome.Message)
			s.ComeBack(order.WaitShort)
			return s.applyUser(ctx, s.current())
		}
	}
	if plan.Wait != nil && plan.Wait.Reason == rotation.CredentialOrderDeleting {
		s.notes = append(s.notes, plan.Wait.Detail)
	}
	if plan.CreateSecret != 0 {
		if outcome := s.createPassword(ctx, plan.CreateSecret); outcome != nil {
			return outcome
		}
	}
	generation := s.current()
	if plan.Repoint {
		generation = plan.Desired
	}
	if outcome := s.applyUser(ctx, generation); outcome != nil {
		return outcome
	}
	if plan.Repoint {
		s.Eventf(corev1.EventTypeNormal, order.EventPasswordRequested, "Rotate", "password generation %d is being set in Keystone (%s)", generation, plan.Trigger)
		s.Count().RotationStarted(s.Kind.Name, string(plan.Trigger))
	}
	s.recordTimes(plan)
	return nil
}

// plan decides on what the cache shows, and again on what the API server says before anything is
// created or pointed elsewhere.
func (s *pass) plan(ctx context.Context) (rotation.PasswordPlan, *order.Outcome) {
	input, outcome := s.input(ctx)
	if outcome != nil {
		return rotation.PasswordPlan{}, outcome
	}
	plan := rotation.DecidePassword(input)
	if plan.CreateSecret == 0 && !plan.Repoint {
		return plan, nil
	}
	// A pass that reads an old status would take a rotation that was done for one that is due.
	if outcome := s.RequireFresh(ctx, v1alpha1.ReasonServiceAccountError); outcome != nil {
		return plan, outcome
	}
	if outcome := s.observeLive(ctx); outcome != nil {
		return plan, outcome
	}
	if input, outcome = s.input(ctx); outcome != nil {
		return plan, outcome
	}
	return rotation.DecidePassword(input), nil
}

func (s *pass) input(ctx context.Context) (rotation.PasswordInput, *order.Outcome) {
	status := s.user.Status
	input := rotation.PasswordInput{
		Now:      s.Now,
		Declared: s.declared(),
		Interval: s.user.Spec.Rotation.Resolved(),
		Current:  s.current(),
		Applied:  s.applied(),
		Secrets:  map[int64]bool{},
		Refused:  s.refused(ctx),
	}
	for generation, value := range s.seen.passwords {
		input.Secrets[generation] = len(value) > 0
	}
	if status.LastPasswordRotation != nil {
		input.LastRotation = ptr.To(status.LastPasswordRotation.Time)
	}
	if input.Interval > 0 {
		deleting, err := s.Referencing(ctx, order.ApplicationCredentialKind, func(object order.Object) bool {
			user, _ := order.References(object)
			return user == s.user.Name && !object.GetDeletionTimestamp().IsZero()
		})
		if err != nil {
			return input, order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
		input.CredentialOrderDeleting = len(deleting) > 0
	}
	return input, nil
}

// declared is the lowest generation that will do: what the order says, and beyond that what a lost
// K-ORC User asks for.
func (s *pass) declared() int64 {
	declared, accepted, current := s.user.DeclaredPasswordGeneration(), s.user.Status.PasswordGeneration, s.current()
	switch {
	case current == 0 && accepted > 0 && len(s.seen.passwords[accepted]) == 0:
		// Its number stood for another value.
		return max(declared, accepted+1)
	case current == 0:
		return max(declared, accepted)
	case s.applied() == current && s.seen.managed.Annotations[s.Kind.Annotation(adoptedAnnotation)] == strconv.FormatInt(current, 10):
		return max(declared, current+1)
	}
	return declared
}

// createPassword makes the Secret of a generation. One that is there without a value is removed
// first; the next pass makes it anew.
func (s *pass) createPassword(ctx context.Context, generation int64) *order.Outcome {
	discriminator := passwordChild + strconv.FormatInt(generation, 10)
	if value, exists := s.seen.passwords[generation]; exists && len(value) == 0 {
		if err := s.Delete(ctx, &corev1.Secret{ObjectMeta: s.ChildMeta(discriminator)}); err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, time.Second,
			"Secret %s/%s had lost its password and is made anew", s.ChildNamespace(), s.passwordName(generation))
	}
	if _, err := s.GenerateSecret(ctx, discriminator, passwordKey); err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	return nil
}

// applyUser writes the K-ORC User with a password generation.
func (s *pass) applyUser(ctx context.Context, generation int64) *order.Outcome {
	managed := &orcv1alpha1.User{ObjectMeta: s.ChildMeta(userChild)}
	managed.Annotations = map[string]string{s.Kind.Annotation(generationAnnotation): strconv.FormatInt(generation, 10)}
	adopted := s.Kind.Annotation(adoptedAnnotation)
	switch {
	case s.seen.managed == nil && s.ours:
		managed.Annotations[adopted] = strconv.FormatInt(generation, 10)
	case s.seen.managed != nil && s.seen.managed.Annotations[adopted] != "":
		managed.Annotations[adopted] = s.seen.managed.Annotations[adopted]
	}
	managed.Spec = orcv1alpha1.UserSpec{
		ManagementPolicy:    orcv1alpha1.ManagementPolicyManaged,
		CloudCredentialsRef: order.AdminCloudRef(s.ControlPlane),
		Resource: &orcv1alpha1.UserResourceSpec{
			Name:        ptr.To(orcv1alpha1.OpenStackName(s.user.EffectiveUserName())),
			Description: ptr.To(s.Mark()),
			DomainRef:   ptr.To(s.domainRef()),
			PasswordRef: ptr.To(orcv1alpha1.KubernetesNameRef(s.passwordName(generation))),
		},
	}
	if err := s.Apply(ctx, managed); err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	s.seen.managed = managed
	return nil
}

func (s *pass) recordTimes(plan rotation.PasswordPlan) {
	status := &s.user.Status
	if plan.LastRotation != nil {
		status.LastPasswordRotation = ptr.To(metav1.NewTime(*plan.LastRotation))
	}
	status.NextRotation = nil
	if plan.NextRotation != nil {
		status.NextRotation = ptr.To(metav1.NewTime(*plan.NextRotation))
	}
	for _, at := range plan.Wake {
		s.ComeBackAt(at)
	}
}

// prune removes the passwords before the one that Keystone accepted. The status goes first: credential
// orders find the password by the generation in it.
func (s *pass) prune(ctx context.Context) *order.Outcome {
	for generation := range s.seen.passwords {
		if generation >= s.user.Status.PasswordGeneration {
			continue
		}
		if err := s.Persist(ctx); err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
		stale := &corev1.Secret{ObjectMeta: s.ChildMeta(passwordChild + strconv.FormatInt(generation, 10))}
		if err := s.Delete(ctx, stale); err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
	}
	return nil
}
