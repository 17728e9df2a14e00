package controlplane

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// The kinds of the imports.
var (
	domainKind = orcv1alpha1.SchemeGroupVersion.WithKind("Domain")
	userKind   = orcv1alpha1.SchemeGroupVersion.WithKind("User")
)

// importAdmin has K-ORC import the admin's domain, which the children of all orders refer to, and
// the admin. That both are found also proves that K-ORC gets in with the cloud.
func (p *pass) importAdmin(ctx context.Context) {
	for _, kind := range p.seen.importKindsMissing() {
		p.log.V(1).Info("not imported: the kind is not served", "kind", kind.Kind)
		return
	}
	domain, domainState := p.importDomain(ctx)
	p.seen.imports = append(p.seen.imports, domainState)
	if domainState.state.Progress != korc.Available {
		return
	}
	if domain.Status.ID != nil {
		p.cp.Status.DomainID = *domain.Status.ID
	}
	user, userState := p.importUser(ctx)
	p.seen.imports = append(p.seen.imports, userState)
	if userState.state.Progress == korc.Available && user.Status.ID != nil {
		p.cp.Status.AdminUserID = *user.Status.ID
	}
}

func (p *pass) importDomain(ctx context.Context) (*orcv1alpha1.Domain, imported) {
	name := order.AdminDomain(p.cp)
	domain := &orcv1alpha1.Domain{Spec: orcv1alpha1.DomainSpec{
		CloudCredentialsRef: order.AdminCloudRef(p.cp),
		ManagementPolicy:    orcv1alpha1.ManagementPolicyUnmanaged,
		Import:              &orcv1alpha1.DomainImport{Filter: &orcv1alpha1.DomainFilter{Name: new(orcv1alpha1.KeystoneName(name))}},
	}}
	what := fmt.Sprintf("the domain %q (Domain %s/%s)", name, p.cp.Namespace, order.DomainImportName(p.cp))
	result := p.apply(ctx, domain, &domain.ObjectMeta, order.DomainImportName(p.cp), what)
	if found := domain.Status.Resource; found != nil && found.Name != "" && found.Name != name {
		result.mismatch = mismatch(what, found.Name)
	}
	return domain, result
}

func (p *pass) importUser(ctx context.Context) (*orcv1alpha1.User, imported) {
	name := order.AdminUserName(p.cp)
	user := &orcv1alpha1.User{Spec: orcv1alpha1.UserSpec{
		CloudCredentialsRef: order.AdminCloudRef(p.cp),
		ManagementPolicy:    orcv1alpha1.ManagementPolicyUnmanaged,
		Import: &orcv1alpha1.UserImport{Filter: &orcv1alpha1.UserFilter{
			Name:      new(orcv1alpha1.OpenStackName(name)),
			DomainRef: new(orcv1alpha1.KubernetesNameRef(order.DomainImportName(p.cp))),
		}},
	}}
	what := fmt.Sprintf("the administrator %q (User %s/%s)", name, p.cp.Namespace, order.UserImportName(p.cp))
	result := p.apply(ctx, user, &user.ObjectMeta, order.UserImportName(p.cp), what)
	if found := user.Status.Resource; found != nil && found.Name != "" && found.Name != name {
		result.mismatch = mismatch(what, found.Name)
	}
	return user, result
}

// mismatch is the message for an import that was made under another name. K-ORC does not look again
// once it knows an id.
func mismatch(what, found string) string {
	return fmt.Sprintf("K-ORC imported %q as %s before the ControlPlane named another; delete that object once nothing refers to it, or take the change of spec.korc.adminCredential back", found, what)
}

// apply writes an import and reads what K-ORC makes of it.
func (p *pass) apply(ctx context.Context, object order.KORCObject, metadata *metav1.ObjectMeta, name, what string) imported {
	result := imported{what: what, state: order.ChildState{Progress: korc.Pending}}
	wanted, err := p.childMeta(name)
	if err != nil {
		result.err = err
		return result
	}
	*metadata = wanted
	if err := p.writer().Apply(ctx, object); err != nil {
		result.err = err
		return result
	}
	settler := order.Settler{Client: p.client, Now: p.now, ComeBack: p.comeBack, Log: p.log}
	result.state = settler.Settle(ctx, object)
	// During an outage K-ORC also reports what it imported as deleted, and never looks again. The
	// operator has just logged in as the admin, in the admin's domain: both are there. An import
	// creates nothing, so having K-ORC look again can do no harm.
	latched := result.state.Progress == korc.Terminal && result.state.Reason == orcv1alpha1.ConditionReasonUnrecoverableError
	if latched && p.seen.login.class == keystone.OK {
		result.state.Progress = korc.Pending
		result.state.UnlatchError = settler.Unlatch(ctx, object)
	}
	return result
}
