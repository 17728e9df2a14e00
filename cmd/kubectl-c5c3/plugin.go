// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// plugin is what all commands share.
type plugin struct {
	streams genericiooptions.IOStreams
	// flags are kubectl's own: where the cluster is, as whom, in which namespace.
	flags  *genericclioptions.ConfigFlags
	output string
	// colour tells whether the output is a terminal that shows colours.
	colour bool
	now    func() time.Time
	// transport carries questions to providers; nil is the guarded way to the Internet.
	transport http.RoundTripper
}

func newPlugin(streams genericiooptions.IOStreams) *plugin {
	return &plugin{
		streams: streams,
		flags:   genericclioptions.NewConfigFlags(true),
		colour:  showsColour(streams.Out),
		now:     time.Now,
	}
}

// Output formats. Empty is for people.
const (
	outputJSON = "json"
	outputYAML = "yaml"
)

func (p *plugin) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-c5c3",
		Short: "Look after Keystone orders, ControlPlanes and agents' requests",
		Long: `Look after Keystone orders and ControlPlanes (c5c3.io), and answer what agents request (agentprimitives.authzed.com).

A kind is written as kubectl takes it: keystoneapplicationcredential, keystoneapplicationcredentials or kappcred.
What you may not read is named, and left out. No secret is ever printed.

Exit status: 0 yes, 1 the cluster could not be asked, 2 wrong use, 3 the answer is no, 4 no answer in time.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl c5c3"},
		Version:           version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrongUse("there is no command %q", args[0])
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { return p.checkOutput() },
	}
	root.SetIn(p.streams.In)
	root.SetOut(p.streams.Out)
	root.SetErr(p.streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit{exitWrongUse, err} })
	p.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVarP(&p.output, "output", "o", "", "Output format: json or yaml. Without it, for people.")
	p.completeFlag(root, "output", outputJSON, outputYAML)
	root.AddCommand(p.treeCommand(), p.whyCommand(), p.rotateCommand(), p.verifyCommand(), p.requestsCommand(), p.answerCommand())
	return root
}

// completeFlag offers values of a flag. It fails for a flag that does not exist only, which is a mistake
// in this program.
func (p *plugin) completeFlag(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

func (p *plugin) checkOutput() error {
	if slices.Contains([]string{"", outputJSON, outputYAML}, p.output) {
		return nil
	}
	return wrongUse("there is no output format %q, only %s and %s", p.output, outputJSON, outputYAML)
}

// forPeople tells whether the output is read by a person.
func (p *plugin) forPeople() bool { return p.output == "" }

func (p *plugin) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.streams.Out, format, args...)
}

// note tells a person something beside the answer, so that the answer can still be piped on.
func (p *plugin) note(format string, args ...any) {
	_, _ = fmt.Fprintf(p.streams.ErrOut, format+"\n", args...)
}

// cluster is the cluster that the flags name, and the namespace.
func (p *plugin) cluster() (client.WithWatch, string, error) {
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding the namespace: %w", err)
	}
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cluster: %w", err)
	}
	config.UserAgent = "kubectl-c5c3/" + version
	// A person waits for a handful of requests; client-go's default would make some of them wait for
	// the others.
	config.QPS, config.Burst = 50, 100
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authorizationv1.AddToScheme, agents.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, korcapi.AddToScheme, externalsecrets.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, "", fmt.Errorf("registering kinds: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the cluster: %w", err)
	}
	return c, namespace, nil
}

// use is the command line of a command as it is told in help and errors.
func use(cmd *cobra.Command) string {
	return strings.TrimSuffix(cmd.UseLine(), " [flags]")
}
