// Package untrusted makes texts of other people's fit to be shown beside the platform's own: an agent's
// words, and what a provider answers.
package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is a text on one line, of at most limit runes. What would let it look like something else goes:
// control characters, and Unicode's format characters, which reverse or hide what stands around them
// (category Cf: bidirectional marks, zero-width characters, tags), and those of other categories that show nothing
// (variation selectors, fillers), since a text can be smuggled in them past a reader to a program. White space of any kind and length
// becomes one space, and bytes that are no UTF-8 the replacement character. A text that is cut ends in
// an ellipsis, which counts. A limit below one leaves nothing.
func Line(text string, limit int) string {
	var line strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = line.Len() > 0
		case unicode.IsControl(r), unicode.In(r, invisible...):
		default:
			if space {
				line.WriteByte(' ')
				space = false
			}
			line.WriteRune(r)
		}
	}
	return cut(line.String(), limit)
}

// brailleBlank looks like a space and is none to Unicode.
const brailleBlank = '\u2800'

var invisible = []*unicode.RangeTable{
	unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
	{R16: []unicode.Range16{{Lo: brailleBlank, Hi: brailleBlank, Stride: 1}}},
}

func cut(text string, limit int) string {
	switch {
	case limit < 1:
		return ""
	case utf8.RuneCountInString(text) <= limit:
		return text
	}
	return strings.TrimRight(string([]rune(text)[:limit-1]), " ") + "…"
}
