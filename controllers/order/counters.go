package order

import "time"

// Counters count what the operator did, for its metrics. They are called where a decision was acted
// on, and once it was: a pass that only plans, or that loses a race for the status, counts nothing.
// Kinds are order kinds, causes those of internal/rotation. Implementations are safe for concurrent use.
type Counters interface {
	// RotationStarted: a credential or password is being made.
	RotationStarted(kind, cause string)
	// RotationSwitched: it became the one to deliver, so long after its start.
	RotationSwitched(kind string, took time.Duration)
	// RotationFailed: it does not come to work, and waits for somebody to act.
	RotationFailed(kind, cause string)
	// RevocationProven: Keystone confirmed that something of an order is gone.
	RevocationProven(kind string)
	// RevocationRepaired: Keystone still held what K-ORC had let go of, and the operator deleted it.
	RevocationRepaired(kind string)
	// RevocationUnproven: an order was let go without Keystone's word.
	RevocationUnproven(kind string)
}

// uncounted is for an operator that nobody watches, such as most tests'.
type uncounted struct{}

func (uncounted) RotationStarted(string, string)         {}
func (uncounted) RotationSwitched(string, time.Duration) {}
func (uncounted) RotationFailed(string, string)          {}
func (uncounted) RevocationProven(string)                {}
func (uncounted) RevocationRepaired(string)              {}
func (uncounted) RevocationUnproven(string)              {}

// Count is where a pass counts what it did.
func (p *Pass) Count() Counters {
	if p.Base == nil || p.Base.Counters == nil {
		return uncounted{}
	}
	return p.Base.Counters
}
