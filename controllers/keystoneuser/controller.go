// Package keystoneuser fulfils KeystoneUser orders: a user in Keystone with a generated password,
// backed up, delivered beside the order, rotated, and taken away with it.
//
// K-ORC makes the user. What K-ORC v2.6.0 cannot be trusted with is asked of Keystone itself: that
// the name is free before it is taken, that a password is good before it is delivered, and that the
// user is gone before the order is released.
//
// Whose a user is says its description in Keystone, which names the order with its UID, and what K-ORC
// and the operator keep in the ControlPlane's namespace. The id in the order's status is for its readers
// only: whoever may write status on the order's cluster could put the administrator's there.
package keystoneuser

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

// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneusers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneusers/status,verbs=patch
// +kubebuilder:rbac:groups=c5c3.io,resources=controlplanes;keystoneroleassignments;keystoneapplicationcredentials,verbs=list;watch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=users,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=users/status,verbs=patch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=domains,verbs=list;watch
// +kubebuilder:rbac:groups=external-secrets.io,resources=pushsecrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=external-secrets.io,resources=secretstores;clustersecretstores,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Steps are what this kind adds to the scaffold, for tests that play pass after pass without a manager.
func Steps() order.Steps { return steps{} }

// Setup registers the controller of KeystoneUser with the manager.
func Setup(ctx context.Context, env order.Environment, options controller.TypedOptions[mcreconcile.Request]) error {
	// A role assignment or a credential order that goes away may release a user that waits for it,
	// and lets a scheduled password rotation go on.
	named := order.Names(func(changed order.Object) []string {
		if user, _ := order.References(changed); user != "" {
			return []string{user}
		}
		return nil
	})
	return order.Setup(ctx, env.NewBase(order.UserKind), Steps(), env.Late, order.Watches{
		Delivers: true,
		Siblings: []order.SiblingWatch{
			{Object: &v1alpha1.KeystoneRoleAssignment{}, Handler: named},
			{Object: &v1alpha1.KeystoneApplicationCredential{}, Handler: named},
		},
		Children: []client.Object{&orcv1alpha1.User{}, &externalsecrets.PushSecret{}},
	}, options)
}
