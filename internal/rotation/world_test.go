package rotation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// credential is what Keystone holds under one name.
type credential struct {
	id      string
	secret  int
	expires *time.Time
}

// world is a small stand-in for everything around a decision: Keystone, K-ORC, the
// delivery and the people who interfere. Keystone is keyed by generation, because a
// credential's name is its generation's.
type world struct {
	now        time.Time
	skew       time.Duration
	keystoneUp bool
	storeReady bool

	spec     Spec
	status   Status
	children map[int64]*Child
	// secrets holds the number of the value; 0 for a Secret without one.
	secrets     map[int64]int
	keystone    map[int64]credential
	deliveredID string
	rotateID    string
	refused     map[int64]bool

	serial int
	// excused are ids that stopped working through no fault of a decision.
	excused map[string]bool
	expiry  map[string]*time.Time
	// doomed are generations that had a reason to be given up at some time.
	doomed map[int64]bool
}

func newWorld() *world {
	return &world{
		now:        epoch.Add(123 * time.Millisecond),
		keystoneUp: true,
		storeReady: true,
		spec:       Spec{Generation: 1, Interval: time.Hour, GracePeriod: 10 * time.Minute},
		children:   map[int64]*Child{},
		secrets:    map[int64]int{},
		keystone:   map[int64]credential{},
		refused:    map[int64]bool{},
		excused:    map[string]bool{},
		expiry:     map[string]*time.Time{},
		doomed:     map[int64]bool{},
	}
}

func (w *world) keystoneNow() time.Time { return w.now.Add(w.skew).Truncate(time.Second) }

func (w *world) next() int { w.serial++; return w.serial }

func (w *world) holds(id string) bool {
	for _, c := range w.keystone {
		if c.id == id {
			return true
		}
	}
	return false
}

func (w *world) dead(t *time.Time) bool { return t != nil && !w.keystoneNow().Before(*t) }

func coin(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

// noteDoomed remembers which successors have a reason to be given up.
func (w *world) noteDoomed() {
	for generation, c := range w.children {
		secret, marked := w.secrets[generation]
		lost := c.ID != "" && w.keystone[generation].id != c.ID
		rejected := c.State == Terminal || w.refused[generation] || w.status.Generation == 0 ||
			w.dead(w.keystone[generation].expires) || w.keystone[generation].secret != secret
		// Without a status the highest one counts, and the others are superseded by it.
		highest := slices.Max(append(slices.Collect(maps.Keys(w.secrets)), slices.Collect(maps.Keys(w.children))...))
		superseded := w.status.Generation == 0 && generation < highest
		if superseded || c.Deleting || w.dead(c.ExpiresAt) || lost || !marked || secret == 0 || (rejected && w.spec.Generation > generation) {
			w.doomed[generation] = true
		}
	}
}

// korc lets K-ORC v2.6.0 look at one of its objects.
func (w *world) korc(t *rapid.T, generation int64) {
	c, ok := w.children[generation]
	if !ok {
		return
	}
	held, named := w.keystone[generation]
	switch {
	case c.Deleting && !w.keystoneUp:
		// It takes a failing Keystone for one that does not hold the credential.
		if coin(t, "dropped") {
			delete(w.children, generation)
		}
	case c.Deleting:
		if named && (c.ID == "" || c.ID == held.id) {
			delete(w.keystone, generation)
		}
		delete(w.children, generation)
	case c.State != Pending:
	case !w.keystoneUp:
		if coin(t, "latched") {
			c.State = Terminal
		}
	case named:
		c.State, c.ID = Available, held.id
	case c.ID != "":
		c.State = Terminal
	case w.secrets[generation] == 0 || w.dead(c.ExpiresAt):
		// It retries for ever.
	default:
		id := fmt.Sprintf("id-%d", w.next())
		w.keystone[generation] = credential{id: id, secret: w.secrets[generation], expires: c.ExpiresAt}
		w.expiry[id] = c.ExpiresAt
		if coin(t, "answer lost") {
			c.State = Terminal
			return
		}
		c.State, c.ID = Available, id
	}
}

func (w *world) deliver() {
	generation := w.status.Generation
	if w.storeReady && generation > 0 && w.secrets[generation] != 0 {
		w.deliveredID = w.status.ID
	}
}

func (w *world) observe() Input {
	in := Input{
		Now:         w.now,
		Spec:        w.spec,
		Status:      w.status,
		Secrets:     map[int64]bool{},
		Keystone:    map[int64]Existence{},
		Logins:      map[int64]Login{},
		DeliveredID: w.deliveredID,
		StoreReady:  w.storeReady,
		RotateID:    w.rotateID,
		KeystoneNow: w.now.Add(w.skew),
	}
	for _, generation := range slices.Sorted(maps.Keys(w.children)) {
		in.Children = append(in.Children, *w.children[generation])
	}
	for generation, value := range w.secrets {
		in.Secrets[generation] = value != 0
	}
	return in
}

func (w *world) asked(generation int64) Existence {
	if !w.keystoneUp {
		return Unknown
	}
	if _, ok := w.keystone[generation]; ok {
		return Held
	}
	return Gone
}

func (w *world) askedLive() Existence {
	switch {
	case !w.keystoneUp:
		return Unknown
	case w.holds(w.status.ID):
		return Held
	}
	return Gone
}

func (w *world) login(generation int64) Login {
	c, held := w.children[generation], w.keystone[generation]
	switch {
	case !w.keystoneUp:
		return Unanswered
	case c == nil || c.ID != held.id || held.secret != w.secrets[generation] || w.dead(held.expires) || w.refused[generation]:
		return Refused
	}
	return Accepted
}

// decide answers every question once and returns the last plan, like a controller.
func (w *world) decide(t *rapid.T) (Plan, Input) {
	in := w.observe()
	askedLive, verified, asked, proved := false, map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for {
		p := Decide(in)
		again := false
		if p.AskLive && !askedLive {
			askedLive, again = true, true
			in.LiveID = w.askedLive()
		}
		for _, generation := range p.Ask {
			if !asked[generation] {
				asked[generation], again = true, true
				in.Keystone[generation] = w.asked(generation)
			}
		}
		for _, generation := range p.Prove {
			if !proved[generation] {
				proved[generation], again = true, true
				w.prove(t, generation)
				in.Keystone[generation] = w.asked(generation)
			}
		}
		if p.Verify != 0 && !verified[p.Verify] {
			verified[p.Verify], again = true, true
			in.Logins[p.Verify] = w.login(p.Verify)
		}
		if !again {
			return p, in
		}
	}
}

// prove removes in Keystone what has no object of K-ORC's.
func (w *world) prove(t *rapid.T, generation int64) {
	held, named := w.keystone[generation]
	if !named || !w.keystoneUp {
		return
	}
	if w.children[generation] != nil {
		t.Fatalf("generation %d is removed in Keystone under K-ORC's hands", generation)
	}
	if held.id == w.status.ID && !w.undeliverable() {
		t.Fatalf("the live credential %s is removed", held.id)
	}
	if w.isPrevious(generation) {
		w.requireGraceOver(t, "removed in Keystone")
	}
	delete(w.keystone, generation)
}

// undeliverable: nobody has the live credential's secret, and nobody uses it.
func (w *world) undeliverable() bool {
	return w.secrets[w.status.Generation] == 0 && w.deliveredID != w.status.ID &&
		(w.status.Previous == nil || !w.now.Before(w.status.Previous.DeleteAt))
}

func (w *world) isPrevious(generation int64) bool {
	return w.status.Previous != nil && w.status.Previous.Generation == generation
}

func (w *world) requireGraceOver(t *rapid.T, what string) {
	if w.now.Before(w.status.Previous.DeleteAt) {
		t.Fatalf("the previous credential is %s before its grace period is over", what)
	}
	if w.deliveredID != w.status.ID {
		t.Fatalf("the previous credential is %s while the Secret carries %s, not %s", what, w.deliveredID, w.status.ID)
	}
}

func (w *world) dump() string {
	s := fmt.Sprintf("now %s skew %s up %t store %t spec %+v delivered %q\nstatus %+v", w.now.Format(time.TimeOnly), w.skew,
		w.keystoneUp, w.storeReady, w.spec, w.deliveredID, w.status)
	if w.status.Previous != nil {
		s += fmt.Sprintf(" previous %+v", *w.status.Previous)
	}
	for _, generation := range slices.Sorted(maps.Keys(w.children)) {
		s += fmt.Sprintf("\nchild %+v", *w.children[generation])
	}
	return s + fmt.Sprintf("\nsecrets %v\nkeystone %v", w.secrets, w.keystone)
}
