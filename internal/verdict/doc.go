// Package verdict decides what a claim that a credential stopped working deserves. It is pure: it is
// given what was found out and knows no cluster, no provider and no clock.
//
// The rows are tried in this order, and the first that holds decides:
//
//	 1  an order delivers the Secret         → what Keystone says of it; never a card
//	 2  the credential's type is not known   → Refused/NotUpdatable
//	 3  it is minted anew for each use       → Refused/NotUpdatable
//	 4  it was refreshed                     → Refused/SelfHealed
//	 5  the agent's own, and refreshable     → Refused/NotUpdatable
//	 6  its refresh token is dead            → Open/RejectedRefreshDead
//	 7  the provider refused it              → Open/RejectedVerified
//	 8  the provider accepted it             → Refused/CredentialLive
//	 9  no word, and the session's calls fail → Open/RejectedUnverified
//	10  no word, and nothing else            → Refused/Unverified
//
// Row 4 stands before row 5 because a repair by a machine always wins, and row 5 before row 6 because
// nobody can paste an agent's OAuth bundle: a card for it would fail when it is answered, and then expire
// blaming whoever answered. Row 1 stands before all because its order would overwrite what a human pastes.
package verdict
