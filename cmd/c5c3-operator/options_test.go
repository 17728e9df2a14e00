package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/internal/keystone"
)

func TestOptions_defaults(t *testing.T) {
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.MetricsAddress != ":8080" || o.ProbeAddress != ":8081" || o.PprofAddress != "0" || o.LeaderElect ||
		o.auditInterval != time.Hour || o.keystoneTimeout != keystone.DefaultTimeout || o.maxConcurrentReconciles != 4 ||
		o.LogLevel != slog.LevelInfo || o.LogFormat != "json" ||
		o.credentialUpdates || len(o.EgressAllow) > 0 || o.ProviderCatalog != "" {
		t.Errorf("the defaults are %+v", o)
	}
}

func TestOptions_that_make_no_sense_are_refused(t *testing.T) {
	for _, arguments := range []string{
		"--log-format=xml", "--log-level=LOUD", "--max-concurrent-reconciles=0", "--keystone-timeout=0s", "--audit-interval=-1s",
		"--leader-elect --leader-elect-lease-duration=5s", "--leader-elect --leader-elect-retry-period=0s", "--no-such-option", "argument",
		"--egress-allow=", "--egress-allow=https://keystone.example.com", "--egress-allow=user@keystone",
	} {
		if o, err := parse(strings.Fields(arguments), io.Discard); err == nil {
			t.Errorf("%s is taken: %+v", arguments, o)
		}
	}
}
