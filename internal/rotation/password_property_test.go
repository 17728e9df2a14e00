package rotation

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPasswordRotationKeepsItsPromises drives a user through crashes and a slow
// K-ORC: no password is pointed to before the one before it was applied, the generation
// never falls, and a calm world settles on one Secret.
func TestPasswordRotationKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := PasswordInput{Now: epoch, Declared: 1, Secrets: map[int64]bool{}}
		apply := func(*rapid.T) {
			if in.Secrets[in.Current] {
				in.Applied = in.Current
			}
		}
		pass := func(t *rapid.T, effects int) PasswordPlan {
			now := in.Now
			p := DecidePassword(in)
			list := []func(){
				func() {
					if p.CreateSecret > 0 {
						in.Secrets[p.CreateSecret] = true
					}
				},
				func() {
					if !p.Repoint {
						return
					}
					if in.Current > 0 && in.Applied != in.Current {
						t.Fatalf("generation %d is pointed to before %d was applied", p.Desired, in.Current)
					}
					if p.Desired <= in.Current || !in.Secrets[p.Desired] {
						t.Fatalf("generation %d is pointed to after %d, Secrets %v", p.Desired, in.Current, in.Secrets)
					}
					if p.Trigger == ScheduleDue && in.CredentialOrderDeleting {
						t.Fatal("a scheduled rotation strands a credential order")
					}
					if p.Trigger == PasswordRefused && p.Desired != in.Current+1 {
						t.Fatalf("a refused generation %d is replaced by %d", in.Current, p.Desired)
					}
					in.Current, in.Refused = p.Desired, false
				},
				func() {
					if p.LastRotation == nil {
						return
					}
					if !p.LastRotation.Equal(now.Truncate(time.Second)) {
						t.Fatalf("last rotation %v at %v", p.LastRotation, now)
					}
					in.LastRotation = p.LastRotation
				},
				func() {
					for _, generation := range p.Delete {
						if generation == in.Current || in.Applied != in.Current {
							t.Fatalf("Secret %d is deleted, current %d, applied %d", generation, in.Current, in.Applied)
						}
						delete(in.Secrets, generation)
					}
				},
			}
			for _, effect := range list[:min(effects, len(list))] {
				effect()
			}
			return p
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass":          func(t *rapid.T) { pass(t, rapid.IntRange(0, 4).Draw(t, "effects")) },
			"whole pass":    func(t *rapid.T) { pass(t, 4) },
			"K-ORC applies": apply,
			"time goes by": func(t *rapid.T) {
				in.Now = in.Now.Add(time.Duration(rapid.IntRange(1, 7200_000).Draw(t, "ms")) * time.Millisecond)
			},
			"the generation is raised": func(t *rapid.T) { in.Declared += int64(rapid.IntRange(1, 3).Draw(t, "by")) },
			"the schedule changes": func(t *rapid.T) {
				in.Interval = rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "interval")
			},
			"a credential order starts or ends its teardown": func(*rapid.T) {
				in.CredentialOrderDeleting = !in.CredentialOrderDeleting
			},
			"Keystone refuses the password, or takes it": func(*rapid.T) { in.Refused = !in.Refused },
			"a Secret is lost": func(t *rapid.T) {
				if len(in.Secrets) > 0 {
					delete(in.Secrets, rapid.SampledFrom(slices.Sorted(maps.Keys(in.Secrets))).Draw(t, "generation"))
				}
			},
		})

		in.Interval, in.Refused = 0, false
		for range 10 {
			pass(t, 4)
			apply(t)
		}
		p := pass(t, 4)
		if in.Current < in.Declared || p.Desired != in.Current || p.Wait != nil || !in.Secrets[in.Current] {
			t.Fatalf("no convergence: %+v, plan %+v", in, p)
		}
		for generation := range in.Secrets {
			if generation < in.Current {
				t.Fatalf("Secret %d is left over, current %d", generation, in.Current)
			}
		}
	})
}
