package link

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// MinKey is the least length of a Key's secret in bytes: as many as HMAC-SHA256 has in its result. A shorter one
// would be what an attacker guesses, and not the signature.
const MinKey = sha256.Size

// Key is the secret that only the page and whoever publishes its links hold. It signs nothing itself: each purpose
// has a key of its own derived from it, so that what was made for one is worth nothing for another. The zero Key
// is of no use.
type Key struct{ secret []byte }

// NewKey takes a secret of at least MinKey random bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < MinKey {
		return Key{}, fmt.Errorf("a key has at least %d random bytes, and this one has %d", MinKey, len(secret))
	}
	return Key{append([]byte(nil), secret...)}, nil
}

// Derive is the key of 32 bytes for a purpose, by HKDF (RFC 5869) with SHA-256.
func (k Key) Derive(purpose string) ([]byte, error) {
	if len(k.secret) < MinKey {
		return nil, fmt.Errorf("deriving the key of %s: there is no key", purpose)
	}
	return hkdf.Key(sha256.New, k.secret, nil, purpose, sha256.Size)
}

// String keeps the secret out of whatever is printed.
func (Key) String() string { return "link.Key" }

// GoString is String.
func (Key) GoString() string { return "link.Key" }
