package publish

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

// Reasons of the Events that are cards.
const (
	ReasonAsked   = "CredentialNeeded"
	ReasonSettled = "CredentialSettled"
)

// noteBytes is what the API server takes as an Event's note. A rune has at most four of them.
const (
	noteBytes    = 1024
	bytesPerRune = 4
)

// eventChannel shows cards as Events on the request. It creates them itself: a recorder sends when it comes to
// it, drops what it cannot send, and says neither.
type eventChannel struct {
	client   client.Client
	clock    clock.PassiveClock
	instance string
}

func (*eventChannel) Name() string     { return "Event" }
func (*eventChannel) Repeatable() bool { return true } // by name

func (c *eventChannel) Send(ctx context.Context, card Card, _ bool) (string, error) {
	// The agent's words are not in it: an Event has no way to set them apart.
	return c.create(ctx, card, "asked", ReasonAsked, card.Verified+" "+card.Reason, " Answer: "+card.Link)
}

func (c *eventChannel) Close(ctx context.Context, card Card, _ string) error {
	_, err := c.create(ctx, card, "settled", ReasonSettled, card.Outcome+" "+card.Reason, "")
	return err
}

func (c *eventChannel) create(ctx context.Context, card Card, step, reason, text, link string) (string, error) {
	if len(link) > noteBytes-bytesPerRune*lineLimit {
		link = ""
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	object := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: card.Request.Namespace, Name: fmt.Sprintf("card-%s-%s", card.UID, step)},
		EventTime:           metav1.NewMicroTime(c.clock.Now()),
		ReportingController: "c5c3.io/cards",
		ReportingInstance:   c.instance,
		Action:              step,
		Reason:              reason,
		Type:                corev1.EventTypeNormal,
		Note:                untrusted.Line(text, (noteBytes-len(link))/bytesPerRune) + link,
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "CredentialUpdateRequest",
			Namespace: card.Request.Namespace, Name: card.Request.Name, UID: card.UID,
		},
	}
	err := c.client.Create(ctx, object)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return object.Name, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return "", lasting("creating the Event: %w", err)
	default:
		return "", fmt.Errorf("creating the Event: %w", err)
	}
}
