package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// Kinds that the counters know from the start, see seed.
const (
	user                  = "KeystoneUser"
	project               = "KeystoneProject"
	roleAssignment        = "KeystoneRoleAssignment"
	applicationCredential = "KeystoneApplicationCredential"
)

// kinds are the order kinds, in the order in which one needs the other.
var kinds = []string{user, project, roleAssignment, applicationCredential}

// Counters count what the operator does. It implements order.Counters, and is safe for concurrent use.
// Labels are the operator's own words and few: no URL, no user and no message is ever one.
type Counters struct {
	started, switched, failed, proven, repaired, unproven, requests *prometheus.CounterVec
	rotation, request                                               *prometheus.HistogramVec
}

// NewCounters registers the counters. It fails when one of their names is taken.
func NewCounters(registry prometheus.Registerer) (*Counters, error) {
	c := &Counters{
		started: counter(rotationsStarted), switched: counter(rotationsSwitched), failed: counter(rotationsFailed),
		proven: counter(revocationsProven), repaired: counter(revocationsRepaired), unproven: counter(revocationsUnproven),
		requests: counter(keystoneRequests),
		rotation: histogram(rotationDuration), request: histogram(keystoneDuration),
	}
	for _, collector := range []prometheus.Collector{
		c.started, c.switched, c.failed, c.proven, c.repaired, c.unproven, c.requests, c.rotation, c.request,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering a metric: %w", err)
		}
	}
	c.seed()
	return c, nil
}

// seed makes the series at 0. A counter that first appears with a 1 shows no increase, and the one
// event that an alert waits for would be the one it misses.
func (c *Counters) seed() {
	causes := map[string][]rotation.Trigger{
		user: {rotation.FirstCredential, rotation.GenerationRaised, rotation.PasswordRefused, rotation.ScheduleDue, rotation.SecretLost},
		applicationCredential: {
			rotation.FirstCredential, rotation.UnderWay, rotation.LiveGone, rotation.SuccessorReplaced, rotation.GenerationRaised,
			rotation.ScheduleDue, rotation.LiveExpired, rotation.SecretLost, rotation.ChildLost,
		},
	}
	for kind, triggers := range causes {
		for _, trigger := range triggers {
			c.started.WithLabelValues(kind, string(trigger))
		}
		for _, failure := range []rotation.FailureKind{rotation.TerminalByKORC, rotation.LoginRefused} {
			c.failed.WithLabelValues(kind, string(failure))
		}
		c.switched.WithLabelValues(kind)
		c.rotation.WithLabelValues(kind)
	}
	for _, kind := range kinds {
		for _, vector := range []*prometheus.CounterVec{c.proven, c.repaired, c.unproven} {
			vector.WithLabelValues(kind)
		}
	}
}

// RotationStarted counts a credential or password that is being made.
func (c *Counters) RotationStarted(kind, cause string) { c.started.WithLabelValues(kind, cause).Inc() }

// RotationSwitched counts one that became the one to deliver, and how long after its start. Two clocks
// may have measured that; what comes out negative was quick.
func (c *Counters) RotationSwitched(kind string, took time.Duration) {
	c.switched.WithLabelValues(kind).Inc()
	c.rotation.WithLabelValues(kind).Observe(max(took, 0).Seconds())
}

// RotationFailed counts one that waits for somebody to act.
func (c *Counters) RotationFailed(kind, cause string) { c.failed.WithLabelValues(kind, cause).Inc() }

// RevocationProven counts Keystone's word that something is gone.
func (c *Counters) RevocationProven(kind string) { c.proven.WithLabelValues(kind).Inc() }

// RevocationRepaired counts what the operator deleted itself because K-ORC had let go of it too early.
func (c *Counters) RevocationRepaired(kind string) { c.repaired.WithLabelValues(kind).Inc() }

// RevocationUnproven counts an order that was let go without Keystone's word.
func (c *Counters) RevocationUnproven(kind string) { c.unproven.WithLabelValues(kind).Inc() }

// KeystoneRequest counts and times a request to Keystone. It is keystone.Config's Observe.
func (c *Counters) KeystoneRequest(operation string, class keystone.Class, d time.Duration) {
	c.requests.WithLabelValues(operation, string(class)).Inc()
	c.request.WithLabelValues(operation).Observe(d.Seconds())
}

// NewCardMessages makes the card server's counter.
func NewCardMessages() *prometheus.CounterVec { return counter(cardMessages) }

func counter(d Definition) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

func histogram(d Definition) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.Labels)
}
