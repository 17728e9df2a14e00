// Package keystoneproject fulfils KeystoneProject orders: a project in Keystone, made through K-ORC,
// reported in status, and taken away with the order.
//
// A project that the operator made names its order in its description, with the order's UID. That
// mark, and not an id in the order's status, decides what may be deleted in Keystone: status lives
// on the order's cluster, where the order's owner may be able to write it.
package keystoneproject

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneprojects,verbs=list;watch;patch
// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneprojects/status,verbs=patch
// +kubebuilder:rbac:groups=c5c3.io,resources=controlplanes;keystoneroleassignments;keystoneapplicationcredentials,verbs=list;watch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=projects,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=projects/status,verbs=patch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=domains,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Steps are what this kind adds to the scaffold, for tests that play pass after pass without a manager.
func Steps() order.Steps { return steps{} }

// Setup registers the controller of KeystoneProject with the manager.
func Setup(ctx context.Context, env order.Environment, options controller.TypedOptions[mcreconcile.Request]) error {
	// A role assignment or a credential order that goes away may release a project that waits for it.
	named := order.Names(func(changed order.Object) []string {
		if _, project := order.References(changed); project != "" {
			return []string{project}
		}
		return nil
	})
	return order.Setup(ctx, env.NewBase(order.ProjectKind), Steps(), env.Late, order.Watches{
		Siblings: []order.SiblingWatch{
			{Object: &v1alpha1.KeystoneRoleAssignment{}, Handler: named},
			{Object: &v1alpha1.KeystoneApplicationCredential{}, Handler: named},
		},
		Children: []client.Object{&orcv1alpha1.Project{}},
	}, options)
}
