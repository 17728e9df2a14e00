package keystoneroleassignment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// Reasons of the Events about repairs.
const (
	assignmentRepaired = order.EventAssignmentRepaired
	revocationRepaired = order.EventRevocationRepaired
)

// assigner keeps one role assigned. Both kinds hold the same promises: an assignment is reported only
// when whoever made it has confirmed it, and a converged one costs nothing.
type assigner interface {
	// assign gives the user the role on the project. Its outcome is Done once that is confirmed.
	assign(ctx context.Context, s *pass) *order.Outcome
	// withdraw takes away what assign gave. Its outcome is nil once nothing stands in the way of
	// asking Keystone for the proof.
	withdraw(ctx context.Context, s *pass) *order.Outcome
}

// assigner is K-ORC where it serves the kind at this moment, else the operator itself.
func (s *pass) assigner() assigner {
	if s.serves(korcapi.GroupVersionKind) {
		return throughKORC{}
	}
	return itself{}
}

func (s *pass) assign(ctx context.Context) *order.Outcome {
	outcome := s.assigner().assign(ctx, s)
	if outcome != nil && outcome.Err != nil && meta.IsNoMatchError(outcome.Err) {
		// The kind went away a moment ago, and the role with it perhaps.
		return itself{}.assign(ctx, s)
	}
	return outcome
}

// assigned reports the assignment.
func (s *pass) assigned(by string) *order.Outcome {
	s.order.Status.RoleID, s.order.Status.UserID, s.order.Status.ProjectID = s.wanted.RoleID, s.wanted.UserID, s.wanted.ProjectID
	return order.Done(v1alpha1.ReasonRoleAssigned, "role %q is assigned to KeystoneUser %q on KeystoneProject %q %s",
		s.order.Spec.Role, s.order.Spec.UserRef.Name, s.order.Spec.ProjectRef.Name, by)
}

// itself assigns the role in Keystone with the administrator's session.
type itself struct{}

func (itself) assign(ctx context.Context, s *pass) *order.Outcome {
	const by = "by the operator"
	confirmed := record{direct, s.wanted}
	if recordOf(s.role) == confirmed {
		if s.AuditDue() {
			s.audit(ctx)
		}
		return s.assigned(by)
	}
	if err := s.applyImport(ctx, record{assigning, s.wanted}); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if err := s.grant(ctx); err != nil {
		return s.refused(err)
	}
	if err := s.applyImport(ctx, confirmed); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	s.AuditDue() // arranges for the first one
	return s.assigned(by)
}

func (itself) withdraw(context.Context, *pass) *order.Outcome { return nil }

// grant assigns the role and asks Keystone whether it is there: the word that counts is its own.
func (s *pass) grant(ctx context.Context) error {
	session, err := s.Admin(ctx)
	if err != nil {
		return err
	}
	if err := session.AssignRole(ctx, s.wanted.ProjectID, s.wanted.UserID, s.wanted.RoleID); err != nil {
		return err
	}
	has, err := session.HasRole(ctx, s.wanted.ProjectID, s.wanted.UserID, s.wanted.RoleID)
	if err == nil && !has {
		return &keystone.Error{Operation: "has_role", Class: keystone.EndpointUnreachable, Message: "Keystone took the assignment and does not list it"}
	}
	return err
}

// audit compares the assignment with what Keystone holds, and repairs it. That Keystone does not
// answer says nothing about the assignment, and changes nothing; the next audit asks again.
func (s *pass) audit(ctx context.Context) {
	if err := s.repair(ctx); err != nil {
		s.Log().Info("the audit of a role assignment could not be finished", "cause", err.Error())
	}
}

// repair asks Keystone whether the role is assigned, and assigns it if not.
func (s *pass) repair(ctx context.Context) error {
	session, err := s.Admin(ctx)
	if err != nil {
		return err
	}
	has, err := session.HasRole(ctx, s.wanted.ProjectID, s.wanted.UserID, s.wanted.RoleID)
	if err != nil || has {
		return err
	}
	if err := s.grant(ctx); err != nil {
		return err
	}
	s.Eventf(corev1.EventTypeWarning, order.EventAssignmentRepaired, "Assign",
		"role %q was taken away in Keystone while the order declares it; the operator assigned it again", s.order.Spec.Role)
	return nil
}

// refused is the outcome of an assignment that failed. What Keystone refused stays refused until
// somebody changes something; anything else is a wait.
func (s *pass) refused(err error) *order.Outcome {
	switch keystone.Classify(err) {
	case keystone.NotFound:
		return order.Wait(v1alpha1.ReasonRoleAssignmentFailed, order.WaitLong,
			"Keystone does not know the role, the user or the project any more; see whether somebody deleted one of them: %v", err)
	case keystone.Forbidden, keystone.Conflict, keystone.InvalidRequest:
		return order.Wait(v1alpha1.ReasonRoleAssignmentFailed, order.WaitLong, "Keystone refuses to assign role %q: %v", s.order.Spec.Role, err)
	default:
		return s.unanswered(err)
	}
}

// unanswered is the outcome while Keystone gives no usable answer.
func (s *pass) unanswered(err error) *order.Outcome {
	return s.WaitOnKeystone(v1alpha1.ReasonWaitingForServiceAccounts, err, "Keystone could not be asked about role %q; it is asked again", s.order.Spec.Role)
}

// childKey is the name of a child.
func (s *pass) childKey(discriminator string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.ChildNamespace(), Name: s.Child(discriminator)}
}
