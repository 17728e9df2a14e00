package keystoneapplicationcredential

import (
	"fmt"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/korc"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// report says how the credential is doing.
func (s *state) report() *order.Outcome {
	status, successor := s.input.Status, s.successor()
	switch {
	case s.plan.Failed != nil:
		return s.failed(*s.plan.Failed)
	case s.unlatchError() != nil:
		return order.Wait(v1alpha1.ReasonTransportErrorRetryFailed, order.WaitShort,
			"K-ORC gave up on generation %d for a broken connection, and making it try again failed: %v", s.plan.Desired, s.unlatchError())
	case status.Generation == 0:
		return s.waitForFirst()
	case s.dead() && s.plan.Switch == nil:
		return order.Wait(v1alpha1.ReasonWaitingForCredential, order.WaitShort,
			"the credential of generation %d (%s) does not work any more: Keystone says it is gone or expired; generation %d replaces it%s",
			status.Generation, status.ID, s.plan.Desired, s.waiting())
	case successor != 0:
		s.ComeBack(order.WaitShort)
		return order.Done(v1alpha1.ReasonCredentialMinted,
			"generation %d (%s) is in Keystone; generation %d is being created (%s)%s%s",
			status.Generation, status.ID, successor, s.plan.Trigger, s.waiting(), s.obstacle(successor))
	case s.plan.Wait != nil:
		s.comeBackForWait()
		return order.Done(v1alpha1.ReasonCredentialMinted, "generation %d (%s) is in Keystone%s", status.Generation, status.ID, s.waiting())
	}
	return order.Done(v1alpha1.ReasonCredentialMinted, "generation %d (%s) is in Keystone", status.Generation, status.ID)
}

// comeBackForWait looks again soon, unless the wait ends by the clock: that moment is among the
// plan's own.
func (s *state) comeBackForWait() {
	if s.plan.Wait.Until == nil {
		s.ComeBack(order.WaitShort)
	}
}

// waiting is what the plan waits for, as the end of a sentence.
func (s *state) waiting() string {
	return s.waitDetail() + s.whyUnanswered()
}

func (s *state) waitDetail() string {
	if s.plan.Wait == nil {
		return ""
	}
	return "; " + s.plan.Wait.Detail
}

// obstacle repeats K-ORC's words on a generation that it cannot create for now, as the end of a
// sentence. Without them an order that is True beside a rotation that gets nowhere tells nobody why.
func (s *state) obstacle(generation int64) string {
	said := s.children[generation].state
	if _, known := korc.ExternalCause(said.Message); !known {
		return ""
	}
	return "; K-ORC says: " + said.Message
}

func (s *state) unlatchError() error {
	return s.children[s.plan.Desired].state.UnlatchError
}

// waitForFirst tells how the order's first credential is coming along. K-ORC's own words go along,
// and in External mode the cause they name replaces the reason.
func (s *state) waitForFirst() *order.Outcome {
	const reason = v1alpha1.ReasonWaitingForCredential
	what := fmt.Sprintf("generation %d is being created in Keystone%s", s.plan.Desired, s.waitDetail())
	c, listed := s.children[s.plan.Desired]
	switch {
	case listed && s.plan.Verify == 0:
		return s.WaitOnChild(reason, what+s.whyUnanswered(), c.state)
	case s.asked.unanswered != nil:
		return s.WaitOnKeystone(reason, s.asked.unanswered, "%s", what)
	}
	return order.Wait(reason, order.WaitShort, "%s", what)
}

// failed reports a credential that does not come to work. It stays False beside a delivered
// credential too: the order cannot rotate until somebody acts.
func (s *state) failed(failure rotation.Failure) *order.Outcome {
	kept := ""
	if s.input.Status.Generation != 0 {
		kept = fmt.Sprintf("; the delivered generation %d stays", s.input.Status.Generation)
	}
	repair := fmt.Sprintf("Raise spec.credentialGeneration above %d to give it up and create another", failure.Generation)
	if failure.Kind == rotation.LoginRefused {
		return order.Wait(v1alpha1.ReasonCredentialFailed, order.WaitLong,
			"Keystone refuses a login with the new generation %d%s%s. Check that the user is enabled and has a role on the project; it is tried again. %s",
			failure.Generation, s.whyUnanswered(), kept, repair)
	}
	if !failure.Confirmed {
		return order.Wait(v1alpha1.ReasonCredentialFailed, order.WaitShort,
			"K-ORC reports an error for generation %d, and Keystone could not be asked about it yet%s: %s%s", failure.Generation, s.whyUnanswered(), failure.Message, kept)
	}
	return order.Wait(v1alpha1.ReasonCredentialFailed, order.WaitLong,
		"K-ORC cannot create generation %d: %s%s. %s", failure.Generation, failure.Message, kept, repair)
}
