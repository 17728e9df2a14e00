package alerts

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// start is when every test begins, as promtool has it.
var start = time.Unix(0, 0).UTC()

// database answers queries about the series of one test.
type database struct {
	engine *promql.Engine
	series []storage.Series
}

// newDatabase reads the series of a test. They are there from the beginning to the end; the engine looks
// at no sample that is later than the moment it is asked about.
func newDatabase(test Test) (*database, error) {
	syntax := parser.NewParser(parser.Options{})
	d := &database{engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: syntax,
	})}
	for _, input := range test.InputSeries {
		name, values, err := syntax.ParseSeriesDesc(input.Series + " " + input.Values)
		if err != nil {
			return nil, fmt.Errorf("series %s: %w", input.Series, err)
		}
		var samples []chunks.Sample
		for i, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{at: int64(i) * time.Duration(test.Interval).Milliseconds(), value: value.Value})
			}
		}
		d.series = append(d.series, storage.NewListSeries(name, samples))
	}
	return d, nil
}

// query asks the engine, at a time after the start.
func (d *database) query(ctx context.Context, expression string, after time.Duration) (promql.Vector, error) {
	query, err := d.engine.NewInstantQuery(ctx, d, nil, expression, start.Add(after))
	if err != nil {
		return nil, err
	}
	defer query.Close()
	switch value := query.Exec(ctx); answer := value.Value.(type) {
	case promql.Vector:
		return slices.Clone(answer), value.Err
	case promql.Scalar:
		return promql.Vector{{T: answer.T, F: answer.V}}, value.Err
	default:
		return nil, value.Err
	}
}

// Querier implements storage.Queryable.
func (d *database) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &set{}
		for _, series := range d.series {
			if slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) }) < 0 {
				found.rest = append(found.rest, series)
			}
		}
		return found
	}}, nil
}

// sample is a chunks.Sample of a float. Storage's own mock of a series cannot seek, and the engine does.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (s sample) F() float64                  { return s.value }
func (sample) ST() int64                     { return 0 }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// set is a storage.SeriesSet.
type set struct {
	current storage.Series
	rest    []storage.Series
}

func (s *set) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}
func (s *set) At() storage.Series              { return s.current }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

// alert is one instance of an alert that its expression holds for.
type alert struct {
	since               time.Duration
	labels, annotations map[string]string
	firing              bool
}

// Group evaluates rules again and again and remembers, as Prometheus does, since when each alert is active.
type Group struct {
	rules  []rulefmt.Rule
	active map[string]map[uint64]*alert
}

// NewGroup makes a group of rules of which nothing is active.
func NewGroup(rules []rulefmt.Rule) *Group {
	return &Group{rules: rules, active: map[string]map[uint64]*alert{}}
}

// evaluate is one evaluation at a time after the start.
func (g *Group) evaluate(ctx context.Context, data *database, after time.Duration) error {
	for _, rule := range g.rules {
		samples, err := data.query(ctx, rule.Expr, after)
		if err != nil {
			return fmt.Errorf("%s: %w", rule.Alert, err)
		}
		now := map[uint64]*alert{}
		for _, sample := range samples {
			key := sample.Metric.Hash()
			current := &alert{since: after}
			if before := g.active[rule.Alert][key]; before != nil {
				current.since = before.since
			}
			current.firing = after-current.since >= time.Duration(rule.For)
			if err := current.describe(ctx, rule, sample, after); err != nil {
				return fmt.Errorf("%s: %w", rule.Alert, err)
			}
			now[key] = current
		}
		g.active[rule.Alert] = now
	}
	return nil
}

// describe fills in labels and annotations, whose templates see the sample's labels and value.
func (a *alert) describe(ctx context.Context, rule rulefmt.Rule, sample promql.Sample, after time.Duration) error {
	own := sample.Metric.DropReserved(func(name string) bool { return name == model.MetricNameLabel }).Map()
	data := template.AlertTemplateData(own, nil, "", sample)
	expand := func(texts map[string]string) (map[string]string, error) {
		expanded := map[string]string{}
		for name, text := range texts {
			const variables = "{{$labels := .Labels}}{{$value := .Value}}"
			at := model.TimeFromUnixNano(start.Add(after).UnixNano())
			result, err := template.NewTemplateExpander(ctx, variables+text, rule.Alert, data, at, nil, &url.URL{}, nil).Expand()
			if err != nil {
				return nil, err
			}
			expanded[name] = result
		}
		return expanded, nil
	}
	more, err := expand(rule.Labels)
	if err != nil {
		return err
	}
	a.labels = own
	maps.Copy(a.labels, more)
	a.annotations, err = expand(rule.Annotations)
	return err
}

// firing are the labels and annotations of an alert's instances that fire.
func (g *Group) firing(name string) []ExpectedAlert {
	var found []ExpectedAlert
	for _, a := range g.active[name] {
		if a.firing {
			found = append(found, ExpectedAlert{ExpLabels: a.labels, ExpAnnotations: a.annotations})
		}
	}
	return found
}

// Run runs one test and returns what is not as expected, one line each.
func Run(ctx context.Context, rules []rulefmt.Rule, test Test, interval time.Duration) ([]string, error) {
	data, err := newDatabase(test)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, expected := range test.PromQLTests {
		samples, err := data.query(ctx, expected.Expr, time.Duration(expected.EvalTime))
		if err != nil {
			return nil, err
		}
		if got, want := describeSamples(samples), describeExpected(expected.ExpSamples); !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("at %s %s is %v, want %v", expected.EvalTime, expected.Expr, got, want))
		}
	}
	known := map[string]bool{}
	for _, rule := range rules {
		known[rule.Alert] = true
	}
	end := time.Duration(0)
	for _, expected := range test.AlertRuleTests {
		if !known[expected.Alertname] {
			return nil, fmt.Errorf("there is no alert %q", expected.Alertname)
		}
		end = max(end, time.Duration(expected.EvalTime))
	}
	group := NewGroup(rules)
	for after := time.Duration(0); after <= end; after += interval {
		if err := group.evaluate(ctx, data, after); err != nil {
			return nil, err
		}
		for _, expected := range test.AlertRuleTests {
			// A time between two evaluations sees what the earlier one found, as in promtool.
			if at := time.Duration(expected.EvalTime); at < after || at >= after+interval {
				continue
			}
			if got, want := describeAlerts(group.firing(expected.Alertname)), describeAlerts(expected.ExpAlerts); !slices.Equal(got, want) {
				wrong = append(wrong, fmt.Sprintf("at %s the firing %s are\n%q, want\n%q", expected.EvalTime, expected.Alertname, got, want))
			}
		}
	}
	return wrong, nil
}

func describeAlerts(all []ExpectedAlert) []string {
	var words []string
	for _, a := range all {
		words = append(words, fmt.Sprintf("%v %v", a.ExpLabels, a.ExpAnnotations)) // fmt sorts a map's keys
	}
	slices.Sort(words)
	return words
}

func describeSamples(samples promql.Vector) []string {
	var words []string
	for _, sample := range samples {
		words = append(words, fmt.Sprintf("%s %v", sample.Metric, sample.F))
	}
	slices.Sort(words)
	return words
}

func describeExpected(samples []ExpectedSample) []string {
	var words []string
	for _, sample := range samples {
		words = append(words, fmt.Sprintf("%s %v", sample.Labels, sample.Value))
	}
	slices.Sort(words)
	return words
}
