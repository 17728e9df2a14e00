package keystoneapplicationcredential

import (
	"context"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// state is what one pass knows.
type state struct {
	*order.Pass

	order   *v1alpha1.KeystoneApplicationCredential
	user    *v1alpha1.KeystoneUser
	project *v1alpha1.KeystoneProject

	bundle   []byte
	children map[int64]child
	input    rotation.Input
	plan     rotation.Plan
	asked    questions
}

// Provision is one pass over an order that may be served.
func (reconciler) Provision(ctx context.Context, p *order.Pass) {
	s := &state{Pass: p, order: p.Order.(*v1alpha1.KeystoneApplicationCredential)}
	p.Report(v1alpha1.ConditionCredentialReady, s.provision(ctx))
	if failure := s.plan.Failed; failure != nil && p.Entered(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialFailed) {
		p.WhenPersisted(func() { p.Count().RotationFailed(p.Kind.Name, string(failure.Kind)) })
	}
	p.Report(v1alpha1.ConditionDeliveryReady, s.deliver(ctx))
}

// provision goes from the references to the live credential in Keystone. A refusal by a reference
// pauses the schedule and leaves everything that is there.
func (s *state) provision(ctx context.Context) *order.Outcome {
	return order.Run(s, []order.Step[*state]{
		{Name: "user", Do: func(s *state) *order.Outcome { return s.resolveUser(ctx) }},
		{Name: "project", Do: func(s *state) *order.Outcome { return s.resolveProject(ctx) }},
		{Name: "role on the project", Do: func(s *state) *order.Outcome { return s.roleOnProject(ctx) }},
		{Name: "mint document", Do: func(s *state) *order.Outcome { return s.writeMintDocument(ctx) }},
		{Name: "observe", Do: func(s *state) *order.Outcome { return s.observe(ctx) }},
		{Name: "decide", Do: func(s *state) *order.Outcome { return s.decide(ctx) }},
		{Name: "act", Do: func(s *state) *order.Outcome { return s.act(ctx) }},
		{Name: "report", Do: (*state).report},
	})
}
