package keystoneroleassignment

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// throughKORC has K-ORC assign the role, with one of its RoleAssignments.
type throughKORC struct{}

func (throughKORC) assign(ctx context.Context, s *pass) *order.Outcome {
	if outcome := s.handOver(ctx); outcome != nil {
		return outcome
	}
	object := s.korcAssignment()
	if err := s.Apply(ctx, object); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
			"K-ORC's RoleAssignment %s/%s is being deleted; role %q is assigned anew once it is gone", object.Namespace, object.Name, s.order.Spec.Role)
	}
	state := s.Settle(ctx, object)
	switch {
	case state.UnlatchError == nil && state.Progress == korc.Terminal:
		return s.assignmentGivenUp(ctx, object, state)
	case state.UnlatchError != nil || state.Progress != korc.Available:
		return s.pending(ctx, state)
	}
	return s.vouched(ctx, object)
}

// handOver notes that K-ORC is in charge from here on. Without the note, a kind that goes away again
// before K-ORC has vouched would leave the operator believing in its own assignment, which K-ORC may
// have taken away with its object.
func (s *pass) handOver(ctx context.Context) *order.Outcome {
	if recordOf(s.role) != (record{direct, s.wanted}) {
		return nil
	}
	if err := s.applyImport(ctx, record{moving, s.wanted}); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	return nil
}

// korcAssignment is the object as it should be.
func (s *pass) korcAssignment() *korcapi.RoleAssignment {
	return &korcapi.RoleAssignment{
		ObjectMeta: s.ChildMeta(assignmentChild),
		Spec: korcapi.RoleAssignmentSpec{
			ManagementPolicy: orcv1alpha1.ManagementPolicyManaged,
			// The password cloud: the delete must get in after application credentials were revoked.
			CloudCredentialsRef: order.AdminCloudRef(s.ControlPlane),
			Resource: &korcapi.RoleAssignmentResourceSpec{
				RoleRef:    orcv1alpha1.KubernetesNameRef(s.Child(roleChild)),
				UserRef:    ptr.To(orcv1alpha1.KubernetesNameRef(s.UserChild(s.order.Spec.UserRef.Name, userChild))),
				ProjectRef: ptr.To(orcv1alpha1.KubernetesNameRef(s.ProjectChild(s.order.Spec.ProjectRef.Name, projectChild))),
			},
		},
	}
}

// pending is the outcome while K-ORC has not vouched.
func (s *pass) pending(ctx context.Context, state order.ChildState) *order.Outcome {
	if outcome := s.takingOver(ctx); outcome != nil {
		return outcome
	}
	return s.WaitOnChild(v1alpha1.ReasonWaitingForServiceAccounts, fmt.Sprintf("K-ORC has not assigned role %q yet", s.order.Spec.Role), state)
}

// takingOver is the outcome while K-ORC takes an assignment over from the operator, nil when it does not.
// The role is there all the time, and is reported as such: whoever relies on it must not stop. Until K-ORC
// has vouched the operator looks after it, however long that takes.
func (s *pass) takingOver(ctx context.Context) *order.Outcome {
	if recordOf(s.role) != (record{moving, s.wanted}) {
		return nil
	}
	if s.AuditDue() {
		s.audit(ctx)
	}
	s.ComeBack(order.WaitShort)
	return s.assigned("by the operator; K-ORC is taking it over")
}

// refusedOr is the outcome of an error of Keystone's while K-ORC may be taking over: a Keystone that is away
// stops the move and not the order.
func (s *pass) refusedOr(takingOver *order.Outcome, err error) *order.Outcome {
	refused := s.refused(err)
	if takingOver != nil && refused.Reason != v1alpha1.ReasonRoleAssignmentFailed {
		return takingOver
	}
	return refused
}

// vouched reports what K-ORC says it assigned, if that is what the order wants.
func (s *pass) vouched(ctx context.Context, object *korcapi.RoleAssignment) *order.Outcome {
	if made := object.Status.Resource; made == nil || (tuple{made.RoleID, made.UserID, made.ProjectID}) != s.wanted {
		// The user or the project was made anew, under the same names and other ids. The object
		// cannot follow, its spec being immutable and unchanged.
		if err := s.Delete(ctx, object); err != nil {
			return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
		}
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, time.Second,
			"K-ORC assigned role %q to a user or a project that is not the order's any more; it is assigned anew", s.order.Spec.Role)
	}
	if confirmed := (record{byKORC, s.wanted}); recordOf(s.role) != confirmed {
		// Keystone is asked once: what K-ORC says was true when it looked, and an older duplicate
		// may have taken the role with it since.
		if err := s.repair(ctx); err != nil {
			return s.refusedOr(s.takingOver(ctx), err)
		}
		if err := s.applyImport(ctx, confirmed); err != nil {
			return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
		}
	}
	if s.AuditDue() {
		// K-ORC does not look again at what it made, so the repair is the operator's here too.
		s.audit(ctx)
	}
	return s.assigned("by K-ORC")
}

// assignmentGivenUp asks Keystone about an assignment that K-ORC gave up on. The object names what the
// order declares, so what Keystone lacks the operator assigns, and K-ORC adopts it when it looks again.
func (s *pass) assignmentGivenUp(ctx context.Context, object *korcapi.RoleAssignment, state order.ChildState) *order.Outcome {
	takingOver := s.takingOver(ctx)
	if object.Status.Resource == nil && takingOver == nil {
		// It was never assigned. Whether Keystone refuses K-ORC for good is K-ORC's to say.
		session, err := s.Admin(ctx)
		if err != nil {
			return s.unanswered(err)
		}
		switch has, err := session.HasRole(ctx, s.wanted.ProjectID, s.wanted.UserID, s.wanted.RoleID); {
		case err != nil:
			return s.unanswered(err)
		case !has:
			return order.Wait(v1alpha1.ReasonRoleAssignmentFailed, order.WaitLong,
				"K-ORC gave up on assigning role %q (RoleAssignment %s/%s): %s: %s", s.order.Spec.Role, object.Namespace, object.Name, state.Reason, state.Message)
		}
	} else if err := s.repair(ctx); err != nil {
		return s.refusedOr(takingOver, err)
	}
	if err := s.Unlatch(ctx, object); err != nil {
		return order.Wait(v1alpha1.ReasonTransportErrorRetryFailed, order.WaitShort,
			"K-ORC gave up on role %q (%s: %s) although Keystone has the assignment; telling K-ORC to look again failed: %v", s.order.Spec.Role, state.Reason, state.Message, err)
	}
	if takingOver != nil {
		return takingOver
	}
	return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
		"K-ORC gave up on role %q (%s: %s) although Keystone has the assignment; K-ORC is told to look again", s.order.Spec.Role, state.Reason, state.Message)
}

// withdraw deletes K-ORC's object, with which K-ORC unassigns the role, and waits until it is gone.
func (throughKORC) withdraw(ctx context.Context, s *pass) *order.Outcome {
	left, err := s.Sweep(ctx, &korcapi.RoleAssignmentList{})
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if left == 0 {
		return nil
	}
	object := &korcapi.RoleAssignment{ObjectMeta: s.ChildMeta(assignmentChild)}
	if found, err := s.Read(ctx, object); err == nil && found && !object.DeletionTimestamp.IsZero() {
		// K-ORC tries a delete once per event, and an error that it calls terminal ends that.
		if progress, _, _ := korc.State(object.Status.Conditions, object.Generation); progress == korc.Terminal {
			if err := s.Unlatch(ctx, object); err != nil {
				return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
			}
		}
	}
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
		"K-ORC is unassigning role %q (RoleAssignment %s/%s)", s.order.Spec.Role, s.ChildNamespace(), s.Child(assignmentChild))
}

// detach deletes K-ORC's object and has K-ORC leave the assignment alone: another order declares it.
func (throughKORC) detach(ctx context.Context, s *pass) *order.Outcome {
	object := &korcapi.RoleAssignment{ObjectMeta: s.ChildMeta(assignmentChild)}
	found, err := s.Read(ctx, object)
	if err == nil && found && object.DeletionTimestamp.IsZero() && object.Spec.ManagedOptions.GetOnDelete() != orcv1alpha1.OnDeleteDetach {
		kept := s.korcAssignment()
		kept.Spec.ManagedOptions = &orcv1alpha1.ManagedOptions{OnDelete: orcv1alpha1.OnDeleteDetach}
		err = s.Apply(ctx, kept)
	}
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	return throughKORC{}.withdraw(ctx, s)
}
