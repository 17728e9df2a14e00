package order

import (
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// FoldName reduces a Keystone name to what Keystone's database compares: without regard to case, to
// accents and to spaces at the end (MySQL's default collations). Two names with the same result may
// be one user or one project there, so a reserved name is refused in every spelling; comparing the
// bytes would let "Ádmin" through to the administrator's row.
func FoldName(name string) string {
	folded, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), name)
	if err != nil {
		// These transformers take any bytes; should one ever not, the name as it is must do.
		folded = name
	}
	return strings.TrimRight(strings.ToLower(folded), " ")
}
