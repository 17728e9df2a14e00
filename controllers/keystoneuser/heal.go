package keystoneuser

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// claimLife is how long a claim that a password is dead is looked into: as long as a CredentialUpdateRequest
// stays open. It ends, because a claim that was wrong would else cost a login on every pass.
const claimLife = 30 * time.Minute

// DeadPassword is the value of order.RotateAnnotation that calls a password generation dead. A password has
// no id, and a generation stands for one value only. The time makes the next claim about the same
// generation another value: an account may be locked, work again, and be locked once more.
func DeadPassword(generation int64, claimed time.Time) string {
	return strconv.FormatInt(generation, 10) + "@" + claimed.UTC().Format(time.RFC3339)
}

// ParseDeadPassword reads what DeadPassword writes.
func ParseDeadPassword(value string) (generation int64, claimed time.Time, ok bool) {
	number, at, _ := strings.Cut(value, "@")
	generation, err := strconv.ParseInt(number, 10, 64)
	if err != nil || generation < 1 {
		return 0, time.Time{}, false
	}
	claimed, err = time.Parse(time.RFC3339, at)
	return generation, claimed, err == nil
}

// PasswordInUse is the password generation that Keystone was given last according to K-ORC's User of an
// order, and the name of the Secret with it, which is in the same namespace. The generation is 0 while
// another one is under way.
func PasswordInUse(key order.Key, managed *orcv1alpha1.User) (generation int64, secretName string) {
	if managed.Spec.Resource == nil || managed.Status.Resource == nil {
		return 0, ""
	}
	ref := string(ptr.Deref(managed.Spec.Resource.PasswordRef, ""))
	if managed.Status.Resource.AppliedPasswordRef != ref {
		return 0, ""
	}
	return generationOf(ref, order.UserKind.Prefix(key)+passwordChild), ref
}

// PasswordKey is the key under which the Secret of a password holds it.
const PasswordKey = passwordKey

// refused tells whether Keystone refuses the password in use, when the order's annotation says so. It asks
// once on a pass: a refused login counts towards locking the account.
func (s *pass) refused(ctx context.Context) bool {
	generation := s.current()
	claimed, at, ok := ParseDeadPassword(s.user.Annotations[order.RotateAnnotation])
	age := s.Now.Sub(at)
	if !ok || generation == 0 || claimed != generation || s.applied() != generation || age > claimLife || age < -claimLife {
		return false
	}
	if s.lookedInto != generation {
		s.lookedInto, s.foundDead = generation, s.lookInto(ctx, generation)
	}
	return s.foundDead
}

// lookInto asks Keystone about a password that is said to be dead. Only what a new password cures counts. A
// locked account is not told apart from a wrong password, since Keystone does not tell it: the new password
// is then accepted, and delivered, when the lock is over.
func (s *pass) lookInto(ctx context.Context, generation int64) bool {
	unknown := func(why string) bool {
		s.notes = append(s.notes, fmt.Sprintf("password generation %d is said to be dead; that is looked into when %s", generation, why))
		s.ComeBack(order.WaitShort)
		return false
	}
	notDead := func(why string) bool {
		s.notes = append(s.notes, fmt.Sprintf("password generation %d is said to be dead, and %s", generation, why))
		return false
	}
	// Before anything is tried: a pass that cannot go on is played again every few seconds, and would lock
	// the account with its logins.
	if outcome := s.storeReady(ctx); outcome != nil {
		return unknown("the secret store is ready")
	}
	session, err := s.Admin(ctx)
	if err != nil {
		return unknown("the administrator's login succeeds")
	}
	user, err := session.User(ctx, s.userID())
	switch {
	case keystone.IsGone(err):
		return notDead("its user is gone in Keystone")
	case err != nil:
		return unknown("Keystone answers")
	case !user.Enabled:
		return notDead("its user is disabled in Keystone, which a new password would not change")
	}
	_, err = s.login(ctx, generation)
	switch keystone.Classify(err) {
	case keystone.OK:
		return notDead("Keystone accepts it")
	case keystone.AuthenticationFailed:
		return true
	default:
		return unknown("Keystone answers")
	}
}
