package keystoneproject

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// probe finds out whether the name is free. K-ORC's create takes over a project of the same name
// without a word, so the operator looks first, through an import that K-ORC makes nothing for. What
// the import says is only the first half: it says "waiting to be created" also when its question
// failed, and it never looks again once it has found something. Keystone's own answer decides.
func (s *pass) probe(ctx context.Context) *order.Outcome {
	probe := &orcv1alpha1.Project{ObjectMeta: s.ChildMeta(probeChild)}
	if s.managed != nil {
		if err := s.Delete(ctx, probe); err != nil {
			return order.Fail(v1alpha1.ReasonProjectError, err)
		}
		return nil
	}
	name := s.project.EffectiveProjectName()
	probe.Spec = orcv1alpha1.ProjectSpec{
		ManagementPolicy:    orcv1alpha1.ManagementPolicyUnmanaged,
		CloudCredentialsRef: order.AdminCloudRef(s.ControlPlane),
		Import: &orcv1alpha1.ProjectImport{Filter: &orcv1alpha1.ProjectFilter{
			Name:      ptr.To(orcv1alpha1.KeystoneName(name)),
			DomainRef: s.domainRef(),
		}},
	}
	if err := s.Apply(ctx, probe); err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	state := s.Settle(ctx, probe)
	switch {
	case state.UnlatchError != nil:
		return s.WaitOnChild(v1alpha1.ReasonProbingForCollision, fmt.Sprintf("asking whether project name %q is free in Keystone", name), state)
	case state.Progress == korc.Available, state.Progress == korc.Terminal, korc.WaitingForExternalCreation(state.Message):
		return s.free(ctx)
	}
	return s.WaitOnChild(v1alpha1.ReasonProbingForCollision, fmt.Sprintf("asking whether project name %q is free in Keystone", name), state)
}

// free asks Keystone itself. A project that carries the order's mark is the order's: K-ORC's object
// may have been lost while the project lived on, and K-ORC will adopt it by its name.
func (s *pass) free(ctx context.Context) *order.Outcome {
	name := s.project.EffectiveProjectName()
	found, err := s.namesakes(ctx)
	if err != nil {
		return s.WaitOnKeystone(v1alpha1.ReasonProbingForCollision, err, "nothing is created before Keystone itself has said that project name %q is free", name)
	}
	for _, project := range found {
		if project.Description != s.Mark() {
			return order.Wait(v1alpha1.ReasonProjectCollision, order.WaitLong,
				"Keystone has a project of the name %q (id %s) in domain %q, and the operator never takes one over; delete or rename that project, or delete the order and create it under another name",
				name, project.ID, order.AdminDomain(s.ControlPlane))
		}
	}
	return nil
}

// claim makes the K-ORC Project, unless another order of this ControlPlane was first.
func (s *pass) claim(ctx context.Context) *order.Outcome {
	if s.managed != nil {
		return s.apply(ctx)
	}
	outcome := s.Claim(ctx, order.Claim{
		Name: s.project.EffectiveProjectName(), Noun: "project", Domain: *s.domainRef(),
		Child: s.Child(projectChild), Objects: &orcv1alpha1.ProjectList{}, Collision: v1alpha1.ReasonProjectCollision,
	}, func() *order.Outcome { return s.apply(ctx) })
	if outcome != nil {
		return outcome
	}
	if err := s.Delete(ctx, &orcv1alpha1.Project{ObjectMeta: s.ChildMeta(probeChild)}); err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	return nil
}

// apply writes the K-ORC Project.
func (s *pass) apply(ctx context.Context) *order.Outcome {
	managed := &orcv1alpha1.Project{ObjectMeta: s.ChildMeta(projectChild)}
	managed.Spec = orcv1alpha1.ProjectSpec{
		ManagementPolicy: orcv1alpha1.ManagementPolicyManaged,
		// The password cloud: the delete must get in after application credentials were revoked.
		CloudCredentialsRef: order.AdminCloudRef(s.ControlPlane),
		Resource: &orcv1alpha1.ProjectResourceSpec{
			Name:        ptr.To(orcv1alpha1.KeystoneName(s.project.EffectiveProjectName())),
			Description: ptr.To(s.Mark()),
			DomainRef:   s.domainRef(),
		},
	}
	if err := s.Apply(ctx, managed); err != nil {
		return order.Fail(v1alpha1.ReasonProjectError, err)
	}
	s.managed = managed
	return nil
}

// namesakes are Keystone's projects of the order's name, in its domain.
func (s *pass) namesakes(ctx context.Context) ([]keystone.Project, error) {
	domain, err := s.domainID(ctx)
	if err != nil {
		return nil, err
	}
	session, err := s.Admin(ctx)
	if err != nil {
		return nil, err
	}
	return session.FindProjects(ctx, s.project.EffectiveProjectName(), domain)
}

// domainID is the id of the domain that orders create in. Without one the question would go to all
// domains, and somebody else's project would count as a collision.
func (s *pass) domainID(ctx context.Context) (string, error) {
	if id := s.ControlPlane.Status.DomainID; id != "" {
		return id, nil
	}
	domain := &orcv1alpha1.Domain{}
	key := types.NamespacedName{Namespace: s.ControlPlane.Namespace, Name: order.DomainImportName(s.ControlPlane)}
	if err := s.Management.Get(ctx, key, domain); err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading K-ORC's Domain %s: %w", key, err)
	}
	if id := ptr.Deref(domain.Status.ID, ""); id != "" {
		return id, nil
	}
	return "", fmt.Errorf("K-ORC has not imported domain %q yet (Domain %s)", order.AdminDomain(s.ControlPlane), key)
}

func (s *pass) domainRef() *orcv1alpha1.KubernetesNameRef {
	return ptr.To(orcv1alpha1.KubernetesNameRef(order.DomainImportName(s.ControlPlane)))
}
