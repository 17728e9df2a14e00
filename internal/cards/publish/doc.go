// Package publish shows people the cards of CredentialUpdateRequests, and takes them down again: in Slack, as
// CloudEvents to a webhook, and as Events on the request.
//
// A card is published for a request that is Open, that nobody has published yet, and whose determination says
// that only a person can help. Nothing is decided here: what the operator did not determine is not shown.
//
// # Sent once
//
// Between a message that went out and the record of it lies a moment in which the process can die, or the
// answer get lost. So each channel of each request has a ledger in the request's own status, a condition of
// type cards.c5c3.io/CHANNEL: the intent is written before the message goes out, and what became of it
// afterwards. Whoever finds an intent without an outcome knows that a message may be out there, and then it
// depends on the channel:
//
//   - An Event has a name that follows from the request's UID, and the API server keeps the second one away.
//   - A CloudEvent has an id that follows from the UID; source and id are what a receiver tells a repetition by.
//   - A Slack app's message carries the UID as metadata, and is looked for before another one is posted.
//   - A Slack incoming webhook offers nothing to look by. The card is posted once more, saying that it may be a
//     repetition, and then never again. Not to post it would be as wrong: nobody would be asked at all.
//
// The record is one patch of the status: interactionRef, the condition CardDelivered and the ledger. It is
// retried for as long as it takes, and the message is not sent again meanwhile.
package publish
