package launcher

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

// row is one line of `stack status`.
type row struct {
	name, state, version, endpoint, log string
	healthy                             bool
}

// Status prints one line per component and reports whether all of them are healthy.
func (s *Stack) Status(ctx context.Context, w io.Writer) (bool, error) {
	statuses := map[string]supervisor.Status{}
	if s.running() {
		var err error
		if statuses, err = s.client.Statuses(ctx); err != nil {
			return false, err
		}
	}
	expected := s.settings.Groups
	if len(expected) == 0 {
		expected, _ = wantedGroups(nil) // no name in it could be wrong
	}
	var rows []*row
	var waiting sync.WaitGroup
	for _, svc := range s.services() {
		if !slices.Contains(expected, svc.group) {
			continue
		}
		r := &row{name: svc.name, endpoint: svc.endpoint, log: s.logFile(svc.name)}
		rows = append(rows, r)
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			r.version = svc.version(ctx)
			r.state, r.healthy = judge(ctx, statuses[svc.name], svc)
		})
	}
	if slices.Contains(expected, "kube") {
		r := &row{name: "node " + nodeName, version: s.built("kube").Version, endpoint: s.Plan.Stack.String(), log: s.logFile("kubelet")}
		rows = append(rows, r)
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			r.state, r.healthy = "Ready", true
			if err := s.nodeReady(ctx); err != nil {
				r.state, r.healthy = "NotReady", false
			}
		})
	}
	waiting.Wait()
	all := true
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "COMPONENT\tSTATE\tVERSION\tENDPOINT\tLOG")
	for _, r := range rows {
		all = all && r.healthy
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.name, r.state, r.version, r.endpoint, r.log)
	}
	return all, out.Flush()
}

func judge(ctx context.Context, status supervisor.Status, svc service) (string, bool) {
	var text string
	healthy := false
	switch status.State {
	case supervisor.Running:
		if err := svc.healthy(ctx); err != nil {
			text = "unhealthy"
		} else {
			text, healthy = "healthy", true
		}
	case "":
		text = "down"
	default:
		text = string(status.State)
	}
	if status.Restarts > 0 {
		text += fmt.Sprintf(" (restarts: %d)", status.Restarts)
	}
	return text, healthy
}

// Env prints what a shell needs to work with the stack, as export commands.
func (s *Stack) Env(w io.Writer) {
	kube := s.built("kube")
	pairs := [][2]string{
		{"C5C3_STACK_NAME", s.Name},
		{"C5C3_STACK_STATE", s.State},
		{"C5C3_STACK_CACHE", s.settings.Cache},
		{"C5C3_STACK_ADDRESS", s.Plan.Stack.String()},
		{"C5C3_STACK_HOST_ADDRESS", s.Plan.Host.String()},
		{"C5C3_STACK_LOGS", s.path("logs")},
		{"C5C3_STACK_AUDIT_LOG", s.path("logs/audit.log")},
		{"C5C3_STACK_KUBECTL", kube.Path("kubectl")},
		{"C5C3_STACK_NAMESPACE", tenantNamespace},
		{"C5C3_STACK_CONSUMER_IMAGE", consumerImage},
		{"KUBECONFIG", s.path("kubeconfig")},
		{"OS_AUTH_URL", s.keystoneURL()},
		{"C5C3_STACK_KEYSTONE_TLS_URL", s.keystoneTLSURL()},
		{"C5C3_STACK_KEYSTONE_TLS_REGION", tlsRegion},
		{"C5C3_STACK_KEYSTONE_CA_FILE", s.keystoneCAFile()},
		{"OS_CLIENT_CONFIG_FILE", s.path("keystone/clouds.yaml")},
		{"KEYSTONE_ADMIN_PASSWORD_FILE", s.adminPasswordFile()},
		{"KV_ADDRESS", s.kvAddress()},
		{"KV_TOKEN_FILE", s.kvTokenFile()},
	}
	if s.has("olm") {
		pairs = append(pairs, [2]string{"C5C3_STACK_OPM", s.built("olm").Path("opm")})
	}
	for _, pair := range pairs {
		fmt.Fprintf(w, "export %s=%s\n", pair[0], shellQuote(pair[1]))
	}
}

// shellQuote makes a word of a shell out of any text.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
