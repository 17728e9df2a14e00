// SPDX-License-Identifier: Apache-2.0

// Package ledger is what a soak run writes down, and the verdict on it. It knows no cluster and reads no
// clock: the run hands it what it saw with the times it saw it at, so that every rule of the verdict is
// tested as a table.
package ledger

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Components whose outage excuses a consumer. The names are those of the local stack.
const (
	Keystone  = "keystone"
	APIServer = "kube-apiserver"
)

// Outcome is how one consumer fared that read its Secret and logged in.
type Outcome string

// The outcomes.
const (
	// LoggedIn: Keystone gave a token.
	LoggedIn Outcome = "logged in"
	// Refused: Keystone itself said no (401, 403, 404, any 4xx with its own error body).
	Refused Outcome = "refused"
	// Away: no usable answer of Keystone's: no connection, a broken one, a timeout, a 5xx.
	Away Outcome = "Keystone away"
	// Unreadable: the API server gave no usable answer, so no login was tried.
	Unreadable Outcome = "Secret unreadable"
	// Missing: the API server said that there is no such Secret, or gave one without a credential.
	Missing Outcome = "Secret missing"
)

// Outcomes in the order in which they are shown.
var Outcomes = []Outcome{LoggedIn, Refused, Away, Unreadable, Missing}

// excuses names the component whose outage explains an outcome. What is not listed has no excuse: in
// particular a refusal, which is Keystone's own word on the credential and not that of a Keystone that is
// down, whatever is restarted at that moment.
var excuses = map[Outcome]string{Away: Keystone, Unreadable: APIServer}

// Attempt is one consumer's try.
type Attempt struct {
	Order string `json:"order"`
	// CredentialID is what the Secret carried, empty when it was not read.
	CredentialID string    `json:"credentialID,omitempty"`
	Began        time.Time `json:"began"`
	Ended        time.Time `json:"ended"`
	Outcome      Outcome   `json:"outcome"`
	// Detail is the error, without a secret.
	Detail string `json:"detail,omitempty"`
	// Login is how long Keystone took, 0 when it was not asked.
	Login time.Duration `json:"-"`
}

// Outage is one component that was killed.
type Outage struct {
	Victim string `json:"victim"`
	// How it was killed.
	How    string    `json:"how"`
	Killed time.Time `json:"killed"`
	// Back is when the component answered its health check again. Zero: it has not.
	Back time.Time `json:"back,omitzero"`
	// Whole is when every component did and the operator led again, which the kill of another may have
	// taken down too. Zero: not yet.
	Whole time.Time `json:"whole,omitzero"`
}

// covers tells whether the component was dead or starting at some moment of a span.
func (o Outage) covers(from, to time.Time) bool {
	return !o.Killed.After(to) && (o.Back.IsZero() || !o.Back.Before(from))
}

// Sample is what Keystone's administrator was shown at one moment.
type Sample struct {
	At time.Time `json:"at"`
	// Live counts the credentials that Keystone holds, by order. An order of the run without any is 0.
	Live map[string]int `json:"live"`
	// Strangers are names of credentials of the run's users that no order of the run accounts for.
	Strangers []string `json:"strangers,omitempty"`
}

func (s Sample) total() (total, most int) {
	for _, live := range s.Live {
		total += live
		most = max(most, live)
	}
	return total, most
}

// Delivery is a credential's first appearance in the delivered Secret.
type Delivery struct {
	CredentialID string    `json:"credentialID"`
	Seen         time.Time `json:"seen"`
}

// Problem is something that the run itself found wrong, such as an order that does not turn Ready again.
type Problem struct {
	At    time.Time
	Order string
	What  string
}

// Ledger holds everything of one run. Its methods may be called from several goroutines.
type Ledger struct {
	settings Settings

	mu         sync.Mutex
	began      time.Time
	ended      time.Time
	counts     map[string]map[Outcome]int
	troubles   []Attempt
	latencies  []time.Duration
	deliveries map[string][]Delivery
	outages    []Outage
	samples    []Sample
	unsampled  int
	problems   []Problem
	left       []string
}

// Settings say what was run.
type Settings struct {
	Seed uint64
	// Orders are the names of the orders that rotate.
	Orders []string
	// Interval is that of every order.
	Interval time.Duration
	// Prompt is how long everything may be up with a rotation due before the rotation counts as missed.
	Prompt time.Duration
	// Every is the time between two logins of all consumers together.
	Every time.Duration
}

// New makes an empty ledger.
func New(s Settings) *Ledger {
	return &Ledger{settings: s, counts: map[string]map[Outcome]int{}, deliveries: map[string][]Delivery{}}
}

// Begin and End bound the time in which rotations are expected.
func (l *Ledger) Begin(at time.Time) { l.locked(func() { l.began = at }) }

// End closes the time that Begin opened.
func (l *Ledger) End(at time.Time) { l.locked(func() { l.ended = at }) }

func (l *Ledger) locked(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// Add writes an attempt down.
func (l *Ledger) Add(a Attempt) {
	l.locked(func() {
		if l.counts[a.Order] == nil {
			l.counts[a.Order] = map[Outcome]int{}
		}
		l.counts[a.Order][a.Outcome]++
		if a.Login > 0 {
			l.latencies = append(l.latencies, a.Login)
		}
		if a.Outcome != LoggedIn {
			l.troubles = append(l.troubles, a)
		}
		if a.CredentialID != "" {
			l.delivered(a)
		}
	})
}

// delivered notes a credential that was not seen before. Consumers overlap, so an old one may be
// reported once more after its successor.
func (l *Ledger) delivered(a Attempt) {
	known := l.deliveries[a.Order]
	if !slices.ContainsFunc(known, func(d Delivery) bool { return d.CredentialID == a.CredentialID }) {
		l.deliveries[a.Order] = append(known, Delivery{CredentialID: a.CredentialID, Seen: a.Began})
	}
}

// Kill opens an outage, from before the signal is sent: who asked in between may meet a corpse.
func (l *Ledger) Kill(victim, how string, at time.Time) {
	l.locked(func() { l.outages = append(l.outages, Outage{Victim: victim, How: how, Killed: at}) })
}

// Back tells that the component that was killed last answers again.
func (l *Ledger) Back(at time.Time) { l.locked(func() { l.outages[len(l.outages)-1].Back = at }) }

// Whole tells that nothing is down any more.
func (l *Ledger) Whole(at time.Time) { l.locked(func() { l.outages[len(l.outages)-1].Whole = at }) }

// Sample writes down what Keystone holds.
func (l *Ledger) Sample(s Sample) { l.locked(func() { l.samples = append(l.samples, s) }) }

// Unsampled counts a sample that Keystone did not answer.
func (l *Ledger) Unsampled() { l.locked(func() { l.unsampled++ }) }

// Problem writes down what the run found wrong. Order may be empty.
func (l *Ledger) Problem(p Problem) { l.locked(func() { l.problems = append(l.problems, p) }) }

// Left writes down what was still there after every order was deleted.
func (l *Ledger) Left(what []string) { l.locked(func() { l.left = append(l.left, what...) }) }

// Progress is one line on how the run stands.
func (l *Ledger) Progress() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	rotations, counts := 0, map[Outcome]int{}
	for _, name := range l.settings.Orders {
		rotations += l.rotations(name)
		for outcome, count := range l.counts[name] {
			counts[outcome] += count
		}
	}
	live := 0
	if len(l.samples) > 0 {
		live, _ = l.samples[len(l.samples)-1].total()
	}
	return fmt.Sprintf("%d rotations, %d logins, %d refused, %d with Keystone away, %d Secrets unreadable, %d missing, %d credentials live",
		rotations, counts[LoggedIn], counts[Refused], counts[Away], counts[Unreadable], counts[Missing], live)
}
