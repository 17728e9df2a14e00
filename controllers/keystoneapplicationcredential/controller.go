// Package keystoneapplicationcredential reconciles KeystoneApplicationCredential: it creates the
// credential through K-ORC as the ordered user, has it backed up, delivers it, rotates it, and ends
// a credential only on Keystone's own word.
//
// What a rotation does next is decided by internal/rotation. This package observes, asks Keystone
// what the decision wants to know, carries the plan out and reports.
package keystoneapplicationcredential

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneapplicationcredentials,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneapplicationcredentials/status,verbs=patch
// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneusers;keystoneprojects;keystoneroleassignments;controlplanes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=applicationcredentials,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=applicationcredentials/status,verbs=patch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=users,verbs=get;list;watch
// +kubebuilder:rbac:groups=external-secrets.io,resources=pushsecrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=external-secrets.io,resources=secretstores;clustersecretstores,verbs=list;watch

type reconciler struct{}

var _ order.Steps = reconciler{}

// Steps are what this kind adds to the scaffold, for tests that play pass after pass without a manager.
func Steps() order.Steps { return reconciler{} }

// Setup registers the controller with the manager.
func Setup(ctx context.Context, env order.Environment, options controller.TypedOptions[mcreconcile.Request]) error {
	return order.Setup(ctx, env.NewBase(order.ApplicationCredentialKind), Steps(), env.Late, order.Watches{
		Delivers: true,
		Siblings: []order.SiblingWatch{
			{Object: &v1alpha1.KeystoneUser{}, Handler: order.Siblings(order.ApplicationCredentialKind, namesUser)},
			{Object: &v1alpha1.KeystoneProject{}, Handler: order.Siblings(order.ApplicationCredentialKind, namesProject)},
			{Object: &v1alpha1.KeystoneRoleAssignment{}, Handler: order.Siblings(order.ApplicationCredentialKind, samePair)},
		},
		Children: []client.Object{&orcv1alpha1.ApplicationCredential{}, &externalsecrets.PushSecret{}},
	}, options)
}

func namesUser(changed, sibling order.Object) bool {
	user, _ := order.References(sibling)
	return user == changed.GetName()
}

func namesProject(changed, sibling order.Object) bool {
	_, project := order.References(sibling)
	return project == changed.GetName()
}

func samePair(changed, sibling order.Object) bool {
	user, project := order.References(changed)
	siblingUser, siblingProject := order.References(sibling)
	return user == siblingUser && project == siblingProject
}
