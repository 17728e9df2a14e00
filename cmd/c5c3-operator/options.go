package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// options are the command line.
type options struct {
	command.Options

	auditInterval           time.Duration
	keystoneTimeout         time.Duration
	maxConcurrentReconciles int

	credentialUpdates bool
}

// parse reads the command line. Help and complaints go to output.
func parse(arguments []string, output io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("c5c3-operator", flag.ContinueOnError)
	flags.SetOutput(output)
	o.Register(flags)

	flags.DurationVar(&o.auditInterval, "audit-interval", time.Hour, "time between two comparisons of an order with what Keystone holds, and between two logins as a ControlPlane's administrator; 0 makes none")
	flags.DurationVar(&o.keystoneTimeout, "keystone-timeout", keystone.DefaultTimeout, "how long one request to Keystone may take")
	flags.IntVar(&o.maxConcurrentReconciles, "max-concurrent-reconciles", 4, "how many objects of one kind are worked on at once")
	flags.BoolVar(&o.credentialUpdates, "credential-updates", false, "determine CredentialUpdateRequests of agentprimitives.authzed.com as soon as the cluster serves them; needs the rights of config/agentprimitives, and nobody else determining them")

	err := flags.Parse(arguments)
	if err == nil {
		err = o.check(flags.Args())
	}
	return o, err
}

func (o *options) check(rest []string) error {
	switch {
	case o.maxConcurrentReconciles < 1:
		return fmt.Errorf("--max-concurrent-reconciles is at least 1, not %d", o.maxConcurrentReconciles)
	case o.keystoneTimeout <= 0:
		return fmt.Errorf("--keystone-timeout is more than 0, not %s", o.keystoneTimeout)
	case o.auditInterval < 0:
		return fmt.Errorf("--audit-interval is not negative, and %s is", o.auditInterval)
	}
	return o.Check(rest)
}
