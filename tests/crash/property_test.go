package crash

import (
	"flag"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// TestMain keeps the random histories few: each is a whole life. -rapid.checks and -rapid.steps on the
// command line still win.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "25", "rapid.steps": "30", "rapid.shrinktime": "20s"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestAnyHistoryKeepsThePromises plays lives in which crashes, faults and people come at random. In the end
// everything is mended, the orders become what they are in an undisturbed life, and go without a trace.
func TestAnyHistoryKeepsThePromises(t *testing.T) {
	on := inMemory(t)
	want := on.life(t).live()
	rapid.Check(t, func(rt *rapid.T) {
		l := on.life(t)
		defer l.keystone.Close() // the test's own cleanup would keep hundreds of them
		l.tb = rt
		l.order()
		l.until("all orders are fulfilled", func() bool { return l.ready() && l.carries(1) })
		rt.Repeat(l.accidents())
		l.mend()
		l.same(want, l.snapshot())
		l.play(phases[len(phases)-1])
		l.requireNothingLeft()
	})
}

// accidents are what can happen to a life.
func (l *life) accidents() map[string]func(*rapid.T) {
	rounds := func(t *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			l.round()
		}
	}
	return map[string]func(*rapid.T){
		"":             func(*rapid.T) { l.check() },
		"time goes by": rounds, "more time goes by": rounds, "much more time goes by": rounds,
		"the operator stops after a write": func(t *rapid.T) {
			l.interrupter.mu.Lock()
			l.interrupter.how = rapid.SampledFrom([]interruption{stopped, answerLost, answerLostThenStopped, writeLost}).Draw(t, "how")
			l.interrupter.at = l.interrupter.writes + rapid.IntRange(1, 6).Draw(t, "after")
			l.interrupter.mu.Unlock()
		},
		"the operator stops between two passes": func(*rapid.T) { l.startOperator() },
		"something goes wrong": func(t *rapid.T) {
			if l.disturbance != nil {
				return
			}
			all := faults()
			row := all[rapid.IntRange(0, len(all)-1).Draw(t, "fault")]
			if row.impatient || row.moments != nil || row.stops == nil && row.starts != nil && row.lasts == 0 {
				return // bound to its moment, or to a clock of its own
			}
			l.note("*** %s", row.name)
			d := row.disturbance
			d.phase, d.lasts = phaseMint, max(d.lasts, time.Duration(rapid.IntRange(5, 120).Draw(t, "seconds"))*time.Second)
			l.disturbance = &d
			d.begin(l, phaseMint)
		},
		"what goes wrong ends": func(*rapid.T) { l.end() },
		"a rotation falls due": func(*rapid.T) {
			status := l.credential().Status
			if next := status.NextRotation; l.calm() && status.PreviousCredentialDeleteAt == nil && next != nil && next.After(l.clock.Now()) {
				l.advance(next.Sub(l.clock.Now()))
			}
		},
		"a grace period ends": func(*rapid.T) {
			status := l.credential().Status
			if at, next := status.PreviousCredentialDeleteAt, status.NextRotation; l.calm() && at != nil && at.After(l.clock.Now()) && next.After(at.Time) {
				l.advance(at.Sub(l.clock.Now()))
			}
		},
		"somebody raises the credential's generation": func(*rapid.T) {
			credential := l.credential()
			credential.Spec.CredentialGeneration++
			l.must(l.people.Update(l.ctx, credential))
		},
		"somebody raises the password's generation": func(*rapid.T) {
			user := l.user()
			user.Spec.PasswordGeneration++
			l.must(l.people.Update(l.ctx, user))
		},
		"somebody edits the delivered Secret": func(*rapid.T) {
			if secret := l.delivered(); secret != nil {
				l.promises.spoiled = true
				secret.Data["application_credential_secret"] = []byte("edited")
				l.must(l.people.Update(l.ctx, secret))
				l.promises.checked = l.history.length
			}
		},
		"somebody deletes the delivered Secret": func(*rapid.T) {
			if secret := l.delivered(); secret != nil {
				l.promises.spoiled = true
				l.must(l.people.Delete(l.ctx, secret))
			}
		},
		"the consent is withdrawn": func(*rapid.T) { l.consent(false) },
		"the consent returns":      func(*rapid.T) { l.consent(true) },
	}
}

// calm tells whether hours may go by in which the operator does nothing: nothing is wrong, and the Secret
// carries what it should. An operator that is away for a whole interval cannot keep a credential from its
// expiry, and neither can one that is frozen.
func (l *life) calm() bool {
	return l.disturbance == nil && !l.promises.frozen && !l.promises.spoiled && l.carries(l.credential().Status.CredentialGeneration)
}

// end ends what goes wrong before its time.
func (l *life) end() {
	l.tb.Helper()
	if d := l.disturbance; d != nil && d.active {
		d.until = l.clock.Now()
		d.turn(l)
	}
	l.disturbance = nil
}

// consent gives or withdraws the ControlPlane's consent.
func (l *life) consent(given bool) {
	l.tb.Helper()
	cp := &v1alpha1.ControlPlane{}
	l.get(types.NamespacedName{Namespace: l.plane, Name: "cp"}, cp)
	cp.Spec.NamespaceAssignments = nil
	l.promises.frozen, l.promises.delivered = !given, false
	if given {
		cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: l.tenant, AllowedRoles: []string{"member"}}}
	}
	l.must(l.people.Update(l.ctx, cp))
}

// mend ends all that goes wrong, has people do what conditions ask of them, and waits for the state that
// every history comes to: fulfilled, nothing superseded left, and no repair outstanding.
func (l *life) mend() {
	l.tb.Helper()
	l.end()
	l.interrupter.mu.Lock()
	l.interrupter.how = undisturbed
	l.interrupter.mu.Unlock()
	l.consent(true)
	l.unwedge()
	l.until("everything is at rest", func() bool {
		return l.alone() && l.carries(l.credential().Spec.CredentialGeneration) && !l.promises.spoiled && l.atRest()
	})
}
