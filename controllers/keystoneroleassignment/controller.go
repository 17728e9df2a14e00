// Package keystoneroleassignment fulfils KeystoneRoleAssignment orders: one role for the user of a
// KeystoneUser on the project of a KeystoneProject.
//
// Where K-ORC serves its RoleAssignment kind, the order becomes one. Where it does not, which is so
// up to v2.6.0, the operator assigns the role in Keystone itself. Both are an assigner, and an order
// changes from one to the other without losing the role.
package keystoneroleassignment

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneroleassignments,verbs=list;watch;patch
// +kubebuilder:rbac:groups=c5c3.io,resources=keystoneroleassignments/status,verbs=patch
// +kubebuilder:rbac:groups=c5c3.io,resources=controlplanes;keystoneusers;keystoneprojects;keystoneapplicationcredentials,verbs=list;watch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=roles;roleassignments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=roles/status;roleassignments/status,verbs=patch
// +kubebuilder:rbac:groups=openstack.k-orc.cloud,resources=users;projects,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// changing is what tells of kinds that come and go.
type changing interface {
	// OnChange calls react whenever a kind appeared or went away.
	OnChange(react func(context.Context))
}

// Steps are what this kind adds to the scaffold, for tests that play pass after pass without a manager.
func Steps() order.Steps { return steps{} }

// Setup registers the controller of KeystoneRoleAssignment with the manager.
func Setup(ctx context.Context, env order.Environment, options controller.TypedOptions[mcreconcile.Request]) error {
	if err := korcapi.AddToScheme(env.Manager.GetLocalManager().GetScheme()); err != nil {
		return fmt.Errorf("registering K-ORC's RoleAssignment: %w", err)
	}
	return order.Setup(ctx, env.NewBase(order.RoleAssignmentKind), Steps(), env.Late, order.Watches{
		Siblings: []order.SiblingWatch{
			{Object: &v1alpha1.KeystoneUser{}, Handler: order.Siblings(order.RoleAssignmentKind, namesUser)},
			{Object: &v1alpha1.KeystoneProject{}, Handler: order.Siblings(order.RoleAssignmentKind, namesProject)},
			// A credential order that goes away releases the assignments of its pair.
			{Object: &v1alpha1.KeystoneApplicationCredential{}, Handler: order.Siblings(order.RoleAssignmentKind, samePair)},
			// An older duplicate that goes away hands over to the younger.
			{Object: &v1alpha1.KeystoneRoleAssignment{}, Handler: order.Siblings(order.RoleAssignmentKind, duplicates)},
		},
		Children: []client.Object{&orcv1alpha1.Role{}, &korcapi.RoleAssignment{}},
		Sources:  []source.TypedSource[mcreconcile.Request]{kindChanges(env)},
	}, options)
}

// kindChanges wakes every order of the management cluster when kinds come or go: K-ORC's RoleAssignment
// takes the assignments over, or hands them back. Orders on target clusters find out on their refresh.
func kindChanges(env order.Environment) source.TypedSource[mcreconcile.Request] {
	// Room for one: a wake-up that is already waiting covers what happened since.
	changes := make(chan event.TypedGenericEvent[client.Object], 1)
	if kinds, ok := env.Late.(changing); ok {
		kinds.OnChange(func(context.Context) {
			select {
			case changes <- event.TypedGenericEvent[client.Object]{Object: &v1alpha1.KeystoneRoleAssignment{}}:
			default:
			}
		})
	}
	return source.TypedChannel(changes, order.All(env.Manager, order.RoleAssignmentKind))
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

func duplicates(changed, sibling order.Object) bool {
	a, okA := changed.(*v1alpha1.KeystoneRoleAssignment)
	b, okB := sibling.(*v1alpha1.KeystoneRoleAssignment)
	return okA && okB && a.Name != b.Name && sameTuple(a, b)
}
