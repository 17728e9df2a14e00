package keystoneproject

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// Discriminators of the children.
const (
	projectChild = "project"
	probeChild   = "project-probe"
)

// kindServed waits for K-ORC's kind. Reading a kind that is not served would block on its cache.
func (s *pass) kindServed(context.Context) *order.Outcome {
	gvk := orcv1alpha1.SchemeGroupVersion.WithKind("Project")
	if s.Base.Served.Serves(gvk) {
		return nil
	}
	return order.Wait(v1alpha1.ReasonWaitingForDependencies, order.WaitShort,
		"the API server does not serve %s (%s); install K-ORC v2.6.0 or newer", gvk.Kind, gvk.GroupVersion())
}

// observe reads K-ORC's Project from the cache. That it is missing is believed only when the API
// server says so: on the pass after its creation the cache may not have it yet, and a probe for its
// name would then find it.
func (s *pass) observe(ctx context.Context) *order.Outcome {
	managed := &orcv1alpha1.Project{ObjectMeta: s.ChildMeta(projectChild)}
	found, err := s.Read(ctx, managed)
	if err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	if found {
		s.managed = managed
	} else if err := s.observeLive(ctx); err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	if s.managed != nil && !s.managed.DeletionTimestamp.IsZero() {
		return order.Wait(v1alpha1.ReasonWaitingForProject, order.WaitShort,
			"somebody deleted K-ORC's Project %s/%s, and K-ORC is deleting project %q in Keystone; it is ordered anew once that is done",
			s.managed.Namespace, s.managed.Name, s.project.EffectiveProjectName())
	}
	return nil
}

func (s *pass) observeLive(ctx context.Context) error {
	managed := &orcv1alpha1.Project{}
	key := client.ObjectKey{Namespace: s.ChildNamespace(), Name: s.Child(projectChild)}
	err := s.Live.Get(ctx, key, managed)
	switch owner, ours := s.Kind.KeyFromLabels(managed.Labels); {
	case apierrors.IsNotFound(err):
		s.managed = nil
		return nil
	case err != nil:
		return fmt.Errorf("reading K-ORC's Project %s: %w", key, err)
	case !ours || owner != s.Key:
		return &order.ForeignError{Kind: "Project", Namespace: key.Namespace, Name: key.Name}
	}
	s.managed = managed
	return nil
}

// settle waits until K-ORC vouches for the project.
func (s *pass) settle(ctx context.Context) *order.Outcome {
	name := s.project.EffectiveProjectName()
	id := ptr.Deref(s.managed.Status.ID, "")
	state := s.Settle(ctx, s.managed)
	switch {
	case state.UnlatchError == nil && state.Progress == korc.Terminal:
		return s.givenUp(ctx, state)
	case state.UnlatchError != nil || state.Progress != korc.Available || id == "":
		return s.WaitOnChild(v1alpha1.ReasonWaitingForProject, fmt.Sprintf("K-ORC has not made project %q yet", name), state)
	}
	s.project.Status.ProjectID = id
	s.project.Status.ProjectName = name
	if resource := s.managed.Status.Resource; resource != nil && resource.Name != "" {
		s.project.Status.ProjectName = resource.Name
	}
	s.project.Status.DomainName = order.AdminDomain(s.ControlPlane)
	return nil
}

// audit looks at the project in Keystone once in a while, for K-ORC v2.6.0 does not look again by itself. It
// is told to, and what it finds then is reported on the passes that follow. A disabled project is left to
// whoever disabled it: K-ORC would not enable it, and the operator does not know better.
func (s *pass) audit(ctx context.Context) *order.Outcome {
	told, err := s.AuditChild(ctx, s.managed, func(session *keystone.Session) (bool, error) {
		there, err := session.ProjectExists(ctx, s.project.Status.ProjectID)
		return !there, err
	})
	if err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	if told {
		s.Eventf(corev1.EventTypeWarning, order.EventProjectDrifted, "Audit",
			"project %q (id %s) is gone in Keystone; K-ORC is told to look", s.project.EffectiveProjectName(), s.project.Status.ProjectID)
	}
	return nil
}

func (s *pass) provisioned() *order.Outcome {
	return order.Done(v1alpha1.ReasonProjectProvisioned, "project %q (id %s) is in domain %q",
		s.project.EffectiveProjectName(), s.project.Status.ProjectID, s.project.Status.DomainName)
}

// givenUp asks Keystone about a project that K-ORC gave up on. K-ORC's "terminal" is a hint: in an
// outage it takes any failure to read a project for the project's absence, and a create whose answer
// was lost for a conflict.
func (s *pass) givenUp(ctx context.Context, state order.ChildState) *order.Outcome {
	name := s.project.EffectiveProjectName()
	there, err := s.there(ctx)
	switch {
	case err != nil:
		return s.WaitOnKeystone(v1alpha1.ReasonWaitingForProject, err,
			"K-ORC gave up on project %q (%s: %s), and Keystone could not be asked whether that is so", name, state.Reason, state.Message)
	case there:
		// Looking again costs a request each half minute at most, and mends all that the
		// project's being there can mend. What it cannot mend comes back and is shown meanwhile.
		return s.lookAgain(ctx, state, "Keystone has it")
	case s.managed.Status.ID == nil && korc.IsConflict(state.Message):
		return s.conflict(ctx, state)
	case s.managed.Status.ID != nil:
		return order.Wait(v1alpha1.ReasonProjectFailed, order.WaitLong,
			"somebody deleted project %q (id %s) in Keystone, and K-ORC does not make it anew; to have the operator do so, empty and with a new id, delete K-ORC's Project %s/%s",
			name, *s.managed.Status.ID, s.managed.Namespace, s.managed.Name)
	}
	return order.Wait(v1alpha1.ReasonProjectFailed, order.WaitLong,
		"K-ORC gave up on project %q (Project %s/%s): %s: %s", name, s.managed.Namespace, s.managed.Name, state.Reason, state.Message)
}

// lookAgain has K-ORC look again at a project that it gave up on wrongly.
func (s *pass) lookAgain(ctx context.Context, state order.ChildState, although string) *order.Outcome {
	name := s.project.EffectiveProjectName()
	if err := s.Unlatch(ctx, s.managed); err != nil {
		return order.Wait(v1alpha1.ReasonTransportErrorRetryFailed, order.WaitShort,
			"K-ORC gave up on project %q (%s: %s) although %s; telling K-ORC to look again failed: %v", name, state.Reason, state.Message, although, err)
	}
	return order.Wait(v1alpha1.ReasonWaitingForProject, order.WaitShort,
		"K-ORC gave up on project %q (%s: %s) although %s; K-ORC is told to look again", name, state.Reason, state.Message, although)
}

// conflict looks for what a create of K-ORC's collided with. When Keystone says that nothing has the name,
// the conflict is over, and the next create succeeds. A namesake without the order's mark stays in the way.
func (s *pass) conflict(ctx context.Context, state order.ChildState) *order.Outcome {
	name := s.project.EffectiveProjectName()
	found, err := s.namesakes(ctx)
	switch {
	case err != nil:
		return s.WaitOnKeystone(v1alpha1.ReasonWaitingForProject, err,
			"K-ORC gave up on project %q (%s: %s), and Keystone could not be asked what has the name", name, state.Reason, state.Message)
	case len(found) == 0:
		return s.lookAgain(ctx, state, "Keystone says that the name is free")
	}
	return order.Wait(v1alpha1.ReasonProjectFailed, order.WaitLong,
		"Keystone has a project of the name %q (id %s) that is not this order's, made after the name was found free, and the operator never takes one over; delete or rename that project, or delete the order and create it under another name",
		name, found[0].ID)
}

// there tells whether Keystone has the order's project: by id when K-ORC knows it, else by name and
// mark. A namesake without the mark is another's, made between the probe and K-ORC's create.
func (s *pass) there(ctx context.Context) (bool, error) {
	if id := ptr.Deref(s.managed.Status.ID, ""); id != "" {
		session, err := s.Admin(ctx)
		if err != nil {
			return false, err
		}
		return session.ProjectExists(ctx, id)
	}
	found, err := s.namesakes(ctx)
	for _, project := range found {
		if project.Description == s.Mark() {
			return true, nil
		}
	}
	return false, err
}
