package publish

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/internal/egress"
)

// Config says where cards are published. Each channel is optional; without any, requests say that there is
// nobody to ask.
type Config struct {
	// Slack is where cards are posted, either as an app or through an incoming webhook.
	Slack *SlackConfig `json:"slack,omitempty"`
	// Webhook is who gets cards as CloudEvents.
	Webhook *WebhookConfig `json:"webhook,omitempty"`
	// Event has each card be an Event on its request too.
	Event bool `json:"event,omitempty"`
}

// SlackConfig is a Slack channel. Either webhookURLFile is set, or botTokenFile and channel.
type SlackConfig struct {
	// WebhookURLFile is a file that holds the URL of an incoming webhook, which is a secret.
	WebhookURLFile string `json:"webhookURLFile,omitempty"`
	// BotTokenFile is a file that holds an app's bot token (xoxb-...).
	BotTokenFile string `json:"botTokenFile,omitempty"`
	// Channel is the channel's id, such as C0123456789. Not its name: messages are edited by the id.
	Channel string `json:"channel,omitempty"`
	// APIURL is the API's; the default is https://slack.com/api/.
	APIURL string `json:"apiURL,omitempty"`
}

// WebhookConfig is a receiver of CloudEvents over HTTP.
type WebhookConfig struct {
	// URL takes the POST. https, or http where egress to its host is allowed.
	URL string `json:"url"`
	// TokenFile is a file that holds a bearer token for the receiver; none when it is empty.
	TokenFile string `json:"tokenFile,omitempty"`
}

// Environment is what channels work with.
type Environment struct {
	// Client creates Events.
	Client client.Client
	// Egress lets messages out.
	Egress http.RoundTripper
	Clock  clock.PassiveClock
	// Instance is the process's name on Events.
	Instance string
	// Source is the CloudEvents' source: the page's URL.
	Source string
}

// DefaultSlackAPI is Slack's API.
const DefaultSlackAPI = "https://slack.com/api/"

var slackChannelID = regexp.MustCompile(`^[CDG][A-Z0-9]{2,20}$`)

// Check says what is wrong with a configuration. It reads the files of secrets, so that one that is missing is
// found when the process starts, and names no content. Out is what messages will go through.
func (c Config) Check(out *egress.Guard) error {
	var problems []error
	complain := func(wrong bool, text string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(text, args...))
		}
	}
	file := func(field, path string) {
		if path == "" {
			return
		}
		_, err := secretFile(path)
		complain(err != nil, "%s: %w", field, err)
	}
	address := func(field, text string) {
		err := out.CheckURL(text)
		complain(err != nil, "%s: %w", field, err)
	}
	if s := c.Slack; s != nil {
		complain((s.WebhookURLFile == "") == (s.BotTokenFile == ""), "slack: one of webhookURLFile and botTokenFile is needed, and not both")
		complain(s.BotTokenFile != "" && !slackChannelID.MatchString(s.Channel), "slack.channel %q is no id of a channel, such as C0123456789", s.Channel)
		complain(s.BotTokenFile == "" && (s.Channel != "" || s.APIURL != ""), "slack.channel and slack.apiURL belong to botTokenFile: an incoming webhook has a channel of its own")
		file("slack.webhookURLFile", s.WebhookURLFile)
		file("slack.botTokenFile", s.BotTokenFile)
		if s.WebhookURLFile != "" {
			if target, err := secretFile(s.WebhookURLFile); err == nil {
				address("the content of slack.webhookURLFile", target)
			}
		}
		if s.APIURL != "" {
			address("slack.apiURL", s.APIURL)
		}
	}
	if w := c.Webhook; w != nil {
		address("webhook.url", w.URL)
		file("webhook.tokenFile", w.TokenFile)
	}
	return errors.Join(problems...)
}

// Channels are those of a configuration that was checked, the one that people look at most first.
func (c Config) Channels(env Environment) []Channel {
	var channels []Channel
	httpClient := newClient(env.Egress)
	switch s := c.Slack; {
	case s == nil:
	case s.BotTokenFile != "":
		api := s.APIURL
		if api == "" {
			api = DefaultSlackAPI
		}
		if api[len(api)-1] != '/' {
			api += "/"
		}
		channels = append(channels, &slackApp{tokenFile: s.BotTokenFile, channel: s.Channel, apiURL: api, client: httpClient})
	default:
		channels = append(channels, &slackWebhook{urlFile: s.WebhookURLFile, client: httpClient})
	}
	if w := c.Webhook; w != nil {
		channels = append(channels, &webhook{url: w.URL, tokenFile: w.TokenFile, source: env.Source, client: httpClient, clock: env.Clock})
	}
	if c.Event {
		channels = append(channels, &eventChannel{client: env.Client, clock: env.Clock, instance: env.Instance})
	}
	return channels
}
