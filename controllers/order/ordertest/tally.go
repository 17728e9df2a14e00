package ordertest

import (
	"time"

	"github.com/c5c3/c5c3-operator/controllers/order"
)

// Tally writes down what is counted, in words such as "started KeystoneUser ScheduleDue".
type Tally []string

var _ order.Counters = &Tally{}

func (t *Tally) note(what, kind, cause string) {
	words := what + " " + kind
	if cause != "" {
		words += " " + cause
	}
	*t = append(*t, words)
}

// RotationStarted implements order.Counters.
func (t *Tally) RotationStarted(kind, cause string) { t.note("started", kind, cause) }

// RotationSwitched implements order.Counters.
func (t *Tally) RotationSwitched(kind string, _ time.Duration) { t.note("switched", kind, "") }

// RotationFailed implements order.Counters.
func (t *Tally) RotationFailed(kind, cause string) { t.note("failed", kind, cause) }

// RevocationProven implements order.Counters.
func (t *Tally) RevocationProven(kind string) { t.note("proven", kind, "") }

// RevocationRepaired implements order.Counters.
func (t *Tally) RevocationRepaired(kind string) { t.note("repaired", kind, "") }

// RevocationUnproven implements order.Counters.
func (t *Tally) RevocationUnproven(kind string) { t.note("unproven", kind, "") }
