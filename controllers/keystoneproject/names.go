package keystoneproject

import (
	"context"
	"unicode/utf8"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// maxNameLength is Keystone's limit on a project's name, in characters. The order's own limit is
// wider, as the contract has it, so a longer name gets this far.
const maxNameLength = 64

// reservedNames are the projects of the control plane's own services, which no order may have: an
// order's owner gets whatever role the ControlPlane admits on its project.
var reservedNames = []string{
	"service-glance", "service-placement", "service-barbican",
	"service-neutron", "service-cinder", "service-nova",
}

// reserved tells whether a name is the administrator's project or one of the services', in any
// spelling that Keystone's database takes for the same.
func reserved(name, adminProject string) bool {
	folded := order.FoldName(name)
	for _, taken := range append([]string{adminProject}, reservedNames...) {
		if order.FoldName(taken) == folded {
			return true
		}
	}
	return false
}

// nameAdmitted refuses names that can never be fulfilled. No watch of a spec's change is needed to
// come back: the name is immutable, and a ControlPlane that changes its own wakes its orders.
func (s *pass) nameAdmitted(context.Context) *order.Outcome {
	name := s.project.EffectiveProjectName()
	if reserved(name, order.AdminProjectName(s.ControlPlane)) {
		return order.Wait(v1alpha1.ReasonProjectCollision, order.WaitRefused,
			"project name %q is reserved for the control plane; delete the order and create it with another spec.projectName", name)
	}
	if length := utf8.RuneCountInString(name); length > maxNameLength {
		return order.Wait(v1alpha1.ReasonProjectFailed, order.WaitRefused,
			"project name %q has %d characters and Keystone's limit is %d; delete the order and create it with a shorter spec.projectName", name, length, maxNameLength)
	}
	return nil
}
