// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// mostLive is what Keystone may ever hold of one order: the delivered credential, and its successor or the
// one in its grace period.
const mostLive = 2

// leastLoad is the part of the logins that must have happened. Below it a run without a refusal shows little,
// and one with refusals little either: what keeps consumers waiting keeps K-ORC from minting.
const leastLoad = 0.9

// Finding is one reason why the run failed.
type Finding struct {
	At           time.Time `json:"at"`
	Order        string    `json:"order,omitempty"`
	CredentialID string    `json:"credentialID,omitempty"`
	What         string    `json:"what"`
	// Nearest describes the kill that lies closest in time, where one should look first.
	Nearest string `json:"nearest"`
}

// findings lists everything that makes the run fail, by time. The caller holds the lock.
func (l *Ledger) findings() []Finding {
	var all []Finding
	for _, a := range l.troubles {
		if !l.explained(a) {
			all = append(all, Finding{At: a.Began, Order: a.Order, CredentialID: a.CredentialID,
				What: fmt.Sprintf("%s: %s", a.Outcome, a.Detail)})
		}
	}
	all = append(all, l.sampleFindings()...)
	for _, name := range l.settings.Orders {
		if missed := l.due() - l.rotations(name); missed > 0 {
			all = append(all, Finding{At: l.ended, Order: name, What: fmt.Sprintf("rotated %d times, and %d were due", l.rotations(name), l.due())})
		}
	}
	if rate, wanted := l.rate(), l.wantedRate(); rate < wanted*leastLoad {
		all = append(all, Finding{At: l.ended, What: fmt.Sprintf("%.1f logins a second are too few of %.1f to have shown anything: is the machine too busy?", rate, wanted)})
	}
	for _, o := range l.outages {
		if o.Back.IsZero() || o.Whole.IsZero() {
			all = append(all, Finding{At: o.Killed, What: o.Victim + " did not come back, or the operator did not after it"})
		}
	}
	for _, p := range l.problems {
		all = append(all, Finding{At: p.At, Order: p.Order, What: p.What})
	}
	for _, what := range l.left {
		all = append(all, Finding{At: l.ended, What: "left after every order was deleted: " + what})
	}
	for i := range all {
		all[i].Nearest = l.nearest(all[i].At)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return a.At.Compare(b.At) })
	return all
}

func (l *Ledger) explained(a Attempt) bool {
	excuse, ok := excuses[a.Outcome]
	return ok && slices.ContainsFunc(l.outages, func(o Outage) bool { return o.Victim == excuse && o.covers(a.Began, a.Ended) })
}

// sampleFindings reports each order that had too many or no credentials, and each stranger, once: at the
// first sample that shows it.
func (l *Ledger) sampleFindings() []Finding {
	var all []Finding
	said := map[string]bool{}
	say := func(key string, f Finding) {
		if !said[key] {
			said[key] = true
			all = append(all, f)
		}
	}
	for _, s := range l.samples {
		for _, name := range l.settings.Orders {
			switch live := s.Live[name]; {
			case live > mostLive:
				say(name+" many", Finding{At: s.At, Order: name, What: fmt.Sprintf("Keystone holds %d credentials, and may hold %d", live, mostLive)})
			case live == 0:
				say(name+" none", Finding{At: s.At, Order: name, What: "Keystone holds no credential"})
			}
		}
		for _, stranger := range s.Strangers {
			say(stranger, Finding{At: s.At, What: "orphan in Keystone: " + stranger})
		}
	}
	return all
}

// rotations counts the successors that the delivered Secret was seen to carry.
func (l *Ledger) rotations(name string) int { return max(len(l.deliveries[name])-1, 0) }

// rate is how many consumers logged in a second, of the time in which nothing kept them from it.
func (l *Ledger) rate() float64 {
	up := l.ended.Sub(l.began)
	for _, o := range l.outages {
		switch {
		case o.Victim != Keystone && o.Victim != APIServer:
		case o.Back.IsZero():
			up -= l.ended.Sub(o.Killed)
		default:
			up -= o.Back.Sub(o.Killed)
		}
	}
	total := 0
	for _, counts := range l.counts {
		total += counts[LoggedIn]
	}
	return float64(total) / max(up.Seconds(), 1)
}

func (l *Ledger) wantedRate() float64 { return 1 / l.settings.Every.Seconds() }

// due is how many rotations every order must have seen at least.
func (l *Ledger) due() int {
	return Due(l.began, l.ended, l.settings.Interval, l.settings.Prompt, l.outages)
}

// Due is how many rotations an order must at least have seen between two moments: the schedule's, each put
// off while something was down. A rotation needs every component, so it is missed only when all of them
// were up for as long as prompt, added up since it was due; the next is due an interval later.
//
// A quotient of the whole time by the interval, less some slack, was rejected: with a third of the time
// spent dead, a slack that fits ten minutes lets half of the rotations of an hour be missed.
func Due(from, to time.Time, interval, prompt time.Duration, outages []Outage) int {
	for n := 0; ; n++ {
		from = upFor(from.Add(interval), prompt, outages)
		if from.After(to) {
			return n
		}
	}
}

// upFor is when everything has been up for a while since a moment, added up. The outages follow each other
// and do not overlap.
func upFor(from time.Time, enough time.Duration, outages []Outage) time.Time {
	for _, o := range outages {
		if !o.Whole.IsZero() && o.Whole.Before(from) {
			continue
		}
		if up := o.Killed.Sub(from); up >= enough {
			break
		} else if up > 0 {
			enough -= up
		}
		if o.Whole.IsZero() {
			return time.Unix(1<<40, 0) // never again
		}
		from = o.Whole
	}
	return from.Add(enough)
}

// nearest describes the kill closest to a moment.
func (l *Ledger) nearest(at time.Time) string {
	if len(l.outages) == 0 {
		return "nothing was killed"
	}
	distance := func(o Outage) time.Duration {
		switch {
		case o.covers(at, at):
			return 0
		case at.Before(o.Killed):
			return o.Killed.Sub(at)
		}
		return at.Sub(o.Back)
	}
	o := slices.MinFunc(l.outages, func(a, b Outage) int { return cmp.Compare(distance(a), distance(b)) })
	words := []string{o.Victim, "killed " + relative(at, o.Killed)}
	if !o.Back.IsZero() {
		words = append(words, "back "+relative(at, o.Back))
	}
	return strings.Join(words, ", ")
}

// relative says how long before or after a moment another one is.
func relative(at, other time.Time) string {
	d := other.Sub(at).Round(100 * time.Millisecond)
	if d <= 0 {
		return fmt.Sprintf("%s before", -d)
	}
	return fmt.Sprintf("%s after", d)
}
