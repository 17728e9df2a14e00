// Command coverage holds the rows of the contracts against the tests that show them, and writes
// docs/contract-coverage.md.
//
// The rows are in the *.yaml files beside this program, in the operator's own words. Whatever can be
// derived (reasons, status fields, rules, defaults, limits, columns) is derived from api/ and from the
// generated CRDs, so that something new without a row fails. A row names its tests; one without a test,
// or with a test that does not exist or never mentions what the row is about, fails too.
//
// That a test is named here proves that it is there and speaks of the row, not that it is a good one.
// Coverage of lines (go test -cover) was rejected as the measure: a line that ran is no promise kept.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// pagePath is the generated page, below the repository's root.
const pagePath = "docs/contract-coverage.md"

func main() {
	root := flag.String("root", ".", "the repository's root")
	check := flag.Bool("check", false, "write nothing, and fail when the page is not what would be written")
	flag.Parse()
	problems, err := run(*root, *check)
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "coverage: "+problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// run checks the rows and writes the page, or compares it. The page is written in spite of problems:
// whoever fills in the rows wants to see it.
func run(root string, check bool) (problems []string, err error) {
	tables, err := loadTables(filepath.Join(root, "tests", "coverage"))
	if err != nil {
		return nil, err
	}
	api, err := loadAPI(root)
	if err != nil {
		return nil, err
	}
	problems = verify(tables, api, newEvidence(root))
	written, path := page(tables), filepath.Join(root, pagePath)
	if !check {
		return problems, os.WriteFile(path, written, 0o644)
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		return problems, err
	}
	if !bytes.Equal(committed, written) {
		problems = append(problems, pagePath+" is not what the rows say: run `make coverage` and commit the page")
	}
	return problems, nil
}
