package keystoneroleassignment

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// roleAllowed asks whether the ControlPlane admits the role from the namespace. A role that was taken
// off the list freezes the order like an entry that was taken away: what is assigned stays.
func (s *pass) roleAllowed(context.Context) *order.Outcome {
	if slices.Contains(s.Assignment.AllowedRoles, s.order.Spec.Role) {
		return nil
	}
	return order.Wait(v1alpha1.ReasonRoleNotAllowed, order.WaitRefused, "%s", s.notAllowed())
}

func (s *pass) notAllowed() string {
	return fmt.Sprintf("ControlPlane %s/%s admits roles %q from namespace %q on %s (spec.namespaceAssignments); %q is not on that list",
		s.ControlPlane.Namespace, s.ControlPlane.Name, s.Assignment.AllowedRoles, s.Key.Namespace, s.ClusterPhrase(), []string{s.order.Spec.Role})
}

func (s *pass) userReady(ctx context.Context) *order.Outcome {
	_, outcome := s.User(ctx, s.order.Spec.UserRef.Name)
	return outcome
}

func (s *pass) projectReady(ctx context.Context) *order.Outcome {
	_, outcome := s.Project(ctx, s.order.Spec.ProjectRef.Name)
	return outcome
}

// sameTuple tells whether two orders of a namespace declare one and the same assignment in Keystone.
// An order that names another ControlPlane than its user and project never assigns anything, so it is
// no duplicate of one that does.
func sameTuple(a, b *v1alpha1.KeystoneRoleAssignment) bool {
	return a.Namespace == b.Namespace && a.GetControlPlaneRef() == b.GetControlPlaneRef() &&
		a.Spec.UserRef == b.Spec.UserRef && a.Spec.ProjectRef == b.Spec.ProjectRef && a.Spec.Role == b.Spec.Role
}

// older tells whether a comes before b: by creation time, and by name among those of one second.
func older(a, b *v1alpha1.KeystoneRoleAssignment) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// elder is the oldest order that declares what this one does, nil when this one is that.
func elder(own *v1alpha1.KeystoneRoleAssignment, all []v1alpha1.KeystoneRoleAssignment) *v1alpha1.KeystoneRoleAssignment {
	oldest := own
	for i := range all {
		if other := &all[i]; other.Name != own.Name && sameTuple(own, other) && older(other, oldest) {
			oldest = other
		}
	}
	if oldest == own {
		return nil
	}
	return oldest
}

func (s *pass) elder(ctx context.Context) (*v1alpha1.KeystoneRoleAssignment, error) {
	list := &v1alpha1.KeystoneRoleAssignmentList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.Key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing KeystoneRoleAssignments in namespace %s: %w", s.Key.Namespace, err)
	}
	return elder(s.order, list.Items), nil
}

// eldest refuses an order while an older one declares the same. Keystone knows one assignment, so
// deleting either order would take away what the other still declares. An older one that is being
// deleted counts until it is gone: its teardown takes the role away.
func (s *pass) eldest(ctx context.Context) *order.Outcome {
	elder, err := s.elder(ctx)
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if elder == nil {
		return nil
	}
	if err := s.disown(ctx); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	next := "delete one of the two"
	if !elder.DeletionTimestamp.IsZero() {
		next = "it is being deleted, and this order takes over once it is gone"
	}
	return order.Wait(v1alpha1.ReasonDuplicateRoleAssignment, order.WaitRefused,
		"KeystoneRoleAssignment %q in this namespace is older and assigns role %q to KeystoneUser %q on KeystoneProject %q already; %s",
		elder.Name, s.order.Spec.Role, s.order.Spec.UserRef.Name, s.order.Spec.ProjectRef.Name, next)
}

// disown drops the belief in what this order assigned before it was found younger, which happens
// among orders of one second. It is the older one's now, and its teardown takes it away: taking over
// begins with an assignment, or would report one that is not there. The ids stay in the record.
func (s *pass) disown(ctx context.Context) error {
	s.order.Status.RoleID, s.order.Status.UserID, s.order.Status.ProjectID = "", "", ""
	if outcome := s.kindsServed(); outcome != nil {
		return nil
	}
	role := &orcv1alpha1.Role{ObjectMeta: s.ChildMeta(roleChild)}
	found, err := s.Read(ctx, role)
	if err != nil || !found {
		return err
	}
	if r := recordOf(role); r.complete() && r.Progress != assigning {
		return s.applyImport(ctx, record{assigning, r.tuple})
	}
	return nil
}

// kindsServed waits for the kinds of K-ORC that are read. Reading one that is not served would block
// on its cache.
func (s *pass) kindsServed() *order.Outcome {
	for _, kind := range []string{"Role", "User", "Project"} {
		if !s.serves(orcv1alpha1.SchemeGroupVersion.WithKind(kind)) {
			return order.Wait(v1alpha1.ReasonWaitingForDependencies, order.WaitShort,
				"the API server does not serve %s (%s); install K-ORC v2.6.0 or newer", kind, orcv1alpha1.SchemeGroupVersion)
		}
	}
	return nil
}

func (s *pass) serves(gvk schema.GroupVersionKind) bool { return s.Base.Served.Serves(gvk) }
