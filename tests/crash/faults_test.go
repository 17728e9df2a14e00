package crash

import (
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// disturbance is one thing that goes wrong, from a moment on and for a while. All its methods take nil for
// nothing.
type disturbance struct {
	// phase of the life in which it begins, and when within it; nil is at its beginning.
	phase string
	when  func(*life) bool
	// lasts is for how long.
	lasts time.Duration
	// fault answers requests instead of Keystone, delivery spoils its answers, and wedged leaves K-ORC's
	// objects alone; each may be nil.
	fault    func(*life, http.ResponseWriter, *http.Request) bool
	delivery func(*http.Request) ordertest.Delivery
	wedged   func(*life, client.Object) (reason, message string)
	// starts and stops are what changes at its beginning and at its end; nil for nothing.
	starts, stops func(*life)

	armed, begun, active bool
	until                time.Time
}

func (d *disturbance) answers(l *life, w http.ResponseWriter, r *http.Request) bool {
	return d != nil && d.active && d.fault != nil && d.fault(l, w, r)
}

func (d *disturbance) delivers(_ *life, r *http.Request) ordertest.Delivery {
	if d == nil || !d.active || d.delivery == nil {
		return ordertest.Answered
	}
	return d.delivery(r)
}

func (d *disturbance) stuck(l *life, object client.Object) (reason, message string) {
	if d == nil || !d.active || d.wedged == nil {
		return "", ""
	}
	return d.wedged(l, object)
}

// begin is told of each phase.
func (d *disturbance) begin(l *life, phase string) {
	if d != nil && d.phase == phase {
		d.armed = true
		d.turn(l)
	}
}

// turn begins and ends it.
func (d *disturbance) turn(l *life) {
	switch {
	case d == nil:
	case d.armed && !d.begun && (d.when == nil || d.when(l)):
		l.note("--- the disturbance begins")
		d.begun, d.active, d.until = true, true, l.clock.Now().Add(d.lasts)
		if d.starts != nil {
			d.starts(l)
		}
	case d.active && !l.clock.Now().Before(d.until):
		l.note("--- the disturbance ends")
		d.active = false
		if d.stops != nil {
			d.stops(l)
		}
	}
}

// ends is when it ends, zero while it is not there.
func (d *disturbance) ends() time.Time {
	if d == nil || !d.active {
		return time.Time{}
	}
	return d.until
}

// over tells whether a phase may end: the disturbance that belongs to it has come and gone.
func (d *disturbance) over() bool { return d == nil || !d.armed || d.begun && !d.active }
