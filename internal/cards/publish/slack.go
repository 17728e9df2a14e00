package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"
)

// Slack's message metadata, by which a card is found again.
const (
	slackEventType = "c5c3_card"
	slackUID       = "uid"
)

// historyPages is how many pages of a channel's history are looked through for a card, of historyPage messages
// each. A channel that fills them in the half hour that a request lives is no place for cards.
const (
	historyPages = 10
	historyPage  = 200
)

// slackApp posts as a Slack app, with a bot token. Scopes: chat:write, and channels:history (of a private
// channel groups:history) to find a message whose answer got lost.
type slackApp struct {
	tokenFile string
	channel   string
	apiURL    string // ends in a slash
	client    *http.Client
}

func (*slackApp) Name() string     { return "Slack" }
func (*slackApp) Repeatable() bool { return true } // it looks first

func (s *slackApp) api() (*slack.Client, error) {
	token, err := secretFile(s.tokenFile)
	if err != nil {
		return nil, lasting("reading the Slack token: %w", err)
	}
	return slack.New(token, slack.OptionAPIURL(s.apiURL), slack.OptionHTTPClient(s.client)), nil
}

func (s *slackApp) Send(ctx context.Context, card Card, again bool) (string, error) {
	api, err := s.api()
	if err != nil {
		return "", err
	}
	if again {
		switch ref, found, err := s.find(ctx, api, card); {
		case err != nil:
			return "", err
		case found:
			return ref, nil
		}
	}
	var a attempt
	channel, timestamp, err := api.PostMessageContext(a.context(ctx), s.channel, append(s.message(card),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: slackEventType, EventPayload: map[string]any{slackUID: string(card.UID)}}))...)
	if err != nil {
		return "", slackFailure(&a, err)
	}
	return channel + "/" + timestamp, nil
}

// Close edits the message. To do so twice is to do it once.
func (s *slackApp) Close(ctx context.Context, card Card, ref string) error {
	api, err := s.api()
	if err != nil {
		return err
	}
	if ref == "" {
		var found bool
		if ref, found, err = s.find(ctx, api, card); err != nil || !found {
			return err
		}
	}
	channel, timestamp, ok := strings.Cut(ref, "/")
	if !ok {
		return lasting("%q is no Slack message", ref)
	}
	var a attempt
	_, _, _, err = api.UpdateMessageContext(a.context(ctx), channel, timestamp, s.message(card)...)
	if refused := (slack.SlackErrorResponse{}); errors.As(err, &refused) && refused.Err == "message_not_found" {
		return nil // somebody deleted it: that is closed enough
	}
	if err != nil {
		return slackFailure(&a, err)
	}
	return nil
}

// find looks for the message of a card. An answer that cannot be had is an error and not a "no": another
// message would be sent for it.
func (s *slackApp) find(ctx context.Context, api *slack.Client, card Card) (string, bool, error) {
	ask := &slack.GetConversationHistoryParameters{
		ChannelID: s.channel, IncludeAllMetadata: true, Limit: historyPage,
		// Slack's clock is not ours.
		Oldest: strconv.FormatInt(card.Created.Add(-5*time.Minute).Unix(), 10),
	}
	for range historyPages {
		var a attempt
		page, err := api.GetConversationHistoryContext(a.context(ctx), ask)
		if err != nil {
			// Nothing was sent by asking, whatever became of the question.
			a.written.Store(false)
			return "", false, fmt.Errorf("looking for the message in Slack: %w", slackFailure(&a, err))
		}
		i := slices.IndexFunc(page.Messages, func(m slack.Message) bool {
			return m.Metadata.EventType == slackEventType && m.Metadata.EventPayload[slackUID] == string(card.UID)
		})
		if i >= 0 {
			return s.channel + "/" + page.Messages[i].Timestamp, true, nil
		}
		if ask.Cursor = page.ResponseMetaData.NextCursor; !page.HasMore || ask.Cursor == "" {
			return "", false, nil
		}
	}
	return "", false, lasting("looking for the message in Slack: the channel holds more than %d messages since the request was made", historyPages*historyPage)
}

func (s *slackApp) message(card Card) []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(slackNotification(card), false),
		slack.MsgOptionBlocks(slackBlocks(card, false)...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
}

// slackWebhook posts to an incoming webhook. That can neither edit nor be asked what it has posted.
type slackWebhook struct {
	urlFile string
	client  *http.Client
}

func (*slackWebhook) Name() string     { return "Slack" }
func (*slackWebhook) Repeatable() bool { return false }

func (s *slackWebhook) Send(ctx context.Context, card Card, again bool) (string, error) {
	// There is no reference to a message, and none is needed: it cannot be edited.
	return "incoming-webhook", s.post(ctx, card, again)
}

// Close posts a second message, which says which request it is about.
func (s *slackWebhook) Close(ctx context.Context, card Card, _ string) error {
	return s.post(ctx, card, false)
}

func (s *slackWebhook) post(ctx context.Context, card Card, again bool) error {
	target, err := secretFile(s.urlFile)
	if err != nil {
		return lasting("reading the URL of Slack's incoming webhook: %w", err)
	}
	unfurl := false
	var a attempt
	err = slack.PostWebhookCustomHTTPContext(a.context(ctx), target, s.client, &slack.WebhookMessage{
		Text:        slackNotification(card),
		Blocks:      &slack.Blocks{BlockSet: slackBlocks(card, again)},
		UnfurlLinks: &unfurl, UnfurlMedia: &unfurl,
	})
	if err != nil {
		return slackFailure(&a, err)
	}
	return nil
}

// slackFailure says whether a message may have arrived although there was an error.
func slackFailure(a *attempt, err error) error {
	var (
		refused slack.SlackErrorResponse
		limited *slack.RateLimitedError
		status  slack.StatusCodeError
	)
	switch {
	case errors.As(err, &refused):
		text := "the answer is " + strconv.Quote(refused.Err)
		if refused.Needed != "" {
			text += ", which asks for the scope " + refused.Needed
		}
		switch refused.Err {
		case "fatal_error", "internal_error":
			return errors.New(text) // by Slack's documentation, some of it may have been done
		case "ratelimited", "rate_limited", "service_unavailable", "request_timeout":
			return &NotSentError{Err: errors.New(text)}
		default: // all others name something to change
			return &NotSentError{Err: errors.New(text), Lasting: true}
		}
	case errors.As(err, &limited):
		return &NotSentError{Err: errors.New("the answer is that this is too much at once"), RetryAfter: min(limited.RetryAfter, maxBackOff)}
	case errors.As(err, &status):
		return refusal(status.Code, 0)
	}
	return a.failure(err)
}

// slackNotification is what a notification shows, and an old client instead of the blocks. It is the only text
// that Slack reads markup in, so it holds nothing but the platform's words and names of objects.
func slackNotification(card Card) string {
	return slackutilsx.EscapeMessage(card.Title + ": " + card.Request.String() + ". " + card.Outcome)
}

// slackBlocks are a card. All text from outside stands in elements that Slack shows as they are: plain text
// without emoji, and rich text, whose mentions and links are elements of their own and cannot be written.
func slackBlocks(card Card, again bool) []slack.Block {
	text := slack.NewRichTextSectionTextElement
	bold := &slack.RichTextSectionTextStyle{Bold: true}
	var body []slack.RichTextElement
	paragraph := func(elements ...slack.RichTextSectionElement) {
		body = append(body, slack.NewRichTextSection(append(elements, text("\n", nil))...))
	}
	for _, line := range []string{card.Outcome, card.Verified, card.Reason} {
		if line != "" {
			paragraph(text(disarmed(line), nil))
		}
	}
	var list []slack.RichTextElement
	for _, fact := range card.Facts {
		list = append(list, slack.NewRichTextSection(text(fact.Name+": ", bold), text(disarmed(fact.Value), nil)))
	}
	if len(list) > 0 {
		body = append(body, slack.NewRichTextList(slack.RTEListBullet, 0, list...))
	}
	var quoted []slack.RichTextSectionElement
	for _, fact := range card.AgentFacts {
		quoted = append(quoted, text(fact.Name+": ", bold), text(disarmed(fact.Value)+"\n", nil))
	}
	if card.AgentSays != "" {
		quoted = append(quoted, text(disarmed(card.AgentSays), nil))
	}
	if len(quoted) > 0 {
		paragraph(text("Written by the agent, and nobody has checked it:", bold))
		body = append(body, &slack.RichTextQuote{Type: slack.RTEQuote, Elements: quoted})
	}
	if card.Link != "" {
		paragraph(slack.NewRichTextSectionLinkElement(card.Link, card.Invitation, bold))
		paragraph(text("You log in there. A new value belongs on that page, never into a chat.", nil))
	}
	if again {
		paragraph(text("Slack gave no answer the first time: you may see this twice.", nil))
	}
	return []slack.Block{
		slack.NewHeaderBlock(slack.NewTextBlockObject(slack.PlainTextType, card.Title, false, false)),
		slack.NewRichTextBlock("", body...),
	}
}

// disarmed keeps clients from making links and mentions of plain text by themselves.
func disarmed(text string) string {
	return strings.NewReplacer("://", "[:]//", "@", "[at]").Replace(text)
}
