// Package refresh redeems OAuth refresh tokens (RFC 6749 §6), each of them once.
//
// A provider that rotates refresh tokens takes a second redemption of the same one for a theft, and
// revokes all that came of it (RFC 9700 §4.14.2). So whoever asks meanwhile, or comes a little later with a
// Secret that was read before, is given what the first redemption gave.
package refresh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/c5c3/c5c3-operator/internal/egress"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

const (
	timeout = 30 * time.Second
	// remembered is how long what was redeemed is handed out again once it is stored: long enough for whoever read the
	// Secret before, short against the life of a token.
	remembered = 10 * time.Minute
)

// ErrDead is the error of a refresh token that the provider will never redeem: it answered invalid_grant
// (RFC 6749 §5.2), and not with a status that says that it is out of order. Every other error may go away by itself.
var ErrDead = errors.New("the provider does not accept the refresh token any more")

// Grant is a refresh token with where and as whom it is redeemed.
type Grant struct {
	// TokenEndpoint is the authorization server's.
	TokenEndpoint string
	// ClientID and ClientSecret may be empty.
	ClientID     string
	ClientSecret string
	RefreshToken string
}

// GoString keeps a grant's secrets out of every format verb's output.
func (g Grant) GoString() string { return g.String() }

func (g Grant) String() string {
	return "refresh token of client " + g.ClientID + " at " + g.TokenEndpoint
}

// Tokens are what a redemption gives.
type Tokens struct {
	AccessToken string
	// RefreshToken is the next one: the redeemed one again when the provider sent none.
	RefreshToken string
	// ExpiresAt is when the access token expires; zero when the provider did not say.
	ExpiresAt time.Time
}

// String keeps the tokens out of every format verb's output.
func (Tokens) String() string { return "tokens" }

// GoString is String.
func (t Tokens) GoString() string { return t.String() }

// Redeemer redeems. One of them serves the whole process: it is what knows which tokens were redeemed.
type Redeemer struct {
	// Transport sends the requests: an egress.Guard.
	Transport http.RoundTripper
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	flights  singleflight.Group
	mu       sync.Mutex
	redeemed map[string]redemption
}

type redemption struct {
	tokens Tokens
	// until is when it is forgotten; zero while the tokens are stored nowhere, for then they are here alone.
	until time.Time
}

// Redeem redeems a grant. Whoever has stored the tokens says so with Stored. It fails with ErrDead, with the context's error, or with one that says what was
// answered; none of them holds a secret. A redemption that has begun is finished when the caller has gone
// away: the answer to the next one to ask would be a refusal.
func (r *Redeemer) Redeem(ctx context.Context, grant Grant) (Tokens, error) {
	key := grant.key()
	if tokens, ok := r.remembered(key); ok {
		return tokens, nil
	}
	flight := r.flights.DoChan(key, func() (any, error) {
		if tokens, ok := r.remembered(key); ok { // it landed between the question above and here
			return tokens, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		tokens, err := r.redeem(ctx, grant)
		if err == nil && tokens.RefreshToken != grant.RefreshToken {
			r.remember(key, tokens)
		}
		return tokens, err
	})
	select {
	case <-ctx.Done():
		return Tokens{}, ctx.Err()
	case landed := <-flight:
		tokens, _ := landed.Val.(Tokens)
		return tokens, landed.Err
	}
}

func (r *Redeemer) redeem(ctx context.Context, grant Grant) (Tokens, error) {
	config := oauth2.Config{
		ClientID: grant.ClientID, ClientSecret: grant.ClientSecret,
		// The style is named because the library finds it out by trying both, and that redeems twice.
		Endpoint: oauth2.Endpoint{TokenURL: grant.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams},
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{
		Transport:     r.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would take the grant along
	})
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: grant.RefreshToken}).Token()
	if err != nil {
		return Tokens{}, explain(err)
	}
	return Tokens{AccessToken: token.AccessToken, RefreshToken: token.RefreshToken, ExpiresAt: token.Expiry}, nil
}

// explain leaves the library's text out: it quotes the answer, and an answer can quote the request.
func explain(err error) error {
	var refused *oauth2.RetrieveError
	for _, kept := range []error{egress.ErrForbidden, egress.ErrPlainHTTP} {
		if errors.Is(err, kept) {
			return fmt.Errorf("the token endpoint was not asked: %w", kept)
		}
	}
	if !errors.As(err, &refused) {
		return errors.New("the provider gave no answer, or one without a token")
	}
	switch {
	case strings.EqualFold(refused.ErrorCode, "invalid_grant") && final(refused.Response):
		return ErrDead
	case refused.Response != nil:
		return fmt.Errorf("the provider answered %d %s", refused.Response.StatusCode, untrusted.Line(refused.ErrorCode, 40))
	default:
		return fmt.Errorf("the provider answered %s", untrusted.Line(refused.ErrorCode, 40))
	}
}

// final tells whether an answer's status lets its error code count. RFC 6749 §5.2 gives 400, and 401 for some; providers
// that do not keep to it answer 200. Under every other status, a 503 for one, a gateway may have put the words there.
func final(response *http.Response) bool {
	return response != nil && slices.Contains([]int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized}, response.StatusCode)
}

func (g Grant) key() string {
	sum := sha256.Sum256([]byte(g.TokenEndpoint + "\x00" + g.ClientID + "\x00" + g.RefreshToken))
	return string(sum[:])
}

func (r *Redeemer) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// Stored tells that what came of a grant is stored. It is handed out for a while longer, and then forgotten.
func (r *Redeemer) Stored(grant Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := grant.key()
	if found, ok := r.redeemed[key]; ok && found.until.IsZero() {
		found.until = r.now().Add(remembered)
		r.redeemed[key] = found
	}
}

func (r *Redeemer) remembered(key string) (Tokens, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.redeemed[key]
	return found.tokens, ok && !found.over(r.now())
}

func (r *Redeemer) remember(key string, tokens Tokens) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.redeemed == nil {
		r.redeemed = map[string]redemption{}
	}
	now := r.now()
	maps.DeleteFunc(r.redeemed, func(_ string, old redemption) bool { return old.over(now) })
	r.redeemed[key] = redemption{tokens: tokens}
}

func (r redemption) over(now time.Time) bool { return !r.until.IsZero() && !now.Before(r.until) }
