// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the ledger as it is shown and stored, with its verdict.
type Report struct {
	Passed   bool      `json:"passed"`
	Seed     uint64    `json:"seed"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	Findings []Finding `json:"findings"`
	// Rotations is the number of all orders together, Due what each had to see at least.
	Rotations int             `json:"rotations"`
	Due       int             `json:"due"`
	Attempts  map[Outcome]int `json:"attempts"`
	// Unexplained counts attempts by outcome that no outage explains.
	Unexplained map[Outcome]int `json:"unexplained"`
	// Rate is how many consumers logged in a second while Keystone and the API server were up.
	Rate float64 `json:"loginsPerSecond"`
	// Login is how long Keystone took to answer a login, in milliseconds, at these percentiles.
	Login struct {
		P50 int64 `json:"p50"`
		P95 int64 `json:"p95"`
		Max int64 `json:"max"`
	} `json:"loginMilliseconds"`
	Orders  []OrderRow `json:"orders"`
	Outages []Outage   `json:"outages"`
	// Live is what Keystone held, minute by minute; Samples is all of it.
	Live      []Minute `json:"live"`
	Unsampled int      `json:"unsampled"`
	Orphans   []string `json:"orphans"`
	Samples   []Sample `json:"samples"`
	// Troubles are all attempts that did not log in, the explained ones too.
	Troubles []Attempt `json:"troubles"`
}

// OrderRow is one order.
type OrderRow struct {
	Name      string          `json:"name"`
	Rotations int             `json:"rotations"`
	Attempts  map[Outcome]int `json:"attempts"`
	// MostLive is the largest number of credentials that Keystone ever held of it.
	MostLive int `json:"mostLive"`
	// Longest is the longest time between two deliveries, in seconds, 0 for less than two.
	Longest    int64      `json:"longestSeconds"`
	Deliveries []Delivery `json:"deliveries"`
}

// Minute sums up the samples of one minute of the run.
type Minute struct {
	Minute  int `json:"minute"`
	Samples int `json:"samples"`
	// Fewest and Most are the totals over all orders.
	Fewest int `json:"fewest"`
	Most   int `json:"most"`
	// MostOfOne is the largest number of a single order.
	MostOfOne int `json:"mostOfOne"`
}

// Report judges the run. Call it when the run is over.
func (l *Ledger) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{
		Seed: l.settings.Seed, Began: l.began, Ended: l.ended, Findings: l.findings(), Due: l.due(), Rate: l.rate(),
		Attempts: map[Outcome]int{}, Unexplained: map[Outcome]int{},
		Outages: slices.Clone(l.outages), Samples: slices.Clone(l.samples), Unsampled: l.unsampled,
		Troubles: slices.Clone(l.troubles), Live: l.minutes(), Orphans: l.orphans(),
	}
	r.Passed = len(r.Findings) == 0
	for _, a := range l.troubles {
		if !l.explained(a) {
			r.Unexplained[a.Outcome]++
		}
	}
	for _, name := range l.settings.Orders {
		row := l.row(name)
		r.Orders = append(r.Orders, row)
		r.Rotations += row.Rotations
		for outcome, count := range row.Attempts {
			r.Attempts[outcome] += count
		}
	}
	sorted := slices.Sorted(slices.Values(l.latencies))
	r.Login.P50, r.Login.P95, r.Login.Max = percentile(sorted, 50), percentile(sorted, 95), percentile(sorted, 100)
	return r
}

func (l *Ledger) row(name string) OrderRow {
	row := OrderRow{Name: name, Rotations: l.rotations(name), Attempts: map[Outcome]int{}, Deliveries: l.deliveries[name]}
	maps.Copy(row.Attempts, l.counts[name])
	for _, s := range l.samples {
		row.MostLive = max(row.MostLive, s.Live[name])
	}
	for i := 1; i < len(row.Deliveries); i++ {
		row.Longest = max(row.Longest, int64(row.Deliveries[i].Seen.Sub(row.Deliveries[i-1].Seen).Seconds()))
	}
	return row
}

func (l *Ledger) minutes() []Minute {
	var all []Minute
	for _, s := range l.samples {
		number := int(s.At.Sub(l.began) / time.Minute)
		total, most := s.total()
		if len(all) == 0 || all[len(all)-1].Minute != number {
			all = append(all, Minute{Minute: number, Fewest: total})
		}
		m := &all[len(all)-1]
		m.Samples++
		m.Fewest, m.Most, m.MostOfOne = min(m.Fewest, total), max(m.Most, total), max(m.MostOfOne, most)
	}
	return all
}

// orphans are the strangers of all samples and what was left at the end.
func (l *Ledger) orphans() []string {
	all := slices.Clone(l.left)
	for _, s := range l.samples {
		all = append(all, s.Strangers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// percentile of sorted durations, in milliseconds.
func percentile(sorted []time.Duration, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*p/100].Milliseconds()
}

// maxShown bounds the findings that are printed; the JSON has all.
const maxShown = 25

// Write prints the report for people.
func (r Report) Write(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(cells ...any) {
		text := make([]string, len(cells))
		for i, cell := range cells {
			text[i] = fmt.Sprint(cell)
		}
		fmt.Fprintln(out, strings.Join(text, "\t"))
	}
	clock := func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return fmt.Sprintf("%+ds", int(t.Sub(r.Began).Round(time.Second).Seconds()))
	}

	line("ORDER", "ROTATIONS", "LONGEST", "LOGINS", "REFUSED", "AWAY", "UNREADABLE", "MISSING", "MOST LIVE")
	for _, o := range r.Orders {
		line(o.Name, o.Rotations, time.Duration(o.Longest)*time.Second, o.Attempts[LoggedIn], o.Attempts[Refused],
			o.Attempts[Away], o.Attempts[Unreadable], o.Attempts[Missing], o.MostLive)
	}
	line()
	line("KILLED", "VICTIM", "HOW", "DEAD FOR", "WHOLE AFTER")
	for _, o := range r.Outages {
		line(clock(o.Killed), o.Victim, o.How, span(o.Killed, o.Back), span(o.Killed, o.Whole))
	}
	line()
	line("MINUTE", "SAMPLES", "LIVE", "MOST OF ONE ORDER")
	for _, m := range r.Live {
		line(m.Minute, m.Samples, fmt.Sprintf("%d-%d", m.Fewest, m.Most), m.MostOfOne)
	}
	line()
	line("seed", r.Seed)
	line("time", r.Ended.Sub(r.Began).Round(time.Second))
	line("rotations", fmt.Sprintf("%d, of each order at least %d due", r.Rotations, r.Due))
	for _, outcome := range Outcomes {
		line(outcome, fmt.Sprintf("%d, unexplained %d", r.Attempts[outcome], r.Unexplained[outcome]))
	}
	line("logins a second", fmt.Sprintf("%.2f while Keystone and the API server were up", r.Rate))
	line("login time", fmt.Sprintf("half within %d ms, 95%% within %d ms, longest %d ms", r.Login.P50, r.Login.P95, r.Login.Max))
	line("kills", len(r.Outages))
	line("orphans", len(r.Orphans))
	line()
	for _, f := range r.Findings[:min(len(r.Findings), maxShown)] {
		line(fmt.Sprintf("FOUND at %s (%s) %s %s: %s [nearest kill: %s]", clock(f.At), f.At.UTC().Format(time.TimeOnly), f.Order, f.CredentialID, f.What, f.Nearest))
	}
	if more := len(r.Findings) - maxShown; more > 0 {
		line(fmt.Sprintf("and %d more, see the JSON", more))
	}
	line(r.verdict())
	return out.Flush()
}

func (r Report) verdict() string {
	if r.Passed {
		return "PASSED"
	}
	return fmt.Sprintf("FAILED: %d findings", len(r.Findings))
}

func span(from, to time.Time) string {
	if to.IsZero() {
		return "for good"
	}
	return to.Sub(from).Round(time.Second).String()
}
