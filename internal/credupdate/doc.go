// Package credupdate is what everybody who handles CredentialUpdateRequests must say alike: the operator that
// determines them, the card server, and the kubectl plugin. It holds the times of a request's life, where the
// value of an identity's credential is kept, and the digest that tells a changed value.
package credupdate
