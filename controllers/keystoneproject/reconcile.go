package keystoneproject

import (
	"context"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// steps are what a KeystoneProject adds to the scaffold. They keep nothing between two passes.
type steps struct{}

var _ order.Steps = steps{}

// pass is one look at one KeystoneProject.
type pass struct {
	*order.Pass
	project *v1alpha1.KeystoneProject
	// managed is K-ORC's Project of the order, nil while there is none.
	managed *orcv1alpha1.Project
}

func newPass(p *order.Pass) *pass {
	return &pass{Pass: p, project: p.Order.(*v1alpha1.KeystoneProject)} // the kind's own constructor made it
}

// Provision implements order.Steps.
func (steps) Provision(ctx context.Context, p *order.Pass) {
	state := newPass(p)
	outcome := order.Run(state, []order.Step[*pass]{
		{Name: "kind", Do: with(ctx, (*pass).kindServed)},
		{Name: "name", Do: with(ctx, (*pass).nameAdmitted)},
		{Name: "observe", Do: with(ctx, (*pass).observe)},
		{Name: "probe", Do: with(ctx, (*pass).probe)},
		{Name: "claim", Do: with(ctx, (*pass).claim)},
		{Name: "project", Do: with(ctx, (*pass).settle)},
		{Name: "audit", Do: with(ctx, (*pass).audit)},
		{Name: "provisioned", Do: (*pass).provisioned},
	})
	p.Report(v1alpha1.ConditionProjectReady, outcome)
}

// Teardown implements order.Steps.
func (steps) Teardown(ctx context.Context, p *order.Pass) bool {
	state := newPass(p)
	if p.ControlPlane == nil {
		state.abandon(ctx)
		return true
	}
	outcome := order.Run(state, []order.Step[*pass]{
		{Name: "held", Do: with(ctx, (*pass).held)},
		{Name: "remember", Do: with(ctx, (*pass).remember)},
		{Name: "sweep", Do: with(ctx, (*pass).sweep)},
		{Name: "prove", Do: with(ctx, (*pass).prove)},
	})
	if outcome != nil {
		p.Report(v1alpha1.ConditionProjectReady, outcome)
	}
	return outcome == nil
}

// with binds a step to the pass's context.
func with(ctx context.Context, do func(*pass, context.Context) *order.Outcome) func(*pass) *order.Outcome {
	return func(s *pass) *order.Outcome { return do(s, ctx) }
}
