package rotation

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// invariants hold at every moment, in the middle of a plan as well.
func (w *world) invariants(t *rapid.T) {
	if len(w.keystone) > 2 {
		t.Fatalf("Keystone holds %d credentials", len(w.keystone))
	}
	if id := w.deliveredID; id != "" && !w.holds(id) && !w.excused[id] && !w.dead(w.expiry[id]) {
		t.Fatalf("the delivered credential %s is not in Keystone", id)
	}
}

// pass runs one pass and stops after a number of effects, as a crash would.
// Meanwhile K-ORC works and time goes by.
func (w *world) pass(t *rapid.T, effects int) Plan {
	w.noteDoomed()
	p, in := w.decide(t)
	if again := Decide(in); again.Desired != p.Desired || len(again.Delete) != len(p.Delete) {
		t.Fatalf("the same input gives another plan: %+v, then %+v", p, again)
	}
	for i, effect := range w.effects(t, p, in) {
		if i == effects {
			break
		}
		effect()
		w.invariants(t)
		switch rapid.IntRange(0, 3).Draw(t, "meanwhile") {
		case 0:
			w.someChild(t, func(generation int64) { w.korc(t, generation) })
		case 1:
			w.now = w.now.Add(700 * time.Millisecond)
		}
		w.invariants(t)
	}
	return p
}

// someChild picks one of K-ORC's objects.
func (w *world) someChild(t *rapid.T, do func(generation int64)) {
	if len(w.children) == 0 {
		return
	}
	do(rapid.SampledFrom(slices.Sorted(maps.Keys(w.children))).Draw(t, "child"))
}

// excuse is called when somebody breaks a generation. Without a status the broken one
// may be the delivered one for all that the operator can tell.
func (w *world) excuse(generation int64) {
	if held, ok := w.keystone[generation]; ok {
		w.excused[held.id] = true
	}
	if w.status.Generation == 0 {
		w.excused[w.deliveredID] = true
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	pass := func(t *rapid.T) {
		w.pass(t, rapid.SampledFrom([]int{99, 99, 0, 1, 2, 3}).Draw(t, "effects"))
	}
	korc := func(t *rapid.T) { w.someChild(t, func(generation int64) { w.korc(t, generation) }) }
	return map[string]func(*rapid.T){
		"": w.invariants,
		// The loop's own business is drawn more often than any accident.
		"pass": pass, "pass again": pass, "pass once more": pass,
		"K-ORC works": korc, "K-ORC works again": korc,
		"delivery": func(*rapid.T) { w.deliver() },
		"calm pass": func(t *rapid.T) {
			w.pass(t, 99)
			korc(t)
			w.deliver()
		},
		"time goes by": func(t *rapid.T) {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 9 * time.Second, time.Minute, 10 * time.Minute, time.Hour}).Draw(t, "time"))
		},
		"Keystone fails or returns":  func(*rapid.T) { w.keystoneUp = !w.keystoneUp },
		"the store fails or returns": func(*rapid.T) { w.storeReady = !w.storeReady },
		"a clock moves": func(t *rapid.T) {
			w.skew = time.Duration(rapid.IntRange(-600, 600).Draw(t, "skew")) * time.Second
		},
		"the generation is raised": func(t *rapid.T) {
			w.spec.Generation += int64(rapid.IntRange(1, 3).Draw(t, "by"))
		},
		"the schedule changes": func(t *rapid.T) {
			w.spec.Interval = rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, 720 * time.Hour}).Draw(t, "interval")
			w.spec.GracePeriod = rapid.SampledFrom([]time.Duration{0, 30 * time.Second, 30 * time.Minute}).Draw(t, "grace")
		},
		"a credential is revoked in Keystone": func(t *rapid.T) {
			if len(w.keystone) == 0 {
				return
			}
			generation := rapid.SampledFrom(slices.Sorted(maps.Keys(w.keystone))).Draw(t, "generation")
			w.excuse(generation)
			delete(w.keystone, generation)
		},
		"an object of K-ORC's is deleted by hand": func(t *rapid.T) {
			w.someChild(t, func(generation int64) {
				// Deleting both a generation's objects by hand leaves no trace of it.
				if _, marked := w.secrets[generation]; marked {
					w.excuse(generation)
					w.children[generation].Deleting = true
				}
			})
		},
		"a secret is lost": func(t *rapid.T) {
			w.someChild(t, func(generation int64) {
				if !w.children[generation].Deleting {
					w.excuse(generation)
					delete(w.secrets, generation)
				}
			})
		},
		"a secret is emptied": func(t *rapid.T) {
			w.someChild(t, func(generation int64) {
				if _, marked := w.secrets[generation]; marked {
					w.excuse(generation)
					w.secrets[generation] = 0
				}
			})
		},
		"a login starts or stops being refused": func(t *rapid.T) {
			w.someChild(t, func(generation int64) {
				w.excuse(generation)
				w.refused[generation] = !w.refused[generation]
			})
		},
		"K-ORC gives up": func(t *rapid.T) {
			w.someChild(t, func(generation int64) {
				if w.status.Generation == 0 {
					w.excuse(generation)
				}
				w.children[generation].State = Terminal
			})
		},
		// A newer K-ORC does so. It could exceed the two all by itself, which no
		// decision can prevent.
		"K-ORC makes a revoked credential anew": func(t *rapid.T) {
			w.someChild(t, func(generation int64) {
				c := w.children[generation]
				if _, named := w.keystone[generation]; named || c.Deleting || c.ID == "" || w.dead(c.ExpiresAt) ||
					w.secrets[generation] == 0 || !w.roomForOneMore(generation) {
					return
				}
				c.State = Pending
				c.ID = ""
				w.korc(t, generation)
			})
		},
		"the healing annotation is set": func(*rapid.T) { w.rotateID = w.status.ID },
		"the status is lost": func(*rapid.T) {
			generation := w.status.Generation
			c := w.children[generation]
			if c == nil || c.Deleting || c.State != Available || w.secrets[generation] == 0 || w.dead(c.ExpiresAt) ||
				w.refused[generation] || !w.holds(w.status.ID) || w.keystone[generation].secret != w.secrets[generation] {
				return
			}
			w.status = Status{}
		},
	}
}

// roomForOneMore counts what Keystone holds and what K-ORC's pending objects will
// still create.
func (w *world) roomForOneMore(but int64) bool {
	n := len(w.keystone)
	for generation, c := range w.children {
		if _, named := w.keystone[generation]; !named && !c.Deleting && generation != but && c.State != Available {
			n++
		}
	}
	return n < 2
}

func TestRotationKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		defer func() {
			if t.Failed() {
				t.Log(w.dump())
			}
		}()
		w.begin(t)
		t.Repeat(w.actions())
		w.settle(t)
	})
}

// begin plays the usual start of a history, so that the accidents meet converged orders
// and running grace periods more often than chance would have it.
func (w *world) begin(t *rapid.T) {
	turns := rapid.SampledFrom([]int{0, 4, 7, 7}).Draw(t, "turns before the accidents")
	deliver := coin(t, "the second credential is delivered")
	for turn := range turns {
		if turn == 4 {
			w.spec.Generation++
		}
		w.pass(t, 99)
		for _, generation := range slices.Sorted(maps.Keys(w.children)) {
			w.korc(t, generation)
		}
		if turn < 4 || deliver {
			w.deliver()
		}
	}
}

// settle calms the world down and requires the one state that every history ends in.
func (w *world) settle(t *rapid.T) {
	w.keystoneUp, w.storeReady = true, true
	clear(w.refused)
	w.spec.Interval, w.spec.GracePeriod = 0, time.Minute
	var p Plan
	for range 100 {
		w.rotateID = w.status.ID
		p = w.pass(t, 99)
		if p.Failed != nil {
			w.spec.Generation = max(w.spec.Generation, p.Failed.Generation+1)
		}
		for generation := range w.children {
			w.korc(t, generation)
		}
		w.deliver()
		w.invariants(t)
		if w.settled(p) {
			return
		}
		w.now = w.now.Add(20 * time.Second)
		if previous := w.status.Previous; previous != nil && previous.DeleteAt.After(w.now) {
			w.now = previous.DeleteAt
		}
	}
	t.Fatalf("no convergence, last plan %+v, wait %+v, failed %+v", p, p.Wait, p.Failed)
}

func (w *world) settled(p Plan) bool {
	s := w.status
	c := w.children[s.Generation]
	return s.Generation >= w.spec.Generation && s.Previous == nil && w.deliveredID == s.ID &&
		len(w.children) == 1 && c != nil && c.ID == s.ID && c.State == Available &&
		len(w.secrets) == 1 && w.secrets[s.Generation] != 0 &&
		len(w.keystone) == 1 && w.keystone[s.Generation].id == s.ID &&
		p.Desired == s.Generation && p.Wait == nil && p.Failed == nil
}
