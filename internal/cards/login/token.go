package login

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

// Tokens is the login with a token that the API server accepts, as those of "kubectl create token".
type Tokens struct {
	// Audiences are what a token has to be for, at least one of them. Empty is the API server's own audience.
	Audiences []string
}

// maxBearer is how long a token may be, in bytes: an HTTP header's usual limit, so that what can be presented to an API
// server can be presented here.
const maxBearer = 16 << 10

// byToken has the API server say whose a token is. The token goes there and nowhere else: it is in no cookie, no log and
// no error.
func (l *Login) byToken(w http.ResponseWriter, r *http.Request) *Error {
	token := r.PostFormValue(link.Parameter)
	if err := l.checkLink(token); err != nil {
		return err
	}
	bearer := strings.TrimSpace(r.PostFormValue(BearerField))
	if bearer == "" || len(bearer) > maxBearer {
		return notAccepted(nil)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: bearer, Audiences: l.Tokens.Audiences}}
	if err := l.Client.Create(ctx, review); err != nil {
		return &Error{http.StatusServiceUnavailable, "The cluster did not say whose token this is. That says nothing about the token: try again.", withheld(err, bearer)}
	}
	status := review.Status
	switch {
	case !status.Authenticated || status.User.Username == "":
		if status.Error != "" {
			return notAccepted(withheld(errors.New(status.Error), bearer))
		}
		return notAccepted(nil)
	case !l.Tokens.accept(status.Audiences):
		// An authenticator that does not know audiences accepts a token for any.
		return notAccepted(errors.New("the API server did not say that the token is for this page's audience"))
	}
	now := l.Clock.Now()
	expires := now.Add(SessionLifetime)
	if own := expiry(bearer); own.Before(expires) {
		expires = own
	}
	if !expires.After(now) {
		return notAccepted(errors.New("the token has expired by the clock of this process"))
	}
	return l.enter(w, r, token, Person{UserInfo: status.User, Via: ViaToken, Expires: expires})
}

func (t *Tokens) accept(audiences []string) bool {
	return len(t.Audiences) == 0 || slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(t.Audiences, a) })
}

func notAccepted(err error) *Error {
	return &Error{http.StatusForbidden, "The cluster does not accept this token.", err}
}

// withheld is an error whose text comes from elsewhere, without a token that it may quote.
func withheld(err error, secret string) error {
	if strings.Contains(err.Error(), secret) {
		return errors.New(strings.ReplaceAll(err.Error(), secret, "[the token]"))
	}
	return err
}

// expiry is when a token that is a JWT expires, so that a session does not outlive it. The API server has
// verified it. Tokens of another kind do not say.
func expiry(bearer string) time.Time {
	never := time.Unix(1<<40, 0)
	token, err := jwt.ParseSigned(bearer, asymmetric)
	if err != nil {
		return never
	}
	claims := jwt.Claims{}
	if err := token.UnsafeClaimsWithoutVerification(&claims); err != nil || claims.Expiry == nil {
		return never
	}
	return claims.Expiry.Time()
}

// asymmetric are the algorithms that the API server takes (--oidc-signing-algs). Those with a shared secret are none:
// whoever knows the public key could sign.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512,
}
