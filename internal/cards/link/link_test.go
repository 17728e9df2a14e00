package link

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
)

const page = "https://cards.example.com"

var (
	secret = bytes.Repeat([]byte("s"), MinKey)
	key    = Key{secret}
	now    = time.Unix(1_790_000_000, 0)
	claims = Claims{
		Audience: page, Request: types.NamespacedName{Namespace: "tenant-a", Name: "cur-1"}, UID: "uid-1",
		IssuedAt: now, Expires: now.Add(30 * time.Minute),
	}
)

func sign(t testing.TB, c Claims) string {
	t.Helper()
	text, err := key.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLink_leads_to_its_request_until_it_expires_any_number_of_times(t *testing.T) {
	address, err := URL(page+"/", sign(t, claims))
	if err != nil || !strings.HasPrefix(address, page+"/link?token=ey") {
		t.Fatalf("it is %s, %v", address, err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, after := range []time.Duration{-skew, 0, time.Minute, 30*time.Minute - time.Second} {
		got, err := key.Verify(u.Query().Get(Parameter), page, now.Add(after))
		if err != nil {
			t.Errorf("after %s: %v", after, err)
		}
		ids[got.ID] = true
		want := claims
		want.ID, want.IssuedAt, want.Expires = got.ID, got.IssuedAt, got.Expires
		if got != want || !got.IssuedAt.Equal(now) || !got.Expires.Equal(claims.Expires) || len(got.ID) != 32 {
			t.Errorf("it says %+v", got)
		}
	}
	if len(ids) != 1 {
		t.Errorf("one link has the ids %v", slices.Collect(maps.Keys(ids)))
	}
	if again := sign(t, claims); again == u.Query().Get(Parameter) {
		t.Error("two links have the same id")
	}
}

func TestLink_expires_to_the_second_and_still_says_what_it_was_about(t *testing.T) {
	for _, after := range []time.Duration{30 * time.Minute, 30*time.Minute + 1, 30*time.Minute + skew, 24 * time.Hour} {
		got, err := key.Verify(sign(t, claims), page, now.Add(after))
		if !errors.Is(err, ErrExpired) || errors.Is(err, ErrForged) || got.Request != claims.Request || got.UID != claims.UID {
			t.Errorf("after %s: %+v, %v", after, got, err)
		}
	}
}

// TestLink_is_forged changes one thing about a right token. All of it is signed with the right key, but for the
// cases that say otherwise.
func TestLink_is_forged(t *testing.T) {
	right := map[string]any{
		"iss": issuer, "aud": page, "purpose": purpose, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"jti": strings.Repeat("0", 32), "namespace": "tenant-a", "name": "cur-1", "uid": "uid-1",
	}
	links, err := key.Derive(purpose)
	if err != nil {
		t.Fatal(err)
	}
	token := func(algorithm jose.SignatureAlgorithm, key []byte, changes map[string]any) string {
		t.Helper()
		all := maps.Clone(right)
		maps.Copy(all, changes)
		maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.Signed(signer).Claims(all).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := token(jose.HS256, links, nil)
	if _, err := key.Verify(good, page, now); err != nil {
		t.Fatalf("nothing is wrong with it, and it is answered with %v", err)
	}
	header, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	session, err := key.Derive("session")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"nothing":                         "",
		"not_a_token":                     "token",
		"without_a_signature":             header + "." + payload + ".",
		"with_alg_none":                   "eyJhbGciOiJub25lIn0." + payload + ".",
		"with_another_algorithm":          token(jose.HS512, bytes.Repeat(links, 2), nil),
		"with_another_key":                token(jose.HS256, bytes.Repeat([]byte("x"), 32), nil),
		"with_the_secret_itself":          token(jose.HS256, secret, nil),
		"with_the_key_of_another_purpose": token(jose.HS256, session, nil),
		"a_changed_payload":               header + "." + payload[:20] + "A" + payload[21:] + "." + signature,
		"a_cut_signature":                 good[:len(good)-9],
		"too_long":                        token(jose.HS256, links, map[string]any{"padding": strings.Repeat("x", maxToken)}),
		"for_another_page":                token(jose.HS256, links, map[string]any{"aud": page + ".evil.example"}),
		"of_another_issuer":               token(jose.HS256, links, map[string]any{"iss": "c5c3-operator"}),
		"of_another_purpose":              token(jose.HS256, links, map[string]any{"purpose": "session"}),
		"issued_in_the_future":            token(jose.HS256, links, map[string]any{"iat": now.Add(2 * skew).Unix()}),
		"not_valid_yet":                   token(jose.HS256, links, map[string]any{"nbf": now.Add(2 * skew).Unix()}),
		"with_a_short_id":                 token(jose.HS256, links, map[string]any{"jti": "1"}),
		"expired_and_for_another_page":    token(jose.HS256, links, map[string]any{"aud": "https://other.example.com", "exp": now.Unix()}),
	}
	for claim := range right {
		cases["without_"+claim] = token(jose.HS256, links, map[string]any{claim: nil})
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := key.Verify(text, page, now); !errors.Is(err, ErrForged) || errors.Is(err, ErrExpired) || got != (Claims{}) {
				t.Errorf("it is answered with %+v, %v", got, err)
			}
		})
	}
}

func TestSign_refuses_claims_that_say_too_little(t *testing.T) {
	for name, change := range map[string]func(*Claims){
		"audience":  func(c *Claims) { c.Audience = "" },
		"namespace": func(c *Claims) { c.Request.Namespace = "" },
		"name":      func(c *Claims) { c.Request.Name = "" },
		"UID":       func(c *Claims) { c.UID = "" },
		"issued_at": func(c *Claims) { c.IssuedAt = time.Time{} },
		"expiry":    func(c *Claims) { c.Expires = time.Time{} },
		"lifetime":  func(c *Claims) { c.Expires = c.IssuedAt },
	} {
		t.Run(name, func(t *testing.T) {
			c := claims
			change(&c)
			if text, err := key.Sign(c); err == nil {
				t.Errorf("it signs %s", text)
			}
		})
	}
}

func TestKey_is_long_stays_unprinted_and_differs_by_purpose(t *testing.T) {
	if _, err := NewKey(secret[1:]); err == nil {
		t.Error("it may be short")
	}
	given := bytes.Clone(secret)
	k, err := NewKey(given)
	if err != nil {
		t.Fatal(err)
	}
	clear(given)
	if _, err := k.Verify(sign(t, claims), page, now); err != nil {
		t.Errorf("it changes with the bytes it was made of: %v", err)
	}
	a, errA := k.Derive("a")
	b, errB := k.Derive("b")
	if errA != nil || errB != nil || bytes.Equal(a, b) || bytes.Contains(a, secret) || len(a) != 32 {
		t.Errorf("the derived ones are %x and %x, %v, %v", a, b, errA, errB)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q"} {
		for _, printed := range []string{fmt.Sprintf(verb, k), fmt.Sprintf(verb, &k), fmt.Sprintf(verb, struct{ K Key }{k})} {
			if strings.Contains(printed, "sss") || strings.Contains(printed, "7373") || strings.Contains(printed, "115 115") || strings.Contains(printed, "0x73") {
				t.Errorf("%s prints %s", verb, printed)
			}
		}
	}
	// No key at all must not be a key that everybody knows.
	if _, err := (Key{}).Sign(claims); err == nil {
		t.Error("the zero key signs")
	}
	if _, err := (Key{}).Verify(sign(t, claims), page, now); err == nil {
		t.Error("the zero key verifies")
	}
}

func TestBase(t *testing.T) {
	for external, want := range map[string]string{
		page:                             page,
		page + "/":                       page,
		"HTTPS://Cards.Example.com:443/": page,
		"http://127.0.0.1:8080":          "http://127.0.0.1:8080",
		"http://[::1]:80":                "http://[::1]",
		page + "/below/":                 page + "/below",
		"":                               "",
		"cards.example.com":              "",
		"//cards.example.com":            "",
		"https:///path":                  "",
		"https://:443":                   "",
		"ftp://cards.example.com":        "",
		"javascript:alert(1)":            "",
		page + "?a=b":                    "",
		page + "?":                       "",
		page + "#a":                      "",
		"https://user:password@" + "cards.example.com": "",
		"https://cards.example.com\x00":                "",
	} {
		u, err := Base(external)
		if want == "" && err == nil || want != "" && (err != nil || u.String() != want) {
			t.Errorf("%q becomes %v, %v", external, u, err)
		}
		if err != nil && strings.Contains(err.Error(), "password") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	good := sign(f, claims)
	f.Add(good, page)
	f.Add(good[:len(good)-1], page)
	f.Add("eyJhbGciOiJub25lIn0.e30.", page)
	f.Add("..", "http://")
	f.Add(strings.Repeat("a.", 3000), page)
	f.Fuzz(func(t *testing.T, text, base string) {
		got, err := key.Verify(text, base, now)
		if err == nil && (got.Request != claims.Request || got.UID != claims.UID) {
			t.Fatalf("%q was never signed, and says %+v", text, got)
		}
		if err != nil && got != (Claims{}) {
			t.Fatalf("%q is refused with %v, and says %+v", text, err, got)
		}
	})
}
