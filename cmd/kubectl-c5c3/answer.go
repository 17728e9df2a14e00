// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/egress"
	"github.com/c5c3/c5c3-operator/internal/providers"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// What the right to answer is called.
const (
	answerVerb       = "answer"
	requestsResource = "credentialupdaterequests"
)

type answerFlags struct {
	stdin, confirm  bool
	providerCatalog string
	egressAllow     []string
}

func (p *plugin) answerCommand() *cobra.Command {
	var flags answerFlags
	cmd := &cobra.Command{
		Use:   "answer NAME",
		Short: "Enter the new value that an agent's request waits for",
		Long: `Enter the new value of the credential that a CredentialUpdateRequest waits for. It is asked for on the terminal,
unseen, or read from a pipe; never from an argument, which every process on the machine could read.

The provider is asked about the value first. One that it refuses is stored when you say so, or with --confirm. Written is one key
of the Secret that the request names, and nothing is ever created.

It takes the verb "answer" on credentialupdaterequests.agentprimitives.authzed.com, and the rights to read the
request and its identity, and to get and patch the Secret.

Exit status: 0 stored, 1 the cluster could not be asked, or refused, 3 not stored.`,
		Example: `  kubectl c5c3 answer cur-session-1-x7k2p
  pass show github/bot | kubectl c5c3 answer cur-session-1-x7k2p --value-stdin`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				// Not what they are: somebody may have put the value there.
				return wrongUse("%s takes the name of one request, and got %d arguments; the value is no argument", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.waitingRequests(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.answer(cmd.Context(), args[0], flags) },
	}
	cmd.Flags().BoolVar(&flags.stdin, "value-stdin", false, "Read the value from standard input. So it is anyway when that is no terminal.")
	cmd.Flags().BoolVar(&flags.confirm, "confirm", false, "Store the value although its provider refuses it.")
	cmd.Flags().StringVar(&flags.providerCatalog, "provider-catalog", "", "Directory with further providers, a <id>.yaml each, as the operator's option of that name has it.")
	cmd.Flags().StringArrayVar(&flags.egressAllow, "egress-allow", nil, "Host, or host:port, of a provider that is not on the Internet; may be repeated.")
	if err := cmd.MarkFlagDirname("provider-catalog"); err != nil {
		panic(err)
	}
	return cmd
}

// waitingRequests are the names of those that a person can answer. See names for errors.
func (p *plugin) waitingRequests(ctx context.Context) []string {
	cluster, namespace, err := p.cluster()
	if err != nil {
		return nil
	}
	list := &agents.CredentialUpdateRequestList{}
	if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if item := p.requestItem(&list.Items[i]); item.WaitsForPerson {
			names = append(names, item.Name+"\t"+item.Origin)
		}
	}
	return names
}

// submitted is the answer for scripts.
type submitted struct {
	reference `json:",inline"`
	Stored    bool `json:"stored"`
	// Secret and SecretKey are where.
	Secret    string `json:"secret,omitempty"`
	SecretKey string `json:"secretKey,omitempty"`
	// Probe and Detail are the provider's word on the value: valid, rejected, forbidden, indeterminate, unsupported.
	Probe  verdict.Probe `json:"probe,omitempty"`
	Detail string        `json:"detail,omitempty"`
	// Refused and Message are why it was not stored.
	Refused answer.Reason `json:"refused,omitempty"`
	Message string        `json:"message,omitempty"`
}

func (p *plugin) answer(ctx context.Context, name string, flags answerFlags) error {
	if flags.stdin && p.terminal() >= 0 {
		return wrongUse("--value-stdin reads a pipe or a file, and standard input is a terminal, which would show the value; without it you are asked, unseen")
	}
	catalog, err := providers.LoadDirectory(flags.providerCatalog)
	if err != nil {
		return err
	}
	cluster, namespace, err := p.cluster()
	if err != nil {
		return err
	}
	request := reference{requestKind, namespace, name}
	if err := mayAnswer(ctx, cluster, request); err != nil {
		return err
	}
	desk := &answer.Desk{Client: cluster, Catalog: catalog, Clock: clock.RealClock{}, Prober: providers.Prober{Transport: p.transport}}
	if p.transport == nil {
		desk.Prober.Transport = &egress.Guard{Allowed: flags.egressAllow, Proxy: http.ProxyFromEnvironment}
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	result := submitted{reference: request}
	question, err := desk.Question(ctx, key, "")
	if err != nil {
		return p.notStored(result, err)
	}
	status := question.Request.Status
	result.Secret, result.SecretKey = status.CredentialSecretRef.Namespace+"/"+status.CredentialSecretRef.Name, status.CredentialSecretKey
	if p.forPeople() {
		p.showQuestion(question)
	}
	value, err := p.value(ctx, "New value of "+status.ResolvedCredential.Credential+" (not shown): ")
	if err != nil {
		return err
	}
	submission := answer.Submission{Value: value, Confirm: flags.confirm}
	outcome, err := desk.Answer(ctx, key, question.Request.UID, submission)
	if answer.ReasonOf(err) == answer.Unconfirmed && p.terminal() >= 0 {
		sure, gaveUp := p.typed(ctx, err.Error()+" Store it all the same? Type yes: ", func() ([]byte, error) {
			line, err := bufio.NewReader(p.streams.In).ReadBytes('\n')
			return bytes.TrimSpace(line), err
		})
		if gaveUp != nil {
			return gaveUp
		}
		if submission.Confirm = sure == "yes"; submission.Confirm {
			outcome, err = desk.Answer(ctx, key, question.Request.UID, submission)
		}
	}
	result.Probe, result.Detail = outcome.Probe, outcome.Detail
	if err != nil {
		return p.notStored(result, err)
	}
	result.Stored = true
	if !p.forPeople() {
		return p.print(result)
	}
	p.printf("Stored in Secret %s, key %s. %s\n", result.Secret, result.SecretKey, said(question, outcome))
	p.note("The request ends within seconds, and the agent tries again.")
	return nil
}

// mayAnswer asks the API server first: a person without the right should hear of it before entering a value,
// and not from the Secret, to which the right may be given for other reasons.
func mayAnswer(ctx context.Context, cluster client.Client, request reference) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: answerVerb, Group: agents.GroupVersion.Group, Resource: requestsResource, Namespace: request.Namespace, Name: request.Name,
	}}}
	if err := cluster.Create(ctx, review); err != nil {
		return fmt.Errorf("asking the cluster whether you may answer: %w", err)
	}
	if review.Status.Allowed {
		return nil
	}
	return fmt.Errorf("you may not answer %s: that takes the verb %q on %s.%s in namespace %s",
		request, answerVerb, requestsResource, agents.GroupVersion.Group, request.Namespace)
}

// notStored ends with why.
func (p *plugin) notStored(result submitted, err error) error {
	result.Refused = answer.ReasonOf(err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: answering takes get on the request and its identity, and get and patch on the Secret: %w", result.reference, err)
	case result.Refused == "":
		return fmt.Errorf("%s: %w", result.reference, notServed(err))
	}
	result.Message = err.Error()
	if !p.forPeople() {
		return errors.Join(p.print(result), exit{status: exitNo})
	}
	if result.Refused == answer.Unconfirmed {
		return exit{exitNo, fmt.Errorf("%s: %w To store it all the same, enter it again with --confirm", result.reference, err)}
	}
	return exit{exitNo, fmt.Errorf("%s: %w", result.reference, err)}
}

// showQuestion tells, beside the answer, what is asked and why. The agent's own words stand apart.
func (p *plugin) showQuestion(q *answer.Question) {
	spec, status := q.Request.Spec, q.Request.Status
	c := status.ResolvedCredential
	whose := c.IdentityKind + " " + c.Namespace + "/" + c.Name
	if q.Subject != "" {
		whose += " of " + untrusted.Line(q.Subject, agentsWords)
	}
	p.note("%s asks for a new value, %s.", reference{requestKind, q.Request.Namespace, q.Request.Name}, until(p.now(), q.Expires))
	p.note("  verified      %s: %s", status.Determination, untrusted.Line(status.Reason, 4*agentsWords))
	p.note("  credential    %s, of %s", c.Credential, whose)
	p.note("  stored in     Secret %s/%s, key %s", status.CredentialSecretRef.Namespace, status.CredentialSecretRef.Name, status.CredentialSecretKey)
	if q.Keeper != "" {
		p.note("  careful       %s controls that Secret, and may write over the value: change it there instead", q.Keeper)
	}
	if shape := q.Provider.TokenShape; shape != nil && shape.Description != "" {
		p.note("  looks like    %s", shape.Description)
	}
	if q.Provider.Instructions != "" {
		p.note("  how           %s", q.Provider.Instructions)
	}
	p.note("  origin        %s", untrusted.Line(spec.Origin, agentsWords))
	p.note("  written by the agent, and verified by nobody:")
	p.note("    tool         | %s |", untrusted.Line(spec.ToolName, agentsWords))
	p.note("    working for  | %s |", untrusted.Line(spec.RequestedBy, agentsWords))
	if why := untrusted.Line(spec.Why, agentsWords); why != "" {
		p.note("    why          | %s |", why)
	}
}

// said is what the provider answered, as a sentence.
func said(q *answer.Question, outcome answer.Outcome) string {
	provider := q.Provider.Title
	if provider == "" {
		provider = "The provider"
	}
	detail := ""
	if outcome.Detail != "" {
		detail = " (" + outcome.Detail + ")"
	}
	switch outcome.Probe {
	case verdict.ProbeValid:
		return provider + " accepts it."
	case verdict.ProbeUnsupported:
		return provider + " cannot be asked about it."
	case verdict.ProbeRejected, verdict.ProbeForbidden:
		return provider + " does not accept it" + detail + "."
	case verdict.ProbeIndeterminate:
	}
	return provider + " did not say whether it accepts it" + detail + "."
}

// terminal is the descriptor of the terminal that is typed on, negative when standard input is none.
func (p *plugin) terminal() int {
	if file, ok := p.streams.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return int(file.Fd())
	}
	return -1
}

// value asks for one on the terminal, unseen, or reads it from the pipe that standard input is.
func (p *plugin) value(ctx context.Context, prompt string) (string, error) {
	terminal := p.terminal()
	if terminal < 0 {
		value, err := io.ReadAll(io.LimitReader(p.streams.In, answer.MaxValue+1))
		if err != nil {
			return "", fmt.Errorf("reading the value from standard input: %w", err)
		}
		return string(value), nil
	}
	return p.typed(ctx, prompt, func() ([]byte, error) {
		value, err := term.ReadPassword(terminal)
		p.note("") // the line's end was not shown either
		return value, err
	})
}

// typed asks for a line on the terminal.
func (p *plugin) typed(ctx context.Context, prompt string, read func() ([]byte, error)) (string, error) {
	terminal := p.terminal()
	before, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("looking at the terminal: %w", err)
	}
	_, _ = fmt.Fprint(p.streams.ErrOut, prompt)
	type line struct {
		text []byte
		err  error
	}
	done := make(chan line, 1)
	go func() {
		text, err := read()
		done <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		// Somebody gave up. The reader is still waiting for a line, and would leave the terminal silent.
		_ = term.Restore(terminal, before)
		p.note("")
		return "", ctx.Err()
	case entered := <-done:
		if entered.err != nil {
			return "", fmt.Errorf("reading from the terminal: %w", entered.err)
		}
		return string(entered.text), nil
	}
}
