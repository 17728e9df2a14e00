// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

const requestKind = "CredentialUpdateRequest"

// agentsWords is how much of a text that an agent wrote is shown.
const agentsWords = 280

func (p *plugin) requestsCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "requests",
		Short: "List what agents ask to be replaced, and what waits for a person",
		Long: `List the CredentialUpdateRequests of the namespace: those that wait for a person first, then the newest.

PHASE is Open while the credential has not changed, and EXPIRES until when that is waited for. "kubectl c5c3 answer"
takes the new value of one that waits for a person; HealingByRotation waits for none. What agents wrote, the
origin among it, is shown without control characters and proves nothing.`,
		Example: `  kubectl c5c3 requests
  kubectl c5c3 requests -A -o json | jq -r '.items[] | select(.waitsForPerson) | .name'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return p.requests(cmd.Context(), all) },
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "All namespaces.")
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return wrongUse("%s takes no arguments, and got %q", cmd.CommandPath(), args)
	}
	return nil
}

// requestItem is a request as it is listed.
type requestItem struct {
	reference     `json:",inline"`
	Phase         string `json:"phase,omitempty"`
	Determination string `json:"determination,omitempty"`
	Reason        string `json:"reason,omitempty"`
	// WaitsForPerson: a person can answer it now.
	WaitsForPerson bool `json:"waitsForPerson"`
	// Origin, ToolName, RequestedBy and Why are what the agent's side wrote, made fit to be shown.
	Origin      string `json:"origin"`
	ToolName    string `json:"toolName"`
	RequestedBy string `json:"requestedBy"`
	Why         string `json:"why,omitempty"`
	Session     string `json:"session"`
	// Credential is whose credential it is about; absent when none was found.
	Credential *agents.ResolvedCredential `json:"credential,omitempty"`
	// Secret and SecretKey are where its value is, of a request that was opened.
	Secret    string       `json:"secret,omitempty"`
	SecretKey string       `json:"secretKey,omitempty"`
	Created   metav1.Time  `json:"created"`
	OpenedAt  *metav1.Time `json:"openedAt,omitempty"`
	// ExpiresAt is when an open request's time is over.
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// WaitsFor is the request that a collapsed one waits for.
	WaitsFor string `json:"waitsFor,omitempty"`
	// CardShown: somebody was shown a card.
	CardShown bool `json:"cardShown,omitempty"`
}

type requestList struct {
	Items []requestItem `json:"items"`
}

func (p *plugin) requests(ctx context.Context, all bool) error {
	cluster, namespace, err := p.cluster()
	if err != nil {
		return err
	}
	if all {
		namespace = ""
	}
	listed := &agents.CredentialUpdateRequestList{}
	if err := cluster.List(ctx, listed, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing %ss: %w", requestKind, notServed(err))
	}
	list := requestList{Items: []requestItem{}}
	for i := range listed.Items {
		list.Items = append(list.Items, p.requestItem(&listed.Items[i]))
	}
	slices.SortStableFunc(list.Items, func(a, b requestItem) int {
		return cmp.Or(compareFlags(b.WaitsForPerson, a.WaitsForPerson), b.Created.Compare(a.Created.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	switch {
	case !p.forPeople():
		return p.print(list)
	case len(list.Items) == 0 && all:
		p.note("There are no requests.")
	case len(list.Items) == 0:
		p.note("There are no requests in namespace %s.", namespace)
	default:
		p.table(p.requestRows(list.Items, all))
	}
	return nil
}

func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// notServed says what an API server's silence about a kind means here.
func notServed(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster does not serve %ss (%s); nobody switched them on", requestKind, agents.GroupVersion)
	}
	return err
}

func (p *plugin) requestItem(request *agents.CredentialUpdateRequest) requestItem {
	spec, status := request.Spec, request.Status
	item := requestItem{
		reference: reference{requestKind, request.Namespace, request.Name},
		Phase:     status.Phase, Determination: status.Determination, Reason: untrusted.Line(status.Reason, 4*agentsWords),
		Origin: untrusted.Line(spec.Origin, agentsWords), ToolName: untrusted.Line(spec.ToolName, agentsWords),
		RequestedBy: untrusted.Line(spec.RequestedBy, agentsWords), Why: untrusted.Line(spec.Why, agentsWords),
		Session: spec.SessionRef.Namespace + "/" + spec.SessionRef.Name, Credential: status.ResolvedCredential,
		SecretKey: status.CredentialSecretKey, Created: request.CreationTimestamp, OpenedAt: status.OpenedAt, CardShown: status.InteractionRef != "",
	}
	if ref := status.CredentialSecretRef; ref != nil {
		item.Secret = ref.Namespace + "/" + ref.Name
	}
	if into := status.CollapsedInto; into != nil {
		item.WaitsFor = into.Name
	}
	if status.Phase == agents.PhaseOpen {
		expires := credupdate.Expires(request)
		item.ExpiresAt = &metav1.Time{Time: expires}
		item.WaitsForPerson = verdict.AsksHuman(status.Determination) && p.now().Before(expires)
	}
	return item
}

func (p *plugin) requestRows(items []requestItem, namespaces bool) [][]cell {
	head := []string{"NAME", "PHASE", "DETERMINATION", "ORIGIN", "CREDENTIAL", "REQUESTED BY", "AGE", "EXPIRES"}
	if namespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	var row []cell
	for _, name := range head {
		row = append(row, plain(name))
	}
	rows := [][]cell{row}
	for _, item := range items {
		credential := ""
		if c := item.Credential; c != nil {
			credential = c.Credential + " of " + c.IdentityKind + "/" + c.Name
		}
		phase := item.Phase
		if phase == "" {
			phase = agents.PhasePending
		}
		row := []cell{
			plain(item.Name), {phase, hueOfPhase(item)}, plain(item.Determination), plain(item.Origin), plain(credential), plain(item.RequestedBy),
			plain(p.age(&item.Created)), plain(p.left(item.ExpiresAt)),
		}
		if namespaces {
			row = append([]cell{plain(item.Namespace)}, row...)
		}
		rows = append(rows, row)
	}
	return rows
}

func hueOfPhase(item requestItem) hue {
	switch {
	case item.WaitsForPerson:
		return red
	case item.Phase == agents.PhaseFulfilled:
		return green
	case agents.Settled(item.Phase):
		return faint
	}
	return yellow
}

// left is how much time is left, as kubectl tells an age; nothing for no time.
func (p *plugin) left(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	if left := t.Sub(p.now()); left > 0 {
		return "in " + duration.HumanDuration(left.Round(time.Second))
	}
	return "now"
}
