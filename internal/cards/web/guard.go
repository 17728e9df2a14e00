package web

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"github.com/c5c3/c5c3-operator/internal/answer"
)

// What one visitor may do per second, and at once after a rest. A person needs a handful of requests for an answer.
// The numbers leave room for an office behind one address, and make guessing values at a provider, which is what a
// submission amounts to, slower than any provider's own limit.
const (
	visitRate, visitBurst     = rate.Limit(5), 100  // of an address, to anything
	attemptRate, attemptBurst = rate.Limit(0.5), 20 // of an address, to log in or to submit
	answerRate, answerBurst   = rate.Limit(0.1), 10 // of a person, to submit
	remembered                = 4096                // addresses and persons each; the longest unseen is forgotten first
	retryAfter                = 10 * time.Second    // what somebody is told to wait
	maxBody                   = 4 * answer.MaxValue // a value, each byte written as %XX, a link and a session's worth of room
)

// forgetCookie is the name of the cookie that changes with each form.
const forgetCookie = "c5c3-cards-forget"

// limits is a rate for each of many visitors, in a table of bounded size.
type limits struct {
	mutex sync.Mutex
	table *lru.Cache
	rate  rate.Limit
	burst int
}

func newLimits(limit rate.Limit, burst int) *limits {
	return &limits{table: lru.New(remembered), rate: limit, burst: burst}
}

// allow counts a visit.
func (l *limits) allow(who any, now time.Time) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	limiter, known := l.table.Get(who)
	if !known {
		limiter = rate.NewLimiter(l.rate, l.burst)
		l.table.Add(who, limiter)
	}
	return limiter.(*rate.Limiter).AllowN(now, 1)
}

// guarded is a handler behind what holds for every request: headers, the limits of an address, of a body, and that a
// form is submitted by the page that showed it. The last is net/http's: it goes by Sec-Fetch-Site, and by Origin where a
// browser does not send that. A token in each form would say the same and be one more secret to carry.
func (p *page) guarded(handler http.Handler) (http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	// A proxy may have changed the Host that Origin is compared with.
	if err := protection.AddTrustedOrigin(p.base.Scheme + "://" + p.base.Host); err != nil {
		return nil, err
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.say(w, r, foreign) }))
	handler = protection.Handler(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.setHeaders(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, maxBody) // first of all: each page reads the form, to lead back to the link
		who, now := network(p.address(r)), p.Clock.Now()
		if !p.visits.allow(who, now) || r.Method != http.MethodGet && r.Method != http.MethodHead && !p.attempts.allow(who, now) {
			p.say(w, r, tooFast)
			return
		}
		if r.Method == http.MethodPost {
			http.SetCookie(w, p.forgotten())
		}
		handler.ServeHTTP(w, r)
	}), nil
}

// forgotten is a cookie that says nothing, and only has to be another one each time. Chromium keeps a page that somebody
// leaves, with the value or the token that they entered, for who goes back to it, and no-store does not keep it from
// that; a cookie that scripts cannot read and that has changed meanwhile does. The session's would not do: it would
// have to be renewed with each form, and would last for ever.
func (p *page) forgotten() *http.Cookie {
	return &http.Cookie{
		Name: forgetCookie, Value: rand.Text(), Path: p.base.Path + "/", MaxAge: 60,
		Secure: p.base.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// setHeaders keeps the page to itself: nothing is loaded but its own style, nothing frames it or holds a handle to its
// window, nothing of it is stored, and its address, which has the link's token in it, goes to no other site.
//
// The referrer is kept back from other sites only: with "no-referrer" a browser also sends "Origin: null" with the
// page's own forms, by which they could not be told from another site's.
func (p *page) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	if p.base.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// address is where a request comes from: who connected or, when that is a trusted proxy, the last one in
// X-Forwarded-For that is not; whatever stands before it is the visitor's own invention.
func (p *page) address(r *http.Request) netip.Addr {
	connected, _ := netip.ParseAddrPort(r.RemoteAddr)
	visitor := connected.Addr().Unmap().WithZone("")
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(forwarded) {
		if !slices.ContainsFunc(p.TrustedProxies, func(trusted netip.Prefix) bool { return trusted.Contains(visitor) }) {
			break
		}
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break // a trusted proxy that says no address speaks for itself
		}
		visitor = next.Unmap().WithZone("")
	}
	return visitor
}

// network is whom the requests of an address are counted for. Of an IPv6 address it is the /64, for a visitor has all
// of its addresses.
func network(address netip.Addr) netip.Prefix {
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits)
	return network
}
