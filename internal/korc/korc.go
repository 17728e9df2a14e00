// SPDX-License-Identifier: Apache-2.0

// Package korc reads what K-ORC says in the conditions of its objects and tells apart what needs
// patience, what needs a person and what K-ORC gave up on without a reason.
//
// It is pure: no Kubernetes client, and the time is an argument. The messages it matches are
// those of K-ORC v2.6.0, of gophercloud and of Go's net package; none of them is an API, so each
// has a test with a message that was really seen or really is in those sources.
package korc

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"
)

// Progress is how far K-ORC got with an object.
type Progress string

const (
	// Pending: K-ORC has work to do or has not looked at the current generation yet. Wait.
	Pending Progress = "Pending"
	// Available: K-ORC vouches for the current generation.
	Available Progress = "Available"
	// Terminal: K-ORC gave up on the current generation and will not look again by itself. It is
	// a hint, not a verdict: during an outage K-ORC gives up too (see IsTransport).
	Terminal Progress = "Terminal"
)

// UnlatchedAtAnnotation holds, on one of K-ORC's objects, when the operator last removed a
// latched Progressing condition from it (RFC 3339, UTC).
const UnlatchedAtAnnotation = "c5c3.io/korc-transport-unlatched-at"

// UnlatchBackoff is the shortest time between two removals of a latched condition from one object,
// and also the width of the spread on top of it.
const UnlatchBackoff = 30 * time.Second

// State reads K-ORC's conditions of an object whose metadata.generation is generation. The reason
// and message returned are K-ORC's own: the Progressing condition's when that says anything about
// this generation, else the Available condition's, else empty.
//
// Terminal goes before Available: K-ORC v2.6.0 can leave Available=True standing beside a terminal
// Progressing, and believing it would hide that nothing is being reconciled any more.
//
// Available needs the current generation, since a condition of an older one says nothing about what
// was asked for last. It does not need Progressing: the operator itself removes that condition to
// wake K-ORC, and an object that was Available stays so meanwhile. While K-ORC is at work on an object
// that is Available, a password to be applied for one, the words are those of that work.
func State(conditions []metav1.Condition, generation int64) (progress Progress, reason, message string) {
	progressing := current(conditions, orcv1alpha1.ConditionProgressing, generation)
	available := current(conditions, orcv1alpha1.ConditionAvailable, generation)

	switch {
	case progressing != nil && progressing.Status == metav1.ConditionFalse && orcv1alpha1.IsConditionReasonTerminal(progressing.Reason):
		return Terminal, progressing.Reason, progressing.Message
	case available != nil && available.Status == metav1.ConditionTrue && progressing != nil && progressing.Status == metav1.ConditionTrue:
		return Available, progressing.Reason, progressing.Message
	case available != nil && available.Status == metav1.ConditionTrue:
		return Available, available.Reason, available.Message
	case progressing != nil:
		return Pending, progressing.Reason, progressing.Message
	case available != nil:
		return Pending, available.Reason, available.Message
	}
	return Pending, "", ""
}

func current(conditions []metav1.Condition, kind string, generation int64) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.ObservedGeneration != generation {
		return nil
	}
	return c
}

// dialMarkers say that no connection came about: the address is wrong or nobody listens.
var dialMarkers = []string{
	"no such host",
	"connection refused",
	"dial tcp",
	"i/o timeout",
}

// brokenMarkers say that a connection came about and broke before an answer did.
//
// "EOF" is matched as a word of its own (see mentions), because three letters turn up in tokens and
// names; it covers "unexpected EOF".
var brokenMarkers = []string{
	"connection reset by peer",
	"EOF",
	"broken pipe",
	"TLS handshake timeout",
	"server closed",
	"context deadline exceeded",
	"connection timed out",
	"transport connection broken",
}

// IsTransport tells whether a message of K-ORC's blames the way to Keystone rather than what was
// asked of it. K-ORC v2.6.0 calls such a failure of a create or an update InvalidConfiguration and
// never tries again; the operator clears the condition then (UnlatchDue).
//
// A message that mentions x509 or a 401 is never transport, whatever else it says: the way is open,
// and trying again would only repeat a refusal, with a password perhaps until the account is locked.
func IsTransport(message string) bool {
	if IsUntrusted(message) || refusesLogin(message) {
		return false
	}
	return mentionsAny(message, dialMarkers) || mentionsAny(message, brokenMarkers)
}

// IsUntrusted tells whether a message of K-ORC's blames the certificate that Keystone, or whoever
// answers at its address, presents. It is not transport: trying again does not help before somebody
// changes the certificate or the CA bundle. But like a connection that did not come about it says
// nothing of what was asked, because nothing was sent.
func IsUntrusted(message string) bool { return mentions(message, "x509") }

// IsConflict tells whether a message of K-ORC's says that Keystone answered 409: something of that name is
// there. K-ORC v2.6.0 never tries again then. The message may be true no longer, or be the echo of a create
// of K-ORC's own whose answer was lost; ask Keystone about the name.
func IsConflict(message string) bool {
	return mentions(message, "409") || mentions(message, "Conflict")
}

// The reasons that ExternalCause returns.
const (
	ReasonCatalogEndpointMismatch = "CatalogEndpointMismatch"
	ReasonCredentialDrift         = "CredentialDrift"
	ReasonTLSVerificationFailed   = "TLSVerificationFailed"
	ReasonAuthenticationFailed    = "AuthenticationFailed"
	ReasonEndpointUnreachable     = "EndpointUnreachable"
)

// externalCauses are tried from top to bottom and the first match wins. The order matters: an x509
// failure is wrapped in a dial error, and a refused policy is wrapped in a 403 that may quote a URL.
var externalCauses = []struct {
	reason  string
	matches func(message string) bool
}{
	{ReasonCatalogEndpointMismatch, containing("No suitable endpoint could be found in the service catalog")},
	{ReasonCredentialDrift, containing("identity:create_application_credential")},
	{ReasonTLSVerificationFailed, IsUntrusted},
	{ReasonAuthenticationFailed, refusesLogin},
	{ReasonEndpointUnreachable, IsTransport},
}

// ExternalCause names why a Keystone that the operator does not run is not doing what K-ORC asks,
// as far as K-ORC's message tells. It is not ok when the message names no known cause; the caller
// then keeps the reason it would wait with anyway.
func ExternalCause(message string) (reason string, ok bool) {
	for _, cause := range externalCauses {
		if cause.matches(message) {
			return cause.reason, true
		}
	}
	return "", false
}

// WaitingForExternalCreation tells whether an import found nothing to import. For a probe that is
// the good news: the name is free. With a broken TLS setup K-ORC swallows the list error and says
// the same, so ask ExternalCause or Keystone when it matters.
func WaitingForExternalCreation(message string) bool {
	return mentions(message, "Waiting for OpenStack resource to be created externally")
}

// UnlatchDue tells whether a latched condition may be removed now, and if not, from when on. stamp
// is the value of UnlatchedAtAnnotation, empty when the object has none.
//
// The first removal is due at once. Later ones keep UnlatchBackoff and an offset in [0,
// UnlatchBackoff) that the object's uid fixes: after an outage thousands of objects are latched at
// the same time, and without the spread they would all come back to Keystone in the same second.
// The offset is derived, not random, so that a restart does not deal the dice again.
//
// A stamp that cannot be read or lies in the future counts as none: a broken clock may cost one
// early attempt, never a stuck object.
func UnlatchDue(stamp, uid string, now time.Time) (due bool, at time.Time) {
	last, err := time.Parse(time.RFC3339, stamp)
	if err != nil || last.After(now) {
		return true, now
	}
	at = last.Add(UnlatchBackoff + unlatchOffset(uid))
	return !now.Before(at), at
}

func unlatchOffset(uid string) time.Duration {
	sum := sha256.Sum256([]byte(uid))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(UnlatchBackoff))
}

func containing(text string) func(string) bool {
	return func(message string) bool { return strings.Contains(message, text) }
}

// refusesLogin matches Keystone's 401. The number counts only where it stands alone, so that a port
// 4010 or an id that happens to hold 401 is not taken for a refusal.
func refusesLogin(message string) bool {
	return mentions(message, "401") || mentions(message, "Unauthorized")
}

func mentionsAny(message string, markers []string) bool {
	for _, marker := range markers {
		if mentions(message, marker) {
			return true
		}
	}
	return false
}

// mentions tells whether text stands in message with neither a letter nor a digit touching it.
func mentions(message, text string) bool {
	for from := 0; ; {
		i := strings.Index(message[from:], text)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(text)
		if (start == 0 || !alphanumeric(message[start-1])) && (end == len(message) || !alphanumeric(message[end])) {
			return true
		}
		from = start + 1
	}
}

func alphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
