package metrics

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/c5c3/c5c3-operator/internal/keystone"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scrape gathers everything as "name{label=value,…}" with its value; a histogram's is its count.
func scrape(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for _, family := range gather(t, registry) {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			found[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = value
		}
	}
	return found
}

func gather(t *testing.T, registry *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// state registers a collector of one snapshot. The registry is pedantic: it compares every series with
// what the collector described.
func state(t *testing.T, snapshot Snapshot, ok bool) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(State{Take: func() (Snapshot, bool) { return snapshot, ok }, Now: func() time.Time { return now }}); err != nil {
		t.Fatal(err)
	}
	return registry
}

// everything has a series of every gauge.
var everything = Snapshot{
	Orders: []Order{
		{
			Kind: applicationCredential, Namespace: "tenant-a", Name: "late", Reason: "BackupNotSynced", NotReadySince: now.Add(-time.Minute),
			NextRotation: now.Add(-time.Hour), CredentialExpiry: now.Add(time.Hour), LiveCredentials: 2, RevocationDue: now.Add(-2 * time.Minute),
			Delivers: true, BackupBehindSince: now.Add(-3 * time.Minute),
		},
		{Kind: applicationCredential, Namespace: "tenant-b", Name: "frozen", Reason: "NamespaceNotAssigned", NotReadySince: now, Frozen: true,
			NextRotation: now.Add(-time.Hour), LiveCredentials: 1, Delivers: true, BackupBehindSince: now.Add(-time.Hour)},
		{Kind: user, Namespace: "tenant-a", Name: "fine", Reason: AllReady, NextRotation: now.Add(time.Hour), LiveCredentials: -1,
			RevocationDue: now.Add(time.Hour), Delivers: true},
	},
	ControlPlanes: []ControlPlane{{Namespace: "openstack", Name: "cp", Conditions: map[string]bool{"Ready": false, "KeystoneReachable": true}}},
}

func TestState(t *testing.T) {
	found := scrape(t, state(t, everything, true))
	want := map[string]float64{
		"c5c3_orders{kind=KeystoneApplicationCredential,reason=AllReady}":             0,
		"c5c3_orders{kind=KeystoneApplicationCredential,reason=BackupNotSynced}":      1,
		"c5c3_orders{kind=KeystoneApplicationCredential,reason=NamespaceNotAssigned}": 1,
		"c5c3_orders{kind=KeystoneProject,reason=AllReady}":                           0,
		"c5c3_orders{kind=KeystoneRoleAssignment,reason=AllReady}":                    0,
		"c5c3_orders{kind=KeystoneUser,reason=AllReady}":                              1,
		"c5c3_orders_frozen{kind=KeystoneApplicationCredential}":                      1,
		"c5c3_orders_frozen{kind=KeystoneProject}":                                    0,
		"c5c3_orders_frozen{kind=KeystoneRoleAssignment}":                             0,
		"c5c3_orders_frozen{kind=KeystoneUser}":                                       0,

		"c5c3_order_not_ready_since_timestamp_seconds{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a,reason=BackupNotSynced}":        float64(now.Add(-time.Minute).Unix()),
		"c5c3_order_not_ready_since_timestamp_seconds{kind=KeystoneApplicationCredential,name=frozen,namespace=tenant-b,reason=NamespaceNotAssigned}": float64(now.Unix()),

		"c5c3_order_next_rotation_timestamp_seconds{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a}":     float64(now.Add(-time.Hour).Unix()),
		"c5c3_order_next_rotation_timestamp_seconds{kind=KeystoneApplicationCredential,name=frozen,namespace=tenant-b}":   float64(now.Add(-time.Hour).Unix()),
		"c5c3_order_next_rotation_timestamp_seconds{kind=KeystoneUser,name=fine,namespace=tenant-a}":                      float64(now.Add(time.Hour).Unix()),
		"c5c3_order_rotation_overdue_seconds{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a}":            3600,
		"c5c3_order_rotation_overdue_seconds{kind=KeystoneUser,name=fine,namespace=tenant-a}":                             0,
		"c5c3_order_credential_expiry_timestamp_seconds{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a}": float64(now.Add(time.Hour).Unix()),
		"c5c3_order_live_credentials{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a}":                    2,
		"c5c3_order_live_credentials{kind=KeystoneApplicationCredential,name=frozen,namespace=tenant-b}":                  1,
		"c5c3_order_revocation_pending_seconds{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a}":          120,
		"c5c3_order_backup_lag_seconds{kind=KeystoneApplicationCredential,name=late,namespace=tenant-a}":                  180,
		"c5c3_order_backup_lag_seconds{kind=KeystoneUser,name=fine,namespace=tenant-a}":                                   0,

		"c5c3_controlplane_condition{condition=KeystoneReachable,name=cp,namespace=openstack}": 1,
		"c5c3_controlplane_condition{condition=Ready,name=cp,namespace=openstack}":             0,
	}
	for series, value := range want {
		if got, ok := found[series]; !ok || got != value {
			t.Errorf("%s is %v (there: %t), want %v", series, got, ok, value)
		}
		delete(found, series)
	}
	for series := range found {
		t.Errorf("%s is reported too", series)
	}
}

func TestState_reports_nothing_where_there_is_nothing_to_report(t *testing.T) {
	if found := scrape(t, state(t, everything, false)); len(found) > 0 {
		t.Errorf("a replica that does not lead reports %v", found)
	}
}

func TestCounters(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	counters, err := NewCounters(registry)
	if err != nil {
		t.Fatal(err)
	}
	for series, value := range scrape(t, registry) {
		if value != 0 {
			t.Errorf("%s begins at %v", series, value)
		}
	}
	counters.RotationStarted(applicationCredential, "ScheduleDue")
	counters.RotationSwitched(applicationCredential, 20*time.Second)
	counters.RotationSwitched(user, -time.Second)
	counters.RotationFailed(applicationCredential, "LoginRefused")
	counters.RevocationProven(user)
	counters.RevocationRepaired(project)
	counters.RevocationUnproven(roleAssignment)
	counters.KeystoneRequest("login", keystone.AuthenticationFailed, 300*time.Millisecond)

	found := scrape(t, registry)
	for _, series := range []string{
		"c5c3_rotations_started_total{cause=ScheduleDue,kind=KeystoneApplicationCredential}",
		"c5c3_rotations_switched_total{kind=KeystoneApplicationCredential}",
		"c5c3_rotations_switched_total{kind=KeystoneUser}",
		"c5c3_rotation_duration_seconds{kind=KeystoneApplicationCredential}",
		"c5c3_rotation_duration_seconds{kind=KeystoneUser}",
		"c5c3_rotations_failed_total{cause=LoginRefused,kind=KeystoneApplicationCredential}",
		"c5c3_revocations_proven_total{kind=KeystoneUser}",
		"c5c3_revocations_repaired_total{kind=KeystoneProject}",
		"c5c3_revocations_unproven_total{kind=KeystoneRoleAssignment}",
		"c5c3_keystone_requests_total{class=AuthenticationFailed,operation=login}",
		"c5c3_keystone_request_duration_seconds{operation=login}",
	} {
		if found[series] != 1 {
			t.Errorf("%s is %v, want 1", series, found[series])
		}
		delete(found, series)
	}
	for series, value := range found {
		if value != 0 {
			t.Errorf("%s is %v, want 0", series, value)
		}
	}
	if _, err := NewCounters(registry); err == nil {
		t.Error("the same names are registered twice")
	}
}

// TestTable holds the table against what is really exposed, in both directions.
func TestTable(t *testing.T) {
	registry := state(t, everything, true)
	counters, err := NewCounters(registry)
	if err != nil {
		t.Fatal(err)
	}
	counters.KeystoneRequest("login", keystone.OK, time.Second)
	messages := NewCardMessages()
	registry.MustRegister(messages)
	messages.WithLabelValues("Slack", "publish", "delivered").Inc()
	exposed := map[string]*dto.MetricFamily{}
	for _, family := range gather(t, registry) {
		exposed[family.GetName()] = family
	}
	for _, group := range Table() {
		for _, d := range group.Definitions {
			family := exposed[d.Name]
			delete(exposed, d.Name)
			if family == nil {
				t.Errorf("%s is in the table, and nothing exposes it", d.Name)
				continue
			}
			if got := strings.ToLower(family.GetType().String()); got != string(d.Type) {
				t.Errorf("%s is a %s, the table says %s", d.Name, got, d.Type)
			}
			var labels []string
			for _, label := range family.GetMetric()[0].GetLabel() {
				labels = append(labels, label.GetName())
			}
			if want := slices.Sorted(slices.Values(d.Labels)); !slices.Equal(labels, want) {
				t.Errorf("%s has the labels %v, the table says %v", d.Name, labels, want)
			}
			if !strings.HasSuffix(d.Help, ".") || strings.Contains(d.Help, "|") {
				t.Errorf("%s: the help is a sentence that fits a table: %q", d.Name, d.Help)
			}
		}
	}
	for name := range exposed {
		t.Errorf("%s is exposed, and the table does not know it", name)
	}
	problems, err := promlint.NewWithMetricFamilies(gather(t, registry)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("Prometheus' conventions: %s: %s", problem.Metric, problem.Text)
	}
}

func TestDocumentation_is_generated_from_the_table(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != Markdown() {
		t.Error("docs/metrics.md is not what the table says: run `make generate`")
	}
}
