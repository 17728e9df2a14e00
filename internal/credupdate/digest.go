package credupdate

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

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
