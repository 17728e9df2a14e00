package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/c5c3/c5c3-operator/internal/egress"
)

// sendTimeout bounds one message, from its first byte to the last one of the answer.
const sendTimeout = 15 * time.Second

// answerLimit is how much of an answer is read, in bytes: the history of a Slack channel is the longest.
const answerLimit = 4 << 20

// Channel is a way to show people a card.
type Channel interface {
	// Name says in one word which channel it is: part of a condition's type and of a reference.
	Name() string
	// Repeatable tells whether doing the same again shows nothing twice. Where it does, a Send whose outcome
	// is not known is repeated once at most, and such a Close never.
	Repeatable() bool
	// Send shows a card and returns what the message can be found by later, without spaces. Again says that an
	// earlier Send of the same card has an outcome that is not known. An error that is no NotSentError leaves
	// that open too.
	Send(ctx context.Context, card Card, again bool) (ref string, err error)
	// Close says that a request is over, where its card was shown. The reference is empty when nobody knows
	// whether it was.
	Close(ctx context.Context, card Card, ref string) error
}

// NotSentError is the error of a message that the receiver has certainly not taken.
type NotSentError struct {
	Err error
	// Lasting tells that trying again will not help before somebody changes something.
	Lasting bool
	// RetryAfter is how long the receiver asked to be left alone; 0 when it did not.
	RetryAfter time.Duration
}

func (e *NotSentError) Error() string { return e.Err.Error() }
func (e *NotSentError) Unwrap() error { return e.Err }

// lasting is a NotSentError that will not go away by itself.
func lasting(format string, args ...any) error {
	return &NotSentError{Err: fmt.Errorf(format, args...), Lasting: true}
}

// newClient is an HTTP client for messages. It follows no redirect: that would turn a POST into a GET, and the
// page that answers it would count as a delivery.
func newClient(guard http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     limited{guard},
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited cuts answers off that are longer than any that makes sense.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, answerLimit)
	}
	return response, err
}

// attempt is one request of which it matters whether anything of it has left.
type attempt struct{ written atomic.Bool }

// context observes the requests that are made with it.
func (a *attempt) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { a.written.Store(true) }})
}

// failure makes of an HTTP client's error one that says whether something may have arrived. The URL goes: that
// of a webhook is a secret.
func (a *attempt) failure(err error) error {
	if broken := (&url.Error{}); errors.As(err, &broken) {
		err = broken.Err
	}
	if a.written.Load() {
		return err
	}
	return &NotSentError{Err: err, Lasting: errors.Is(err, egress.ErrForbidden)}
}

// refusal judges the HTTP status of an answer that is no success. Of the server's errors only 503 says that it has
// not acted: one that broke half-way, or a gateway that lost its server, does not know.
func refusal(status int, retryAfter time.Duration) error {
	err := fmt.Errorf("the answer is HTTP %d", status)
	switch {
	case slices.Contains([]int{http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, status):
		return &NotSentError{Err: err, RetryAfter: retryAfter}
	case status >= 500:
		return err
	default:
		return &NotSentError{Err: err, Lasting: true}
	}
}

// secretFile reads a secret from a file that a Secret is mounted as. It is read for each message, so that a
// secret that was replaced counts at once. The content is in no error.
func secretFile(path string) (string, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the path is the configuration's
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return secret, nil
}
