package publish

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

// ConditionPrefix begins the types of the conditions that are ledgers, one per channel.
const ConditionPrefix = "cards.c5c3.io/"

// State is how far a card is on a channel, and the reason of the channel's condition.
type State string

// States of a card on a channel.
const (
	// StateNone: nothing was tried. There is no condition.
	StateNone State = ""
	// StateSending: the message goes out now, or went out and nobody recorded what became of it.
	StateSending State = "Sending"
	// StateSendingAgain: the same, for the second time, on a channel that cannot tell a repetition.
	StateSendingAgain State = "SendingAgain"
	// StateNotSent: the receiver has not taken it. It is tried again.
	StateNotSent State = "NotSent"
	// StateOutcomeUnknown: nobody knows whether the message is there, and it is not sent once more.
	StateOutcomeUnknown State = "OutcomeUnknown"
	// StateDelivered: the receiver has taken it.
	StateDelivered State = "Delivered"
	// StateClosing: the message about the end goes out now, or went out and nobody recorded it.
	StateClosing State = "Closing"
	// StateClosed: the end was told, or nobody is left to be told.
	StateClosed State = "Closed"
)

// statuses are those of a channel's condition: True when its card was delivered, Unknown when it may have been.
var statuses = map[State]metav1.ConditionStatus{
	StateSending: metav1.ConditionUnknown, StateSendingAgain: metav1.ConditionUnknown, StateOutcomeUnknown: metav1.ConditionUnknown,
	StateNotSent: metav1.ConditionFalse, StateDelivered: metav1.ConditionTrue,
}

// entry is a channel's ledger.
type entry struct {
	State   State
	Message string
	// Since is when the state was entered.
	Since time.Time
}

func readEntry(request *v1alpha1.CredentialUpdateRequest, channel string) entry {
	condition := meta.FindStatusCondition(request.Status.Conditions, ConditionPrefix+channel)
	if condition == nil {
		return entry{}
	}
	return entry{State: State(condition.Reason), Message: condition.Message, Since: condition.LastTransitionTime.Time}
}

// writeEntry sets a channel's ledger. Its time is that of the state, and not only of the condition's status: it
// tells how long a message has been on its way.
func writeEntry(request *v1alpha1.CredentialUpdateRequest, channel string, state State, message string, now time.Time) {
	kind := ConditionPrefix + channel
	status, ok := statuses[state]
	if before := meta.FindStatusCondition(request.Status.Conditions, kind); !ok && before != nil {
		status = before.Status // the end says nothing new about the beginning
	} else if !ok {
		status = metav1.ConditionUnknown
	}
	meta.RemoveStatusCondition(&request.Status.Conditions, kind)
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: string(state), Message: untrusted.Line(message, reasonLimit),
		ObservedGeneration: request.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// step is what a channel does next about a card.
type step int

const (
	// stepNothing: all is done, or all that can be.
	stepNothing step = iota
	// stepWait: another process may be sending right now.
	stepWait
	// stepSend: the card is sent for the first time.
	stepSend
	// stepSendAgain: an earlier message may be out there.
	stepSendAgain
	// stepGiveUp: it may be, and the channel cannot tell, and it was sent twice.
	stepGiveUp
	// stepClose: the end is told.
	stepClose
	// stepForget: the end may have been told, and must not be told twice.
	stepForget
)

// inFlight is how long a message of another process may be on its way: what one is given, and some for clocks
// that differ and for the record of its outcome.
const inFlight = sendTimeout + 15*time.Second

// decideOpen says what to do on a channel about a request that waits for an answer. Mine tells that this very
// process wrote the intent and knows that the sending is over.
func decideOpen(e entry, mine, repeatable bool, now time.Time) step {
	switch e.State {
	case StateNone, StateNotSent:
		return stepSend
	case StateSending, StateSendingAgain:
		switch {
		case !mine && now.Before(e.Since.Add(inFlight)):
			return stepWait
		case repeatable || e.State == StateSending:
			return stepSendAgain
		default:
			return stepGiveUp
		}
	default:
		return stepNothing
	}
}

// decideSettled says what to do on a channel about a request that is over.
func decideSettled(e entry, mine, repeatable bool, now time.Time) step {
	underWay := !mine && now.Before(e.Since.Add(inFlight))
	switch e.State {
	case StateDelivered, StateOutcomeUnknown:
		return stepClose
	case StateSending, StateSendingAgain:
		if underWay {
			return stepWait // or the message would come after its end
		}
		return stepClose
	case StateClosing:
		switch {
		case underWay:
			return stepWait
		case repeatable:
			return stepClose
		default:
			return stepForget
		}
	default:
		return stepNothing
	}
}

// References are a request's interactionRef: a "channel:reference" for each channel that has delivered, apart
// by spaces and sorted.

func addReference(references, channel, ref string) string {
	list := slices.DeleteFunc(strings.Fields(references), func(r string) bool { return strings.HasPrefix(r, strings.ToLower(channel)+":") })
	list = append(list, strings.ToLower(channel)+":"+ref)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func reference(references, channel string) string {
	for _, r := range strings.Fields(references) {
		if ref, ok := strings.CutPrefix(r, strings.ToLower(channel)+":"); ok {
			return ref
		}
	}
	return ""
}

// foreign tells that somebody else has published a request: it has a reference, and no ledger of ours says so.
func foreign(request *v1alpha1.CredentialUpdateRequest) bool {
	return request.Status.InteractionRef != "" && !slices.ContainsFunc(request.Status.Conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Type, ConditionPrefix)
	})
}
