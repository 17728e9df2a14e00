package keystoneuser

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// serviceUsers are the users that a ControlPlane's services log in as, whether or not the service is
// enabled today: it may be tomorrow, and would then find its name taken.
var serviceUsers = []string{
	"glance", "placement", "barbican", "neutron", "cinder", "nova", "neutron-nova", "hypervisor-operator",
}

// maxUserName is Keystone's limit on a user's name, in characters. K-ORC has the same.
const maxUserName = 255

// nameAdmitted refuses names that no order may have. Admission refuses most of them already; the
// check is repeated because an order may have been stored under older rules.
func (s *pass) nameAdmitted(context.Context) *order.Outcome {
	name := s.user.EffectiveUserName()
	if why := malformed(name); why != "" {
		return order.Wait(v1alpha1.ReasonServiceAccountsFailed, order.WaitRefused,
			"user name %q %s; the name is immutable: delete the order and create it under another", name, why)
	}
	if reserved(s.ControlPlane, name) {
		return order.Wait(v1alpha1.ReasonServiceAccountCollision, order.WaitRefused,
			"user name %q is reserved: ControlPlane %s/%s uses it, or Keystone's database takes it for one that it uses, for its administrator or a service; the name is immutable: delete the order and create it under another",
			name, s.ControlPlane.Namespace, s.ControlPlane.Name)
	}
	return nil
}

// malformed says what of a name Keystone or K-ORC would refuse, empty for nothing.
func malformed(name string) string {
	switch {
	case utf8.RuneCountInString(name) > maxUserName:
		return "is longer than the 255 characters that Keystone takes"
	case strings.Contains(name, ","):
		return "contains a comma, which K-ORC does not take"
	case strings.TrimSpace(name) == "":
		return "is blank, which Keystone does not take"
	}
	return ""
}

// reserved compares names as Keystone's database does. Comparing exactly would let "Glance" pass, and
// K-ORC would then take over the service's own user.
func reserved(cp *v1alpha1.ControlPlane, name string) bool {
	folded := order.FoldName(name)
	for _, taken := range append([]string{order.AdminUserName(cp)}, serviceUsers...) {
		if order.FoldName(taken) == folded {
			return true
		}
	}
	return false
}
