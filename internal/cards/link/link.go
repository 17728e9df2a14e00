// Package link makes and checks the links of cards: https://PAGE/link?token=JWT. A link says which request it is
// about and nothing else. It gives nobody a right: whoever opens it logs in, and may answer what the API server
// says they may. So it can be forwarded, and it is good for any number of visits until it expires: a link that
// was used up by the preview of a chat would be one that no human can follow.
package link

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Path is the page that a link leads to, below the page's base URL.
	Path = "/link"
	// Parameter holds the token, in the query of a link and in the forms of the page.
	Parameter = "token"

	// purpose is whose key signs links, and a claim of theirs.
	purpose = "credential_update"
	issuer  = "c5c3-cards"
	// skew is how far the clock of another replica may be ahead. It makes no link live longer.
	skew = time.Minute
	// maxToken bounds what is parsed before a signature vouches for it. A name and a namespace of the greatest
	// length need a quarter of it.
	maxToken = 4096
	idLength = 16
)

var (
	// ErrForged is what is wrong with a token that this key did not sign, for this page, as a link.
	ErrForged = errors.New("the link is not valid")
	// ErrExpired is what is wrong with a token that is right but for the time.
	ErrExpired = errors.New("the link has expired")
)

// Claims are what a link says.
type Claims struct {
	// Audience is the base URL of the page that the link is for.
	Audience string
	// Request is the CredentialUpdateRequest.
	Request types.NamespacedName
	// UID is the request's: another one of the same name is another request.
	UID types.UID
	// IssuedAt and Expires bound the time it is good for, in whole seconds, Expires excluded.
	IssuedAt, Expires time.Time
	// ID is the link's own, 16 random bytes in hexadecimal, for the audit log. Sign chooses it.
	ID string
}

// token is a link as a JWT (RFC 7519).
type token struct {
	jwt.Claims
	Purpose   string    `json:"purpose"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Sign makes the token of a link, a JWT signed with HS256. Claims that say too little are an error, and so is a base
// URL that Base refuses.
func (k Key) Sign(c Claims) (string, error) {
	base, err := Base(c.Audience)
	if err != nil {
		return "", err
	}
	if c.Request.Namespace == "" || c.Request.Name == "" || c.UID == "" || c.IssuedAt.IsZero() || !c.Expires.After(c.IssuedAt) {
		return "", fmt.Errorf("a link needs the request's namespace, name and UID and a lifetime, and %+v lacks one", c)
	}
	key, err := k.Derive(purpose)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("signing a link: %w", err)
	}
	id := make([]byte, idLength)
	_, _ = rand.Read(id) // never fails
	text, err := jwt.Signed(signer).Claims(token{
		Claims: jwt.Claims{
			Issuer: issuer, Audience: jwt.Audience{base.String()}, ID: fmt.Sprintf("%x", id),
			IssuedAt: jwt.NewNumericDate(c.IssuedAt), NotBefore: jwt.NewNumericDate(c.IssuedAt), Expiry: jwt.NewNumericDate(c.Expires),
		},
		Purpose: purpose, Namespace: c.Request.Namespace, Name: c.Request.Name, UID: c.UID,
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing a link: %w", err)
	}
	return text, nil
}

// Verify checks a token against the base URL of the page it was presented to, and returns what it says. The error
// is ErrExpired when nothing but the time is wrong, and the claims are then there as well, to explain which request
// it was about; all else is ErrForged, and the claims are empty.
func (k Key) Verify(text, base string, now time.Time) (Claims, error) {
	page, err := Base(base)
	if err != nil {
		return Claims{}, err
	}
	key, err := k.Derive(purpose)
	if err != nil {
		return Claims{}, err
	}
	t, err := parse(text, key)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	// The leeway is for the clock of whoever issued it; the expiry is judged below, without one.
	expected := jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{page.String()}, Time: now}
	if err := t.ValidateWithLeeway(expected, skew); err != nil && !errors.Is(err, jwt.ErrExpired) {
		return Claims{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	c := Claims{
		Audience: page.String(), Request: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, UID: t.UID,
		IssuedAt: t.IssuedAt.Time(), Expires: t.Expiry.Time(), ID: t.ID,
	}
	if !now.Before(c.Expires) {
		return c, ErrExpired
	}
	return c, nil
}

// parse checks the signature, in constant time and with the one algorithm there is, and that no claim is missing.
func parse(text string, key []byte) (token, error) {
	t := token{}
	if len(text) > maxToken {
		return t, fmt.Errorf("it has more than %d bytes", maxToken)
	}
	signed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return t, err
	}
	if err := signed.Claims(key, &t); err != nil {
		return t, err
	}
	if t.Purpose != purpose {
		return t, errors.New("it is no link")
	}
	if t.IssuedAt == nil || t.NotBefore == nil || t.Expiry == nil || len(t.ID) != 2*idLength || t.Namespace == "" || t.Name == "" || t.UID == "" {
		return t, errors.New("a claim is missing")
	}
	return t, nil
}

// Base is the address that people reach the page at: absolute, http or https, with a host; without a query, a
// fragment and a user. One page has one audience, so slashes at the end go, and so do the host's upper case and the
// port that goes without saying.
func Base(external string) (*url.URL, error) {
	u, err := url.Parse(external)
	if err != nil {
		return nil, fmt.Errorf("the page's address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("the page's address %q is not an absolute http or https URL with a host", external)
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("the page's address %q has a user, a query or a fragment", u.Redacted())
	}
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return &url.URL{Scheme: u.Scheme, Host: strings.TrimSuffix(host, ":"), Path: strings.TrimRight(u.Path, "/")}, nil
}

// URL is the link with a token.
func URL(base, text string) (string, error) {
	u, err := Base(base)
	if err != nil {
		return "", err
	}
	u = u.JoinPath(Path)
	u.RawQuery = url.Values{Parameter: {text}}.Encode()
	return u.String(), nil
}
