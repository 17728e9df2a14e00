package credentialupdaterequest

import "time"

// The times of the operator's own. Those of a request's life are internal/credupdate's.
const (
	// openPoll is the time between two looks at the Secret of an Open request. A poll and no watch: the
	// Secret can be in any namespace, so a watch would have the operator list the metadata of all Secrets
	// of the cluster to see the few that are waited for, and those few are waited for half an hour at most.
	openPoll = 5 * time.Second
	// followerPoll is the time between two looks of a follower at what it waits for, should an event be lost.
	followerPoll = 15 * time.Second
	// reconcileTimeout bounds one pass: a refresh, a probe and four questions to Keystone, each slow.
	reconcileTimeout = 3 * time.Minute
)
