package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindingsOfValidators(t *testing.T) {
	const fine = `{"passed": true, "outputs": null}`
	for name, c := range map[string]struct {
		results, explained, refuse string
	}{
		"nothing_found":            {fine + "\n" + fine, "[]", ""},
		"information":              {`{"passed": true, "outputs": [{"type": "info", "message": "all fine"}]}`, "[]", ""},
		"an_unexplained_warning":   {`{"passed": true, "outputs": [{"type": "warning", "message": "no icon"}]}`, "[]", "warning: no icon"},
		"an_explained_warning":     {`{"passed": true, "outputs": [{"type": "warning", "message": "no icon, v1"}]}`, "[{warning: 'no icon, v\\d', page: page.md}]", ""},
		"half_of_it_explained":     {`{"passed": true, "outputs": [{"type": "warning", "message": "no icon, no links"}]}`, "[{warning: 'no icon', page: page.md}]", "no icon, no links"},
		"an_error":                 {`{"passed": false, "outputs": [{"type": "error", "message": "no icon"}]}`, "[{warning: 'no icon', page: page.md}]", "error: no icon"},
		"not_passed_for_no_reason": {`{"passed": false, "outputs": []}`, "[]", "did not pass"},
		"an_idle_explanation":      {fine, "[{warning: 'no icon', page: page.md}]", "no validator gives"},
		"one_of_some_machines":     {fine, "[{warning: 'no icon', page: page.md, sometimes: true}]", ""},
		"a_page_that_is_not_there": {fine, "[{warning: 'no icon', page: other.md}]", "other.md"},
		"no_result":                {"", "[]", "nothing was checked"},
		"no_JSON":                  {fine + "panic: no", "[]", "result 2"},
		"a_misspelt_explanation":   {fine, "[{warnings: 'no icon', page: page.md}]", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			explained := filepath.Join(folder, "explained.yaml")
			for file, text := range map[string]string{explained: c.explained, filepath.Join(folder, "page.md"): "# Why"} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			expect(t, judge(strings.NewReader(c.results), io.Discard, explained), c.refuse)
		})
	}
}
