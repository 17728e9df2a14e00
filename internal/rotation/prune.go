package rotation

import (
	"fmt"
	"time"
)

// waitForGrace reports what a running grace period holds back.
func (v *view) waitForGrace(p *Plan, what string) {
	previous := v.in.Status.Previous
	var until *time.Time
	if previous.DeleteAt.After(v.now) {
		until = &previous.DeleteAt
	}
	p.wait(GracePeriod, until, "%s waits for the grace period of generation %d, which ends at %s",
		what, previous.Generation, previous.DeleteAt.UTC().Format(time.RFC3339))
}

// endGrace removes the superseded credential once its time has passed and the
// consumers were given the live one. The time alone is not enough: while the backup
// fails, the delivered Secret still carries the superseded one. That holds for a
// grace period of zero as well.
func (v *view) endGrace(p *Plan, heldBack Trigger) {
	if !v.inGrace() {
		return
	}
	previous := v.in.Status.Previous
	if v.now.Before(previous.DeleteAt) {
		if heldBack != NoTrigger {
			v.waitForGrace(p, fmt.Sprintf("a rotation (%s)", heldBack))
		}
		return
	}
	if !v.delivered() {
		p.wait(SecretNotDelivered, nil, "generation %d is kept until the delivered Secret carries generation %d",
			previous.Generation, v.cur)
		return
	}
	if !v.seeOff(p, previous.Generation) {
		p.wait(WaitingForProof, nil, "Keystone is not proven to have deleted generation %d yet", previous.Generation)
		return
	}
	// A switch writes the whole status, so the clearing takes its turn after it.
	p.ClearPrevious = p.Switch == nil
}

// prune sees off every generation that is neither live nor previous nor desired.
func (v *view) prune(p *Plan) {
	// Without a status nobody knows which credential the consumers use. The adoption
	// comes first, and the rest is judged by the status that it writes.
	if c := v.children[p.Desired]; v.cur == 0 && c.State == Available {
		return
	}
	for _, generation := range v.tracked {
		if generation == v.cur || generation == p.Desired || v.isPrevious(generation) {
			continue
		}
		if v.inUse(generation) {
			p.Ask = append(p.Ask, generation)
			p.wait(SecretNotDelivered, nil, "generation %d is kept until the delivered Secret carries generation %d",
				generation, v.cur)
			continue
		}
		// Once K-ORC's object is gone, the marker is all that remembers a generation
		// which Keystone may still hold, so a lost one is renewed first. The live and
		// the previous generation are on record in the status, and a renewed Secret
		// would pair their ids with a secret that is not theirs.
		if v.listed(generation) && !v.marked(generation) {
			p.Mark = append(p.Mark, generation)
		}
		if !v.seeOff(p, generation) {
			p.wait(WaitingForProof, nil, "Keystone is not proven to have deleted generation %d yet", generation)
		}
	}
}

// inUse: the delivered Secret carries this superseded credential, and it still works
// as far as anybody knows.
func (v *view) inUse(generation int64) bool {
	id := v.children[generation].ID
	return id != "" && id == v.in.DeliveredID && !v.delivered() && v.in.Keystone[generation] != Gone
}

// kept is the one generation that stays beside the live one for its consumers' sake:
// the previous one, or the delivered one where the status has lost it. 0 for none.
func (v *view) kept() int64 {
	if v.inGrace() {
		return v.in.Status.Previous.Generation
	}
	for _, generation := range v.tracked {
		if generation != v.cur && v.inUse(generation) {
			return generation
		}
	}
	return 0
}

// seeOff takes the next step to the end of a generation and says whether it has come.
// K-ORC's word is not enough: it releases its finalizer when Keystone fails, and the
// credential lives on. While K-ORC still works on the deletion it is left alone.
func (v *view) seeOff(p *Plan, generation int64) (done bool) {
	c, listed := v.children[generation]
	switch {
	case listed && !c.Deleting:
		p.Delete = append(p.Delete, generation)
		return false
	case listed:
		return false
	case v.in.Keystone[generation] != Gone:
		p.Prove = append(p.Prove, generation)
		return false
	}
	if v.marked(generation) {
		p.Forget = append(p.Forget, generation)
	}
	return true
}

// reserve records the number of a generation that replaces another one before that
// one's traces vanish. Without it the replacement would take the number of what it
// replaces whenever the proof takes more than one pass.
func (v *view) reserve(p *Plan) {
	if p.Desired == v.cur || p.Mint != nil || v.listed(p.Desired) || v.marked(p.Desired) {
		return
	}
	if v.highest(func(generation int64) bool { return generation != p.Desired }) > 0 {
		p.Mark = append(p.Mark, p.Desired)
	}
}
