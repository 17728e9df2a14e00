package answer

import (
	"errors"
	"fmt"
)

// Reason is why a value was not taken, for programs and logs.
type Reason string

// Reasons about the request: another value would be refused just the same.
const (
	// NotFound: there is no such request, or another one of that name.
	NotFound Reason = "NotFound"
	// Undetermined: the operator has not looked at the request yet.
	Undetermined Reason = "Undetermined"
	// Elsewhere: the request waits for another one, which is to be answered instead.
	Elsewhere Reason = "Elsewhere"
	// Settled: the request is decided for good.
	Settled Reason = "Settled"
	// Expired: the request's time is over, though the operator has not said so yet.
	Expired Reason = "Expired"
	// AsksNobody: the request is open, and a machine is on it.
	AsksNobody Reason = "AsksNobody"
	// NotEnterable: the credential is not a value that somebody can enter.
	NotEnterable Reason = "NotEnterable"
	// Moved: the identity does not keep the credential where the request recorded it.
	Moved Reason = "Moved"
	// Delivered: the operator writes the Secret itself, and would write over the value.
	Delivered Reason = "Delivered"
	// SecretMissing: the Secret or its key is not there.
	SecretMissing Reason = "SecretMissing"
	// Immutable: the Secret cannot be changed.
	Immutable Reason = "Immutable"
	// AlreadyChanged: somebody was faster.
	AlreadyChanged Reason = "AlreadyChanged"
)

// Reasons about the submission: another one may be taken.
const (
	// Malformed: the value does not look like one.
	Malformed Reason = "Malformed"
	// Unchanged: the value is the one that is stored.
	Unchanged Reason = "Unchanged"
	// Unconfirmed: the provider refuses the value, and Submission.Confirm was not set.
	Unconfirmed Reason = "Unconfirmed"
	// Busy: others keep writing the Secret.
	Busy Reason = "Busy"
)

// Again tells whether another submission to the same request may be taken.
func (r Reason) Again() bool {
	switch r {
	case Malformed, Unchanged, Unconfirmed, Busy:
		return true
	default:
		return false
	}
}

// Refusal is the error of a value that was not taken.
type Refusal struct {
	Reason Reason
	// Message says it to whoever wanted to answer, in whole sentences.
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// ReasonOf is the reason of an error that is a *Refusal, and empty for every other.
func ReasonOf(err error) Reason {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	return ""
}

func refuse(reason Reason, message string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(message, args...)}
}
