package login

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

// maxCookie is how long a cookie's name and value may be together, in bytes. Browsers take 4096 (RFC 6265bis); but an
// ingress by nginx reads a response's whole header into 4096 bytes, and there is more in it than one cookie. Several
// cookies would fill that too, and sessions on the server's side would need a store that replicas share.
const maxCookie = 3072

// private is what a cookie holds: who somebody is, or what a login at the provider has to come back with.
type private struct {
	User    *authenticationv1.UserInfo `json:"user,omitempty"`
	Via     string                     `json:"via,omitempty"`
	Attempt *attempt                   `json:"attempt,omitempty"`
}

// sealer makes cookies for one purpose and one page, and reads them: JWTs, encrypted with AES-256-GCM, which
// authenticates them as well, by a key of their own. They are encrypted, and not only signed, to be compressed (lists of
// groups are long) and for the sake of the PKCE verifier. Nothing of them looks like a link, which is signed.
type sealer struct {
	key     []byte
	purpose string
	page    string
	cookie  string
	secure  bool
}

func newSealer(key link.Key, purpose string, base *url.URL) (sealer, error) {
	s := sealer{purpose: purpose, page: base.String(), cookie: "c5c3-cards-" + purpose, secure: base.Scheme == "https"}
	if s.secure {
		s.cookie = "__Host-" + s.cookie // no other host can set it, not even a subdomain
	}
	var err error
	s.key, err = key.Derive(purpose + " cookie")
	return s, err
}

type sealed struct {
	jwt.Claims
	private
}

func (s sealer) seal(now, expires time.Time, p private) (string, error) {
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.DIRECT, Key: s.key}, &jose.EncrypterOptions{Compression: jose.DEFLATE})
	if err != nil {
		return "", fmt.Errorf("sealing a %s: %w", s.purpose, err)
	}
	text, err := jwt.Encrypted(encrypter).Claims(sealed{
		Claims:  jwt.Claims{Audience: jwt.Audience{s.page}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires)},
		private: p,
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("sealing a %s: %w", s.purpose, err)
	}
	return text, nil
}

func (s sealer) open(text string, now time.Time) (private, time.Time, error) {
	token, err := jwt.ParseEncrypted(text, []jose.KeyAlgorithm{jose.DIRECT}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return private{}, time.Time{}, err
	}
	c := sealed{}
	if err := token.Claims(s.key, &c); err != nil {
		return private{}, time.Time{}, err
	}
	if !c.Audience.Contains(s.page) || c.Expiry == nil {
		return private{}, time.Time{}, errors.New("it was made for another page")
	}
	if expires := c.Expiry.Time(); now.Before(expires) {
		return c.private, expires, nil
	}
	return private{}, time.Time{}, jwt.ErrExpired
}

func (s sealer) fromCookie(r *http.Request, now time.Time) (private, time.Time, error) {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return private{}, time.Time{}, err
	}
	return s.open(cookie.Value, now)
}

// setCookie tells whether the value fits. SameSite is Lax and not Strict since people come from a chat, and back from
// the provider; a POST from elsewhere comes without it either way.
func (s sealer) setCookie(w http.ResponseWriter, value string, lifetime time.Duration) bool {
	if len(s.cookie)+len(value) > maxCookie {
		return false
	}
	http.SetCookie(w, s.make(value, int(lifetime/time.Second)))
	return true
}

func (s sealer) clearCookie(w http.ResponseWriter) { http.SetCookie(w, s.make("", -1)) }

func (s sealer) make(value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: s.cookie, Value: value, Path: "/", MaxAge: maxAge, Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
