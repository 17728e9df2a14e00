package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// keystoneMetrics counts and times what the operator asks Keystone. The labels are the operator's
// own words and few: no URL, no user and no message is ever one.
type keystoneMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newKeystoneMetrics(registry prometheus.Registerer) (*keystoneMetrics, error) {
	m := &keystoneMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "c5c3_keystone_requests_total",
			Help: "Requests the operator sent to Keystone itself, by operation and by what the answer, or its absence, meant.",
		}, []string{"operation", "class"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "c5c3_keystone_request_duration_seconds",
			Help: "Time until Keystone answered a request of the operator's, or the request was given up, in seconds.",
			// A login is a password hash, some tenths of a second; the timeout is 15 s unless set otherwise.
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30},
		}, []string{"operation"}),
	}
	for _, collector := range []prometheus.Collector{m.requests, m.duration} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe is keystone.Config's Observe.
func (m *keystoneMetrics) observe(operation string, class keystone.Class, d time.Duration) {
	m.requests.WithLabelValues(operation, string(class)).Inc()
	m.duration.WithLabelValues(operation).Observe(d.Seconds())
}
