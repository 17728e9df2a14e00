package credupdate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

// KeyAccessToken is the key of an OAuth credential's Secret under which the token for calls is.
const KeyAccessToken = "access_token"

// Changed tells whether data holds another credential than the one with a digest, under key or, when that is empty, as
// a whole. A value that was removed or emptied is none: it repairs nothing, and a new one can still come.
func Changed(data map[string][]byte, key, digest string) bool {
	value := key
	if value == "" {
		value = KeyAccessToken
	}
	return len(bytes.TrimSpace(data[value])) > 0 && Digest(data, key) != digest
}

// Digest is a SHA-256 of a credential's data: of one key of a Secret, or of all when key is empty. A key
// that is missing has a digest too, so that its coming is a change. Metadata is left out, since an edit of
// a label is no new credential.
func Digest(data map[string][]byte, key string) string {
	keys := slices.Sorted(maps.Keys(data))
	if key != "" {
		keys = slices.DeleteFunc(keys, func(k string) bool { return k != key })
	}
	sum := sha256.New()
	for _, k := range keys {
		// NUL is neither in a key nor ambiguous after one; a value is followed by one as well.
		for _, part := range [][]byte{[]byte(k), data[k]} {
			sum.Write(part)
			sum.Write([]byte{0})
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
