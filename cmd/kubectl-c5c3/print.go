// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// hue is a colour of a terminal; empty is the terminal's own.
type hue string

const (
	green  hue = "32"
	yellow hue = "33"
	red    hue = "31"
	faint  hue = "2"
)

// showsColour tells whether to colour what is written there: a terminal, unless its owner said no
// (https://no-color.org) or it is one that would show the codes.
func showsColour(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// cell is a piece of a line.
type cell struct {
	text string
	hue  hue
}

func plain(text string) cell { return cell{text: text} }

func (p *plugin) paint(c cell) string {
	if !p.colour || c.hue == "" || c.text == "" {
		return c.text
	}
	return "\x1b[" + string(c.hue) + "m" + c.text + "\x1b[0m"
}

// columnGap is what kubectl leaves between two columns.
const columnGap = 3

// table prints rows with their columns aligned. text/tabwriter would count the codes of colours as
// characters, and cell after cell gets a colour or none.
func (p *plugin) table(rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		blanks := 0
		for i, c := range row {
			if c.text != "" {
				line.WriteString(strings.Repeat(" ", blanks) + p.paint(c))
				blanks = 0
			}
			blanks += widths[i] - utf8.RuneCountInString(c.text) + columnGap
		}
		p.printf("%s\n", line.String())
	}
}

// print writes an answer for scripts.
func (p *plugin) print(answer any) error {
	var text []byte
	var err error
	if p.output == outputYAML {
		text, err = yaml.Marshal(answer)
	} else {
		text, err = json.MarshalIndent(answer, "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	p.printf("%s", text)
	return nil
}

// hueOf is the colour of a condition's status.
func hueOf(status string) hue {
	switch metav1.ConditionStatus(status) {
	case metav1.ConditionTrue:
		return green
	case metav1.ConditionFalse:
		return red
	case metav1.ConditionUnknown:
	}
	return yellow
}

// age is how long ago something was, as kubectl tells it; nothing for no time.
func (p *plugin) age(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(p.now().Sub(t.Time))
}

// until is a moment as people think of it: how far away, and when exactly.
func until(now, t time.Time) string {
	if d := t.Sub(now); d >= 0 {
		return fmt.Sprintf("in %s (%s)", duration.HumanDuration(d), t.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s ago (%s)", duration.HumanDuration(now.Sub(t)), t.UTC().Format(time.RFC3339))
}

// wrap breaks text into lines between words. A word is never broken: it may be a name to be copied.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// paragraph prints text, broken into lines, behind an indentation.
func (p *plugin) paragraph(indentation, text string) {
	for _, line := range wrap(text, 100) {
		p.printf("%s%s\n", indentation, line)
	}
}
