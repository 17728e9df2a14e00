// Command invalid-keystoneroleassignment-cr writes the admission corpus of KeystoneRoleAssignment.
package main

import (
	"fmt"

	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

//go:generate go run .

func main() {
	const kind = admission.RoleAssignment
	admission.Generate(kind,
		admission.Order(kind),
		admission.OrderRef(kind, "userRef", "user"),
		admission.OrderRef(kind, "projectRef", "project"),
		role(),
	)
}

func role() []admission.Case {
	const (
		field = "spec.role"
		rule  = "role is immutable; delete and re-create the KeystoneRoleAssignment to assign another role"
	)
	cases := []admission.Case{
		admission.Refuses(admission.Missing(field), "no role", admission.Drop(field)),
		admission.Refuses(admission.Missing(field), "a role of null", admission.Set(field, nil)),
		admission.Refuses(admission.Unknown(admission.RoleAssignment, "spec.roles"), "several roles", admission.Set("spec.roles", []string{"member", "reader"})),
		admission.Refuses(admission.Unknown(admission.RoleAssignment, "spec.domainRef"), "a domain instead of a project", admission.Set("spec.domainRef", admission.Values{"name": "default"})),
		admission.Refuses(admission.Unknown(admission.RoleAssignment, "spec.groupRef"), "a group instead of a user", admission.Set("spec.groupRef", admission.Values{"name": "operators"})),
		admission.Takes(field, rule, "the role is written again", admission.Set(field, "member")).Of(),
	}
	for _, to := range []string{"admin", "Member", "member ", "reader"} {
		cases = append(cases, admission.Refuses(admission.BreaksWith(field, to, rule), fmt.Sprintf("the role becomes %q where it was member", to), admission.Set(field, to)).Of())
	}
	return append(cases, admission.KeystoneName(field, 255)...)
}
