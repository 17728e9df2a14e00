package keystoneuser

import (
	"context"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// steps are what a KeystoneUser adds to the scaffold. They keep nothing between two passes.
type steps struct{}

var _ order.Steps = steps{}

// pass is one look at one KeystoneUser.
type pass struct {
	*order.Pass
	user *v1alpha1.KeystoneUser
	seen observation
	// ours is set when the name is taken in Keystone by a user that carries this order's mark: it
	// was made before the K-ORC object was lost.
	ours bool
	// lookedInto is the password generation that Keystone was asked about on this pass because it is said to
	// be dead, and foundDead whether that is so.
	lookedInto int64
	foundDead  bool
	// notes are what whoever reads a fulfilled order should know.
	notes []string
}

func newPass(p *order.Pass) *pass {
	return &pass{Pass: p, user: p.Order.(*v1alpha1.KeystoneUser)} // the kind's own constructor made it
}

// Provision implements order.Steps.
func (steps) Provision(ctx context.Context, p *order.Pass) {
	s := newPass(p)
	outcome := order.Run(s, []order.Step[*pass]{
		{Name: "kinds", Do: with(ctx, (*pass).kindsServed)},
		{Name: "name", Do: with(ctx, (*pass).nameAdmitted)},
		{Name: "observe", Do: with(ctx, (*pass).observe)},
		{Name: "store", Do: with(ctx, (*pass).storeReadyForFirst)},
		{Name: "probe", Do: with(ctx, (*pass).probe)},
		{Name: "password", Do: with(ctx, (*pass).password)},
		{Name: "user", Do: with(ctx, (*pass).settle)},
		{Name: "login", Do: with(ctx, (*pass).accept)},
		{Name: "audit", Do: with(ctx, (*pass).audit)},
	})
	provisioned := outcome == nil
	if provisioned {
		outcome = s.provisioned()
	}
	s.Report(v1alpha1.ConditionUserReady, outcome)
	if s.current() != s.user.Status.PasswordGeneration && s.Entered(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountsFailed) {
		s.WhenPersisted(func() { s.Count().RotationFailed(s.Kind.Name, string(rotation.TerminalByKORC)) })
	}
	// Delivery has its turn whatever came of the above: a Secret that somebody edited is repaired
	// also while K-ORC, Keystone or the store are away.
	s.Report(v1alpha1.ConditionDeliveryReady, s.deliver(ctx))
	if !provisioned {
		return
	}
	if outcome := s.prune(ctx); outcome != nil {
		s.Report(v1alpha1.ConditionUserReady, outcome)
	}
}

// with binds a step to the pass's context.
func with(ctx context.Context, do func(*pass, context.Context) *order.Outcome) func(*pass) *order.Outcome {
	return func(s *pass) *order.Outcome { return do(s, ctx) }
}
