package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// maxRefusedWait is the longest wait before a document that Keystone refused is tried again. Keystone
// may lock an account after some wrong passwords within a while; twice a minute at the most, and soon
// less than that, stays below what a sane policy counts, and still notices by itself that somebody
// corrected the other side.
const maxRefusedWait = 2 * time.Minute

// attempt is the last login with one document. It is kept in memory only: an operator that starts
// asks anew, once for each ControlPlane.
type attempt struct {
	// document is the digest of what was logged in with.
	document string
	at       time.Time
	result   login
	// retryAfter is how long Keystone asked to be left alone.
	retryAfter time.Duration
	// refused counts the refusals of this document in a row.
	refused int
	// auditAt is when a login that succeeded is repeated, zero for never.
	auditAt time.Time
}

// next is when the same document is to be tried again, zero for never.
func (a attempt) next() time.Time {
	switch a.result.class {
	case keystone.OK:
		return a.auditAt
	case keystone.AuthenticationFailed, keystone.Forbidden, keystone.InvalidRequest:
		wait := maxRefusedWait
		if a.refused < 5 { // 10 s, 20 s, 40 s, 80 s
			wait = min(order.WaitShort<<max(a.refused-1, 0), maxRefusedWait)
		}
		return a.at.Add(max(wait, a.retryAfter))
	default:
		return a.at.Add(max(order.WaitShort, a.retryAfter))
	}
}

// due tells whether to log in with a document now: it changed, or it is time to try the same again.
func (a attempt) due(document string, now time.Time) bool {
	if !a.result.asked || a.document != document {
		return true
	}
	next := a.next()
	return !next.IsZero() && !now.Before(next)
}

// then is the attempt that follows a with a result.
func (a attempt) then(document string, now time.Time, err error, auditInterval time.Duration) attempt {
	next := attempt{document: document, at: now, result: login{asked: true, class: keystone.Classify(err)}}
	var failure *keystone.Error
	switch {
	case errors.As(err, &failure):
		next.result.message, next.retryAfter = failure.Message, failure.RetryAfter
		// A catalog is wrong only in an answer.
		next.result.answered = failure.StatusCode != 0 || failure.Class == keystone.CatalogEndpointMismatch
	case err != nil:
		next.result.message = err.Error()
	default:
		next.result.answered = true
		if auditInterval > 0 {
			next.auditAt = now.Add(auditInterval/2 + rand.N(auditInterval)) //nolint:gosec // spread, not secrecy
		}
	}
	if refuses(next.result.class) {
		next.refused = 1
		if a.document == document {
			next.refused = a.refused + 1
		}
	}
	return next
}

// adminDocument is what the operator logs in with.
type adminDocument struct {
	cloud  clouds.Cloud
	text   []byte
	bundle []byte
}

func (d adminDocument) digest() string {
	sum := sha256.New()
	sum.Write(d.text)
	sum.Write([]byte{0})
	sum.Write(d.bundle)
	return hex.EncodeToString(sum.Sum(nil))
}

// logIn logs in as the administrator when it is time to, and returns how the last login ended.
func (p *pass) logIn(ctx context.Context, document adminDocument) login {
	last, digest := p.memory.attempt, document.digest()
	if last.due(digest, p.now) {
		key := order.AdminKey(p.cp)
		if last.document == digest {
			// The session that is remembered would answer without asking anybody.
			p.env.Keystone.Forget(key)
		}
		session, err := p.env.Keystone.Admin(ctx, key, document.cloud, document.bundle)
		if err == nil {
			err = session.CheckCatalog()
		}
		last = last.then(digest, p.now, err, p.env.AuditInterval)
		p.memory.attempt = last
	}
	if next := last.next(); !next.IsZero() {
		p.comeBack(next.Sub(p.now))
	}
	return last.result
}
