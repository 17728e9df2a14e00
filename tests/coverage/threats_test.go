package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The cells of a page of threats: a folder's link and what it names.
var (
	folderOfTests = regexp.MustCompile(`^\[([^\]]+)\]\(\.\./\.\./([^)]+)\): (.+)$`)
	nameOfTest    = regexp.MustCompile("^`([^`]+)`$")
)

// TestThreats: a defence without a test is a hope. The page is written by hand, for its sentences are what it is for.
func TestThreats(t *testing.T) {
	root := filepath.Join("..", "..")
	evidence := newEvidence(root)
	text, err := os.ReadFile(filepath.Join(root, "docs", "security", "credential-update.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		line, isRow := strings.CutPrefix(strings.TrimSpace(line), "| ")
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		if !isRow || cells[0] == "Threat" {
			continue
		}
		rows++
		if len(cells) != 3 || cells[0] == "" || cells[1] == "" {
			t.Errorf("a row has a threat, a defence and tests: %q", cells)
			continue
		}
		for place := range strings.SplitSeq(cells[2], "<br>") {
			named := folderOfTests.FindStringSubmatch(place)
			if named == nil || named[1] != named[2] {
				t.Errorf("%s: %q does not link to the folder that it names", cells[0], place)
				continue
			}
			for test := range strings.SplitSeq(named[3], ", ") {
				name := nameOfTest.FindStringSubmatch(test)
				if name == nil {
					t.Errorf("%s: %q is no name of a test", cells[0], test)
				} else if _, _, err := evidence.find(named[1], name[1]); err != nil {
					t.Errorf("%s: %v", cells[0], err)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("the page has no rows")
	}
}
