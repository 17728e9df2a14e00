package keystoneroleassignment

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// Discriminators of the children.
const (
	roleChild       = "role"
	assignmentChild = "assignment"
)

// Discriminators of the children of the orders that this one names.
const (
	userChild    = "user"
	projectChild = "project"
)

// maxRoleLength is K-ORC's limit on the name of a role to import, in characters.
const maxRoleLength = 64

// roleMayBeMissingAfter is when a role that K-ORC did not find is called missing. Earlier it is as
// likely that K-ORC has not asked yet.
const roleMayBeMissingAfter = 2 * time.Minute

// importRole has K-ORC look the role up by its name. The import is also the order's record: it is
// there before anything is assigned, and goes only after everything was taken away.
func (s *pass) importRole(ctx context.Context) *order.Outcome {
	if outcome := s.kindsServed(); outcome != nil {
		return outcome
	}
	if length := utf8.RuneCountInString(s.order.Spec.Role); length > maxRoleLength {
		return order.Wait(v1alpha1.ReasonRoleAssignmentFailed, order.WaitRefused,
			"role %q has %d characters and K-ORC's limit is %d; order a role with a shorter name", s.order.Spec.Role, length, maxRoleLength)
	}
	existing := &orcv1alpha1.Role{ObjectMeta: s.ChildMeta(roleChild)}
	if _, err := s.Read(ctx, existing); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if err := s.applyImport(ctx, recordOf(existing)); err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	if !s.role.DeletionTimestamp.IsZero() {
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
			"somebody deleted K-ORC's Role %s/%s; it is made anew once it is gone", s.role.Namespace, s.role.Name)
	}
	state := s.Settle(ctx, s.role)
	switch {
	case state.UnlatchError == nil && state.Progress == korc.Terminal:
		return s.importGivenUp(ctx, state)
	case state.UnlatchError != nil || state.Progress != korc.Available || ptr.Deref(s.role.Status.ID, "") == "":
		return s.WaitOnChild(v1alpha1.ReasonWaitingForServiceAccounts, s.notImported(), state)
	}
	return nil
}

// applyImport writes the import with the record.
func (s *pass) applyImport(ctx context.Context, r record) error {
	role := &orcv1alpha1.Role{ObjectMeta: s.ChildMeta(roleChild)}
	if r != (record{}) {
		role.Annotations = map[string]string{recordAnnotation: r.String()}
	}
	role.Spec = orcv1alpha1.RoleSpec{
		ManagementPolicy:    orcv1alpha1.ManagementPolicyUnmanaged,
		CloudCredentialsRef: order.AdminCloudRef(s.ControlPlane),
		Import: &orcv1alpha1.RoleImport{Filter: &orcv1alpha1.RoleFilter{
			Name: ptr.To(orcv1alpha1.KeystoneName(s.order.Spec.Role)),
		}},
	}
	if err := s.Apply(ctx, role); err != nil {
		return err
	}
	s.role = role
	return nil
}

func (s *pass) notImported() string {
	what := fmt.Sprintf("K-ORC has not found role %q yet", s.order.Spec.Role)
	if created := s.role.CreationTimestamp; !created.IsZero() && s.Now.Sub(created.Time) > roleMayBeMissingAfter {
		what += "; the role may not exist in Keystone"
	}
	return what
}

// importGivenUp asks Keystone about a role that K-ORC gave up on. In an outage K-ORC takes any failure
// to read a role for the role's absence.
func (s *pass) importGivenUp(ctx context.Context, state order.ChildState) *order.Outcome {
	failed := order.Wait(v1alpha1.ReasonRoleAssignmentFailed, order.WaitLong,
		"K-ORC gave up on role %q (Role %s/%s): %s: %s", s.order.Spec.Role, s.role.Namespace, s.role.Name, state.Reason, state.Message)
	id := ptr.Deref(s.role.Status.ID, "")
	if id == "" {
		// It never found one; several roles of the name, for example. Keystone's answer would be
		// the same.
		return failed
	}
	session, err := s.Admin(ctx)
	if err != nil {
		return s.unanswered(err)
	}
	switch exists, err := session.RoleExists(ctx, id); {
	case err != nil:
		return s.unanswered(err)
	case !exists:
		return failed
	}
	if err := s.Unlatch(ctx, s.role); err != nil {
		return order.Wait(v1alpha1.ReasonTransportErrorRetryFailed, order.WaitShort,
			"K-ORC gave up on role %q (%s: %s) although Keystone has it; telling K-ORC to look again failed: %v", s.order.Spec.Role, state.Reason, state.Message, err)
	}
	return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
		"K-ORC gave up on role %q (%s: %s) although Keystone has it; K-ORC is told to look again", s.order.Spec.Role, state.Reason, state.Message)
}

// resolve finds out which ids the assignment has in Keystone. They come from K-ORC's objects and never
// from the status of an order: status lives on the order's cluster, and whoever could write an id
// there could have any user given a role on any project.
func (s *pass) resolve(ctx context.Context) *order.Outcome {
	wanted, err := s.ids(ctx, s.Management)
	if err != nil {
		return order.Fail(v1alpha1.ReasonRoleAssignmentError, err)
	}
	switch {
	case wanted.UserID == "":
		return order.Wait(v1alpha1.ReasonWaitingForUser, order.WaitShort, "K-ORC's User of KeystoneUser %q has no id", s.order.Spec.UserRef.Name)
	case wanted.ProjectID == "":
		return order.Wait(v1alpha1.ReasonWaitingForProject, order.WaitShort, "K-ORC's Project of KeystoneProject %q has no id", s.order.Spec.ProjectRef.Name)
	}
	s.wanted = wanted
	return nil
}

// ids are the ids as far as K-ORC's objects tell them.
func (s *pass) ids(ctx context.Context, reader client.Reader) (tuple, error) {
	user, project := &orcv1alpha1.User{}, &orcv1alpha1.Project{}
	userKey := s.UserKey(s.order.Spec.UserRef.Name)
	if err := s.readOther(ctx, reader, order.UserKind, userKey, userChild, user); err != nil {
		return tuple{}, err
	}
	projectKey := s.ProjectKey(s.order.Spec.ProjectRef.Name)
	if err := s.readOther(ctx, reader, order.ProjectKind, projectKey, projectChild, project); err != nil {
		return tuple{}, err
	}
	return tuple{
		RoleID:    ptr.Deref(s.role.Status.ID, ""),
		UserID:    ptr.Deref(user.Status.ID, ""),
		ProjectID: ptr.Deref(project.Status.ID, ""),
	}, nil
}

// readOther reads another order's child, and leaves object empty when there is none. A foreign object
// of the name is an error.
func (s *pass) readOther(ctx context.Context, reader client.Reader, kind order.Kind, owner order.Key, discriminator string, object client.Object) error {
	key := types.NamespacedName{Namespace: s.ChildNamespace(), Name: kind.Prefix(owner) + discriminator}
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", object, key, err)
	}
	if found, ok := kind.KeyFromLabels(object.GetLabels()); !ok || found != owner {
		return &order.ForeignError{Kind: fmt.Sprintf("%T", object), Namespace: key.Namespace, Name: key.Name}
	}
	return nil
}
