// Command c5c3-operator is the manager: it runs the controllers of ControlPlane and of the four
// Keystone orders until it is told to stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	// The image has no /usr/share/zoneinfo. An import and not the build tag of the same purpose, which
	// would have every package compiled a second time beside what the tests use.
	_ "time/tzdata"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "dev"

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case o.version:
		fmt.Println(version)
		return
	}

	logger := o.logger(os.Stderr)
	ctrl.SetLogger(logger)
	// client-go logs through klog, whose own format would break a reader of JSON lines.
	klog.SetLogger(logger.WithName("client-go"))

	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		logger.Error(err, "the operator stops")
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	mgr, err := newManager(ctx, config, o)
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("starting", "version", version)
	return mgr.Start(ctx)
}
