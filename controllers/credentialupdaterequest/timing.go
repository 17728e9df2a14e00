package credentialupdaterequest

import "time"

// All times of a request's life. The first three belong together: a tool must not give up while the request
// can still be answered, and a link must not die before the request does.
const (
	// AskWindow is how long an Open request waits for its credential to change, from status.openedAt.
	AskWindow = 30 * time.Minute
	// ToolWaitFloor is the least that the waiting tool of a session waits.
	ToolWaitFloor = AskWindow / 3
	// LinkLifetime is how long a link on a card is good, from its making.
	LinkLifetime = AskWindow

	// openPoll is the time between two looks at the Secret of an Open request. A poll and no watch: the
	// Secret can be in any namespace, so a watch would have the operator list the metadata of all Secrets
	// of the cluster to see the few that are waited for, and those few are waited for half an hour at most.
	openPoll = 5 * time.Second
	// followerPoll is the time between two looks of a follower at what it waits for, should an event be lost.
	followerPoll = 15 * time.Second
	// reconcileTimeout bounds one pass: a refresh, a probe and four questions to Keystone, each slow.
	reconcileTimeout = 3 * time.Minute
)

// ToolWaitFloor ≤ AskWindow ≤ LinkLifetime, or this does not compile: the constant would be negative.
const (
	_ = uint64(AskWindow - ToolWaitFloor)
	_ = uint64(LinkLifetime - AskWindow)
)
