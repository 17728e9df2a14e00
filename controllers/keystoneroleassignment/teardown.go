package keystoneroleassignment

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// held keeps every assignment of a user and a project while a credential order has that pair: K-ORC
// makes and deletes credentials with a token for the project, which takes a role on it.
func (s *pass) held(ctx context.Context) *order.Outcome {
	names, err := s.Referencing(ctx, order.ApplicationCredentialKind, func(object order.Object) bool { return samePair(s.order, object) })
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	case len(names) > 0:
		return s.Held(v1alpha1.ReasonReferencedByApplicationCredentials, order.ApplicationCredentialKind, names)
	}
	return nil
}

// observe reads the Role import, live. Without one nothing was ever asked of Keystone for this order:
// the import comes before every assignment and goes after every revocation.
//
// While K-ORC's kinds are not served nobody can tell, and the order waits: a role that outlives its
// order is what this finalizer is there to prevent.
func (s *pass) observe(ctx context.Context) *order.Outcome {
	if outcome := s.kindsServed(); outcome != nil {
		return outcome
	}
	role := &orcv1alpha1.Role{}
	key := s.childKey(roleChild)
	err := s.Live.Get(ctx, key, role)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, fmt.Errorf("reading K-ORC's Role %s: %w", key, err))
	}
	if owner, ok := s.Kind.KeyFromLabels(role.Labels); ok && owner == s.Key {
		s.role = role
	}
	return nil
}

// revoke takes the role away and has Keystone say so, unless an older order declares it: then it is
// not this order's to take.
func (s *pass) revoke(ctx context.Context) *order.Outcome {
	if s.role == nil {
		return nil
	}
	elder, err := s.elder(ctx)
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if elder != nil && elder.DeletionTimestamp.IsZero() {
		if s.serves(korcapi.GroupVersionKind) {
			return throughKORC{}.detach(ctx, s)
		}
		return nil
	}
	if outcome := s.assigner().withdraw(ctx, s); outcome != nil {
		return outcome
	}
	tuples, err := s.asked(ctx)
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if len(tuples) == 0 {
		return nil
	}
	session, err := s.Admin(ctx)
	if err != nil {
		return s.unproven(err)
	}
	for _, t := range tuples {
		if outcome := s.takeAway(ctx, session, t); outcome != nil {
			return outcome
		}
	}
	return nil
}

// asked are the assignments that may have been asked of Keystone: the recorded one, and what the
// objects would name now. The status of the order is no source: its owner may be able to write it,
// and would have the operator take any role from anybody.
func (s *pass) asked(ctx context.Context) ([]tuple, error) {
	current, err := s.ids(ctx, s.Live)
	if err != nil && !order.IsForeign(err) {
		return nil, err
	}
	recorded := recordOf(s.role).tuple
	var found []tuple
	if recorded.complete() {
		found = append(found, recorded)
	}
	if current.complete() && current != recorded {
		found = append(found, current)
	}
	return found, nil
}

// takeAway unassigns the role and returns nil once Keystone says that it is not assigned.
func (s *pass) takeAway(ctx context.Context, session *keystone.Session, t tuple) *order.Outcome {
	has, err := session.HasRole(ctx, t.ProjectID, t.UserID, t.RoleID)
	switch {
	case err != nil:
		return s.unproven(err)
	case !has:
		return nil
	}
	if err := session.UnassignRole(ctx, t.ProjectID, t.UserID, t.RoleID); err != nil {
		return s.unproven(err)
	}
	if recordOf(s.role).Progress == byKORC {
		s.RevocationRepaired(
			"K-ORC let go of role %q while Keystone still had it assigned; the operator unassigned it", s.order.Spec.Role)
	}
	has, err = session.HasRole(ctx, t.ProjectID, t.UserID, t.RoleID)
	switch {
	case err != nil:
		return s.unproven(err)
	case has:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
			"Keystone took the request to unassign role %q and still lists it; it is asked again", s.order.Spec.Role)
	}
	return nil
}

func (s *pass) unproven(err error) *order.Outcome {
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
		"the order goes when Keystone itself has said that role %q is not assigned any more: %v", s.order.Spec.Role, err)
}

// sweep deletes the Role import, the last trace.
func (s *pass) sweep(ctx context.Context) *order.Outcome {
	left, err := s.Sweep(ctx, &orcv1alpha1.RoleList{})
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	case left > 0:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, time.Second,
			"role %q is not assigned any more; K-ORC's Role %s/%s is being deleted", s.order.Spec.Role, s.ChildNamespace(), s.Child(roleChild))
	}
	return nil
}

// abandon deletes what it can of an order whose ControlPlane is gone. Nobody can ask its Keystone any
// more, so an Event says what nobody has proven.
func (s *pass) abandon(ctx context.Context) {
	if outcome := s.observe(ctx); outcome != nil {
		s.Log().Error(outcome.Err, "sweeping an order whose ControlPlane is gone")
	}
	if s.serves(korcapi.GroupVersionKind) {
		if _, err := s.Sweep(ctx, &korcapi.RoleAssignmentList{}); err != nil {
			s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
		}
	}
	if _, err := s.Sweep(ctx, &orcv1alpha1.RoleList{}); err != nil {
		s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
	}
	if s.role != nil && recordOf(s.role).complete() {
		s.OrphanWarning([]string{fmt.Sprintf("role %q of KeystoneUser %q on KeystoneProject %q",
			s.order.Spec.Role, s.order.Spec.UserRef.Name, s.order.Spec.ProjectRef.Name)})
	}
}
