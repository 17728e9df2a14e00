// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (p *plugin) whyCommand() *cobra.Command {
	allNamespaces := false
	cmd := &cobra.Command{
		Use:   "why [KIND[/NAME]]",
		Short: "Say what keeps an order from Ready, and what to do about it",
		Long: `Say what keeps an order or a ControlPlane from Ready, or from going away, and what to do about it.

A reason that blames another object is followed there: a credential that waits for a user that waits for the
administrator's password is explained by the password. Without a name, everything in the namespace that is not
Ready is explained.

Exit status: 0 all is Ready, 3 something is not.`,
		Example: `  kubectl c5c3 why kappcred/workflow-appcred
  kubectl c5c3 why -A
  kubectl c5c3 why kuser -n tenant-a -o json`,
		Args:              atMost(2),
		ValidArgsFunction: p.completeSubjects(true, kinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.why(cmd.Context(), args, allNamespaces)
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Look at the orders and ControlPlanes of all namespaces.")
	return cmd
}

func (p *plugin) why(ctx context.Context, args []string, allNamespaces bool) error {
	asked, name := kinds, ""
	if len(args) > 0 {
		k, n, err := parseArguments(args)
		if err != nil {
			return err
		}
		asked, name = []kind{k}, n
	}
	if name != "" && allNamespaces {
		return wrongUse("a name and --all-namespaces exclude each other")
	}
	cluster, namespace, err := p.cluster()
	if err != nil {
		return err
	}
	if name != "" {
		return p.whyOne(ctx, cluster, reference{asked[0].name, namespace, name})
	}
	return p.whyAll(ctx, cluster, asked, namespace, allNamespaces)
}

func (p *plugin) whyOne(ctx context.Context, cluster client.Reader, r reference) error {
	s, err := read(ctx, cluster, r)
	if err != nil {
		return err
	}
	w := newWorld()
	w.subjects = []subject{s}
	if kindOf(s).name != controlPlaneKind {
		w.readOrders(ctx, cluster, r.Namespace)
		w.readPlanes(ctx, cluster)
	}
	e := w.explain(s)
	if err := p.showExplanation(e); err != nil {
		return err
	}
	if !e.fine() {
		return exit{status: exitNo}
	}
	return nil
}

// explanations is the answer on several objects.
type explanations struct {
	// Items are the objects that are not Ready.
	Items []explanation `json:"items"`
	// Total is how many objects were looked at.
	Total int `json:"total"`
	// NotReadable are the kinds that could not be listed.
	NotReadable []string `json:"notReadable,omitempty"`
}

func (p *plugin) whyAll(ctx context.Context, cluster client.Reader, asked []kind, namespace string, allNamespaces bool) error {
	if allNamespaces {
		namespace = ""
	}
	w := newWorld()
	var failures []error
	for _, k := range kinds {
		err := w.list(ctx, cluster, k, namespace)
		if err != nil && slices.ContainsFunc(asked, func(a kind) bool { return a.name == k.name }) {
			failures = append(failures, err)
		}
	}
	if len(failures) == len(asked) {
		return failures[0]
	}
	w.readPlanes(ctx, cluster)

	answer := explanations{Items: []explanation{}}
	for _, s := range w.subjects {
		if (namespace != "" && s.GetNamespace() != namespace) || !slices.ContainsFunc(asked, func(k kind) bool { return k.name == kindOf(s).name }) {
			continue
		}
		answer.Total++
		if e := w.explain(s); !e.fine() {
			answer.Items = append(answer.Items, e)
		}
	}
	for _, k := range asked {
		if why := w.unread[reference{Kind: k.name, Namespace: namespace}]; why != "" {
			answer.NotReadable = append(answer.NotReadable, k.resource())
		}
	}
	if err := p.showExplanations(answer, namespace); err != nil {
		return err
	}
	if len(answer.Items) > 0 {
		return exit{status: exitNo}
	}
	return nil
}

func (p *plugin) showExplanation(e explanation) error {
	if !p.forPeople() {
		return p.print(e)
	}
	if e.fine() {
		p.printf("%s is %s.\n", e.reference, p.paint(cell{"Ready", green}))
		return nil
	}
	state := "not Ready"
	if e.Deleting {
		state = "being deleted"
	}
	p.printf("%s is %s.\n\n", e.reference, p.paint(cell{state, red}))
	for i, f := range e.Because {
		who := ""
		if f.reference != e.reference {
			who = f.reference.String() + ": "
		}
		p.printf("%s%s%s\n", branch(i), who, p.sentence(f))
	}
	p.printf("\n")
	p.showCause(e, "  ")
	return nil
}

// branch is what stands before the i-th finding of a way.
func branch(i int) string {
	if i == 0 {
		return ""
	}
	return strings.Repeat("   ", i-1) + "└─ "
}

// sentence is a finding without its object and its message.
func (p *plugin) sentence(f finding) string {
	since := ""
	if !f.Since.IsZero() {
		since = " for " + p.age(f.Since)
	}
	reason := p.paint(cell{f.Reason, hueOf(f.Status)})
	if f.Condition == "" {
		return reason + since
	}
	return fmt.Sprintf("%s is %s%s: %s", f.Condition, f.Status, since, reason)
}

// showCause prints what keeps an object in full, and what to do.
func (p *plugin) showCause(e explanation, indentation string) {
	if message := e.cause().Message; message != "" {
		p.paragraph(indentation, message)
	}
	for _, what := range e.NotReadable {
		p.paragraph(indentation, "(not readable by you: "+what+")")
	}
	if e.Advice != "" {
		p.paragraph(indentation, "What to do: "+e.Advice)
	}
}

func (p *plugin) showExplanations(answer explanations, namespace string) error {
	if !p.forPeople() {
		return p.print(answer)
	}
	for _, what := range answer.NotReadable {
		p.note("(not readable by you: %s)", what)
	}
	where := "namespace " + namespace
	if namespace == "" {
		where = "all namespaces"
	}
	switch {
	case answer.Total == 0:
		p.printf("There are no orders and no ControlPlanes in %s.\n", where)
		return nil
	case len(answer.Items) == 0:
		p.printf("All orders and ControlPlanes in %s are %s (%d).\n", where, p.paint(cell{"Ready", green}), answer.Total)
		return nil
	}
	header := []cell{plain("NAMESPACE"), plain("NAME"), plain("REASON"), plain("FOR"), plain("CAUSE")}
	rows := [][]cell{header}
	var causes []explanation
	for _, e := range answer.Items {
		first, cause := e.Because[0], e.cause()
		because := ""
		if cause.reference != e.reference {
			because = fmt.Sprintf("%s: %s", cause.reference, cause.Reason)
		}
		rows = append(rows, []cell{
			plain(e.Namespace), plain(e.Kind + "/" + e.Name), {first.Reason, hueOf(first.Status)}, plain(p.age(first.Since)), plain(because),
		})
		if !slices.ContainsFunc(causes, func(other explanation) bool { return sameCause(other.cause(), cause) }) {
			causes = append(causes, e)
		}
	}
	p.table(rows)
	for _, e := range causes {
		p.printf("\n%s: %s\n", e.cause().reference, p.sentence(e.cause()))
		p.showCause(e, "  ")
	}
	return nil
}

func sameCause(a, b finding) bool {
	return a.reference == b.reference && a.Condition == b.Condition && a.Reason == b.Reason
}

// atMost admits up to so many arguments; exactly needs so many, or one less where KIND/NAME may be KIND NAME.
func atMost(count int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > count {
			return wrongUse("too many arguments; the command is: %s", use(cmd))
		}
		return nil
	}
}

// oneSubject admits KIND/NAME and KIND NAME.
func oneSubject(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return wrongUse("the command is: %s", use(cmd))
	}
	return nil
}

func newWorld() *world { return &world{unread: map[reference]string{}} }

// read reads one object. Its errors are for whoever asked for it by name.
func read(ctx context.Context, cluster client.Reader, r reference) (subject, error) {
	s := named(r.Kind).new()
	err := cluster.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, s)
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the cluster does not serve %s; is c5c3-operator installed here?", named(r.Kind).resource())
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", r, err)
	}
	return s, nil
}

// readOrders reads all orders of a namespace, where a reason may lead to any of them. What cannot be read
// is put on record.
func (w *world) readOrders(ctx context.Context, cluster client.Reader, namespace string) {
	for _, k := range orderKinds() {
		_ = w.list(ctx, cluster, k, namespace)
	}
}

// list reads the subjects of one kind in a namespace, or in all for an empty one.
func (w *world) list(ctx context.Context, cluster client.Reader, k kind, namespace string) error {
	list := k.newList()
	if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
		w.unread[reference{Kind: k.name, Namespace: namespace}] = cannot(err)
		return fmt.Errorf("listing %s: %w", k.resource(), err)
	}
	return meta.EachListItem(list, func(item object) error {
		s := item.(subject)
		if w.find(referenceTo(s)) == nil {
			w.subjects = append(w.subjects, s)
		}
		return nil
	})
}

// readPlanes reads the ControlPlanes that the orders name and that are not there yet.
func (w *world) readPlanes(ctx context.Context, cluster client.Reader) {
	for _, s := range slices.Clone(w.subjects) {
		r := planeOf(s)
		if w.find(r) != nil || w.unread[r] != "" {
			continue
		}
		plane, err := read(ctx, cluster, r)
		switch {
		case err == nil:
			w.subjects = append(w.subjects, plane)
		case !apierrors.IsNotFound(err):
			w.unread[r] = cannot(err)
		}
	}
}

// cannot is why something could not be read, in a word where one does.
func cannot(err error) string {
	if apierrors.IsForbidden(err) {
		return "forbidden"
	}
	return err.Error()
}
