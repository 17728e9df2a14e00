package publish

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/c5c3/c5c3-operator/internal/egress"
)

// TestChannels_tell_what_is_certain sends to receivers that fail in every way, and expects to be told whether
// the message may have arrived.
func TestChannels_tell_what_is_certain(t *testing.T) {
	card := openCard(sample(), "GitHub", "https://cards.example.com/link?token=x")
	answers := func(status int, body string) func(*testing.T) string {
		return func(t *testing.T) string {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/elsewhere" {
					return // 200: what a followed redirect would take for a delivery
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(server.Close)
			return server.URL
		}
	}
	for name, c := range map[string]struct {
		server           func(*testing.T) string
		certain, lasting bool
		forbidden        bool
	}{
		"nobody_listens": {server: func(*testing.T) string {
			server := httptest.NewServer(http.NotFoundHandler())
			server.Close()
			return server.URL
		}, certain: true},
		"the_answer_is_lost": {server: func(t *testing.T) string {
			f := newFaulty(t, func(http.ResponseWriter, *http.Request) {})
			f.breaks(loseAnswer, loseAnswer, loseAnswer, loseAnswer)
			return f.URL
		}},
		"the_address_is_inside": {server: answers(200, ""), forbidden: true, certain: true, lasting: true},
		"a_redirect":            {server: answers(http.StatusFound, ""), certain: true, lasting: true},
		"bad_request":           {server: answers(http.StatusBadRequest, "no"), certain: true, lasting: true},
		"gone":                  {server: answers(http.StatusGone, ""), certain: true, lasting: true},
		"too_many":              {server: answers(http.StatusTooManyRequests, ""), certain: true},
		"unavailable":           {server: answers(http.StatusServiceUnavailable, ""), certain: true},
		"server_error":          {server: answers(http.StatusInternalServerError, "")},
		"bad_gateway":           {server: answers(http.StatusBadGateway, "")},
		"gateway_timeout":       {server: answers(http.StatusGatewayTimeout, "")},
	} {
		t.Run(name, func(t *testing.T) {
			base := c.server(t)
			out := guard(t, base)
			if c.forbidden {
				out.Allowed = nil
			}
			env := Environment{Egress: out, Clock: clocktesting.NewFakePassiveClock(noon), Source: "https://cards.example.com"}
			slackURL := base + "/secret-of-a-test"
			for _, config := range []Config{
				{Slack: &SlackConfig{BotTokenFile: file(t, "xoxb-secret-of-a-test"), Channel: "C0123456789", APIURL: slackURL}},
				{Slack: &SlackConfig{WebhookURLFile: file(t, slackURL)}},
				{Webhook: &WebhookConfig{URL: slackURL, TokenFile: file(t, "secret-of-a-test")}},
			} {
				for _, channel := range config.Channels(env) {
					_, err := channel.Send(t.Context(), card, false)
					if err == nil {
						t.Fatalf("%T was content", channel)
					}
					leaks(t, "the error", err.Error())
					notSent := &NotSentError{}
					certain := errors.As(err, &notSent)
					if certain != c.certain || certain && notSent.Lasting != c.lasting {
						t.Errorf("%T: certain %t, lasting %t: %v", channel, certain, certain && notSent.Lasting, err)
					}
				}
			}
		})
	}
}

func TestChannels_give_up_on_a_receiver_that_hangs(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	httpClient := newClient(guard(t, server.URL))
	if httpClient.Timeout != sendTimeout {
		t.Errorf("a message may take %s", httpClient.Timeout)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	w := &webhook{url: server.URL, source: "https://cards.example.com", client: httpClient, clock: clocktesting.NewFakePassiveClock(noon)}
	_, err := w.Send(ctx, openCard(sample(), "", ""), false)
	if notSent := (&NotSentError{}); err == nil || errors.As(err, &notSent) {
		t.Errorf("a message that may have arrived is said to be %v", err)
	}
}

func TestSlack_error_codes(t *testing.T) {
	for code, want := range map[string]struct{ certain, lasting bool }{
		"channel_not_found": {true, true}, "invalid_auth": {true, true}, "not_in_channel": {true, true}, "missing_scope": {true, true},
		"ratelimited": {true, false}, "service_unavailable": {true, false}, "fatal_error": {false, false}, "internal_error": {false, false},
	} {
		s := newFaultySlack(t)
		s.refuses = code
		channel := Config{Slack: s.app(t)}.Channels(Environment{Egress: guard(t, s.URL)})[0]
		_, err := channel.Send(t.Context(), openCard(sample(), "", "https://x.example.com"), false)
		notSent := &NotSentError{}
		certain := errors.As(err, &notSent)
		if err == nil || certain != want.certain || certain && notSent.Lasting != want.lasting || !strings.Contains(err.Error(), code) {
			t.Errorf("%s is %v, certain %t", code, err, certain)
		}
	}
}

// TestSlack_looks_before_it_posts_again counts on what Slack has, not on what this process knows.
func TestSlack_looks_before_it_posts_again(t *testing.T) {
	s := newFaultySlack(t)
	channel := Config{Slack: s.app(t)}.Channels(Environment{Egress: guard(t, s.URL)})[0]
	card := openCard(sample(), "", "https://x.example.com")
	if ref, err := channel.Send(t.Context(), card, true); err != nil || len(s.posted) != 1 || s.questions != 1 {
		t.Fatalf("a card that is not there: %q, %v, %d posts", ref, err, len(s.posted))
	}
	if ref, err := channel.Send(t.Context(), card, true); err != nil || len(s.posted) != 1 || ref != "C0123456789/"+s.posted[0].timestamp {
		t.Errorf("a card that is there: %q, %v, %d posts", ref, err, len(s.posted))
	}
	other := card
	other.UID = "another"
	if _, err := channel.Send(t.Context(), other, true); err != nil || len(s.posted) != 2 {
		t.Errorf("another request's card: %v, %d posts", err, len(s.posted))
	}
	s.breaks(failing)
	other.UID = "a-third"
	if _, err := channel.Send(t.Context(), other, true); err == nil || len(s.posted) != 2 {
		t.Errorf("Slack that cannot be asked got another post (%d): %v", len(s.posted), err)
	}
}

func TestWebhook_carries_a_token_and_stable_ids(t *testing.T) {
	r := newFaultyReceiver(t)
	config := Config{Webhook: &WebhookConfig{URL: r.URL, TokenFile: file(t, "secret-of-a-test")}}
	channel := config.Channels(Environment{Egress: guard(t, r.URL), Clock: clocktesting.NewFakePassiveClock(noon), Source: "https://cards.example.com"})[0]
	request := sample()
	open := openCard(request, "GitHub", "https://cards.example.com/link?token=x")
	for range 2 {
		if _, err := channel.Send(t.Context(), open, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := channel.Close(t.Context(), closedCard(request, "Fulfilled", "GitHub"), string(request.UID)); err != nil {
		t.Fatal(err)
	}
	if len(r.events) != 3 || len(r.distinct()) != 2 {
		t.Fatalf("%d events, %d distinct", len(r.events), len(r.distinct()))
	}
	asked, settled := r.distinct()[0], r.distinct()[1]
	if asked.Type() != EventTypeAsked || settled.Type() != EventTypeSettled || asked.Subject() != "tenant-a/cur-1" || asked.Subject() != settled.Subject() || asked.Source() != "https://cards.example.com" {
		t.Errorf("they are %s and %s", asked, settled)
	}
	var data eventData
	if err := asked.DataAs(&data); err != nil || data.Link != open.Link || data.UntrustedAgentSays != "The call answered 401." || !data.Expires.Equal(open.Expires) {
		t.Errorf("the data is %+v, %v", data, err)
	}
	if got := r.headers[0].Get("Authorization"); got != "Bearer secret-of-a-test" {
		t.Errorf("the token is %q", got)
	}
}

func TestConfig(t *testing.T) {
	token, hook := file(t, "xoxb-1"), file(t, "https://hooks.slack.com/services/T/B/x")
	for name, c := range map[string]struct {
		config Config
		wrong  string
	}{
		"nothing":                  {Config{}, ""},
		"an_app":                   {Config{Slack: &SlackConfig{BotTokenFile: token, Channel: "C0123456789"}}, ""},
		"an_incoming_webhook":      {Config{Slack: &SlackConfig{WebhookURLFile: hook}}, ""},
		"all":                      {Config{Slack: &SlackConfig{WebhookURLFile: hook}, Webhook: &WebhookConfig{URL: "https://x.example.com", TokenFile: token}, Event: true}, ""},
		"both_of_Slack":            {Config{Slack: &SlackConfig{BotTokenFile: token, Channel: "C0123456789", WebhookURLFile: hook}}, "not both"},
		"neither_of_Slack":         {Config{Slack: &SlackConfig{}}, "is needed"},
		"a_channel_by_name":        {Config{Slack: &SlackConfig{BotTokenFile: token, Channel: "#general"}}, "no id of a channel"},
		"a_channel_of_a_webhook":   {Config{Slack: &SlackConfig{WebhookURLFile: hook, Channel: "C0123456789"}}, "channel of its own"},
		"a_missing_file":           {Config{Slack: &SlackConfig{BotTokenFile: "/nowhere/secret", Channel: "C0123456789"}}, "slack.botTokenFile"},
		"an_empty_file":            {Config{Webhook: &WebhookConfig{URL: "https://x.example.com", TokenFile: file(t, "")}}, "is empty"},
		"a_webhook_that_is_no_URL": {Config{Slack: &SlackConfig{WebhookURLFile: file(t, "secret-of-a-test")}}, "no absolute"},
		"a_relative_URL":           {Config{Webhook: &WebhookConfig{URL: "/cards"}}, "no absolute"},
		"a_user_in_the_URL":        {Config{Webhook: &WebhookConfig{URL: "https://a:b@x.example.com"}}, "no absolute"},
		"http_outside":             {Config{Webhook: &WebhookConfig{URL: "http://x.example.com"}}, "--egress-allow"},
		"http_inside":              {Config{Webhook: &WebhookConfig{URL: "http://receiver.svc"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.config.Check(&egress.Guard{Allowed: []string{"receiver.svc"}})
			switch {
			case c.wrong == "" && err != nil, c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("it is answered with %v, want %q", err, c.wrong)
			case err != nil:
				leaks(t, "the error", err.Error())
			}
		})
	}
}
