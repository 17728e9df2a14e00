// Package metrics is what the operator tells Prometheus.
//
// Every metric is declared once, in definitions.go: the code registers from that table, and
// docs/metrics.md is generated from it. What the operator did is counted where it is done (Counters).
// How things are is taken from a Snapshot at each scrape (State) and never remembered: a gauge that
// somebody has to set goes stale when its order is deleted, or when another replica leads.
//
// The package knows no Kubernetes. Whoever runs the manager supplies the snapshots.
package metrics
