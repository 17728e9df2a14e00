// Package alerts tests the alert rules of config/prometheus, and the queries of the dashboard.
//
// The cases are written in the format of `promtool test rules`, and evaluated with Prometheus' own
// query engine. Promtool itself is not built here: it links every service discovery there is, so that
// one tidy go.mod means half a gigabyte of cloud vendors' modules for every contributor. What it adds to
// the engine, and we need, is the state of an alert between two evaluations: Group in evaluate.go.
//
// A module of its own, because Prometheus' dependencies are not the operator's.
package alerts
