package untrusted_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"  two \t\r\n words\u2028x ": "two words x",
		"red\x1b[31m":                "red[31m",
		"a\u202eb\u2066c\u200b\ufeffd\U000e0041e":                       "abcde",
		"a\ufe0fb\U000e0100c\u034fd\u115fe\u3164f\uffa0g\u2800h\u17b4i": "abcdefghi", // blank or invisible, and no format characters
		"nul\x00 del\x7f c1\u009b":                                      "nul del c1",
		"bad \xff":                                                      "bad \ufffd",
		"Grüße 世界 👩‍🚀":                                                  "Grüße 世界 👩🚀",
	} {
		if got := untrusted.Line(in, 100); got != want {
			t.Errorf("Line(%q) is %q, want %q", in, got, want)
		}
	}
	for limit, want := range map[int]string{-1: "", 0: "", 1: "…", 2: "a…", 3: "a…", 4: "a b…", 5: "a b c"} {
		if got := untrusted.Line("a b c", limit); got != want {
			t.Errorf("cut to %d it is %q, want %q", limit, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("", 0)
	f.Add("a\u202eb \n c", 3)
	f.Add(strings.Repeat("界 ", 300), 280)
	f.Add("\xff\xfe\x00", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		line := untrusted.Line(text, limit)
		if !utf8.ValidString(line) || utf8.RuneCountInString(line) > max(limit, 0) {
			t.Errorf("%q is no UTF-8 or longer than %d", line, limit)
		}
		for _, r := range line {
			if r != ' ' && unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
				t.Errorf("%q holds %U", line, r)
			}
		}
		if line != strings.TrimSpace(line) || strings.Contains(line, "  ") {
			t.Errorf("%q has space to spare", line)
		}
		if again := untrusted.Line(line, limit); again != line {
			t.Errorf("a second time it is %q, not %q", again, line)
		}
	})
}
