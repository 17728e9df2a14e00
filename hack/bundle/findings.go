package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"
)

// explanation says why a warning of a validator stays.
type explanation struct {
	// Warning is a regular expression that the whole warning matches.
	Warning string `json:"warning"`
	// Page is the page of docs/decisions that explains it, relative to the file with the explanations.
	Page string `json:"page"`
	// Sometimes is for a warning that the machine decides about: it explains nothing where there is nothing.
	Sometimes bool `json:"sometimes"`
}

// judge reads what `operator-sdk bundle validate -o json-alpha1` printed, one result after the other, and passes
// when there is no error and no warning without an explanation. An explanation that explains nothing any more
// is an error too: the next warning that happens to match would hide behind it.
func judge(results io.Reader, report io.Writer, explained string) error {
	text, err := os.ReadFile(explained)
	if err != nil {
		return err
	}
	var explanations []explanation
	if err := yaml.UnmarshalStrict(text, &explanations); err != nil {
		return fmt.Errorf("%s: %w", explained, err)
	}
	patterns, used := make([]*regexp.Regexp, len(explanations)), make([]bool, len(explanations))
	for i, e := range explanations {
		if patterns[i], err = regexp.Compile(`^(?s:` + e.Warning + `)$`); err != nil {
			return fmt.Errorf("%s: %w", explained, err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(explained), e.Page)); err != nil {
			return fmt.Errorf("%s: the page of an explanation: %w", explained, err)
		}
	}

	var problems []error
	decoder, count := json.NewDecoder(results), 0
	for ; ; count++ {
		var result struct {
			Passed  bool `json:"passed"`
			Outputs []struct{ Type, Message string }
		}
		if err := decoder.Decode(&result); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("result %d of the validators: %w", count+1, err)
		}
		if !result.Passed {
			problems = append(problems, fmt.Errorf("result %d did not pass", count+1))
		}
	outputs:
		for _, output := range result.Outputs {
			if output.Type == "info" {
				continue
			}
			for i, pattern := range patterns {
				if output.Type == "warning" && pattern.MatchString(output.Message) {
					used[i] = true
					continue outputs
				}
			}
			problems = append(problems, fmt.Errorf("%s: %s", output.Type, output.Message))
		}
	}
	if count == 0 {
		return errors.New("no result of a validator: nothing was checked")
	}
	for i, e := range explanations {
		if !used[i] && !e.Sometimes {
			problems = append(problems, fmt.Errorf("%s explains a warning that no validator gives any more: %s", explained, e.Warning))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	fmt.Fprintf(report, "%d results: no error, and no warning without an explanation (%d are explained)\n", count, len(explanations))
	return nil
}
