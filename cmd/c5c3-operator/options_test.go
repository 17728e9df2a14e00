package main

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
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
	if o.metricsAddress != ":8080" || o.probeAddress != ":8081" || o.pprofAddress != "0" || o.leaderElect ||
		o.auditInterval != time.Hour || o.keystoneTimeout != keystone.DefaultTimeout || o.maxConcurrentReconciles != 4 ||
		o.logLevel != slog.LevelInfo || o.logFormat != "json" ||
		o.credentialUpdates || len(o.egressAllow) > 0 || o.providerCatalog != "" {
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

func TestOptions_log_lines_are_JSON(t *testing.T) {
	var output strings.Builder
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.logger(&output).WithName("controlplane").Error(errors.New("broken"), "a message", "key", "value")
	var line map[string]any
	if err := json.Unmarshal([]byte(output.String()), &line); err != nil {
		t.Fatalf("%q: %v", output.String(), err)
	}
	if line["msg"] != "a message" || line["err"] != "broken" || line["key"] != "value" || line["level"] != "ERROR" {
		t.Errorf("the line is %v", line)
	}
}

func TestOptions_egress_is_allowed_host_by_host(t *testing.T) {
	o, err := parse([]string{"--egress-allow=keystone.openstack.svc:5000", "--egress-allow=wiki.example.com"}, io.Discard)
	if err != nil || len(o.egressAllow) != 2 || o.egressAllow[0] != "keystone.openstack.svc:5000" || o.egressAllow[1] != "wiki.example.com" {
		t.Errorf("it is %q, %v", o.egressAllow, err)
	}
}

// A ConfigMap is mounted as links into a hidden folder, and may be missing.
func TestEntries_are_those_of_a_mounted_ConfigMap(t *testing.T) {
	directory := t.TempDir()
	for name, content := range map[string]string{"wiki.yaml": "id: wiki", "README": "no entry", "..2026": "hidden"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := entries(directory)
	if err != nil || len(found) != 1 || found["wiki.yaml"] != "id: wiki" {
		t.Errorf("they are %v, %v", found, err)
	}
	if found, err := entries(filepath.Join(directory, "missing")); err != nil || len(found) != 0 {
		t.Errorf("without one they are %v, %v", found, err)
	}
}
