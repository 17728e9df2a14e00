// Package command is what the project's long-running commands have in common: their options, how they log, and
// how they say that they are alive.
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/c5c3/c5c3-operator/internal/egress"
	"github.com/c5c3/c5c3-operator/internal/providers"
)

// Options are those that every command has.
type Options struct {
	MetricsAddress string
	ProbeAddress   string
	PprofAddress   string

	LeaderElect             bool
	LeaderElectionNamespace string
	LeaseDuration           time.Duration
	RenewDeadline           time.Duration
	RetryPeriod             time.Duration

	EgressAllow     []string
	ProviderCatalog string

	LogLevel  slog.Level
	LogFormat string
	Version   bool
}

// Common is the options themselves, also of a struct that embeds them.
func (o *Options) Common() *Options { return o }

// Register adds the options to those of a command.
func (o *Options) Register(flags *flag.FlagSet) {
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address the metrics are served on, over plain HTTP; 0 serves none")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address /healthz and /readyz are served on; 0 serves none")
	flags.StringVar(&o.PprofAddress, "pprof-bind-address", "0", "address profiles are served on; 0 serves none. A profile may hold what the process knows: keep the address local")

	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "work only while holding a Lease, so that several replicas may run")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease; empty is the pod's own, which only exists inside a cluster")
	flags.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long a replica waits for a silent leader before it takes over")
	flags.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew its Lease before it gives up and exits; shorter than the lease duration")
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "time between two tries to get or renew the Lease")

	flags.Func("egress-allow", "host, or host:port, inside the cluster's networks that requests may go to; may be repeated. All others are asked on the Internet and over https only", func(host string) error {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return errors.New("it is a host or host:port, without a scheme and a path")
		}
		o.EgressAllow = append(o.EgressAllow, host)
		return nil
	})
	flags.StringVar(&o.ProviderCatalog, "provider-catalog", "", "directory with further providers of credentials, a <id>.yaml each, such as a mounted ConfigMap; one of a known id replaces it")

	flags.TextVar(&o.LogLevel, "log-level", slog.LevelInfo, "lowest level that is logged: DEBUG, INFO, WARN or ERROR; DEBUG-4 logs what the libraries do")
	flags.StringVar(&o.LogFormat, "log-format", "json", "how a log line looks: json or text")
	flags.BoolVar(&o.Version, "version", false, "print the version and exit")
}

// Check says what makes no sense. Rest are the arguments that are no options.
func (o *Options) Check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not an option", rest[0])
	case o.LogFormat != "json" && o.LogFormat != "text":
		return fmt.Errorf("--log-format is json or text, not %q", o.LogFormat)
	case o.LeaderElect && (o.RenewDeadline >= o.LeaseDuration || o.RetryPeriod >= o.RenewDeadline || o.RetryPeriod <= 0):
		return fmt.Errorf("of the leader election's times the lease duration is the longest and the retry period the shortest, and %s, %s, %s are not in that order", o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
	}
	return nil
}

// Logger logs one line per event to output. slog is the standard library's, and enough: the level is
// fixed at the start and each line is a JSON object.
func (o *Options) Logger(output io.Writer) logr.Logger {
	handlerOptions := &slog.HandlerOptions{Level: o.LogLevel}
	if o.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(output, handlerOptions))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(output, handlerOptions))
}

// shutdownTimeout is how long what is under way may go on after a signal: longer than one request to
// Keystone, shorter than the 30 s a pod is given.
const shutdownTimeout = 25 * time.Second

// Manager are a manager's options. The lease is the name of the leader election's.
func (o *Options) Manager(scheme *runtime.Scheme, lease string) manager.Options {
	shutdown := shutdownTimeout
	return manager.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.ProbeAddress,
		PprofBindAddress:              o.PprofAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends right after the manager
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		GracefulShutdownTimeout:       &shutdown,
		Controller:                    Controllers(),
	}
}

// Controllers are the options of every controller, unless it has its own. With controller-runtime's own queue a busy
// process may hang when it ends, and hold the Lease meanwhile: before v0.25 the queue waits, with its locks taken, for a
// worker that has left (https://github.com/kubernetes-sigs/controller-runtime/issues/3538). That version would need a
// multicluster-runtime for it. client-go's queue lacks the priorities, of which we make no use.
func Controllers() config.Controller {
	priorityQueue := false
	return config.Controller{UsePriorityQueue: &priorityQueue}
}

// Egress lets requests out.
func (o *Options) Egress() *egress.Guard {
	return &egress.Guard{Allowed: o.EgressAllow, Proxy: http.ProxyFromEnvironment}
}

// Catalog is the provider catalog with the entries of --provider-catalog.
func (o *Options) Catalog() (*providers.Catalog, error) {
	return providers.LoadDirectory(o.ProviderCatalog)
}
