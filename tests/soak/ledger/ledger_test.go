// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// began is when the runs of the tests begin.
var began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// at is a moment of a run, in seconds.
func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// outage of a victim between two moments, whole again some seconds later.
func outage(victim string, killed, back, whole int) Outage {
	return Outage{Victim: victim, How: "SIGKILL", Killed: at(killed), Back: at(back), Whole: at(whole)}
}

// newRun is a run of five minutes with one order that rotates once in it, and nothing wrong.
func newRun(outages ...Outage) *Ledger {
	l := New(Settings{Seed: 1, Orders: []string{"a"}, Interval: 3 * time.Minute, Prompt: time.Minute, Every: 2 * time.Minute})
	l.Begin(began)
	for _, o := range outages {
		l.Kill(o.Victim, o.How, o.Killed)
		if !o.Back.IsZero() {
			l.Back(o.Back)
		}
		if !o.Whole.IsZero() {
			l.Whole(o.Whole)
		}
	}
	login(l, 10, "first")
	login(l, 200, "second")
	login(l, 201, "first") // a consumer that had read before, and answers later
	l.Sample(Sample{At: at(5), Live: map[string]int{"a": 1}})
	l.Sample(Sample{At: at(205), Live: map[string]int{"a": 2}})
	l.End(at(300))
	return l
}

func login(l *Ledger, second int, id string) {
	l.Add(Attempt{Order: "a", CredentialID: id, Began: at(second), Ended: at(second), Outcome: LoggedIn, Login: 20 * time.Millisecond})
}

func TestVerdict(t *testing.T) {
	trouble := func(outcome Outcome, from, to int) func(*Ledger) {
		return func(l *Ledger) {
			l.Add(Attempt{Order: "a", CredentialID: "second", Began: at(from), Ended: at(to), Outcome: outcome, Detail: "because"})
		}
	}
	tests := []struct {
		name    string
		outages []Outage
		do      func(*Ledger)
		// want is part of the one finding; empty: the run passes.
		want string
	}{
		{name: "a run without trouble passes", do: func(*Ledger) {}},
		{
			name: "a refusal fails the run", do: trouble(Refused, 250, 250),
			want: "refused: because",
		},
		{
			name:    "a refusal has no excuse, not even a dead Keystone: it is Keystone's own word",
			outages: []Outage{outage(Keystone, 100, 120, 121)}, do: trouble(Refused, 110, 110),
			want: "refused: because",
		},
		{
			name:    "no answer is explained while Keystone is dead",
			outages: []Outage{outage(Keystone, 100, 120, 121)}, do: trouble(Away, 110, 111),
		},
		{
			name:    "no answer is explained by a Keystone that was killed under the request",
			outages: []Outage{outage(Keystone, 100, 120, 121)}, do: trouble(Away, 98, 101),
		},
		{
			name:    "no answer is explained by a Keystone that was still starting when the request began",
			outages: []Outage{outage(Keystone, 100, 120, 121)}, do: trouble(Away, 119, 130),
		},
		{
			name:    "no answer a second after Keystone is back is not explained",
			outages: []Outage{outage(Keystone, 100, 120, 125)}, do: trouble(Away, 121, 122),
			want: "Keystone away: because",
		},
		{
			name:    "another component's outage does not explain a silent Keystone",
			outages: []Outage{outage("korc", 100, 120, 121)}, do: trouble(Away, 110, 111),
			want: "Keystone away: because",
		},
		{
			name:    "a Secret that cannot be read is explained by a dead API server",
			outages: []Outage{outage(APIServer, 100, 120, 140)}, do: trouble(Unreadable, 110, 111),
		},
		{
			name:    "and not by a dead Keystone",
			outages: []Outage{outage(Keystone, 100, 120, 121)}, do: trouble(Unreadable, 110, 111),
			want: "Secret unreadable: because",
		},
		{
			name:    "a Secret that is not there has no excuse",
			outages: []Outage{outage(APIServer, 100, 120, 121)}, do: trouble(Missing, 110, 111),
			want: "Secret missing: because",
		},
		{
			name: "three credentials of one order fail the run",
			do:   func(l *Ledger) { l.Sample(Sample{At: at(210), Live: map[string]int{"a": 3}}) },
			want: "Keystone holds 3 credentials, and may hold 2",
		},
		{
			name: "an order without a credential fails the run, once",
			do: func(l *Ledger) {
				l.Sample(Sample{At: at(210), Live: map[string]int{"a": 0}})
				l.Sample(Sample{At: at(213), Live: map[string]int{"a": 0}})
			},
			want: "Keystone holds no credential",
		},
		{
			name: "an orphan fails the run",
			do: func(l *Ledger) {
				l.Sample(Sample{At: at(210), Live: map[string]int{"a": 1}, Strangers: []string{"b-credential-v1"}})
			},
			want: "orphan in Keystone: b-credential-v1",
		},
		{
			name: "what is left after the deletion fails the run",
			do:   func(l *Ledger) { l.Left([]string{"Secret openstack/x"}) },
			want: "left after every order was deleted: Secret openstack/x",
		},
		{
			name: "what the run itself found fails it",
			do:   func(l *Ledger) { l.Problem(Problem{At: at(7), Order: "a", What: "not Ready"}) },
			want: "not Ready",
		},
		{
			name: "a missed rotation fails the run",
			do: func(l *Ledger) {
				l.End(at(900))
				for second := range 10 {
					login(l, 800+second, "second")
				}
			},
			want: "rotated 1 times, and 3 were due",
		},
		{
			name: "a run with too few logins fails: it shows nothing",
			do:   func(l *Ledger) { l.settings.Every = time.Minute },
			want: "are too few",
		},
		{
			name:    "a victim that stays dead fails the run",
			outages: []Outage{{Victim: "kv", How: "SIGKILL", Killed: at(250)}}, do: func(*Ledger) {},
			want: "kv did not come back",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newRun(test.outages...)
			test.do(l)
			r := l.Report()
			if test.want == "" {
				if !r.Passed || len(r.Findings) > 0 {
					t.Errorf("the run fails: %v", r.Findings)
				}
				return
			}
			if r.Passed || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].What, test.want) {
				t.Errorf("the findings are %v, and %q is the right one", r.Findings, test.want)
			}
		})
	}
}

func TestFindingTellsWhereToLook(t *testing.T) {
	l := newRun(outage("kv", 20, 30, 31), outage(Keystone, 100, 120, 125), outage("eso", 240, 260, 261))
	l.Add(Attempt{Order: "a", CredentialID: "second", Began: at(130), Ended: at(131), Outcome: Refused, Detail: "401"})
	f := l.Report().Findings
	if len(f) != 1 {
		t.Fatalf("there are %d findings", len(f))
	}
	if f[0].Order != "a" || f[0].CredentialID != "second" || !f[0].At.Equal(at(130)) {
		t.Errorf("the finding is %+v", f[0])
	}
	if want := "keystone, killed 30s before, back 10s before"; f[0].Nearest != want {
		t.Errorf("the nearest kill is %q, and %q is", f[0].Nearest, want)
	}
}

func TestDue(t *testing.T) {
	down := func(killed, whole int) Outage { return outage("kv", killed, whole, whole) }
	tests := []struct {
		name    string
		minutes int
		outages []Outage
		want    int
	}{
		{"with nothing down, each takes its interval and no more than what is prompt", 12, nil, 3},
		{"before the first can be overdue none is", 3, nil, 0},
		{"the moment when it is overdue counts", 4, nil, 1},
		{"an outage while none is due puts nothing off", 12, []Outage{down(30, 150)}, 3},
		{"an outage while one is due puts it off, and those after it", 12, []Outage{down(190, 250)}, 2},
		{"time between outages adds up", 5, []Outage{down(170, 190), down(210, 265)}, 0},
		{"until it is enough", 5, []Outage{down(170, 190), down(210, 260)}, 1},
		{"what never works again is never due", 60, []Outage{{Victim: "kv", Killed: at(100)}}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Due(began, at(60*test.minutes), 3*time.Minute, time.Minute, test.outages); got != test.want {
				t.Errorf("due are %d, and %d is right", got, test.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	l := newRun(outage(Keystone, 100, 120, 125))
	l.Add(Attempt{Order: "a", Began: at(110), Ended: at(110), Outcome: Away, Detail: "no connection", Login: 80 * time.Millisecond})
	l.Unsampled()
	r := l.Report()

	if r.Rotations != 1 || r.Due != 1 || r.Attempts[LoggedIn] != 3 || r.Attempts[Away] != 1 || r.Unexplained[Away] != 0 || r.Unsampled != 1 {
		t.Errorf("the report is %+v", r)
	}
	if row := r.Orders[0]; row.MostLive != 2 || row.Longest != 190 || len(row.Deliveries) != 2 {
		t.Errorf("the order's row is %+v", row)
	}
	if want := (Minute{Minute: 3, Samples: 1, Fewest: 2, Most: 2, MostOfOne: 2}); len(r.Live) != 2 || r.Live[1] != want {
		t.Errorf("the minutes are %+v", r.Live)
	}
	if r.Login.P50 != 20 || r.Login.Max != 80 {
		t.Errorf("login times are %+v", r.Login)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+100s", "keystone", "1, of each order at least 1 due", "1, unexplained 0", "PASSED"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(encoded, &back); err != nil || back.Orders[0].Deliveries[1].CredentialID != "second" {
		t.Errorf("the JSON reads back as %+v, %v", back.Orders, err)
	}
}

func TestTableNamesTheFirstFindingsOnly(t *testing.T) {
	l := newRun()
	for i := range maxShown + 5 {
		l.Problem(Problem{At: at(i), What: fmt.Sprintf("number %d", i)})
	}
	var text strings.Builder
	if err := l.Report().Write(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "and 5 more") || !strings.Contains(text.String(), fmt.Sprintf("FAILED: %d findings", maxShown+5)) {
		t.Errorf("the table is:\n%s", text.String())
	}
}
