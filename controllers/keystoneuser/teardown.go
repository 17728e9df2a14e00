package keystoneuser

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

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

// userIDAnnotation, after the kind's prefix, is what a password Secret says during a teardown: the id
// that K-ORC reported of the user.
const userIDAnnotation = "user-id"

// rememberID writes the id that K-ORC reports beside the passwords, which outlive K-ORC's object. Once
// that is gone, nobody could say any more which user is to be proven gone, if somebody renamed it and
// edited its description. Status gets the id as well, for its readers; there it proves nothing.
func (s *pass) rememberID(ctx context.Context) *order.Outcome {
	if outcome := s.observeLive(ctx); outcome != nil && s.seen.managed == nil {
		return outcome
	}
	id := s.userID()
	if id == "" {
		return nil
	}
	err := s.eachPassword(ctx, func(secret *corev1.Secret) error {
		if secret.Annotations[s.Kind.Annotation(userIDAnnotation)] == id {
			return nil
		}
		before := secret.DeepCopy()
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, s.Kind.Annotation(userIDAnnotation), id)
		if err := s.Management.Patch(ctx, secret, client.MergeFrom(before), order.FieldManager); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("noting the user's id on Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		return nil
	})
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	if id != s.user.Status.UserID {
		s.user.Status.UserID = id
		if err := s.Persist(ctx); err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
	}
	return nil
}

// eachPassword visits the order's password Secrets, live.
func (s *pass) eachPassword(ctx context.Context, visit func(*corev1.Secret) error) error {
	children, err := s.Children(ctx, &corev1.SecretList{})
	if err != nil {
		return err
	}
	for _, child := range children {
		secret, ok := child.(*corev1.Secret)
		if !ok || generationOf(secret.Name, s.Child(passwordChild)) == 0 {
			continue
		}
		if err := visit(secret); err != nil {
			return err
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

// owed tells whether there may be a user in Keystone. A password is made before the K-ORC User and is
// there until the user is proven gone; that an id stands in status only makes the operator ask.
func (s *pass) owed() bool {
	if malformed(s.user.EffectiveUserName()) != "" {
		return false
	}
	return s.seen.managed != nil || len(s.seen.passwords) > 0 || s.user.Status.UserID != ""
}

// prove asks Keystone whether the user is gone, and deletes one that is not: K-ORC lets go of its
// object on any failure to read the user, an outage among them. The password Secrets are there until
// this step is through, so that a pass knows that there is something to prove.
func (s *pass) prove(ctx context.Context) *order.Outcome {
	if !s.owed() {
		return nil
	}
	survivors, err := s.survivors(ctx)
	if err != nil {
		return s.unproven(err)
	}
	repaired := ""
	for _, id := range survivors {
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
			continue
		}
		s.RevocationRepaired(
			"K-ORC let go of user %q (id %s) while Keystone still had it; the operator deleted it", s.user.EffectiveUserName(), id)
		repaired = id
	}
	if repaired == "" {
		return nil
	}
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, time.Second,
		"user %q (id %s) outlived its K-ORC object and was deleted; Keystone is asked once more", s.user.EffectiveUserName(), repaired)
}

func (s *pass) unproven(err error) *order.Outcome {
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
		"the order goes when Keystone itself has said that user %q is gone: %v", s.user.EffectiveUserName(), err)
}

// survivors are the ids of the order's users that Keystone still has: the ones that K-ORC had reported,
// and those of the order's name that carry its mark. The id in the order's status is none of them, see
// order.Pass.Mark.
//
// Where K-ORC reported no id and nobody carries the mark, a login tells: a user that takes one of the
// order's passwords is the order's. It may have lost its description.
func (s *pass) survivors(ctx context.Context) ([]string, error) {
	known, found, err := s.reported(ctx)
	if err != nil {
		return nil, err
	}
	users, err := s.namesakes(ctx)
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		if user.Description == s.Mark() && !slices.Contains(found, user.ID) {
			found = append(found, user.ID)
		}
	}
	if len(users) == 0 || len(found) > 0 || known {
		return found, nil
	}
	id, err := s.loggedIn(ctx)
	if err != nil || id == "" {
		return nil, err
	}
	return []string{id}, nil
}

// reported are the users that Keystone still has of those that K-ORC reported, as the password Secrets
// say; known tells whether K-ORC reported one.
func (s *pass) reported(ctx context.Context) (known bool, there []string, err error) {
	var ids []string
	err = s.eachPassword(ctx, func(secret *corev1.Secret) error {
		if id := secret.Annotations[s.Kind.Annotation(userIDAnnotation)]; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return false, nil, err
	}
	for _, id := range ids {
		session, err := s.Admin(ctx)
		if err != nil {
			return true, nil, err
		}
		exists, err := session.UserExists(ctx, id)
		if err != nil {
			return true, nil, err
		}
		if exists {
			there = append(there, id)
		}
	}
	return len(ids) > 0, there, nil
}

// loggedIn is the id of the user of the order's name that takes one of its passwords, empty when it
// takes none.
func (s *pass) loggedIn(ctx context.Context) (string, error) {
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
	s.Log().Info("a user of the order's name has neither its mark nor one of its passwords and is left alone")
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
// more, so an Event says what nobody has proven. It names the id that K-ORC reported and never the one in
// status, which could send whoever reads it after somebody else's user.
func (s *pass) abandon(ctx context.Context) {
	if outcome := s.observeLive(ctx); outcome != nil && outcome.Err != nil {
		s.Log().Error(outcome.Err, "observing an order whose ControlPlane is gone")
	}
	owed, what := s.owed(), fmt.Sprintf("user %q", s.user.EffectiveUserName())
	if id := s.userID(); id != "" {
		what += fmt.Sprintf(" (id %s)", id)
	}
	for _, list := range []client.ObjectList{&externalsecrets.PushSecretList{}, &orcv1alpha1.UserList{}, &corev1.SecretList{}} {
		if _, err := s.Sweep(ctx, list); err != nil {
			s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
		}
	}
	if err := s.DeleteDelivered(ctx); err != nil {
		s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
	}
	if owed {
		s.OrphanWarning([]string{what})
	}
}
