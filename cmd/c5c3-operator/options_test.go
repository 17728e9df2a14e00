package main

import (
	"encoding/json"
	"errors"
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
	if o.metricsAddress != ":8080" || o.probeAddress != ":8081" || o.pprofAddress != "0" || o.leaderElect ||
		o.auditInterval != time.Hour || o.keystoneTimeout != keystone.DefaultTimeout || o.maxConcurrentReconciles != 4 ||
		o.logLevel != slog.LevelInfo || o.logFormat != "json" {
		t.Errorf("the defaults are %+v", o)
	}
}

func TestOptions_that_make_no_sense_are_refused(t *testing.T) {
	for _, arguments := range []string{
		"--log-format=xml", "--log-level=LOUD", "--max-concurrent-reconciles=0", "--keystone-timeout=0s", "--audit-interval=-1s",
		"--leader-elect --leader-elect-lease-duration=5s", "--leader-elect --leader-elect-retry-period=0s", "--no-such-option", "argument",
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
