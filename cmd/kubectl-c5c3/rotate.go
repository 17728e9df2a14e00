// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/controllers/order"
)

// What --dry-run takes, as in kubectl.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// fieldManager is the plugin's name in an order's managed fields. It is not the operator's: who asked for
// a rotation should be told there.
const fieldManager = client.FieldOwner("kubectl-c5c3")

// waitInterval is the time between two looks at an order that is waited for. A watch would show a change a
// moment earlier, and would have to be begun anew whenever the API server ends it.
const waitInterval = time.Second

type rotateFlags struct {
	dryRun  string
	wait    bool
	timeout time.Duration
}

func (p *plugin) rotateCommand() *cobra.Command {
	var flags rotateFlags
	rotated := []kind{named(order.ApplicationCredentialKind.Name), named(order.UserKind.Name)}
	cmd := &cobra.Command{
		Use:   "rotate KIND/NAME",
		Short: "Ask for a new application credential, or a new password",
		Long: `Ask for the next generation of a KeystoneApplicationCredential or of a KeystoneUser's password, by raising
spec.credentialGeneration or spec.passwordGeneration.

Refused are a frozen order, one that is being deleted, and one in a grace period, with words that say until when.
A rotation that was asked for already is not asked for twice. A generation that failed is given up for a higher one.

A password has no overlap: between Keystone's taking the new one and its delivery the old Secret is refused.

Exit status: 0 asked for (with --wait: delivered), 3 refused, 4 not delivered in time.`,
		Example: `  kubectl c5c3 rotate kappcred/workflow-appcred --wait
  kubectl c5c3 rotate kuser/workflow --dry-run=server`,
		Args:              oneSubject,
		ValidArgsFunction: p.completeSubjects(false, rotated...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.rotate(cmd.Context(), args, rotated, flags)
		},
	}
	cmd.Flags().StringVar(&flags.dryRun, "dry-run", dryRunNone, `none, client (change nothing) or server (have the API server check the change and drop it)`)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	cmd.Flags().BoolVar(&flags.wait, "wait", false, "Wait until the Secret carries the new generation.")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 5*time.Minute, "How long to wait.")
	p.completeFlag(cmd, "dry-run", dryRunNone, dryRunClient, dryRunServer)
	return cmd
}

// rotationAnswer is the answer for scripts.
type rotationAnswer struct {
	reference `json:",inline"`
	request   `json:",inline"`
	DryRun    bool `json:"dryRun,omitempty"`
	// Delivered: the Secret was seen to carry the generation.
	Delivered bool `json:"delivered,omitempty"`
}

func (p *plugin) rotate(ctx context.Context, args []string, rotated []kind, flags rotateFlags) error {
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, flags.dryRun) {
		return wrongUse("--dry-run is %s, %s or %s, not %q", dryRunNone, dryRunClient, dryRunServer, flags.dryRun)
	}
	k, name, err := parseArguments(args)
	switch {
	case err != nil:
		return err
	case name == "":
		return wrongUse("%q is not KIND/NAME", args[0])
	case !slices.ContainsFunc(rotated, func(r kind) bool { return r.name == k.name }):
		return wrongUse("a %s has nothing to rotate; a %s and a %s have", k.name, rotated[0].name, rotated[1].name)
	}
	cluster, namespace, err := p.cluster()
	if err != nil {
		return err
	}
	answer := rotationAnswer{reference: reference{k.name, namespace, name}, DryRun: flags.dryRun != dryRunNone}
	o, err := p.ask(ctx, cluster, &answer, flags.dryRun)
	if err != nil {
		return err
	}
	if answer.Refused != "" {
		return p.refuseRotation(answer)
	}
	if p.forPeople() {
		p.tellRequest(answer)
	}
	if flags.wait && !answer.DryRun {
		err = p.await(ctx, cluster, o, &answer, flags.timeout)
	}
	if p.forPeople() {
		return err
	}
	return errors.Join(p.print(answer), err)
}

// ask raises the generation, with an optimistic lock: what was decided on is what is changed. Somebody
// else's change, most likely of the operator's to the status, has it decided anew.
func (p *plugin) ask(ctx context.Context, cluster client.Client, answer *rotationAnswer, dryRun string) (o order.Object, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s, err := read(ctx, cluster, answer.reference)
		if err != nil {
			return err
		}
		o = s.(order.Object) // the kinds that rotate are orders
		answer.request = planRotation(o, p.now())
		if answer.Refused != "" || answer.UnderWay || dryRun == dryRunClient {
			return nil
		}
		before := o.DeepCopyObject().(client.Object)
		answer.request.ask(o)
		options := []client.PatchOption{fieldManager}
		if dryRun == dryRunServer {
			options = append(options, client.DryRunAll)
		}
		return cluster.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), options...)
	})
	if err != nil {
		return nil, fmt.Errorf("asking %s for a rotation: %w", answer.reference, err)
	}
	return o, nil
}

func (p *plugin) refuseRotation(answer rotationAnswer) error {
	if !p.forPeople() {
		return errors.Join(p.print(answer), exit{status: exitNo})
	}
	return exit{exitNo, fmt.Errorf("%s is not rotated: %s", answer.reference, answer.Refused)}
}

func (p *plugin) tellRequest(answer rotationAnswer) {
	switch {
	case answer.UnderWay:
		p.printf("%s: generation %d was asked for already", answer.reference, answer.To)
	default:
		p.printf("%s: generation %d is asked for (spec.%s)", answer.reference, answer.To, answer.Field)
	}
	if answer.DryRun {
		p.printf(" (dry run)")
	}
	p.printf("\n")
	if answer.Caution != "" {
		p.note("%s", answer.Caution)
	}
}

// await waits until the Secret carries the generation. Meanwhile it tells a person what is waited for.
func (p *plugin) await(ctx context.Context, cluster client.Client, asked order.Object, answer *rotationAnswer, timeout time.Duration) error {
	generation, told, last := asked.GetGeneration(), "", asked
	err := wait.PollUntilContextTimeout(ctx, waitInterval, timeout, true, func(ctx context.Context) (bool, error) {
		s, err := read(ctx, cluster, answer.reference)
		if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) {
			// The time ran out during the request, which tells in many ways; the wait ends in one.
			return false, nil
		}
		if err != nil {
			return false, err
		}
		last = s.(order.Object) // as above
		if delivered(last, answer.request, generation) {
			return true, nil
		}
		if state := progress(last); state != told && p.forPeople() {
			p.note("waiting: %s", state)
			told = state
		}
		return false, nil
	})
	switch {
	case err == nil:
		answer.Delivered = true
		if p.forPeople() {
			p.tellDelivery(*answer, last)
		}
		return nil
	case wait.Interrupted(err):
		return exit{exitUnanswered, fmt.Errorf("%s: generation %d was not delivered within %s; `kubectl c5c3 why` may tell more. Last seen: %s",
			answer.reference, answer.To, timeout, progress(last))}
	}
	return fmt.Errorf("waiting for %s: %w", answer.reference, err)
}

// progress is where a rotation is: the first condition that is not True, else the first.
func progress(o order.Object) string {
	conditions := kindOf(o).conditions
	if f := firstThatFails(o, conditions); f != nil {
		return fmt.Sprintf("%s: %s", f.Reason, f.Message)
	}
	c := conditionCalled(o, conditions[0])
	return fmt.Sprintf("%s: %s", c.Reason, c.Message)
}

func (p *plugin) tellDelivery(answer rotationAnswer, o order.Object) {
	n := subjectNode(o)
	p.printf("Secret %s/%s carries generation %d", n.Namespace, deliveredName(o), n.Generation)
	if n.Previous != nil && n.Previous.DeleteAt != nil {
		p.printf("; generation %d is accepted until it is deleted %s", n.Previous.Generation, until(p.now(), n.Previous.DeleteAt.Time))
	}
	p.printf("\n")
	if answer.Kind == order.UserKind.Name {
		p.note("the password before it is refused from now on: whoever read the Secret earlier has to read it again")
	}
}
