package keystoneroleassignment

import (
	"context"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// steps are what a KeystoneRoleAssignment adds to the scaffold. They keep nothing between two passes.
type steps struct{}

var _ order.Steps = steps{}

// pass is one look at one KeystoneRoleAssignment.
type pass struct {
	*order.Pass
	order *v1alpha1.KeystoneRoleAssignment
	// role is K-ORC's import of the role, nil while there is none. Its annotation is the order's
	// durable record of what was asked of Keystone (see record).
	role *orcv1alpha1.Role
	// wanted are Keystone's ids of what is to be assigned.
	wanted tuple
}

func newPass(p *order.Pass) *pass {
	return &pass{Pass: p, order: p.Order.(*v1alpha1.KeystoneRoleAssignment)} // the kind's own constructor made it
}

// Provision implements order.Steps. The gates come in the contract's order, and the first reads or
// writes nothing in the ControlPlane's namespace: a role that is not allowed freezes the order.
func (steps) Provision(ctx context.Context, p *order.Pass) {
	s := newPass(p)
	outcome := order.Run(s, []order.Step[*pass]{
		{Name: "role allowed", Do: with(ctx, (*pass).roleAllowed)},
		{Name: "user", Do: with(ctx, (*pass).userReady)},
		{Name: "project", Do: with(ctx, (*pass).projectReady)},
		{Name: "duplicates", Do: with(ctx, (*pass).eldest)},
		{Name: "role import", Do: with(ctx, (*pass).importRole)},
		{Name: "ids", Do: with(ctx, (*pass).resolve)},
		{Name: "assignment", Do: with(ctx, (*pass).assign)},
	})
	p.Report(v1alpha1.ConditionAssignmentReady, outcome)
}

// Teardown implements order.Steps.
func (steps) Teardown(ctx context.Context, p *order.Pass) bool {
	s := newPass(p)
	if p.ControlPlane == nil {
		s.abandon(ctx)
		return true
	}
	outcome := order.Run(s, []order.Step[*pass]{
		{Name: "held", Do: with(ctx, (*pass).held)},
		{Name: "observe", Do: with(ctx, (*pass).observe)},
		{Name: "revoke", Do: with(ctx, (*pass).revoke)},
		{Name: "sweep", Do: with(ctx, (*pass).sweep)},
	})
	if outcome != nil {
		p.Report(v1alpha1.ConditionAssignmentReady, outcome)
	}
	return outcome == nil
}

// with binds a step to the pass's context.
func with(ctx context.Context, do func(*pass, context.Context) *order.Outcome) func(*pass) *order.Outcome {
	return func(s *pass) *order.Outcome { return do(s, ctx) }
}
