package rotation

import (
	"reflect"
	"time"

	"pgregory.net/rapid"
)

// effects lists a plan's effects in their order. Each one checks what must hold at
// the moment it happens.
func (w *world) effects(t *rapid.T, p Plan, in Input) []func() {
	var list []func()
	add := func(effect func()) { list = append(list, effect) }
	for _, generation := range p.Refuted {
		add(func() {
			if c := w.children[generation]; c != nil && c.State == Terminal {
				c.State = Pending
			}
		})
	}
	for _, generation := range p.Mark {
		add(func() { w.mark(t, generation) })
	}
	for _, generation := range p.Delete {
		add(func() { w.remove(t, generation) })
	}
	if p.Mint != nil {
		add(func() {
			if _, ok := w.secrets[p.Mint.Generation]; !ok {
				w.secrets[p.Mint.Generation] = w.next()
			}
		})
		add(func() { w.create(t, p, in) })
	}
	if p.Switch != nil {
		add(func() { w.switchTo(t, *p.Switch, in) })
	}
	if p.ClearPrevious {
		add(func() { w.clear(t) })
	}
	for _, generation := range p.Forget {
		add(func() { w.forget(t, generation) })
	}
	return list
}

func (w *world) mark(t *rapid.T, generation int64) {
	if generation == w.status.Generation || w.isPrevious(generation) {
		t.Fatalf("the Secret of generation %d, which the status names, is renewed", generation)
	}
	if _, ok := w.secrets[generation]; !ok {
		w.secrets[generation] = w.next()
	}
}

func (w *world) remove(t *rapid.T, generation int64) {
	c := w.children[generation]
	if c == nil {
		t.Fatalf("generation %d is deleted and not there", generation)
	}
	switch {
	case generation == w.status.Generation:
		if w.holds(w.status.ID) && !w.undeliverable() {
			t.Fatalf("the live generation %d is deleted", generation)
		}
	case w.isPrevious(generation):
		w.requireGraceOver(t, "deleted")
	case generation > w.status.Generation && !w.doomed[generation]:
		t.Fatalf("the successor %d is given up without a reason", generation)
	}
	c.Deleting = true
}

func (w *world) create(t *rapid.T, p Plan, in Input) {
	generation := p.Mint.Generation
	if w.children[generation] != nil {
		t.Fatalf("generation %d is minted twice", generation)
	}
	if _, named := w.keystone[generation]; named {
		t.Fatalf("generation %d is minted under a name that Keystone holds", generation)
	}
	if w.status.Previous != nil && w.holds(w.status.ID) {
		t.Fatalf("a rotation to %d starts in a grace period", generation)
	}
	for other := range w.children {
		if other > w.status.Generation && !w.doomed[other] {
			t.Fatalf("generation %d is minted beside the successor %d", generation, other)
		}
	}
	if !in.StoreReady && (w.status.Generation == 0 || w.holds(w.status.ID) && !w.dead(w.status.ExpiresAt)) {
		t.Fatalf("generation %d is minted without a secret store", generation)
	}
	wholeSeconds(t, p.Mint.ExpiresAt)
	if e := p.Mint.ExpiresAt; in.Spec.Interval > 0 &&
		(e == nil || !e.Equal(in.KeystoneNow.Truncate(time.Second).Add(in.Spec.Interval+in.Spec.GracePeriod))) {
		t.Fatalf("expiry %v at %v", e, in.KeystoneNow)
	}
	w.children[generation] = &Child{Generation: generation, ExpiresAt: p.Mint.ExpiresAt}
	delete(w.doomed, generation)
}

func (w *world) switchTo(t *rapid.T, to Status, in Input) {
	old := w.status
	c := w.children[to.Generation]
	if c == nil || c.ID != to.ID || w.secrets[to.Generation] == 0 {
		t.Fatalf("switch to generation %d, which cannot be delivered", to.Generation)
	}
	if in.Logins[to.Generation] != Accepted && (old.Generation == 0 || in.Logins[to.Generation] != Unanswered) {
		t.Fatalf("switch to generation %d after a login that was not accepted", to.Generation)
	}
	if in.Logins[to.Generation] == Unanswered && w.holds(old.ID) && !w.dead(expiryLess(old.ExpiresAt, expiryMargin)) {
		t.Fatalf("unverified switch to generation %d while the live one has time", to.Generation)
	}
	deleteAt := GraceEnd(in.Now.Truncate(time.Second), in.Spec.GracePeriod, newView(in).skew(), old.ExpiresAt, to.ExpiresAt)
	if in.LiveID == Gone {
		deleteAt = in.Now.Truncate(time.Second)
	}
	switch {
	case old.Previous != nil && !reflect.DeepEqual(old.Previous, to.Previous):
		t.Fatalf("the switch overwrites a running grace period")
	case old.Previous != nil && w.holds(old.ID):
		t.Fatalf("a third credential becomes live")
	case old.Previous == nil && to.Previous == nil && old.ID != "" && w.holds(old.ID):
		t.Fatalf("the superseded credential gets no grace period")
	case old.Previous == nil && to.Previous != nil && (to.Previous.ID != old.ID || !to.Previous.DeleteAt.Equal(deleteAt)):
		t.Fatalf("previous credential %+v after %+v", to.Previous, old)
	}
	wholeSeconds(t, to.ExpiresAt)
	wholeSeconds(t, to.LastRotation)
	if to.Previous != nil {
		wholeSeconds(t, &to.Previous.DeleteAt)
	}
	w.status = to
}

func expiryLess(t *time.Time, margin time.Duration) *time.Time {
	if t == nil {
		return nil
	}
	early := t.Add(-margin)
	return &early
}

func (w *world) clear(t *rapid.T) {
	w.requireGraceOver(t, "forgotten")
	w.requireGone(t, w.status.Previous.Generation)
	w.status.Previous = nil
}

func (w *world) forget(t *rapid.T, generation int64) {
	if generation == w.status.Generation {
		t.Fatalf("the live generation's Secret is deleted")
	}
	w.requireGone(t, generation)
	delete(w.secrets, generation)
}

func (w *world) requireGone(t *rapid.T, generation int64) {
	if _, named := w.keystone[generation]; named || w.children[generation] != nil {
		t.Fatalf("generation %d is forgotten and not gone", generation)
	}
}

func wholeSeconds(t *rapid.T, moment *time.Time) {
	if moment != nil && moment.Nanosecond() != 0 {
		t.Fatalf("%v has a fraction of a second", moment)
	}
}
