package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const head = `# Contract coverage

<!-- Generated from tests/coverage/*.yaml: change the rows there and run ` + "`make coverage`" + `. -->

What was promised about each kind, and the test that shows it. ` + "`make verify`" + ` fails when a row has no test, names
one that is not there or that never mentions what the row is about, and when a reason, a status field, a rule, a
default, a limit or a column of the API has no row.

A Go test is named by its folder and ` + "`TestName/subtest`" + `, a Chainsaw suite by its folder and the step. Rows that
leave the letter of a contract link to the decision that says why. Rows marked **target clusters** need a second
cluster in earnest and are the only ones that may stand without a test.
`

// page renders the tables.
func page(tables []Table) []byte {
	out := &bytes.Buffer{}
	out.WriteString(head)
	rows, open := count(tables)
	fmt.Fprintf(out, "\n%d rows, %d of them without a test.\n", rows, open)
	for _, table := range tables {
		fmt.Fprintf(out, "\n## %s\n", table.Title)
		for _, section := range table.Sections {
			fmt.Fprintf(out, "\n### %s: %s\n\n| Row | What holds | Shown by |\n|---|---|---|\n", table.Title, section.Title)
			for _, row := range section.Rows {
				fmt.Fprintf(out, "| %s | %s | %s |\n", label(row), cell(row.Holds), shown(row))
			}
		}
	}
	return out.Bytes()
}

func count(tables []Table) (rows, open int) {
	for _, table := range tables {
		for _, section := range table.Sections {
			for _, row := range section.Rows {
				rows++
				if len(row.Tests) == 0 {
					open++
				}
			}
		}
	}
	return rows, open
}

// label is the first cell: the row's name, and the parts of the API that it covers.
func label(row Row) string {
	var lines []string
	if row.Row != "" {
		lines = append(lines, cell(row.Row))
	}
	for _, item := range row.Covers {
		what, rest, _ := strings.Cut(item, " ")
		lines = append(lines, what+" "+code(rest))
	}
	return strings.Join(lines, "<br>")
}

// shown is the last cell: what the row deviates by or needs, and its tests with links to their folders.
func shown(row Row) string {
	var lines []string
	for _, folder := range slices.Sorted(maps.Keys(row.Tests)) {
		var names []string
		for _, name := range row.Tests[folder] {
			names = append(names, code(name))
		}
		lines = append(lines, fmt.Sprintf("[%s](../%s): %s", folder, folder, strings.Join(names, ", ")))
	}
	if row.Needs != "" {
		lines = append(lines, "**"+row.Needs+"**")
	}
	if row.Deviates != "" {
		number, _, _ := strings.Cut(row.Deviates, "-")
		lines = append(lines, fmt.Sprintf("Deviates: [decision %s](decisions/%s)", number, row.Deviates))
	}
	return strings.Join(lines, "<br>")
}

// cell keeps a text in its cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// code shows a text as it is. What GitHub reads as the end of a cell stays escaped inside of code, too.
func code(text string) string { return "`" + cell(text) + "`" }
