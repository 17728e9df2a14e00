package credupdate

import (
	"time"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// The times of a request's life. They belong together: a tool must not give up while the request can still be
// answered, and a link must not die before the request does.
const (
	// AskWindow is how long an Open request waits for its credential to change, from status.openedAt.
	AskWindow = 30 * time.Minute
	// ToolWaitFloor is the least that the waiting tool of a session waits.
	ToolWaitFloor = AskWindow / 3
	// LinkLifetime is how long a link on a card is good, from its making.
	LinkLifetime = AskWindow
)

// ToolWaitFloor ≤ AskWindow ≤ LinkLifetime, or this does not compile: the constant would be negative.
const (
	_ = uint64(AskWindow - ToolWaitFloor)
	_ = uint64(LinkLifetime - AskWindow)
)

// Expires is when an Open request's time is over. One without status.openedAt is from before that field and
// counts from its creation.
func Expires(request *v1alpha1.CredentialUpdateRequest) time.Time {
	opened := request.CreationTimestamp.Time
	if request.Status.OpenedAt != nil {
		opened = request.Status.OpenedAt.Time
	}
	return opened.Add(AskWindow)
}
