package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Table is one file of rows: what was promised about one kind, or about all of them.
type Table struct {
	// Title heads the table on the page.
	Title string `json:"title"`
	// Kind is the kind whose API the rows cover. Empty for rows that are about no kind's API.
	Kind string `json:"kind,omitempty"`
	// Sections group the rows.
	Sections []Section `json:"sections"`

	// file is where the table was read from, for messages.
	file string
}

// Section is a group of rows under one heading.
type Section struct {
	Title string `json:"title"`
	Rows  []Row  `json:"rows"`
}

// Row is one promise.
type Row struct {
	// Row names the promise. It may be left out when Covers says it.
	Row string `json:"row,omitempty"`
	// Covers are the items of the API that the row is about, spelled as loadAPI derives them.
	Covers []string `json:"covers,omitempty"`
	// Holds is the promise, as a sentence.
	Holds string `json:"holds"`
	// Tests are the tests that show it: names by folder. In a folder of Go tests a name is TestName or
	// TestName/subtest, in the folder of a Chainsaw suite it is the name of a step.
	Tests map[string][]string `json:"tests,omitempty"`
	// Deviates names the page in docs/decisions that says why the contract's letter is left.
	Deviates string `json:"deviates,omitempty"`
	// Needs is what a test would need that this repository's tests do not have yet. It is the only
	// excuse for a row without a test, and targetClusters is the only thing it may say.
	Needs string `json:"needs,omitempty"`
}

// targetClusters marks rows that two API servers in one test cannot show.
const targetClusters = "target clusters"

// name is what messages call the row.
func (r Row) name() string {
	if r.Row != "" {
		return r.Row
	}
	return strings.Join(r.Covers, ", ")
}

// loadTables reads every *.yaml of a folder, in the order of their names. A field that no table has is
// an error: a misspelled `deviates` would otherwise vanish.
func loadTables(folder string) ([]Table, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no tables of rows in " + folder)
	}
	slices.Sort(files)
	var tables []Table
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		table := Table{file: filepath.Base(file)}
		if err := yaml.UnmarshalStrict(raw, &table); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		tables = append(tables, table)
	}
	return tables, nil
}
