package rotation

import (
	"fmt"
	"slices"
	"time"
)

// Decide returns what the rotation of one application credential does next. It is
// total: no input makes it panic, and the same input gives the same plan.
func Decide(in Input) Plan {
	v := newView(in)
	p := &Plan{}
	var heldBack Trigger
	p.Desired, p.Trigger, heldBack = v.desired()

	v.askAboutLive(p)
	v.advance(p)
	v.replaceUndeliverable(p)
	v.mint(p)
	v.endGrace(p, heldBack)
	v.prune(p)
	v.reserve(p)
	v.schedule(p)
	p.tidy()
	return *p
}

// wait keeps the first reason: the steps run from the rotation's progress outwards.
func (p *Plan) wait(reason WaitReason, until *time.Time, format string, args ...any) {
	if p.Wait == nil {
		p.Wait = &Wait{Reason: reason, Detail: fmt.Sprintf(format, args...), Until: until}
	}
}

// tidy sorts the lists and drops doubles, so that equal plans are equal values.
func (p *Plan) tidy() {
	for _, list := range []*[]int64{&p.Ask, &p.Prove, &p.Mark, &p.Delete, &p.Forget, &p.Refuted} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	// The reserved number goes first: it is what tells a marker that only keeps an
	// older generation on record from the successor.
	slices.Reverse(p.Mark)
}

// askAboutLive asks Keystone whenever something hints that the live credential is
// not what the status says. A steady pass has no hint and asks nothing.
func (v *view) askAboutLive(p *Plan) {
	if v.cur == 0 {
		return
	}
	c := v.children[v.cur]
	terminal := c.State == Terminal
	if terminal && v.in.LiveID == Held && c.ID == v.in.Status.ID {
		p.Refuted = append(p.Refuted, v.cur)
	}
	if v.in.LiveID != Unknown {
		return
	}
	// A generation above the live one in a grace period was begun because the live
	// one was gone. That must still hold before it goes further.
	rescue := v.inGrace() && v.highest(func(int64) bool { return true }) > 0
	stray := c.ID != "" && c.ID != v.in.Status.ID
	named := v.in.RotateID != "" && v.in.RotateID == v.in.Status.ID
	p.AskLive = v.childLost() || terminal || stray || rescue || named
	if p.AskLive && p.Desired == v.cur {
		p.wait(LiveUnanswered, nil, "Keystone has not said yet whether the credential of generation %d exists", v.cur)
	}
}

// mint starts the desired generation once nothing that it must not join is left.
func (v *view) mint(p *Plan) {
	if p.Desired == v.cur || v.listed(p.Desired) {
		return
	}
	// The contract holds only scheduled rotations for the store. A raised generation
	// or a lost secret could not be delivered either, and its credential would age
	// beside the live one, so they wait too; a dead live credential cannot get worse.
	if !v.in.StoreReady && !v.liveGone() && !v.liveExpired() {
		p.wait(StoreNotReady, nil, "generation %d is created when the secret store is ready", p.Desired)
		return
	}
	if !v.roomBesideKept(p) || !v.othersProvenGone(p.Desired) {
		p.wait(WaitingForProof, nil,
			"generation %d is created when Keystone is proven not to hold an older one that was given up", p.Desired)
		return
	}
	if v.in.Keystone[p.Desired] != Gone {
		p.Prove = append(p.Prove, p.Desired)
		p.wait(WaitingForProof, nil,
			"generation %d is created when Keystone says that its name is free", p.Desired)
		return
	}
	p.Mint = &Mint{Generation: p.Desired, ExpiresAt: v.mintExpiry()}
}

// roomBesideKept makes sure that the live generation does not count beside the one
// that the consumers still use and the new one: neither as the credential that is gone
// nor as another one that K-ORC made under the same name. K-ORC's object goes at once,
// for newer releases create again what they find missing.
func (v *view) roomBesideKept(p *Plan) bool {
	if v.kept() == 0 || v.cur == 0 {
		return true
	}
	if !v.liveGone() {
		return false
	}
	v.giveUpLive(p)
	return v.in.Keystone[v.cur] == Gone
}

// giveUpLive removes what is left under the live generation's name. Its Secret stays,
// and so does its record: the status.
func (v *view) giveUpLive(p *Plan) {
	c, listed := v.children[v.cur]
	if listed && !c.Deleting {
		p.Delete = append(p.Delete, v.cur)
	}
	switch {
	case v.in.Keystone[v.cur] == Gone:
	case listed:
		p.Ask = append(p.Ask, v.cur)
	default:
		p.Prove = append(p.Prove, v.cur)
	}
}

// replaceUndeliverable breaks a circle: the live credential's secret was lost before
// it was delivered, so the consumers' older credential is kept for ever, and beside
// the two of them no third may be created. Nobody has the live one or ever will, so it
// is the one to go. A grace period is still waited for.
func (v *view) replaceUndeliverable(p *Plan) {
	kept := v.kept()
	if v.cur == 0 || kept == 0 || v.in.Secrets[v.cur] || v.delivered() || v.liveGone() ||
		(v.inGrace() && v.now.Before(v.in.Status.Previous.DeleteAt)) {
		return
	}
	p.AskLive = v.in.LiveID == Unknown
	v.giveUpLive(p)
	p.wait(WaitingForProof, nil,
		"generation %d was lost before it was delivered, and is replaced when Keystone is proven not to hold it", v.cur)
}

func (v *view) othersProvenGone(desired int64) bool {
	for _, generation := range v.tracked {
		if generation != v.cur && generation != desired && generation != v.kept() && !v.provenGone(generation) {
			return false
		}
	}
	return true
}

// schedule fills the times from the status as it will be.
func (v *view) schedule(p *Plan) {
	status := v.in.Status
	if p.Switch != nil {
		status = *p.Switch
	}
	p.NextRotation = v.nextRotation(status)
	moments := []*time.Time{p.NextRotation, v.onOurClock(v.lastMoment(status.ExpiresAt)), v.onOurClock(status.ExpiresAt)}
	if status.Previous != nil {
		moments = append(moments, &status.Previous.DeleteAt)
	}
	if c, listed := v.children[p.Desired]; listed && p.Desired != v.cur {
		moments = append(moments, v.onOurClock(c.ExpiresAt))
	}
	p.Wake = wakeUps(v.now, moments...)
}
