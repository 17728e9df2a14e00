package rotation

import (
	"maps"
	"slices"
	"time"
)

// PasswordInput is everything one decision about a user's password rests on.
type PasswordInput struct {
	// Now is the operator's clock, in any precision.
	Now time.Time
	// Declared is spec.passwordGeneration. Below 1 reads as 1.
	Declared int64
	// Interval is the time between two scheduled rotations; 0 turns the schedule off.
	Interval time.Duration
	// Current is the generation that the K-ORC User's passwordRef names; 0 while there
	// is no User.
	Current int64
	// Applied is the generation that K-ORC's appliedPasswordRef names; 0 for none.
	Applied int64
	// Secrets has a key for every password-v<N> that exists; the value says whether it
	// holds one. A missing entry must follow a live read.
	Secrets map[int64]bool
	// LastRotation is when the current generation was pointed to.
	LastRotation *time.Time
	// Refused: Keystone refused Current on this pass. It is asked only when somebody claims so, since a refused
	// login counts towards locking the account.
	Refused bool
	// CredentialOrderDeleting: a credential order of this user is being deleted. K-ORC
	// deletes its credentials with the user's password.
	CredentialOrderDeleting bool
}

// PasswordPlan is what to do about a user's password: create the Secret, then point
// to it, then persist LastRotation, then delete.
type PasswordPlan struct {
	// Desired is the generation that the user should come to have. It never falls.
	Desired int64
	// Trigger is why Desired is not Current: FirstCredential, GenerationRaised,
	// PasswordRefused, ScheduleDue, SecretLost or none.
	Trigger Trigger
	// CreateSecret is the generation whose password-v<N> must be given a generated value
	// now; 0 for none. It is Desired, except that a Secret which K-ORC has yet to read
	// is replaced first.
	CreateSecret int64
	// Repoint: the User's passwordRef is to name password-v<Desired>; without a User,
	// create it so.
	Repoint bool
	// LastRotation is to be persisted; nil leaves the old one.
	LastRotation *time.Time
	// Delete lists generations, ascending, whose password-v<N> is of no use any more.
	Delete []int64
	// NextRotation is when the schedule rotates next, possibly in the past; nil with
	// the schedule off. With a LastRotation it follows from that one.
	NextRotation *time.Time
	Wait         *Wait
	// Wake lists future moments at which to decide again, ascending.
	Wake []time.Time
}

// DecidePassword returns what the rotation of one user's password does next. It
// knows nothing of logins: a password is delivered only after one, and that is the
// caller's to see to.
func DecidePassword(in PasswordInput) PasswordPlan {
	in.Now = seconds(in.Now)
	in.LastRotation = secondsPtr(in.LastRotation)
	in.Declared = max(in.Declared, 1)

	p := PasswordPlan{}
	due := reached(in.Now, in.nextRotation(in.LastRotation))
	p.Desired, p.Trigger = in.desired(due)
	settled := in.Current > 0 && in.Applied == in.Current
	switch {
	case in.Current == 0:
		p.start(in)
	case p.Desired == in.Current:
		p.keep(in, settled)
	case settled:
		p.start(in)
	default:
		// K-ORC's first pass records the reference without applying it, and one that
		// is re-pointed before then is recorded as applied and never set.
		p.wait(PasswordNotApplied, "the password generation changes when K-ORC has applied the current one")
		p.keep(in, settled)
	}
	if due && in.CredentialOrderDeleting && p.Desired == in.Current {
		p.wait(CredentialOrderDeleting,
			"the scheduled rotation starts when no credential order of the user is being deleted any more")
	}
	last := in.LastRotation
	if p.LastRotation != nil {
		last = p.LastRotation
	}
	p.NextRotation = in.nextRotation(last)
	p.Wake = wakeUps(in.Now, p.NextRotation)
	return p
}

func (p *PasswordPlan) wait(reason WaitReason, detail string) {
	if p.Wait == nil {
		p.Wait = &Wait{Reason: reason, Detail: detail}
	}
}

func (in PasswordInput) nextRotation(last *time.Time) *time.Time {
	if in.Interval <= 0 || last == nil {
		return nil
	}
	next := seconds(last.Add(in.Interval))
	return &next
}

// desired: a refused password, a scheduled rotation and a lost Secret wait until K-ORC
// has applied the current password; a raised generation is desired at once and waits
// visibly. A refused one does not wait for a credential order that is being deleted:
// K-ORC cannot delete its credentials with that password.
func (in PasswordInput) desired(due bool) (int64, Trigger) {
	settled := in.Applied == in.Current
	switch {
	case in.Current == 0:
		// Secrets without a User are left from a start that broke off, or from a User
		// that was removed by hand. The number does not fall behind theirs.
		return slices.Max(append(slices.Collect(maps.Keys(in.Secrets)), in.Declared)), FirstCredential
	case in.Declared > in.Current:
		return in.Declared, GenerationRaised
	case settled && in.Refused:
		return in.Current + 1, PasswordRefused
	case settled && due && !in.CredentialOrderDeleting:
		return in.Current + 1, ScheduleDue
	case settled && !in.Secrets[in.Current]:
		// K-ORC reacts to a new reference only. A new value under the old name would
		// be delivered and never be valid.
		return in.Current + 1, SecretLost
	}
	return in.Current, NoTrigger
}

func (p *PasswordPlan) start(in PasswordInput) {
	p.create(in, p.Desired)
	p.Repoint = true
	now := in.Now
	p.LastRotation = &now
}

func (p *PasswordPlan) create(in PasswordInput, generation int64) {
	if !in.Secrets[generation] {
		p.CreateSecret = generation
	}
}

// keep looks after the generation that passwordRef names.
func (p *PasswordPlan) keep(in PasswordInput, settled bool) {
	if !settled {
		// K-ORC still has to read the Secret. A lost one is replaced under its own
		// name here: no other name may be pointed to yet.
		p.create(in, in.Current)
		p.wait(PasswordNotApplied, "K-ORC has not applied the current password yet")
		return
	}
	for generation := range in.Secrets {
		if generation < p.Desired {
			p.Delete = append(p.Delete, generation)
		}
	}
	slices.Sort(p.Delete)
	if in.LastRotation == nil && in.Interval > 0 {
		// A user from before the schedule existed: it starts counting now.
		now := in.Now
		p.LastRotation = &now
	}
}
