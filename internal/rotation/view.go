package rotation

import (
	"maps"
	"slices"
	"time"
)

// view is the input with its times cut to seconds and the questions that several
// steps ask of it.
type view struct {
	in               Input
	now, keystoneNow time.Time
	children         map[int64]Child
	// tracked are the generations with a K-ORC object or a Secret, ascending. They
	// are not proven gone, whatever their objects look like.
	tracked  []int64
	cur      int64
	declared int64
	// successor is the generation above cur that is continued; 0 for none.
	successor int64
}

func newView(in Input) *view {
	v := &view{in: in, now: seconds(in.Now), children: map[int64]Child{}}
	v.keystoneNow = seconds(in.KeystoneNow)
	if in.KeystoneNow.IsZero() {
		v.keystoneNow = v.now
	}
	v.in.Status.ExpiresAt = secondsPtr(in.Status.ExpiresAt)
	v.in.Status.LastRotation = secondsPtr(in.Status.LastRotation)
	if p := in.Status.Previous; p != nil {
		cut := *p
		cut.DeleteAt = seconds(cut.DeleteAt)
		v.in.Status.Previous = &cut
	}
	known := map[int64]bool{}
	for _, c := range in.Children {
		c.ExpiresAt = secondsPtr(c.ExpiresAt)
		v.children[c.Generation] = c
		known[c.Generation] = true
	}
	for generation := range in.Secrets {
		known[generation] = true
	}
	v.tracked = slices.Sorted(maps.Keys(known))
	v.cur = in.Status.Generation
	v.declared = max(in.Spec.Generation, 1)
	v.successor = v.findSuccessor()
	return v
}

func (v *view) listed(generation int64) bool { _, ok := v.children[generation]; return ok }

func (v *view) marked(generation int64) bool { _, ok := v.in.Secrets[generation]; return ok }

// provenGone needs both halves: an object of K-ORC's could still create what
// Keystone does not list yet.
func (v *view) provenGone(generation int64) bool {
	return !v.listed(generation) && v.in.Keystone[generation] == Gone
}

func (v *view) inGrace() bool { return v.in.Status.Previous != nil }

func (v *view) isPrevious(generation int64) bool {
	return v.inGrace() && v.in.Status.Previous.Generation == generation
}

func (v *view) liveGone() bool { return v.cur > 0 && v.in.LiveID == Gone }

func (v *view) liveExpired() bool {
	return v.cur > 0 && reached(v.keystoneNow, v.in.Status.ExpiresAt)
}

// delivered: the Secret beside the order carries the live credential.
func (v *view) delivered() bool {
	return v.in.Status.ID != "" && v.in.DeliveredID == v.in.Status.ID
}

// canNoLongerWork tells a successor that no patience brings to life. The contract
// continues every successor; one that has expired would be retried by K-ORC for
// ever, one that is gone would be waited for for ever, and one whose secret is lost
// could never be delivered.
func (v *view) canNoLongerWork(c Child) bool {
	return c.Deleting ||
		reached(v.keystoneNow, c.ExpiresAt) ||
		(c.ID != "" && v.in.Keystone[c.Generation] == Gone) ||
		!v.in.Secrets[c.Generation]
}

// failed tells a successor that was rejected. K-ORC's rejection counts only while
// Keystone does not contradict it.
func (v *view) failed(c Child) bool {
	return (c.State == Terminal && v.in.Keystone[c.Generation] != Held) ||
		v.in.Logins[c.Generation] == Refused
}

func (v *view) findSuccessor() int64 {
	if v.cur == 0 {
		if generation := v.highest(v.adoptable); generation > 0 {
			return generation
		}
	}
	return v.highest(v.continued)
}

func (v *view) highest(is func(int64) bool) int64 {
	for _, generation := range slices.Backward(v.tracked) {
		if generation > v.cur && is(generation) {
			return generation
		}
	}
	return 0
}

// adoptable: an order without status that finds a working credential of its own was
// restored from a backup, or stopped just before its first switch.
func (v *view) adoptable(generation int64) bool {
	c, listed := v.children[generation]
	return listed && c.State == Available && c.ID != "" &&
		!v.canNoLongerWork(c) && !(v.failed(c) && generation < v.declared)
}

func (v *view) continued(generation int64) bool {
	c, listed := v.children[generation]
	switch {
	case !listed:
		// Only the intent is on record. It does not outrank a raise or a grace period.
		return v.in.Secrets[generation] && generation >= v.declared && (!v.inGrace() || v.liveGone())
	case v.canNoLongerWork(c):
		return false
	case v.failed(c) || v.cur == 0:
		return generation >= v.declared
	default:
		return true
	}
}

// next is the number of a new generation. It lies above everything on record, so no
// plan reuses the name of a generation that it also has to see off.
func (v *view) next() int64 {
	next := max(v.declared, v.cur+1)
	if n := len(v.tracked); n > 0 {
		next = max(next, v.tracked[n-1]+1)
	}
	return next
}

// successorLost: a rotation was under way, and its credential can no longer work.
func (v *view) successorLost() bool {
	return v.highest(func(generation int64) bool {
		c, listed := v.children[generation]
		return listed && v.canNoLongerWork(c)
	}) > 0
}
