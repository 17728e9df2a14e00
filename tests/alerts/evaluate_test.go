package alerts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// What the evaluation says of an expectation that is wrong, so that a green run means something.
func TestRun_finds_what_is_wrong(t *testing.T) {
	const minute = model.Duration(time.Minute)
	rules := []rulefmt.Rule{{Alert: "High", Expr: "value > 5", For: 2 * minute, Labels: map[string]string{"severity": "warning"}, Annotations: map[string]string{"summary": "{{ $labels.name }} is {{ $value }}"}}}
	series := []InputSeries{{Series: `value{name="a"}`, Values: "0x2 9x10"}} // 9 from minute 3 on
	fires := ExpectedAlert{ExpLabels: map[string]string{"name": "a", "severity": "warning"}, ExpAnnotations: map[string]string{"summary": "a is 9"}}
	at := func(m int, expected ...ExpectedAlert) AlertRuleTest {
		return AlertRuleTest{EvalTime: model.Duration(m) * minute, Alertname: "High", ExpAlerts: expected}
	}
	for name, test := range map[string]struct {
		expected AlertRuleTest
		right    bool
	}{
		"pending_is_not_firing":     {at(4), true},
		"firing_after_its_for":      {at(5, fires), true},
		"expected_too_early":        {at(4, fires), false},
		"fires_and_is_not_expected": {at(6), false},
		"another_label":             {at(6, ExpectedAlert{ExpLabels: map[string]string{"name": "b", "severity": "warning"}, ExpAnnotations: fires.ExpAnnotations}), false},
		"another_annotation":        {at(6, ExpectedAlert{ExpLabels: fires.ExpLabels}), false},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, err := Run(t.Context(), rules, Test{Interval: minute, InputSeries: series, AlertRuleTests: []AlertRuleTest{test.expected}}, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if (len(wrong) == 0) != test.right {
				t.Errorf("found %q", wrong)
			}
		})
	}
	t.Run("an_interruption_starts_the_wait_anew", func(t *testing.T) {
		wrong, err := Run(t.Context(), rules, Test{
			Interval: minute, InputSeries: []InputSeries{{Series: `value{name="a"}`, Values: "9x1 0 9x5"}},
			AlertRuleTests: []AlertRuleTest{at(2), at(4), at(5, fires)},
		}, time.Minute)
		if err != nil || len(wrong) > 0 {
			t.Errorf("found %q, %v", wrong, err)
		}
	})
	t.Run("an_alert_that_there_is_not", func(t *testing.T) {
		if _, err := Run(t.Context(), rules, Test{AlertRuleTests: []AlertRuleTest{{Alertname: "Low"}}}, time.Minute); err == nil {
			t.Error("nothing is wrong")
		}
	})
	t.Run("a_query", func(t *testing.T) {
		ask := func(value float64) []string {
			wrong, err := Run(t.Context(), nil, Test{Interval: minute, InputSeries: series, PromQLTests: []PromQLExprTest{
				{Expr: "sum by (name) (value)", EvalTime: 4 * minute, ExpSamples: []ExpectedSample{{Labels: `{name="a"}`, Value: value}}},
			}}, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			return wrong
		}
		if right, wrong := ask(9), ask(8); len(right) > 0 || len(wrong) == 0 {
			t.Errorf("found %q and %q", right, wrong)
		}
	})
}

func TestReadRules_refuses_what_it_cannot_judge(t *testing.T) {
	for name, text := range map[string]string{
		"another_kind":     "kind: ConfigMap\n",
		"no_query":         "kind: PrometheusRule\nspec: {groups: [{name: a, rules: [{alert: A, expr: 'sum('}]}]}\n",
		"a_recording_rule": "kind: PrometheusRule\nspec: {groups: [{name: a, rules: [{record: a:b, expr: sum(up)}]}]}\n",
		"keep_firing_for":  "kind: PrometheusRule\nspec: {groups: [{name: a, rules: [{alert: A, expr: up, keep_firing_for: 1m}]}]}\n",
		"a_field_too_many": "kind: PrometheusRule\nspec: {groups: [{name: a, rules: [{alert: A, expr: up, if: 1}]}]}\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if rules, err := ReadRules(path); err == nil {
			t.Errorf("%s is taken: %+v", name, rules)
		}
	}
}
