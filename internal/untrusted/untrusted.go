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
// (category Cf: bidirectional marks, zero-width characters, tags). White space of any kind and length
// becomes one space, and bytes that are no UTF-8 the replacement character. A text that is cut ends in
// an ellipsis, which counts. A limit below one leaves nothing.
func Line(text string, limit int) string {
	var line strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = line.Len() > 0
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
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

func cut(text string, limit int) string {
	switch {
	case limit < 1:
		return ""
	case utf8.RuneCountInString(text) <= limit:
		return text
	}
	return strings.TrimRight(string([]rune(text)[:limit-1]), " ") + "…"
}
