package rotation

import (
	"fmt"
	"time"
)

// advance brings the credential under way from K-ORC's object to the switch.
func (v *view) advance(p *Plan) {
	c, listed := v.children[p.Desired]
	if !listed || p.Desired == v.cur {
		return
	}
	generation := c.Generation
	word := v.in.Keystone[generation]
	login := v.in.Logins[generation]
	switch {
	case c.State == Terminal && word == Held:
		p.Refuted = append(p.Refuted, generation)
		p.wait(SuccessorPending, nil, "Keystone holds generation %d, K-ORC has yet to report it", generation)
	case c.State == Terminal && c.Conflict && word == Gone:
		p.Refuted = append(p.Refuted, generation)
		p.wait(SuccessorPending, nil, "K-ORC found the name of generation %d taken, and Keystone says that it is free; K-ORC has yet to try again", generation)
	case c.State == Terminal:
		v.fail(p, c, TerminalByKORC, c.Message)
	case c.State == Pending || c.ID == "":
		p.wait(SuccessorPending, nil, "K-ORC has not made generation %d available yet", generation)
	case login == Refused:
		v.fail(p, c, LoginRefused, "")
	case login == Accepted:
		v.switchTo(p, c)
	default:
		p.Verify = generation
		if login == Unanswered && v.mayGoUnverified() {
			v.switchTo(p, c)
			return
		}
		p.wait(LoginUnanswered, nil, "Keystone has not answered a login with generation %d yet", generation)
	}
}

// fail reports the credential and asks Keystone about it: one that is gone is
// replaced, one that K-ORC misjudged is not failed at all.
func (v *view) fail(p *Plan, c Child, kind FailureKind, message string) {
	word := v.in.Keystone[c.Generation]
	if word == Unknown {
		p.Ask = append(p.Ask, c.Generation)
	}
	p.Failed = &Failure{
		Generation: c.Generation,
		Kind:       kind,
		Message:    message,
		Confirmed:  kind == LoginRefused || word != Unknown,
	}
}

// mayGoUnverified: waiting for an answer would leave the consumers with a credential
// that certainly does not work. The first credential has no such consumers.
func (v *view) mayGoUnverified() bool {
	return v.liveGone() || v.liveExpiresSoon()
}

// switchTo makes the credential the live one.
func (v *view) switchTo(p *Plan, c Child) {
	previous, ok := v.previousAfterSwitch(p, c)
	if !ok {
		return
	}
	now := v.now
	p.Switch = &Status{
		ID:           c.ID,
		Generation:   c.Generation,
		ExpiresAt:    c.ExpiresAt,
		LastRotation: &now,
		Previous:     previous,
	}
}

// previousAfterSwitch never overwrites a grace period that runs: its credential would
// lose its only record.
func (v *view) previousAfterSwitch(p *Plan, c Child) (previous *Previous, ok bool) {
	switch {
	case v.cur == 0:
		return v.in.Status.Previous, true
	case v.liveGone():
		return v.previousAfterGone(p)
	case v.in.LiveID == Unknown:
		p.AskLive = true
	}
	if !v.inGrace() {
		return v.superseded(GraceEnd(v.now, v.in.Spec.GracePeriod, v.skew(), v.in.Status.ExpiresAt, c.ExpiresAt)), true
	}
	if v.in.LiveID == Unknown {
		p.wait(LiveUnanswered, nil, "Keystone has not said yet whether the credential of generation %d exists", v.cur)
		return nil, false
	}
	v.waitForGrace(p, fmt.Sprintf("the switch to generation %d", p.Desired))
	return nil, false
}

// previousAfterGone: a live credential that is gone needs no grace period, and what
// K-ORC may have made in its place was never delivered. Its marker keeps the
// generation on record until that is proven gone as well; without a marker the status
// has to, or a grace period that runs has to wait for the proof.
func (v *view) previousAfterGone(p *Plan) (previous *Previous, ok bool) {
	switch {
	case v.marked(v.cur) || v.provenGone(v.cur):
		return v.in.Status.Previous, true
	case !v.inGrace():
		return v.superseded(v.now), true
	}
	v.giveUpLive(p)
	p.wait(WaitingForProof, nil, "Keystone is not proven to hold nothing of generation %d", v.cur)
	return nil, false
}

func (v *view) superseded(until time.Time) *Previous {
	return &Previous{ID: v.in.Status.ID, Generation: v.cur, DeleteAt: seconds(until)}
}
