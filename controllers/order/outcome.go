package order

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long a pass waits before it looks again. Watches wake an order earlier; these are for what no
// watch shows.
const (
	// WaitShort is the wait on K-ORC, ESO, Keystone and the ControlPlane.
	WaitShort = 10 * time.Second
	// WaitLong is the wait of an order that was refused until somebody changes something, and of
	// an order that a teardown of others holds.
	WaitLong = time.Minute
	// WaitRefused is the wait of a refusal that a watch lifts.
	WaitRefused = 10 * time.Minute
	// waitFinalizer is the wait after the finalizer was added.
	waitFinalizer = time.Second
	// waitConflict is the wait after somebody else wrote the object first.
	waitConflict = time.Second
)

// Outcome is how a step ended: done, waiting, refused, or failed. One place (Pass.Report) turns it
// into a condition and a time to come back.
type Outcome struct {
	// Status of the condition that is reported. Empty keeps the condition as it is.
	Status metav1.ConditionStatus
	// Reason of the condition, one of the contract's.
	Reason string
	// Message of the condition: what is wrong, where, and what to do next.
	Message string
	// After is when to come back, 0 for not before something changes.
	After time.Duration
	// Err is returned to the controller, which comes back with a growing delay.
	Err error
}

// Done reports that the condition holds.
func Done(reason, format string, args ...any) *Outcome {
	return &Outcome{Status: metav1.ConditionTrue, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Wait reports that the condition does not hold yet, and when to look again.
func Wait(reason string, after time.Duration, format string, args ...any) *Outcome {
	return &Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...), After: after}
}

// Fail reports a failure to read or write at the API server. A conflict is nobody's fault: it keeps
// the condition as it is and comes back soon, since a condition that flips on every lost race tells
// a reader nothing.
func Fail(reason string, err error) *Outcome {
	if apierrors.IsConflict(err) {
		return &Outcome{After: waitConflict}
	}
	return &Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: err.Error(), Err: err}
}

// Step is one row in a pass's table of contents. A nil outcome goes on to the next.
type Step[S any] struct {
	Name string
	Do   func(S) *Outcome
}

// Run runs the steps until one has an outcome, and returns that; nil when all went through.
func Run[S any](state S, steps []Step[S]) *Outcome {
	for _, step := range steps {
		if outcome := step.Do(state); outcome != nil {
			return outcome
		}
	}
	return nil
}
