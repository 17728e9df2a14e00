package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
)

// closeWindow is how long after a request's time the end is still told on a channel that fails. Later nobody
// is helped by it.
const closeWindow = time.Hour

// settled tells the end of a request wherever its card is, or may be.
func (p *pass) settled(ctx context.Context) (reconcile.Result, error) {
	p.card = closedCard(p.request, p.request.Status.Phase, p.providerTitle(p.request))
	var (
		wait   later
		broken []error
	)
	for _, channel := range p.Channels {
		after, err := p.closeOn(ctx, channel)
		wait.sooner(after)
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", channel.Name(), err))
		}
	}
	if wait.after == 0 && len(broken) == 0 {
		p.forget(p.card.Request)
	}
	return wait.result(broken)
}

// closeOn takes one channel a step further.
func (p *pass) closeOn(ctx context.Context, channel Channel) (time.Duration, error) {
	name := channel.Name()
	if ref, sent := p.memory.sent[name]; sent { // the request settled before that was recorded
		if err := p.record(ctx, name, ref); err != nil {
			return 0, err
		}
	}
	ledger, now := readEntry(p.request, name), p.Clock.Now()
	if p.memory.closed[name] && ledger.State != StateClosed {
		return 0, p.note(ctx, name, StateClosed, "The end was told.")
	}
	switch decideSettled(ledger, p.memory.tried[name], channel.Repeatable(), now) {
	case stepWait:
		return ledger.Since.Add(inFlight).Sub(now), nil
	case stepForget:
		return 0, p.note(ctx, name, StateClosed, "The end may have been told. It is not told twice.")
	case stepClose:
		return p.tell(ctx, channel, ledger.State)
	default:
		return 0, nil
	}
}

// tell writes the intent where a repetition would show, tells the end, and records that.
func (p *pass) tell(ctx context.Context, channel Channel, before State) (time.Duration, error) {
	name := channel.Name()
	if !channel.Repeatable() {
		err := p.patch(ctx, true, func() { writeEntry(p.request, name, StateClosing, "The end is being told.", p.Clock.Now()) })
		if err != nil {
			return 0, fmt.Errorf("writing down the intent: %w", err)
		}
	}
	p.memory.tried[name] = true
	err := channel.Close(ctx, p.card, reference(p.request.Status.InteractionRef, name))
	if err == nil {
		p.count(name, actionClose, outcomeDelivered)
		p.memory.closed[name] = true
		log.FromContext(ctx).Info("a card was closed", "namespace", p.request.Namespace, "name", p.request.Name, "channel", name, "phase", p.request.Status.Phase)
		return 0, p.note(ctx, name, StateClosed, "The end was told.")
	}
	notSent := &NotSentError{}
	certain := errors.As(err, &notSent)
	switch {
	case !certain && !channel.Repeatable():
		p.count(name, actionClose, outcomeUnknown)
		return 0, p.note(ctx, name, StateClosed, fmt.Sprintf("The end may have been told: no answer came: %v.", err))
	case certain && notSent.Lasting, p.late(p.request):
		p.count(name, actionClose, outcomeNotSent)
		return 0, p.note(ctx, name, StateClosed, fmt.Sprintf("The end could not be told: %v.", err))
	}
	p.count(name, actionClose, outcomeNotSent)
	var noted error
	if !channel.Repeatable() {
		noted = p.note(ctx, name, before, sentence(outcomeNotSent, err))
	}
	if certain && notSent.RetryAfter > 0 {
		return notSent.RetryAfter, noted
	}
	return 0, errors.Join(err, noted)
}

// late tells that the end of a request helps nobody any more.
func (p *Publisher) late(request *v1alpha1.CredentialUpdateRequest) bool {
	return !p.Clock.Now().Before(credupdate.Expires(request).Add(closeWindow))
}

// vanished tells the end of a request that is gone with its session. Only this process's memory has its cards;
// those of an earlier process stay, and the page behind their links says that there is nothing to answer.
func (p *Publisher) vanished(ctx context.Context, key types.NamespacedName) error {
	m := p.remembered(key)
	if m == nil {
		return nil
	}
	if m.request == nil {
		p.forget(key)
		return nil
	}
	request := m.request
	card := closedCard(request, "", p.providerTitle(request))
	var broken []error
	for _, channel := range p.Channels {
		name := channel.Name()
		ref, sent := m.sent[name]
		if !sent {
			ref = reference(request.Status.InteractionRef, name)
		}
		// Nobody else can be sending: a request that is gone is not published.
		if m.closed[name] || !sent && decideSettled(readEntry(request, name), true, true, p.Clock.Now()) != stepClose {
			continue
		}
		err := channel.Close(ctx, card, ref)
		notSent := &NotSentError{}
		certain := errors.As(err, &notSent)
		if err == nil || p.late(request) || !certain && !channel.Repeatable() || certain && notSent.Lasting {
			m.closed[name] = true
		}
		switch {
		case err == nil:
			p.count(name, actionClose, outcomeDelivered)
			log.FromContext(ctx).Info("the card of a request that is gone was closed", "namespace", key.Namespace, "name", key.Name, "channel", name)
		case m.closed[name]:
			log.FromContext(ctx).Error(err, "the card of a request that is gone was not closed", "namespace", key.Namespace, "name", key.Name, "channel", name)
		default:
			broken = append(broken, fmt.Errorf("%s: closing the card of a request that is gone: %w", name, err))
		}
	}
	if len(broken) == 0 {
		p.forget(key)
	}
	return errors.Join(broken...)
}
