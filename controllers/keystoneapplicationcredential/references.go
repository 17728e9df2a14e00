package keystoneapplicationcredential

import (
	"context"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

func (s *state) resolveUser(ctx context.Context) (outcome *order.Outcome) {
	s.user, outcome = s.User(ctx, s.order.Spec.UserRef.Name)
	return outcome
}

func (s *state) resolveProject(ctx context.Context) (outcome *order.Outcome) {
	s.project, outcome = s.Project(ctx, s.order.Spec.ProjectRef.Name)
	return outcome
}

// roleOnProject looks for an assignment of the user on the project that reports its role. It reads
// status.roleID and not AssignmentReady: a frozen assignment keeps its role in Keystone.
func (s *state) roleOnProject(ctx context.Context) *order.Outcome {
	user, project := s.order.Spec.UserRef.Name, s.order.Spec.ProjectRef.Name
	names, err := s.Referencing(ctx, order.RoleAssignmentKind, func(object order.Object) bool {
		assignment := object.(*v1alpha1.KeystoneRoleAssignment)
		return assignment.Spec.UserRef.Name == user && assignment.Spec.ProjectRef.Name == project && assignment.Status.RoleID != ""
	})
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	case len(names) == 0:
		return order.Wait(v1alpha1.ReasonNoRoleOnProject, order.WaitRefused,
			"no KeystoneRoleAssignment in namespace %q has assigned user %q a role on project %q; order one, this order goes on by itself",
			s.Key.Namespace, user, project)
	}
	return nil
}
