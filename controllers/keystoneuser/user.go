package keystoneuser

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// settle waits until K-ORC vouches for the user and for its password.
func (s *pass) settle(ctx context.Context) *order.Outcome {
	managed := s.seen.managed
	if id := s.userID(); id != "" && id != s.user.Status.UserID {
		s.user.Status.UserID = id
		// What was accepted was another user's password.
		s.user.Status.PasswordGeneration = 0
	}
	what := fmt.Sprintf("K-ORC has not made user %q yet", s.user.EffectiveUserName())
	state := s.Settle(ctx, managed)
	switch {
	case state.UnlatchError == nil && state.Progress == korc.Terminal:
		return s.givenUp(ctx, state)
	case state.UnlatchError != nil || state.Progress != korc.Available:
		return s.WaitOnChild(v1alpha1.ReasonWaitingForServiceAccounts, what, state)
	case s.userID() == "":
		return s.WaitOnChild(v1alpha1.ReasonWaitingForServiceAccounts, what, order.ChildState{})
	case s.applied() != s.current():
		if state.Reason == orcv1alpha1.ConditionReasonSuccess {
			state = order.ChildState{} // K-ORC has not looked yet: what it says is of the last password
		}
		return s.WaitOnChild(v1alpha1.ReasonWaitingForServiceAccounts,
			fmt.Sprintf("K-ORC has not given Keystone password generation %d of user %q yet", s.current(), s.user.EffectiveUserName()), state)
	}
	return nil
}

// givenUp asks Keystone about a user that K-ORC gave up on. K-ORC's "terminal" is a hint: in an outage
// it takes any failure to read a user for the user's absence, and a create whose answer was lost for
// a conflict.
func (s *pass) givenUp(ctx context.Context, state order.ChildState) *order.Outcome {
	managed := s.seen.managed
	found, err := s.lookUp(ctx)
	switch {
	case err != nil:
		return s.WaitOnKeystone(v1alpha1.ReasonWaitingForServiceAccounts, err,
			"K-ORC gave up on user %q (%s: %s), and Keystone could not be asked whether that is so", s.user.EffectiveUserName(), state.Reason, state.Message)
	case found && blamesAbsence(managed, state):
		return s.lookAgain(ctx, state, "Keystone has it")
	case !found && managed.Status.ID == nil && korc.IsConflict(state.Message):
		return s.conflict(ctx, state)
	case !found && managed.Status.ID != nil:
		return order.Wait(v1alpha1.ReasonServiceAccountsFailed, order.WaitLong,
			"somebody deleted user %q (id %s) in Keystone, and K-ORC does not make it anew; to have the operator do so, with a new id and without the roles the old one had, delete K-ORC's User %s/%s",
			s.user.EffectiveUserName(), *managed.Status.ID, managed.Namespace, managed.Name)
	}
	return order.Wait(v1alpha1.ReasonServiceAccountsFailed, order.WaitLong,
		"K-ORC gave up on user %q (User %s/%s): %s: %s", s.user.EffectiveUserName(), managed.Namespace, managed.Name, state.Reason, state.Message)
}

// lookAgain has K-ORC look again at a user that it gave up on wrongly.
func (s *pass) lookAgain(ctx context.Context, state order.ChildState, although string) *order.Outcome {
	if err := s.Unlatch(ctx, s.seen.managed); err != nil {
		return order.Wait(v1alpha1.ReasonTransportErrorRetryFailed, order.WaitShort,
			"K-ORC gave up on user %q (%s: %s) although %s; telling K-ORC to look again failed: %v",
			s.user.EffectiveUserName(), state.Reason, state.Message, although, err)
	}
	return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
		"K-ORC gave up on user %q (%s: %s) although %s; K-ORC was told to look again", s.user.EffectiveUserName(), state.Reason, state.Message, although)
}

// conflict looks for whom a create of K-ORC's collided with. When Keystone says that nobody has the name,
// the conflict is over, and the next create succeeds. A namesake without the order's mark stays in the way.
func (s *pass) conflict(ctx context.Context, state order.ChildState) *order.Outcome {
	users, err := s.namesakes(ctx)
	switch {
	case err != nil:
		return s.WaitOnKeystone(v1alpha1.ReasonWaitingForServiceAccounts, err,
			"K-ORC gave up on user %q (%s: %s), and Keystone could not be asked who has the name", s.user.EffectiveUserName(), state.Reason, state.Message)
	case len(users) == 0:
		return s.lookAgain(ctx, state, "Keystone says that the name is free")
	}
	return order.Wait(v1alpha1.ReasonServiceAccountsFailed, order.WaitLong,
		"Keystone has a user of the name %q (id %s) that is not this order's, made after the name was found free, and the operator never takes one over; delete or rename that user, or delete the order and create it under another name",
		s.user.EffectiveUserName(), users[0].ID)
}

// blamesAbsence tells whether K-ORC gave up because it believes a user is not there that is. Any
// other cause, a password that Keystone's policy refuses for one, stays when K-ORC looks again.
func blamesAbsence(managed *orcv1alpha1.User, state order.ChildState) bool {
	if managed.Status.ID != nil {
		return state.Reason == orcv1alpha1.ConditionReasonUnrecoverableError
	}
	// Keystone has a user of the order's name and mark. A conflict means that K-ORC's create succeeded
	// and the answer was lost; K-ORC adopts the user when it looks again.
	return korc.IsConflict(state.Message)
}

// lookUp tells whether Keystone has the order's user: by id when K-ORC knows it, else by name and mark.
// A namesake without the mark is another's, made between the probe and K-ORC's create; told to look
// again, K-ORC would take it over.
func (s *pass) lookUp(ctx context.Context) (bool, error) {
	if id := s.userID(); id != "" {
		session, err := s.Admin(ctx)
		if err != nil {
			return false, err
		}
		return session.UserExists(ctx, id)
	}
	users, err := s.namesakes(ctx)
	for _, user := range users {
		if user.Description == s.Mark() {
			return true, nil
		}
	}
	return false, err
}

// accept logs in with a password that was not accepted before. Only then does the order's status
// move to its generation, which is what delivery and credential orders go by.
func (s *pass) accept(ctx context.Context) *order.Outcome {
	generation, status := s.current(), &s.user.Status
	if status.PasswordGeneration == generation {
		return nil
	}
	session, err := s.login(ctx, generation)
	switch keystone.Classify(err) {
	case keystone.OK:
	case keystone.AuthenticationFailed:
		// Not asked again every few seconds: Keystone may lock a user after a number of refusals.
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitLong,
			"Keystone refuses password generation %d of user %q, so it is not delivered: %v; when the user is neither disabled nor locked in Keystone, raise spec.passwordGeneration to have another one set",
			generation, s.user.EffectiveUserName(), err)
	default:
		return s.WaitOnKeystone(v1alpha1.ReasonWaitingForServiceAccounts, err,
			"password generation %d of user %q is delivered once a login with it succeeded", generation, s.user.EffectiveUserName())
	}
	if session.UserID != s.userID() {
		return order.Wait(v1alpha1.ReasonServiceAccountsFailed, order.WaitLong,
			"password generation %d logs in as user id %s, and K-ORC reports id %s for user %q; two users of that name must not exist in domain %q",
			generation, session.UserID, s.userID(), s.user.EffectiveUserName(), order.AdminDomain(s.ControlPlane))
	}
	status.PasswordGeneration = generation
	s.WhenPersisted(func() { s.accepted(generation) })
	return nil
}

// accepted tells and counts that a password generation is the one to deliver.
func (s *pass) accepted(generation int64) {
	s.Eventf(corev1.EventTypeNormal, order.EventPasswordAccepted, "Login", "Keystone accepts password generation %d; the Secret follows when the backup holds it", generation)
	took := time.Duration(0)
	if pointed := s.user.Status.LastPasswordRotation; pointed != nil {
		took = s.Now.Sub(pointed.Time)
	}
	s.Count().RotationSwitched(s.Kind.Name, took)
}

// login asks for an unscoped token: a user that was just made has no role anywhere.
func (s *pass) login(ctx context.Context, generation int64) (*keystone.Session, error) {
	password := s.seen.passwords[generation]
	if len(password) == 0 {
		// It was made on this pass, so the observation lacks it.
		value, err := s.SecretValue(ctx, s.passwordName(generation), passwordKey)
		if err != nil {
			return nil, err
		}
		password = value
	}
	cloud, bundle, err := order.AdminCloud(ctx, s.Management, s.ControlPlane)
	if err != nil {
		return nil, err
	}
	cloud.ApplicationCredential = nil
	cloud.Password = s.passwordAuth(password)
	return s.Base.Keystone.Login(ctx, cloud, bundle)
}

// audit looks at the user in Keystone once in a while. K-ORC v2.6.0 does not look again by itself; it
// is told to, and what it finds then is reported on the passes that follow.
func (s *pass) audit(ctx context.Context) *order.Outcome {
	told, err := s.AuditChild(ctx, s.seen.managed, func(session *keystone.Session) (bool, error) {
		user, err := session.User(ctx, s.userID())
		if keystone.IsGone(err) {
			return true, nil
		}
		return err == nil && !user.Enabled, err
	})
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	if told {
		s.Eventf(corev1.EventTypeWarning, order.EventUserDrifted, "Audit",
			"user %q (id %s) is gone or disabled in Keystone; K-ORC is told to look", s.user.EffectiveUserName(), s.userID())
	}
	return nil
}

func (s *pass) provisioned() *order.Outcome {
	message := fmt.Sprintf("user %q (id %s) has password generation %d", s.user.EffectiveUserName(), s.userID(), s.user.Status.PasswordGeneration)
	for _, note := range s.notes {
		message += "; " + note
	}
	return order.Done(v1alpha1.ReasonUserProvisioned, "%s", message)
}
