package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons that c5c3_orders has where no condition supplies one.
const (
	// NotReconciled is an order that the operator has not looked at yet.
	NotReconciled = "NotReconciled"
	// AllReady is an order whose conditions all hold.
	AllReady = "AllReady"
)

// Snapshot is how things are at one moment.
type Snapshot struct {
	Orders        []Order
	ControlPlanes []ControlPlane
}

// Order is what the metrics say of one order. A time that is zero is one that there is not.
type Order struct {
	Kind, Namespace, Name string
	// Reason of the first condition that does not hold, else AllReady or NotReconciled.
	Reason string
	// NotReadySince is when the order ceased to be Ready; zero while it is.
	NotReadySince time.Time
	// Frozen tells that the ControlPlane's consent is missing, Deleting that the order is on its way out.
	Frozen, Deleting bool
	// NextRotation is when the schedule rotates next; zero with the schedule off.
	NextRotation time.Time
	// CredentialExpiry is when Keystone expires the delivered credential.
	CredentialExpiry time.Time
	// LiveCredentials are the application credentials that K-ORC reports; -1 where nobody can tell or
	// the kind has none.
	LiveCredentials int
	// RevocationDue is when the oldest thing that Keystone still has to let go of should have been gone.
	RevocationDue time.Time
	// Delivers tells whether the kind delivers a Secret, and BackupBehindSince since when that is held
	// up by the backup.
	Delivers          bool
	BackupBehindSince time.Time
}

// ControlPlane is what the metrics say of one ControlPlane: its conditions that are True or False.
type ControlPlane struct {
	Namespace, Name string
	Conditions      map[string]bool
}

// State is a collector that takes a snapshot at each scrape.
type State struct {
	// Take takes the snapshot. It is not ok where there is nothing to report: on a replica that does
	// not lead, or when the cache could not be read. Nothing is reported then; an old answer would be
	// worse, and the absence of c5c3_orders has an alert.
	Take func() (snapshot Snapshot, ok bool)
	// Now is the clock.
	Now func() time.Time
}

var _ prometheus.Collector = State{}

// gauges are the collector's descriptions, by the definition's name.
var gauges = func() map[string]*prometheus.Desc {
	descriptions := map[string]*prometheus.Desc{}
	for _, group := range Table() {
		for _, d := range group.Definitions {
			if d.Type == Gauge {
				descriptions[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
			}
		}
	}
	return descriptions
}()

// Describe implements prometheus.Collector.
func (s State) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range gauges {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (s State) Collect(metrics chan<- prometheus.Metric) {
	snapshot, ok := s.Take()
	if !ok {
		return
	}
	sink := func(d Definition, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(gauges[d.Name], prometheus.GaugeValue, value, labels...)
	}
	now := s.Now()
	for _, o := range snapshot.Orders {
		o.report(now, sink)
	}
	count(snapshot.Orders, sink)
	for _, cp := range snapshot.ControlPlanes {
		for condition, holds := range cp.Conditions {
			value := 0.0
			if holds {
				value = 1
			}
			sink(controlPlaneCondition, value, cp.Namespace, cp.Name, condition)
		}
	}
}

type sink func(d Definition, value float64, labels ...string)

// count reports the totals. A kind without orders is reported with 0, so that "no orders" and "no
// operator" look different.
func count(all []Order, report sink) {
	byReason, frozenByKind := map[[2]string]int{}, map[string]int{}
	for _, kind := range kinds {
		byReason[[2]string{kind, AllReady}], frozenByKind[kind] = 0, 0
	}
	for _, o := range all {
		byReason[[2]string{o.Kind, o.Reason}]++
		if o.Frozen {
			frozenByKind[o.Kind]++
		}
	}
	for key, number := range byReason {
		report(orders, float64(number), key[0], key[1])
	}
	for kind, number := range frozenByKind {
		report(frozen, float64(number), kind)
	}
}

// report reports the series of one order.
func (o Order) report(now time.Time, report sink) {
	labels := []string{o.Kind, o.Namespace, o.Name}
	if !o.NextRotation.IsZero() {
		report(nextRotation, float64(o.NextRotation.Unix()), labels...)
	}
	if !o.CredentialExpiry.IsZero() {
		report(credentialExpiry, float64(o.CredentialExpiry.Unix()), labels...)
	}
	if !o.NotReadySince.IsZero() {
		report(notReadySince, float64(o.NotReadySince.Unix()), append(labels, o.Reason)...)
	}
	if !o.NextRotation.IsZero() && !o.Frozen && !o.Deleting {
		report(rotationOverdue, since(now, o.NextRotation), labels...)
	}
	if o.LiveCredentials >= 0 {
		report(liveCredentials, float64(o.LiveCredentials), labels...)
	}
	if !o.RevocationDue.IsZero() && now.After(o.RevocationDue) {
		report(revocationPending, since(now, o.RevocationDue), labels...)
	}
	if o.Delivers && !o.Frozen {
		report(backupLag, since(now, o.BackupBehindSince), labels...)
	}
}

// since is how many seconds ago something was, 0 when it is to come or never was.
func since(now, at time.Time) float64 {
	if at.IsZero() || !now.After(at) {
		return 0
	}
	return now.Sub(at).Seconds()
}
