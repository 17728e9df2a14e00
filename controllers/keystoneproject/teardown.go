package keystoneproject

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// holds are the orders that need the project, in the order in which they are to go.
var holds = []struct {
	kind   order.Kind
	reason string
}{
	{order.RoleAssignmentKind, v1alpha1.ReasonReferencedByRoleAssignments},
	{order.ApplicationCredentialKind, v1alpha1.ReasonReferencedByApplicationCredentials},
}

// held keeps the project while other orders need it. Keystone would drop the roles and credentials on
// a project with it, and K-ORC could then not delete what it still has objects for.
func (s *pass) held(ctx context.Context) *order.Outcome {
	for _, hold := range holds {
		names, err := s.Referencing(ctx, hold.kind, func(object order.Object) bool {
			_, project := order.References(object)
			return project == s.project.Name
		})
		if err != nil {
			return order.Fail(v1alpha1.ReasonProjectError, err)
		}
		if len(names) > 0 {
			return s.Held(hold.reason, hold.kind, names)
		}
	}
	return nil
}

// remember writes down that there is something to prove before K-ORC's object, the only witness, is
// deleted. An order that never got as far owes Keystone no question, and its deletion must not wait
// for a Keystone that cannot be reached.
func (s *pass) remember(ctx context.Context) *order.Outcome {
	if s.kindServed(ctx) != nil {
		// K-ORC is gone, and its objects with it. What is left in Keystone is the operator's.
		return nil
	}
	if err := s.observeLive(ctx); err != nil && !order.IsForeign(err) {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	if s.managed == nil {
		return nil
	}
	if id := ptr.Deref(s.managed.Status.ID, ""); id != "" {
		s.project.Status.ProjectID = id
	}
	s.Report(v1alpha1.ConditionProjectReady, s.deleting())
	if err := s.Persist(ctx); err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	return nil
}

// owed tells whether an earlier pass saw a K-ORC Project of the order.
func (s *pass) owed() bool {
	condition := meta.FindStatusCondition(s.project.Status.Conditions, v1alpha1.ConditionProjectReady)
	return s.managed != nil || s.project.Status.ProjectID != "" ||
		condition != nil && condition.Reason == v1alpha1.ReasonWaitingForRevocation
}

// sweep deletes K-ORC's objects and waits until they are gone. One that K-ORC gave up deleting is put
// before it again: it tries a delete once per event, and an error that it calls terminal ends that.
func (s *pass) sweep(ctx context.Context) *order.Outcome {
	owed := s.owed()
	left, err := s.Sweep(ctx, &orcv1alpha1.ProjectList{})
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonProjectError, err)
	case left == 0:
		return nil
	}
	if s.managed != nil && !s.managed.DeletionTimestamp.IsZero() {
		if progress, _, _ := korc.State(s.managed.Status.Conditions, s.managed.Generation); progress == korc.Terminal {
			if err := s.Unlatch(ctx, s.managed); err != nil {
				return order.Fail(v1alpha1.ReasonProjectError, err)
			}
		}
	}
	if !owed {
		// Only the probe is left, behind which there is nothing in Keystone.
		return &order.Outcome{After: time.Second}
	}
	return s.deleting()
}

func (s *pass) deleting() *order.Outcome {
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
		"K-ORC is deleting project %q (objects named %s* in namespace %s)", s.project.EffectiveProjectName(), s.Kind.Prefix(s.Key), s.ChildNamespace())
}

// prove asks Keystone whether the project is gone, and deletes one that is not: K-ORC lets go of its
// object on any failure to read the project, an outage among them.
func (s *pass) prove(ctx context.Context) *order.Outcome {
	if !s.owed() {
		return nil
	}
	survivors, err := s.survivors(ctx)
	if err != nil {
		return s.unproven(err)
	}
	var deleted string
	for _, project := range survivors {
		if project.Description != s.Mark() {
			if project.ID != s.project.Status.ProjectID {
				continue // a namesake that somebody else made
			}
			// The id is only what status says, and status is no leave to delete anything.
			return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitLong,
				"Keystone still has project %q (id %s), and its description no longer names this order, so the operator does not delete it; whoever changed it deletes it, or sets the description back to %q",
				s.project.EffectiveProjectName(), project.ID, s.Mark())
		}
		if err := s.repair(ctx, project); err != nil {
			return s.unproven(err)
		}
		deleted = project.ID
	}
	if deleted != "" {
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, time.Second,
			"project %q (id %s) outlived its K-ORC object and was deleted; Keystone is asked once more", s.project.EffectiveProjectName(), deleted)
	}
	return nil
}

// survivors are the projects of the order's name, and the one of the id that status names: an
// administrator may have renamed it.
func (s *pass) survivors(ctx context.Context) ([]keystone.Project, error) {
	session, err := s.Admin(ctx)
	if err != nil {
		return nil, err
	}
	var found []keystone.Project
	if utf8.RuneCountInString(s.project.EffectiveProjectName()) <= maxNameLength {
		if found, err = s.namesakes(ctx); err != nil {
			return nil, err
		}
	}
	id := s.project.Status.ProjectID
	for _, project := range found {
		if project.ID == id {
			return found, nil
		}
	}
	if id == "" {
		return found, nil
	}
	project, err := session.Project(ctx, id)
	switch {
	case keystone.IsGone(err):
		return found, nil
	case err != nil:
		return nil, err
	}
	return append(found, *project), nil
}

func (s *pass) repair(ctx context.Context, project keystone.Project) error {
	session, err := s.Admin(ctx)
	if err != nil {
		return err
	}
	if err := session.DeleteProject(ctx, project.ID); err != nil {
		return err
	}
	s.RevocationRepaired(
		"K-ORC let go of project %q (id %s) while Keystone still had it; the operator deleted it", project.Name, project.ID)
	return nil
}

func (s *pass) unproven(err error) *order.Outcome {
	return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
		"the order goes when Keystone itself has said that project %q is gone: %v", s.project.EffectiveProjectName(), err)
}

// abandon deletes what it can of an order whose ControlPlane is gone. Nobody can ask its Keystone any
// more, so an Event says what nobody has proven.
func (s *pass) abandon(ctx context.Context) {
	if err := s.observeLive(ctx); err != nil {
		s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
	}
	owed := s.owed()
	if _, err := s.Sweep(ctx, &orcv1alpha1.ProjectList{}); err != nil {
		s.Log().Error(err, "sweeping an order whose ControlPlane is gone")
	}
	if owed {
		s.OrphanWarning([]string{fmt.Sprintf("project %q (id %s)", s.project.EffectiveProjectName(), s.project.Status.ProjectID)})
	}
}
