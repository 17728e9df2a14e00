package keystoneuser

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// revocationRepaired is the reason of the Event about a user that outlived its K-ORC object.
const revocationRepaired = "RevocationRepaired"

// Teardown implements order.Steps.
func (steps) Teardown(ctx context.Context, p *order.Pass) bool {
	s := newPass(p)
	if p.ControlPlane == nil {
		s.abandon(ctx)
		return true
	}
	outcome := order.Run(s, []order.Step[*pass]{
		{Name: "held", Do: with(ctx, (*pass).held)},
		{Name: "remember", Do: with(ctx, (*pass).rememberID)},
		{Name: "release", Do: with(ctx, (*pass).release)},
		{Name: "prove", Do: with(ctx, (*pass).prove)},
		{Name: "sweep", Do: with(ctx, (*pass).sweep)},
	})
	if outcome != nil {
		s.Report(v1alpha1.ConditionUserReady, outcome)
	}
	return outcome == nil
}

// holds are the orders that need the user, in the order in which they are to go.
var holds = []struct {
	kind   order.Kind
	reason string
}{
	{order.RoleAssignmentKind, v1alpha1.ReasonReferencedByRoleAssignments},
	{order.ApplicationCredentialKind, v1alpha1.ReasonReferencedByApplicationCredentials},
}

// held keeps the user while other orders need it. Keystone would drop a user's credentials and roles
// with it, and K-ORC could then not delete what it still has objects for.
func (s *pass) held(ctx context.Context) *order.Outcome {
	for _, hold := range holds {
		names, err := s.Referencing(ctx, hold.kind, func(object order.Object) bool {
			user, _ := order.References(object)
			return user == s.user.Name
		})
		if err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
		if len(names) > 0 {
			return s.Held(hold.reason, hold.kind, names)
		}
	}
	return nil
}

// rememberID writes down the id of a user that no pass has seen yet. Once K-ORC's object is gone,
// nobody could say any more which user is to be proven gone.
func (s *pass) rememberID(ctx context.Context) *order.Outcome {
	if outcome := s.observeLive(ctx); outcome != nil && s.seen.managed == nil {
		return outcome
	}
	if s.seen.managed == nil {
		return nil
	}
	if id := ptr.Deref(s.seen.managed.Status.ID, ""); id != "" && id != s.user.Status.UserID {
		s.user.Status.UserID = id
		if err := s.Persist(ctx); err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
	}
	return nil
}

// release deletes the backup and K-ORC's objects, and waits until they are gone.
func (s *pass) release(ctx context.Context) *order.Outcome {
	left, err := s.sweepAll(ctx, &externalsecrets.PushSecretList{}, &orcv1alpha1.UserList{})
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	case left > 0:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
			"K-ORC and External Secrets Operator are deleting user %q and its backup (%d objects named %s* in namespace %s are left)",
			s.user.EffectiveUserName(), left, s.Kind.Prefix(s.Key), s.ChildNamespace())
	}
	return nil
}

// prove asks Keystone whether the user is gone, and deletes one that is not: K-ORC lets go of its
// object on any failure to read the user, an outage among them. The password Secrets are there until
// this step is through, so that a pass knows that there is something to prove.
func (s *pass) prove(ctx context.Context) *order.Outcome {
	if s.user.Status.UserID == "" && len(s.seen.passwords) == 0 {
		// No K-ORC User was ever made: a password comes first. A user of that name is another's.
		return nil
	}
	id, err := s.survivor(ctx)
	switch {
	case err != nil:
		return s.unproven(err)
	case id == "":
		return nil
	}
	session, err := s.Admin(ctx)
	if err != nil {
		return s.unproven(err)
	}
	deleted, err := session.DeleteUser(ctx, id)
	switch {
	case err != nil:
		return s.unproven(err)
	case !deleted:
		// Keystone may answer the question from a cache; its 404 to a delete is its own word.
		return nil
	}
	s.Eventf(corev1.EventTypeWarning, revocationRepaired, "Teardown",
		"K-ORC let go of user %q (id %s) while Keystone still had it; the operator deleted it", s.user.EffectiveUserName(), id)
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, time.Second,
		"user %q (id %s) outlived its K-ORC object and was deleted; Keystone is asked once more", s.user.EffectiveUserName(), id)
}

func (s *pass) unproven(err error) *order.Outcome {
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
		"the order goes when Keystone itself has said that user %q is gone: %v", s.user.EffectiveUserName(), err)
}

// survivor is the id of the order's user if Keystone still has it, else empty.
//
// An order that was deleted before K-ORC reported an id has only the name to go by. A user of that
// name is the order's if it takes one of the order's passwords, and nobody else's may be deleted.
func (s *pass) survivor(ctx context.Context) (string, error) {
	if id := s.user.Status.UserID; id != "" {
		session, err := s.Admin(ctx)
		if err != nil {
			return "", err
		}
		exists, err := session.UserExists(ctx, id)
		if err != nil || !exists {
			return "", err
		}
		return id, nil
	}
	users, err := s.namesakes(ctx)
	if err != nil || len(users) == 0 {
		return "", err
	}
	for generation := range s.seen.passwords {
		session, err := s.login(ctx, generation)
		switch keystone.Classify(err) {
		case keystone.OK:
			return session.UserID, nil
		case keystone.AuthenticationFailed:
		default:
			return "", err
		}
	}
	s.Log().Info("a user of the order's name takes none of its passwords and is left alone", "userID", users[0].ID)
	return "", nil
}

// sweep removes what is left, once the user is proven gone.
func (s *pass) sweep(ctx context.Context) *order.Outcome {
	left, err := s.sweepAll(ctx, &corev1.SecretList{})
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	if err := s.DeleteDelivered(ctx); err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	delivered, _, err := s.DeliveredSecret(ctx)
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	case left > 0 || delivered != nil:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, time.Second, "user %q is gone from Keystone; the Secrets of the order are being deleted", s.user.EffectiveUserName())
	}
	return nil
}

func (s *pass) sweepAll(ctx context.Context, lists ...client.ObjectList) (int, error) {
	all := 0
	for _, list := range lists {
		left, err := s.Sweep(ctx, list)
		if err != nil {
			return 0, err
		}
		all += left
	}
	return all, nil
}

// abandon deletes what it can of an order whose ControlPlane is gone. Nobody can ask its Keystone any
// more, so an Event says what nobody has proven.
func (s *pass) abandon(ctx context.Context) {
	for _, list := range []client.ObjectList{&externalsecrets.PushSecretList{}, &orcv1alpha1.UserList{}, &corev1.SecretList{}} {
		if _, err := s.Sweep(ctx, list); err != nil {
			s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
		}
	}
	if err := s.DeleteDelivered(ctx); err != nil {
		s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
	}
	if id := s.user.Status.UserID; id != "" {
		s.OrphanWarning([]string{fmt.Sprintf("user %q (id %s)", s.user.EffectiveUserName(), id)})
	}
}
