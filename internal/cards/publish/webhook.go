package publish

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/utils/clock"
)

// Types of the CloudEvents.
const (
	EventTypeAsked   = "io.c5c3.credentialupdaterequest.asked"
	EventTypeSettled = "io.c5c3.credentialupdaterequest.settled"
)

// webhook sends CloudEvents.
type webhook struct {
	url       string
	tokenFile string
	source    string
	client    *http.Client
	clock     clock.PassiveClock
}

// eventData is the data of a CloudEvent. It is an API: fields are added, never changed.
type eventData struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Phase     string `json:"phase,omitempty"`
	Title     string `json:"title"`
	Verified  string `json:"verified,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Facts     []Fact `json:"facts,omitempty"`
	// UntrustedAgentFacts and UntrustedAgentSays have their warning in the name: a receiver that shows them has to set
	// them apart.
	UntrustedAgentFacts []Fact     `json:"untrustedAgentFacts,omitempty"`
	UntrustedAgentSays  string     `json:"untrustedAgentSays,omitempty"`
	Link                string     `json:"link,omitempty"`
	Expires             *time.Time `json:"expires,omitempty"`
}

func (*webhook) Name() string     { return "Webhook" }
func (*webhook) Repeatable() bool { return true } // by source and id

func (w *webhook) Send(ctx context.Context, card Card, _ bool) (string, error) {
	return string(card.UID), w.post(ctx, card, EventTypeAsked, "asked")
}

func (w *webhook) Close(ctx context.Context, card Card, _ string) error {
	return w.post(ctx, card, EventTypeSettled, "settled")
}

func (w *webhook) post(ctx context.Context, card Card, eventType, step string) error {
	message, err := w.event(card, eventType, step)
	if err != nil {
		return lasting("making the CloudEvent: %w", err)
	}
	var a attempt
	// Structured: everything is in the body, and nothing gets lost where somebody passes known headers on only.
	request, err := cehttp.NewHTTPRequestFromEvent(binding.WithForceStructured(a.context(ctx)), w.url, message)
	if err != nil {
		return a.failure(err)
	}
	if w.tokenFile != "" {
		token, err := secretFile(w.tokenFile)
		if err != nil {
			return lasting("reading the webhook's token: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return a.failure(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body) // the status says it all
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return refusal(response.StatusCode, retryAfter(response.Header))
	}
	return nil
}

func (w *webhook) event(card Card, eventType, step string) (event.Event, error) {
	message := event.New()
	message.SetType(eventType)
	message.SetSource(w.source)
	message.SetSubject(card.Request.String())
	message.SetID(string(card.UID) + "/" + step)
	message.SetTime(w.clock.Now())
	data := eventData{
		Namespace: card.Request.Namespace, Name: card.Request.Name, UID: string(card.UID), Phase: card.Phase,
		Title: card.Title, Verified: card.Verified, Reason: card.Reason, Outcome: card.Outcome, Facts: card.Facts,
		UntrustedAgentFacts: card.AgentFacts, UntrustedAgentSays: card.AgentSays, Link: card.Link,
	}
	if !card.Expires.IsZero() {
		data.Expires = &card.Expires
	}
	if err := message.SetData(event.ApplicationJSON, data); err != nil {
		return message, err
	}
	if err := message.Validate(); err != nil {
		return message, fmt.Errorf("it is not valid: %w", err)
	}
	return message, nil
}

// retryAfter is the header of that name in seconds, as a busy server sends it. As a date it is not worth a
// comparison of clocks.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxBackOff)
}
