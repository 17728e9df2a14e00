package rotation

import (
	"slices"
	"time"
)

// skewTolerance is the difference between two clocks that counts as none. A Date
// header has whole seconds and travels for a while; following every second of it
// would rewrite status.nextRotation on each measurement.
const skewTolerance = 5 * time.Second

// expiryMargin bounds how long before the live credential's expiry an unanswered
// login stops holding the switch up, and a rotation starts whose schedule was turned
// off. Half a shorter grace period takes its place: the schedule leaves one grace
// period between a mint and the expiry, and with a fixed margin a short one would
// never wait for an answer.
const expiryMargin = 10 * time.Minute

// seconds drops what a Kubernetes time loses on its way through the API server.
// Comparing a finer clock with a stored time makes "due" flap.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

func secondsPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	s := seconds(*t)
	return &s
}

// reached treats a missing time as one that never comes.
func reached(now time.Time, t *time.Time) bool { return t != nil && !now.Before(*t) }

// skew is how far Keystone's clock is ahead of ours.
func (v *view) skew() time.Duration {
	d := v.keystoneNow.Sub(v.now)
	if d.Abs() <= skewTolerance {
		return 0
	}
	return d
}

// onOurClock converts a moment on Keystone's clock.
func (v *view) onOurClock(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	ours := t.Add(-v.skew())
	return &ours
}

// mintExpiry lies on Keystone's clock: K-ORC passes it through and Keystone
// answers 400 to an expiry in its past.
func (v *view) mintExpiry() *time.Time {
	if v.in.Spec.Interval <= 0 {
		return nil
	}
	t := v.keystoneNow.Add(v.in.Spec.Interval).Add(v.in.Spec.GracePeriod)
	t = seconds(t)
	return &t
}

// nextRotation is min(lastRotation + interval, expiry - grace), so that a longer
// interval never lets the delivered credential run into the expiry that it already
// has. The expiry is brought to our clock first: with Keystone ten minutes behind,
// a three-minute credential would otherwise be due at its birth, for ever.
func (v *view) nextRotation(s Status) *time.Time {
	if v.in.Spec.Interval <= 0 || s.LastRotation == nil {
		return nil
	}
	next := s.LastRotation.Add(v.in.Spec.Interval)
	if expiry := v.onOurClock(s.ExpiresAt); expiry != nil {
		if early := expiry.Add(-v.in.Spec.GracePeriod); early.Before(next) {
			next = early
		}
	}
	next = seconds(next)
	return &next
}

// GraceEnd is when a superseded credential may go: one grace period from now, and
// earlier in two cases where waiting would let the delivered credential die, since
// no rotation starts in a grace period. It is now when the superseded credential has
// expired by itself, for it helps nobody any more. And it takes at most half of what
// is left of the delivered one's life, which shortens nothing unless the delivery came
// about a whole interval late. Without either, a store or an operator that was away
// for that long would hold the next rotation back beyond the expiry.
//
// The expiries are on Keystone's clock, skew is how far that is ahead of ours, and
// nil is no expiry. The result is on our clock and never before now.
func GraceEnd(now time.Time, grace, skew time.Duration, superseded, delivered *time.Time) time.Time {
	end := now.Add(grace)
	if reached(now.Add(skew), superseded) {
		end = now
	}
	if delivered != nil {
		if half := now.Add(delivered.Add(-skew).Sub(now) / 2); half.Before(end) {
			end = half
		}
	}
	if end.Before(now) {
		end = now
	}
	return seconds(end)
}

// liveExpiresSoon is true within the margin before the expiry and after it.
func (v *view) liveExpiresSoon() bool {
	return v.cur > 0 && reached(v.keystoneNow, v.lastMoment(v.in.Status.ExpiresAt))
}

// lastMoment is when a credential of this expiry is about to expire, on Keystone's clock.
func (v *view) lastMoment(expiry *time.Time) *time.Time {
	if expiry == nil {
		return nil
	}
	t := seconds(expiry.Add(-min(expiryMargin, v.in.Spec.GracePeriod/2)))
	return &t
}

// wakeUps keeps the future moments, each once.
func wakeUps(now time.Time, moments ...*time.Time) []time.Time {
	var wake []time.Time
	for _, t := range moments {
		if t != nil && t.After(now) {
			wake = append(wake, *t)
		}
	}
	slices.SortFunc(wake, time.Time.Compare)
	return slices.CompactFunc(wake, time.Time.Equal)
}
