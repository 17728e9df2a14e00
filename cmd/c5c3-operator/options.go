package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// options are the command line.
type options struct {
	metricsAddress string
	probeAddress   string
	pprofAddress   string

	leaderElect             bool
	leaderElectionNamespace string
	leaseDuration           time.Duration
	renewDeadline           time.Duration
	retryPeriod             time.Duration

	auditInterval           time.Duration
	keystoneTimeout         time.Duration
	maxConcurrentReconciles int

	credentialUpdates bool
	egressAllow       []string
	providerCatalog   string

	logLevel  slog.Level
	logFormat string
	version   bool
}

// parse reads the command line. Help and complaints go to output.
func parse(arguments []string, output io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("c5c3-operator", flag.ContinueOnError)
	flags.SetOutput(output)

	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address the metrics are served on, over plain HTTP; 0 serves none")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address /healthz and /readyz are served on; 0 serves none")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address profiles are served on; 0 serves none. A profile may hold what the operator knows: keep the address local")

	flags.BoolVar(&o.leaderElect, "leader-elect", false, "work only while holding a Lease, so that several replicas may run")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease; empty is the operator's own, which only exists inside a cluster")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long a replica waits for a silent leader before it takes over")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew its Lease before it gives up and exits; shorter than the lease duration")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "time between two tries to get or renew the Lease")

	flags.DurationVar(&o.auditInterval, "audit-interval", time.Hour, "time between two comparisons of an order with what Keystone holds, and between two logins as a ControlPlane's administrator; 0 makes none")
	flags.DurationVar(&o.keystoneTimeout, "keystone-timeout", keystone.DefaultTimeout, "how long one request to Keystone may take")
	flags.IntVar(&o.maxConcurrentReconciles, "max-concurrent-reconciles", 4, "how many objects of one kind are worked on at once")

	flags.BoolVar(&o.credentialUpdates, "credential-updates", false, "determine CredentialUpdateRequests of agentprimitives.authzed.com as soon as the cluster serves them; needs the rights of config/agentprimitives, and nobody else determining them")
	flags.Func("egress-allow", "host, or host:port, inside the cluster's networks that providers of credentials may be at; may be repeated. All others are asked on the Internet only", func(host string) error {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return errors.New("it is a host or host:port, without a scheme and a path")
		}
		o.egressAllow = append(o.egressAllow, host)
		return nil
	})
	flags.StringVar(&o.providerCatalog, "provider-catalog", "", "directory with further providers of credentials, a <id>.yaml each, such as a mounted ConfigMap; one of a known id replaces it")

	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "lowest level that is logged: DEBUG, INFO, WARN or ERROR; DEBUG-4 logs what the libraries do")
	flags.StringVar(&o.logFormat, "log-format", "json", "how a log line looks: json or text")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")

	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	return o, o.check(flags.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not an option", rest[0])
	case o.logFormat != "json" && o.logFormat != "text":
		return fmt.Errorf("--log-format is json or text, not %q", o.logFormat)
	case o.maxConcurrentReconciles < 1:
		return fmt.Errorf("--max-concurrent-reconciles is at least 1, not %d", o.maxConcurrentReconciles)
	case o.keystoneTimeout <= 0:
		return fmt.Errorf("--keystone-timeout is more than 0, not %s", o.keystoneTimeout)
	case o.auditInterval < 0:
		return fmt.Errorf("--audit-interval is not negative, and %s is", o.auditInterval)
	case o.leaderElect && (o.renewDeadline >= o.leaseDuration || o.retryPeriod >= o.renewDeadline || o.retryPeriod <= 0):
		return fmt.Errorf("of the leader election's times the lease duration is the longest and the retry period the shortest, and %s, %s, %s are not in that order", o.leaseDuration, o.renewDeadline, o.retryPeriod)
	}
	return nil
}

// logger logs one line per event to output. slog is the standard library's, and enough: the level is
// fixed at the start and each line is a JSON object.
func (o options) logger(output io.Writer) logr.Logger {
	handlerOptions := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(output, handlerOptions))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(output, handlerOptions))
}
