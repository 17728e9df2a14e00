package alerts

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// File is a test file of promtool's. Fields of that format which no case needs are refused.
type File struct {
	RuleFiles          []string       `json:"rule_files"`
	EvaluationInterval model.Duration `json:"evaluation_interval"`
	Tests              []Test         `json:"tests"`
}

// Test are series, and what the rules and queries make of them.
type Test struct {
	Name           string           `json:"name"`
	Interval       model.Duration   `json:"interval"`
	InputSeries    []InputSeries    `json:"input_series"`
	AlertRuleTests []AlertRuleTest  `json:"alert_rule_test"`
	PromQLTests    []PromQLExprTest `json:"promql_expr_test"`
}

// InputSeries is a series with its values, one per interval, in promtool's notation: `0+60x10`, `_` for none.
type InputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

// AlertRuleTest is what of one alert fires at a time; none when ExpAlerts is empty.
type AlertRuleTest struct {
	EvalTime  model.Duration  `json:"eval_time"`
	Alertname string          `json:"alertname"`
	ExpAlerts []ExpectedAlert `json:"exp_alerts"`
}

// ExpectedAlert is one firing alert without the label alertname.
type ExpectedAlert struct {
	ExpLabels      map[string]string `json:"exp_labels"`
	ExpAnnotations map[string]string `json:"exp_annotations"`
}

// PromQLExprTest is what a query answers at a time.
type PromQLExprTest struct {
	Expr       string           `json:"expr"`
	EvalTime   model.Duration   `json:"eval_time"`
	ExpSamples []ExpectedSample `json:"exp_samples"`
}

// ExpectedSample is one sample of an answer.
type ExpectedSample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// ReadFile reads a test file.
func ReadFile(path string) (File, error) {
	var file File
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil {
		return file, err
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return file, fmt.Errorf("reading %s: %w", path, err)
	}
	for i, rules := range file.RuleFiles {
		file.RuleFiles[i] = filepath.Join(filepath.Dir(path), rules)
	}
	return file, nil
}

// ReadRules reads the rules of a PrometheusRule and has Prometheus validate them.
func ReadRules(path string) ([]rulefmt.Rule, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil {
		return nil, err
	}
	var object struct {
		Kind string         `json:"kind"`
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if object.Kind != "PrometheusRule" {
		return nil, fmt.Errorf("%s holds a %q and no PrometheusRule", path, object.Kind)
	}
	spec, err := yaml.Marshal(object.Spec)
	if err != nil {
		return nil, err
	}
	groups, problems := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || rule.KeepFiringFor != 0 {
				return nil, fmt.Errorf("%s: %s: recording rules and keep_firing_for are not evaluated here; add that to evaluate.go first", path, rule.Record+rule.Alert)
			}
			rules = append(rules, rule)
		}
	}
	return rules, nil
}
