package command

import (
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"
)

func parse(t *testing.T, arguments ...string) *Options {
	t.Helper()
	o := &Options{}
	flags := flag.NewFlagSet("command", flag.ContinueOnError)
	flags.SetOutput(t.Output())
	o.Register(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	if err := o.Check(flags.Args()); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOptions_log_lines_are_JSON(t *testing.T) {
	var output strings.Builder
	o := parse(t)
	o.Logger(&output).WithName("controlplane").Error(errors.New("broken"), "a message", "key", "value")
	var line map[string]any
	if err := json.Unmarshal([]byte(output.String()), &line); err != nil {
		t.Fatalf("%q: %v", output.String(), err)
	}
	if line["msg"] != "a message" || line["err"] != "broken" || line["key"] != "value" || line["level"] != "ERROR" {
		t.Errorf("the line is %v", line)
	}
}

func TestOptions_egress_is_allowed_host_by_host(t *testing.T) {
	o := parse(t, "--egress-allow=keystone.openstack.svc:5000", "--egress-allow=wiki.example.com")
	if len(o.EgressAllow) != 2 || o.EgressAllow[0] != "keystone.openstack.svc:5000" || o.EgressAllow[1] != "wiki.example.com" {
		t.Errorf("it is %q", o.EgressAllow)
	}
}
