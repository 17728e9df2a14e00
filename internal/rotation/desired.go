package rotation

// row is one situation and the generation that it asks for.
type row struct {
	situation string
	matches   func(*view) bool
	desired   func(*view) int64
	trigger   Trigger
}

// desiredTable is the contract's table in the contract's order; the first match
// decides. Rows that the contract does not have are marked with their reason.
var desiredTable = []row{
	{"the order has no credential yet", func(v *view) bool { return v.cur == 0 }, successorOrNext, FirstCredential},
	{"a successor is in flight", func(v *view) bool { return v.successor > 0 }, successorOrNext, UnderWay},
	// Not in the contract. A credential that Keystone says is gone is not live, so
	// its replacement is no third one: it is minted even in a grace period. An
	// expired credential is as useless, but Keystone still counts it, and waits below.
	{"the live credential is gone", (*view).liveGone, (*view).next, LiveGone},
	{"a grace period runs", (*view).inGrace, current, NoTrigger},
	// Not in the contract, which would continue a successor that cannot work for ever.
	{"the successor can no longer work", (*view).successorLost, (*view).next, SuccessorReplaced},
	{"a higher generation is declared", func(v *view) bool { return v.declared > v.cur }, (*view).next, GenerationRaised},
	{"the schedule is due", (*view).scheduleDue, (*view).next, ScheduleDue},
	// Earlier than in the contract, which rotates when it has expired: the delivered one would be refused until
	// its successor is there. A schedule is due a whole grace period before, so this row is for the one turned off.
	{"the live credential has expired, or is about to", (*view).liveExpiresSoon, (*view).next, LiveExpired},
	{"the live credential's secret is lost", func(v *view) bool { return !v.in.Secrets[v.cur] }, (*view).next, SecretLost},
	// Not in the contract: nobody watches over a credential without K-ORC's object.
	{"K-ORC's object of the live credential is lost", (*view).liveOrphaned, (*view).next, ChildLost},
	{"otherwise", func(*view) bool { return true }, current, NoTrigger},
}

func current(v *view) int64 { return v.cur }

func successorOrNext(v *view) int64 {
	if v.successor > 0 {
		return v.successor
	}
	return v.next()
}

func (v *view) scheduleDue() bool { return reached(v.now, v.nextRotation(v.in.Status)) }

// childLost counts an object that is being deleted as lost: K-ORC is about to remove
// the credential with it.
func (v *view) childLost() bool {
	c, listed := v.children[v.cur]
	return v.cur > 0 && (!listed || c.Deleting)
}

func (v *view) liveOrphaned() bool { return v.childLost() && v.in.LiveID == Held }

// desired returns the generation to hold, why, and the trigger that a running grace
// period holds back, if any.
func (v *view) desired() (generation int64, trigger, heldBack Trigger) {
	for i, r := range desiredTable {
		if !r.matches(v) {
			continue
		}
		if r.trigger == NoTrigger {
			for _, later := range desiredTable[i+1:] {
				if later.matches(v) {
					heldBack = later.trigger
					break
				}
			}
		}
		return r.desired(v), r.trigger, heldBack
	}
	return v.cur, NoTrigger, NoTrigger
}
