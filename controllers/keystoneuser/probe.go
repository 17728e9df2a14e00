package keystoneuser

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// probe finds out whether the name is free. K-ORC's create takes over a user of the same name
// without a word, so the operator looks first, through an import that K-ORC makes nothing for.
func (s *pass) probe(ctx context.Context) *order.Outcome {
	probe := &orcv1alpha1.User{ObjectMeta: s.ChildMeta(probeChild)}
	if s.seen.managed != nil {
		if err := s.Delete(ctx, probe); err != nil {
			return order.Fail(v1alpha1.ReasonServiceAccountError, err)
		}
		return nil
	}
	probe.Spec = orcv1alpha1.UserSpec{
		ManagementPolicy:    orcv1alpha1.ManagementPolicyUnmanaged,
		CloudCredentialsRef: order.AdminCloudRef(s.ControlPlane),
		Import: &orcv1alpha1.UserImport{Filter: &orcv1alpha1.UserFilter{
			Name:      ptr.To(orcv1alpha1.OpenStackName(s.user.EffectiveUserName())),
			DomainRef: ptr.To(s.domainRef()),
		}},
	}
	if err := s.Apply(ctx, probe); err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	state := s.Settle(ctx, probe)
	switch {
	case state.Progress == korc.Terminal:
		return s.probeGivenUp(ctx, probe, state)
	case state.Progress == korc.Available, korc.WaitingForExternalCreation(state.Message):
		return s.free(ctx)
	}
	return s.WaitOnChild(v1alpha1.ReasonProbingForCollision,
		fmt.Sprintf("asking whether user name %q is free in Keystone", s.user.EffectiveUserName()), state)
}

// severalMatches is what K-ORC says of an import that several users match.
const severalMatches = "more than one matching"

func (s *pass) probeGivenUp(ctx context.Context, probe *orcv1alpha1.User, state order.ChildState) *order.Outcome {
	if strings.Contains(state.Message, severalMatches) {
		return s.probeAgain(ctx, probe, order.Wait(v1alpha1.ReasonServiceAccountCollision, order.WaitLong,
			"Keystone has several users that its database takes for %q, and the operator never takes one over; delete the order and create it under another name", s.user.EffectiveUserName()))
	}
	return s.probeAgain(ctx, probe, order.Wait(v1alpha1.ReasonServiceAccountsFailed, order.WaitLong,
		"K-ORC gave up looking whether user name %q is free: %s: %s", s.user.EffectiveUserName(), state.Reason, state.Message))
}

// probeAgain removes a probe whose answer K-ORC would never revise, so that the next pass gets another.
func (s *pass) probeAgain(ctx context.Context, probe *orcv1alpha1.User, outcome *order.Outcome) *order.Outcome {
	if err := s.Delete(ctx, probe); err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	return outcome
}

// free asks Keystone itself, whose answer decides. K-ORC says "waiting to be created" also when its
// question failed, a certificate that is not trusted among the causes, and it never looks again once it
// has found somebody, who may have made room.
//
// A user that carries the order's mark is the order's: K-ORC's object may have been lost while the user
// lived on, and K-ORC adopts it by its name. One whose description was edited is refused. A login with
// the order's passwords would tell as well, but against somebody else's user it fails, on every pass, and
// Keystone may lock a user after a number of failures.
func (s *pass) free(ctx context.Context) *order.Outcome {
	users, err := s.namesakes(ctx)
	if err != nil {
		return s.WaitOnKeystone(v1alpha1.ReasonProbingForCollision, err,
			"nothing is created before Keystone itself has said that user name %q is free", s.user.EffectiveUserName())
	}
	for _, user := range users {
		if user.Description != s.Mark() {
			return order.Wait(v1alpha1.ReasonServiceAccountCollision, order.WaitLong,
				"Keystone has a user of the name %q (id %s) in domain %q, and the operator never takes one over; delete or rename that user, or delete the order and create it under another name",
				s.user.EffectiveUserName(), user.ID, order.AdminDomain(s.ControlPlane))
		}
		s.ours = true
	}
	return nil
}

// namesakes are Keystone's users of the order's name, in its domain.
func (s *pass) namesakes(ctx context.Context) ([]keystone.User, error) {
	domain, err := s.domainID(ctx)
	if err != nil {
		return nil, err
	}
	session, err := s.Admin(ctx)
	if err != nil {
		return nil, err
	}
	return session.FindUsers(ctx, s.user.EffectiveUserName(), domain)
}

// domainID is the id of the domain that orders create in. Without one the question would go to all
// domains, and somebody else's user would count as a collision.
func (s *pass) domainID(ctx context.Context) (string, error) {
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

func (s *pass) domainRef() orcv1alpha1.KubernetesNameRef {
	return orcv1alpha1.KubernetesNameRef(order.DomainImportName(s.ControlPlane))
}
