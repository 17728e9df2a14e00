package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// ReasonOutcomeUnknown of CardDelivered: a message went out, and nobody knows whether it arrived.
const ReasonOutcomeUnknown = string(StateOutcomeUnknown)

// Actions, of Events and of the counter.
const (
	actionPublish = "publish"
	actionClose   = "close"
)

// Outcomes, of the counter.
const (
	outcomeDelivered = "delivered"
	outcomeNotSent   = "not_sent"
	outcomeUnknown   = "unknown"
)

// pass is one look at a request.
type pass struct {
	*Publisher
	request *v1alpha1.CredentialUpdateRequest
	memory  *memory
	card    Card
}

// later is when a pass goes on.
type later struct{ after time.Duration }

// sooner keeps the shorter of two times; zero is none.
func (l *later) sooner(after time.Duration) {
	if after > 0 && (l.after == 0 || after < l.after) {
		l.after = after
	}
}

// result ends a pass. Where something failed, the back-off says when to come back.
func (l *later) result(broken []error) (reconcile.Result, error) {
	if err := errors.Join(broken...); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: l.after}, nil
}

// open publishes a request on each channel on which it is not published yet. Channels do not wait for each
// other: one that has delivered counts, whatever becomes of the rest.
func (p *pass) open(ctx context.Context) (reconcile.Result, error) {
	switch {
	case !verdict.AsksHuman(p.request.Status.Determination), !p.Clock.Now().Before(credupdate.Expires(p.request)):
		return reconcile.Result{}, nil
	case p.Link == nil:
		return reconcile.Result{}, p.undelivered(ctx, metav1.ConditionFalse, v1alpha1.ReasonExternalURLUnconfigured,
			"Nobody was asked: the card's link would lead nowhere, since externalURL is missing in the configuration of c5c3-cards.")
	case len(p.Channels) == 0:
		return reconcile.Result{}, p.undelivered(ctx, metav1.ConditionFalse, v1alpha1.ReasonNoRecipient,
			"Nobody was asked: the configuration of c5c3-cards names no channel.")
	}
	link, err := p.Link(p.request)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("making the link: %w", err)
	}
	p.card = openCard(p.request, p.providerTitle(p.request), link)
	var (
		wait   later
		broken []error
	)
	for _, channel := range p.Channels {
		after, err := p.publish(ctx, channel)
		wait.sooner(after)
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", channel.Name(), err))
		}
	}
	if err := p.report(ctx); err != nil {
		broken = append(broken, err)
	}
	if shown(p.request) || len(p.memory.sent) > 0 {
		p.memory.request = p.request.DeepCopy()
	}
	return wait.result(broken)
}

func (p *Publisher) providerTitle(request *v1alpha1.CredentialUpdateRequest) string {
	if request.Status.ResolvedCredential == nil {
		return ""
	}
	return p.ProviderTitle(request.Status.ResolvedCredential.ProviderID)
}

// publish takes one channel a step further, and returns when to come back if that is for no error.
func (p *pass) publish(ctx context.Context, channel Channel) (time.Duration, error) {
	name := channel.Name()
	if ref, sent := p.memory.sent[name]; sent {
		return 0, p.record(ctx, name, ref)
	}
	ledger, now := readEntry(p.request, name), p.Clock.Now()
	switch decideOpen(ledger, p.memory.tried[name], channel.Repeatable(), now) {
	case stepWait:
		return ledger.Since.Add(inFlight).Sub(now), nil
	case stepGiveUp:
		return 0, p.note(ctx, name, StateOutcomeUnknown, "It was sent twice, and no answer came. Whether it was shown is not known. It is not sent again.")
	case stepSend:
		return p.send(ctx, channel, false)
	case stepSendAgain:
		return p.send(ctx, channel, true)
	default:
		return 0, nil
	}
}

// send writes the intent, sends, and records the outcome.
func (p *pass) send(ctx context.Context, channel Channel, again bool) (time.Duration, error) {
	name, state := channel.Name(), StateSending
	if again && !channel.Repeatable() {
		state = StateSendingAgain
	}
	// With a lock: whoever else has written since this request was read may have been another publisher.
	err := p.patch(ctx, true, func() { writeEntry(p.request, name, state, "The card is being sent.", p.Clock.Now()) })
	if err != nil {
		return 0, fmt.Errorf("writing down the intent: %w", err)
	}
	p.memory.tried[name] = true
	ref, err := channel.Send(ctx, p.card, again)
	if err == nil {
		p.count(name, actionPublish, outcomeDelivered)
		p.memory.sent[name] = ref
		delete(p.memory.lasting, name)
		return 0, p.record(ctx, name, ref)
	}
	notSent := &NotSentError{}
	certain := errors.As(err, &notSent)
	p.memory.lasting[name] = certain && notSent.Lasting
	outcome := outcomeUnknown
	switch {
	case certain && !again:
		state, outcome = StateNotSent, outcomeNotSent
	case certain: // this one was not sent; of the earlier one nobody knows as before
		state, outcome = StateSending, outcomeNotSent
	}
	p.count(name, actionPublish, outcome)
	// Best effort: should it fail, the intent stands, and that is on the safe side.
	noted := p.note(ctx, name, state, sentence(outcome, err))
	if certain && notSent.RetryAfter > 0 {
		return notSent.RetryAfter, noted
	}
	return 0, errors.Join(err, noted)
}

// sentence is what a ledger says about a message that failed.
func sentence(outcome string, err error) string {
	if outcome == outcomeNotSent {
		return fmt.Sprintf("Not sent: %v.", err)
	}
	return fmt.Sprintf("It went out, and no answer came: %v.", err)
}

// record writes down that a card was delivered, all of it in one patch.
func (p *pass) record(ctx context.Context, name, ref string) error {
	err := p.patch(ctx, false, func() {
		status := &p.request.Status
		status.InteractionRef = addReference(status.InteractionRef, name, ref)
		writeEntry(p.request, name, StateDelivered, "The card was sent, and the receiver has taken it.", p.Clock.Now())
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionCardDelivered, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPublished,
			Message: "The card was published: " + strings.Join(delivered(p.request, p.Channels), ", ") + ".", ObservedGeneration: p.request.Generation,
			LastTransitionTime: metav1.NewTime(p.Clock.Now()),
		})
	})
	if err != nil {
		return fmt.Errorf("recording that the card was delivered: %w", err)
	}
	delete(p.memory.sent, name)
	log.FromContext(ctx).Info("a card was published", "namespace", p.request.Namespace, "name", p.request.Name, "channel", name, "reference", ref,
		"determination", p.request.Status.Determination)
	return nil
}

// delivered are the channels that have.
func delivered(request *v1alpha1.CredentialUpdateRequest, channels []Channel) []string {
	var names []string
	for _, channel := range channels {
		if meta.IsStatusConditionTrue(request.Status.Conditions, ConditionPrefix+channel.Name()) {
			names = append(names, channel.Name())
		}
	}
	return names
}

// shown tells whether a card is, or may be, out there.
func shown(request *v1alpha1.CredentialUpdateRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Type, ConditionPrefix) && c.Status != metav1.ConditionFalse
	})
}

// report says that nobody was asked, once no channel can be expected to deliver without somebody's help.
func (p *pass) report(ctx context.Context) error {
	var causes []string
	status, reason, text := metav1.ConditionFalse, v1alpha1.ReasonNoRecipient, "Nobody was asked. "
	for _, channel := range p.Channels {
		name := channel.Name()
		ledger := readEntry(p.request, name)
		if ledger.State != StateOutcomeUnknown && !p.memory.lasting[name] {
			return nil // delivered, or there is hope
		}
		if statuses[ledger.State] == metav1.ConditionUnknown {
			status, reason, text = metav1.ConditionUnknown, ReasonOutcomeUnknown, "Nobody knows whether the card was shown. "
		}
		causes = append(causes, name+": "+ledger.Message)
	}
	return p.undelivered(ctx, status, reason, text+strings.Join(causes, " "))
}

// undelivered says why there is no card, with one Event per transition.
func (p *pass) undelivered(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	message = untrusted.Line(message, 2*reasonLimit)
	before := meta.FindStatusCondition(p.request.Status.Conditions, v1alpha1.ConditionCardDelivered)
	transition := before == nil || before.Status != status || before.Reason != reason
	err := p.patch(ctx, false, func() {
		meta.SetStatusCondition(&p.request.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionCardDelivered, Status: status, Reason: reason, Message: message,
			ObservedGeneration: p.request.Generation, LastTransitionTime: metav1.NewTime(p.Clock.Now()),
		})
	})
	if err != nil {
		return fmt.Errorf("writing why there is no card: %w", err)
	}
	if transition {
		log.FromContext(ctx).Info("a request has no card", "namespace", p.request.Namespace, "name", p.request.Name, "reason", reason, "message", message)
		p.Events.Eventf(p.request, nil, corev1.EventTypeWarning, reason, actionPublish, "%s", untrusted.Line(message, noteBytes/bytesPerRune))
	}
	return nil
}

// note writes a channel's ledger.
func (p *pass) note(ctx context.Context, name string, state State, message string) error {
	err := p.patch(ctx, false, func() { writeEntry(p.request, name, state, message, p.Clock.Now()) })
	if err != nil {
		return fmt.Errorf("writing down what became of a message: %w", err)
	}
	return nil
}

// patch writes what a change makes of a request's status, as a merge patch of the difference: the operator
// writes other fields of it at the same time. Conditions are this publisher's alone. A change that could not be
// written is undone.
func (p *pass) patch(ctx context.Context, lock bool, change func()) error {
	original := p.request.DeepCopy()
	change()
	if equality.Semantic.DeepEqual(original.Status, p.request.Status) {
		return nil
	}
	difference := client.MergeFrom(original)
	if lock {
		difference = client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	}
	if err := p.Client.Status().Patch(ctx, p.request, difference); err != nil {
		original.DeepCopyInto(p.request)
		return err
	}
	return nil
}

func (p *Publisher) count(channel, action, outcome string) {
	p.Messages.WithLabelValues(channel, action, outcome).Inc()
}
