package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// verify returns what is wrong, one sentence each: rows without tests, tests that are not there, and
// parts of the API without a row.
func verify(tables []Table, api API, evidence *Evidence) []string {
	v := &verifier{api: api, evidence: evidence, covered: map[string]string{}, reasons: map[string]bool{}}
	for _, table := range tables {
		for _, section := range table.Sections {
			for _, row := range section.Rows {
				v.row(table, row)
			}
		}
	}
	v.complete()
	return v.problems
}

type verifier struct {
	api      API
	evidence *Evidence
	problems []string
	// covered are the items that have a row, as "kind: item", with the file of the row.
	covered map[string]string
	reasons map[string]bool
}

func (v *verifier) report(table Table, row Row, format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf("%s: row %q: %s", table.file, row.name(), fmt.Sprintf(format, args...)))
}

func (v *verifier) row(table Table, row Row) {
	if row.name() == "" || row.Holds == "" {
		v.report(table, row, "a row has a name and says what holds (%q)", row.Holds)
	}
	if row.Needs != "" && row.Needs != targetClusters {
		v.report(table, row, "needs %q, and only %q excuses a row", row.Needs, targetClusters)
	}
	if row.Deviates != "" {
		if _, err := os.Stat(filepath.Join(v.evidence.root, "docs", "decisions", row.Deviates)); err != nil {
			v.report(table, row, "deviates by a decision that is not there: %v", err)
		}
	}
	var reasons, fields []string
	for _, item := range row.Covers {
		reason, field := v.item(table, row, item)
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if field != "" {
			fields = append(fields, field)
		}
	}
	v.tests(table, row, reasons, fields)
}

// item checks one thing that a row covers, and returns the reason or the status field that its tests
// have to speak of.
func (v *verifier) item(table Table, row Row, item string) (reason, field string) {
	key := table.Kind + ": " + item
	if other, twice := v.covered[key]; twice {
		v.report(table, row, "%q has a row in %s already", item, other)
	}
	v.covered[key] = table.file
	rest, isReason := strings.CutPrefix(item, "reason ")
	if !isReason {
		if !slices.Contains(v.api.Items[table.Kind], item) {
			v.report(table, row, "%s has no %q", table.Kind, item)
		}
		if path, ok := strings.CutPrefix(item, "status "); ok {
			return "", path[strings.LastIndex(path, ".")+1:]
		}
		return "", ""
	}
	where, reason, ok := cutLast(rest, "/")
	if !ok || !v.api.Reasons[reason] {
		v.report(table, row, "api/v1alpha1 has no reason %q", reason)
	}
	if condition, status, ok := strings.Cut(where, "="); ok {
		if !v.api.Conditions[condition] {
			v.report(table, row, "api/v1alpha1 has no condition %q", condition)
		}
		if !slices.Contains([]string{"True", "False", "Unknown"}, status) {
			v.report(table, row, "no condition is ever %q", status)
		}
	} else if !slices.Contains(v.api.Items[table.Kind], where) {
		v.report(table, row, "%q is neither Condition=Status nor a status field of %s", where, table.Kind)
	}
	v.reasons[reason] = true
	return reason, ""
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return "", text, false
	}
	return text[:at], text[at+len(separator):], true
}

// tests checks that the tests of a row are there and speak of it. A Go test has to mention every
// reason; of a status field one test has to.
func (v *verifier) tests(table Table, row Row, reasons, fields []string) {
	named, missing, spoken := 0, false, map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(row.Tests)) {
		for _, name := range row.Tests[folder] {
			named++
			said, isGo, err := v.evidence.find(folder, name)
			if err != nil {
				v.report(table, row, "%v", err)
				missing = true
				continue
			}
			for _, reason := range reasons {
				spoken[reason] = spoken[reason] || said.mentionsReason(reason)
				if isGo && !said.mentionsReason(reason) {
					v.report(table, row, "%s: %s never mentions reason %s", folder, name, reason)
				}
			}
			for _, field := range fields {
				spoken[field] = spoken[field] || said.mentionsField(field)
			}
		}
	}
	if named == 0 {
		if row.Needs == "" {
			v.report(table, row, "no test shows it")
		}
		return
	}
	if missing {
		return // the one that is not there may be the one that speaks
	}
	for _, word := range append(slices.Clone(reasons), fields...) {
		if !spoken[word] {
			v.report(table, row, "none of its tests mentions %s", word)
		}
	}
}

// complete reports what has no row.
func (v *verifier) complete() {
	for _, kind := range slices.Sorted(maps.Keys(v.api.Items)) {
		for _, item := range v.api.Items[kind] {
			if v.covered[kind+": "+item] == "" {
				v.problems = append(v.problems, fmt.Sprintf("%s: no row covers %q", kind, item))
			}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(v.api.Reasons)) {
		if !v.reasons[reason] {
			v.problems = append(v.problems, fmt.Sprintf("no row covers reason %s of api/v1alpha1", reason))
		}
	}
}
