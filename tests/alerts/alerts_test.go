package alerts

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	rulesPath     = "../../config/prometheus/rules.yaml"
	metricsPage   = "../../docs/metrics.md"
	runbooks      = "../../docs/runbooks"
	dashboardPath = "../../config/grafana/c5c3-operator.json"
)

func TestAlerts(t *testing.T) {
	file, err := ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []rulefmt.Rule
	for _, path := range file.RuleFiles {
		more, err := ReadRules(path)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, more...)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) {
			wrong, err := Run(t.Context(), rules, test, time.Duration(file.EvaluationInterval))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range wrong {
				t.Error(line)
			}
		})
		// A case in which an alert fires later on shows its threshold, not that it can stay quiet.
		fired := map[string]bool{}
		for _, expected := range test.AlertRuleTests {
			fired[expected.Alertname] = fired[expected.Alertname] || len(expected.ExpAlerts) > 0
		}
		for name, did := range fired {
			fires[name], quiet[name] = fires[name] || did, quiet[name] || !did
		}
	}
	for _, rule := range rules {
		if name := rule.Alert; !fires[name] || !quiet[name] {
			t.Errorf("%s has a case in which it fires: %t, and one in which it does not: %t", name, fires[name], quiet[name])
		}
	}
}

func TestEveryAlertHasItsRunbook(t *testing.T) {
	rules, err := ReadRules(rulesPath)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	entries, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pages[entry.Name()] = true
	}
	delete(pages, "README.md")
	for _, rule := range rules {
		page := rule.Alert + ".md"
		if !pages[page] {
			t.Errorf("%s has no page %s", rule.Alert, page)
			continue
		}
		delete(pages, page)
		if url := rule.Annotations["runbook_url"]; url != "https://github.com/c5c3/c5c3-operator/blob/main/docs/runbooks/"+page {
			t.Errorf("%s names the runbook %q", rule.Alert, url)
		}
		text, err := os.ReadFile(filepath.Join(runbooks, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, heading := range []string{"# " + rule.Alert, "## What it means", "## What is at risk", "## What to look at", "## What to do"} {
			if !slices.Contains(strings.Split(string(text), "\n"), heading) {
				t.Errorf("%s has no heading %q", page, heading)
			}
		}
		if severity := rule.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
	}
	for page := range pages {
		t.Errorf("%s is the runbook of no alert", page)
	}
}

// foreign are metrics of controller-runtime and of Prometheus itself that queries may use, with the labels
// that they may ask for.
var foreign = map[string][]string{
	"controller_runtime_reconcile_total":               {"controller", "result"},
	"controller_runtime_reconcile_time_seconds_bucket": {"controller", "le"},
	"workqueue_depth":                                  {"controller", "name"},
	"process_resident_memory_bytes":                    nil,
}

// known are the operator's metrics with their labels, from the page that is generated from their table.
func known(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(c5c3_[a-z_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\|")
	metrics := map[string][]string{}
	for _, match := range row.FindAllStringSubmatch(string(page), -1) {
		name, names := match[1], strings.FieldsFunc(match[3], func(r rune) bool { return strings.ContainsRune("`, –", r) })
		if match[2] != "histogram" {
			metrics[name] = names
			continue
		}
		metrics[name+"_sum"], metrics[name+"_count"], metrics[name+"_bucket"] = names, names, append(slices.Clone(names), "le")
	}
	if len(metrics) < 15 {
		t.Fatalf("only %d metrics are found in %s; the search is broken", len(metrics), metricsPage)
	}
	maps.Copy(metrics, foreign)
	return metrics
}

// asks fails when a query asks for a metric, or for a label of a metric, that there is not.
func asks(t *testing.T, where, query string, metrics map[string][]string) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		names, exists := metrics[selector.Name]
		if !exists {
			t.Errorf("%s asks for %q, which nothing exposes", where, selector.Name)
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && matcher.Name != "job" && !slices.Contains(names, matcher.Name) {
				t.Errorf("%s: %s has no label %q", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
}

func TestAlertsAskForWhatIsThere(t *testing.T) {
	rules, err := ReadRules(rulesPath)
	if err != nil {
		t.Fatal(err)
	}
	metrics := known(t)
	for _, rule := range rules {
		asks(t, rule.Alert, rule.Expr, metrics)
	}
}

// panel is what of a Grafana panel the test looks at.
type panel struct {
	ID          int      `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Type        string   `json:"type"`
	GridPos     position `json:"gridPos"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	Targets []struct {
		Expr  string `json:"expr"`
		RefID string `json:"refId"`
	} `json:"targets"`
}

type position struct{ H, W, X, Y int }

func (p position) overlaps(q position) bool {
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardPath)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Panels        []panel
		Templating    struct{ List []struct{ Name string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || dashboard.SchemaVersion < 36 || len(dashboard.Panels) < 10 {
		t.Errorf("the dashboard is %q (%q), schema %d, with %d panels", dashboard.Title, dashboard.UID, dashboard.SchemaVersion, len(dashboard.Panels))
	}
	for i, name := range []string{"datasource", "namespace", "kind"} {
		if list := dashboard.Templating.List; i >= len(list) || list[i].Name != name {
			t.Errorf("there is no variable %q at its place: %+v", name, list)
		}
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$namespace", "tenant-a", "$kind", "KeystoneUser")
	metrics, ids := known(t), map[int]bool{}
	shown := map[string]bool{}
	for i, p := range dashboard.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d (%q) has no id or title of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, q := range dashboard.Panels[:i] {
			if p.GridPos.overlaps(q.GridPos) {
				t.Errorf("%q lies on %q", p.Title, q.Title)
			}
		}
		if p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q does not fit the grid: %+v", p.Title, p.GridPos)
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%q has no description or no query, or does not use the datasource that is chosen", p.Title)
		}
		for _, target := range p.Targets {
			query := variables.Replace(target.Expr)
			if strings.Contains(query, "$") {
				t.Errorf("%q uses a variable that there is not: %s", p.Title, target.Expr)
			}
			asks(t, p.Title, query, metrics)
			for name := range metrics {
				if regexp.MustCompile(`\b` + name + `\b`).MatchString(query) {
					shown[name] = true
				}
			}
		}
	}
	for name := range metrics {
		if strings.HasPrefix(name, "c5c3_") && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") && !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
