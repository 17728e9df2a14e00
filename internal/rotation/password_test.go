package rotation

import (
	"slices"
	"testing"
	"time"
)

func settledUser(change ...func(*PasswordInput)) PasswordInput {
	in := PasswordInput{
		Now:          epoch,
		Declared:     1,
		Current:      3,
		Applied:      3,
		Secrets:      map[int64]bool{3: true},
		LastRotation: at(-time.Hour),
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func TestDecidePassword(t *testing.T) {
	due := func(in *PasswordInput) { in.Interval = time.Hour }
	raised := func(in *PasswordInput) { in.Declared = 5 }
	unapplied := func(in *PasswordInput) { in.Applied = 2 }
	held := func(in *PasswordInput) { in.CredentialOrderDeleting = true }
	lost := func(in *PasswordInput) { in.Secrets = map[int64]bool{} }
	emptied := func(in *PasswordInput) { in.Secrets = map[int64]bool{3: false} }
	older := func(in *PasswordInput) { in.Secrets[1], in.Secrets[2] = true, false }
	refused := func(in *PasswordInput) { in.Refused = true }
	noUser := func(in *PasswordInput) { in.Current, in.Applied, in.Secrets, in.LastRotation = 0, 0, nil, nil }

	for _, tc := range []struct {
		name    string
		in      PasswordInput
		desired int64
		trigger Trigger
		create  int64
		repoint bool
		del     []int64
		wait    WaitReason
	}{
		{"a user starts with the declared generation", settledUser(noUser, raised), 5, FirstCredential, 5, true, nil, ""},
		{"a start that broke off goes on with its Secret", settledUser(noUser, func(in *PasswordInput) { in.Secrets = map[int64]bool{1: true} }), 1, FirstCredential, 0, true, nil, ""},
		{"a removed user does not fall back behind its Secrets", settledUser(noUser, func(in *PasswordInput) { in.Secrets = map[int64]bool{4: true} }), 4, FirstCredential, 0, true, nil, ""},
		{"a settled user keeps its password", settledUser(), 3, NoTrigger, 0, false, nil, ""},
		{"a settled user loses its older Secrets", settledUser(older), 3, NoTrigger, 0, false, []int64{1, 2}, ""},
		{"older Secrets stay until K-ORC has applied the current one", settledUser(older, unapplied), 3, NoTrigger, 0, false, nil, PasswordNotApplied},
		{"a raised generation is created and pointed to", settledUser(raised), 5, GenerationRaised, 5, true, nil, ""},
		{"a raised generation whose Secret exists is pointed to", settledUser(raised, func(in *PasswordInput) { in.Secrets[5] = true }), 5, GenerationRaised, 0, true, nil, ""},
		{"a raised generation waits until K-ORC has applied the current one", settledUser(raised, unapplied, older), 5, GenerationRaised, 0, false, nil, PasswordNotApplied},
		{"a raised generation does not wait for a credential order", settledUser(raised, held), 5, GenerationRaised, 5, true, nil, ""},
		{"a declared generation below the current one changes nothing", settledUser(func(in *PasswordInput) { in.Declared = 2 }), 3, NoTrigger, 0, false, nil, ""},
		{"a due schedule rotates", settledUser(due), 4, ScheduleDue, 4, true, nil, ""},
		{"a schedule that is not due waits", settledUser(func(in *PasswordInput) { in.Interval = time.Hour + time.Second }), 3, NoTrigger, 0, false, nil, ""},
		{"a due schedule waits until K-ORC has applied the current one", settledUser(due, unapplied), 3, NoTrigger, 0, false, nil, PasswordNotApplied},
		{"a due schedule waits for a credential order that is being deleted", settledUser(due, held), 3, NoTrigger, 0, false, nil, CredentialOrderDeleting},
		{"a refused password is replaced", settledUser(refused), 4, PasswordRefused, 4, true, nil, ""},
		{"a refused password whose successor exists is replaced by it", settledUser(refused, func(in *PasswordInput) { in.Secrets[4] = true }), 4, PasswordRefused, 0, true, nil, ""},
		{"a refused password does not wait for a credential order", settledUser(refused, due, held), 4, PasswordRefused, 4, true, nil, ""},
		{"a refused password is replaced by a raised generation", settledUser(refused, raised), 5, GenerationRaised, 5, true, nil, ""},
		{"a refused password that K-ORC has yet to apply waits", settledUser(refused, unapplied), 3, NoTrigger, 0, false, nil, PasswordNotApplied},
		{"a lost Secret is replaced by a new generation", settledUser(lost), 4, SecretLost, 4, true, nil, ""},
		{"an emptied Secret is replaced by a new generation", settledUser(emptied), 4, SecretLost, 4, true, nil, ""},
		{"a lost Secret that K-ORC has yet to read is replaced under its name", settledUser(lost, unapplied), 3, NoTrigger, 3, false, nil, PasswordNotApplied},
		{"a lost Secret that K-ORC has yet to read does not strand a raised generation", settledUser(lost, unapplied, raised), 5, GenerationRaised, 3, false, nil, PasswordNotApplied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := DecidePassword(tc.in)
			var wait WaitReason
			if p.Wait != nil {
				wait = p.Wait.Reason
			}
			if p.Desired != tc.desired || p.Trigger != tc.trigger || p.CreateSecret != tc.create || p.Repoint != tc.repoint ||
				!slices.Equal(p.Delete, tc.del) || wait != tc.wait {
				t.Errorf("got %+v (wait %q), want %+v", p, wait, tc)
			}
			if stamped := p.LastRotation != nil && p.LastRotation.Equal(epoch); stamped != tc.repoint {
				t.Errorf("last rotation %v with re-pointing %t", p.LastRotation, tc.repoint)
			}
		})
	}

	t.Run("the next rotation follows the interval in whole seconds", func(t *testing.T) {
		p := DecidePassword(settledUser(func(in *PasswordInput) {
			in.Now = epoch.Add(999 * time.Millisecond)
			in.Interval = 2 * time.Hour
		}))
		if want := epoch.Add(time.Hour); p.NextRotation == nil || !p.NextRotation.Equal(want) || len(p.Wake) != 1 || !p.Wake[0].Equal(want) {
			t.Errorf("next rotation %v, wake %v, want %v", p.NextRotation, p.Wake, want)
		}
	})
	t.Run("the next rotation follows the rotation that starts now", func(t *testing.T) {
		p := DecidePassword(settledUser(due))
		if want := epoch.Add(time.Hour); !p.NextRotation.Equal(want) {
			t.Errorf("next rotation %v, want %v", p.NextRotation, want)
		}
	})
	t.Run("a user from before the schedule starts counting now", func(t *testing.T) {
		p := DecidePassword(settledUser(due, func(in *PasswordInput) { in.LastRotation = nil }))
		if p.Repoint || p.LastRotation == nil || !p.LastRotation.Equal(epoch) || !p.NextRotation.Equal(epoch.Add(time.Hour)) {
			t.Errorf("got %+v", p)
		}
	})
}
