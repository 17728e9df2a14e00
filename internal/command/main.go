package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Main runs a command with the arguments of the process until it is told to stop, and ends the process when
// that fails. Parse reads the command line; run is the command.
func Main[O interface{ Common() *Options }](version string, parse func([]string) (O, error), run func(context.Context, *rest.Config, O) error) {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case o.Common().Version:
		fmt.Println(version)
		return
	}
	logger := o.Common().Logger(os.Stderr)
	ctrl.SetLogger(logger)
	// client-go logs through klog, whose own format would break a reader of JSON lines.
	klog.SetLogger(logger.WithName("client-go"))
	ctx := logr.NewContext(ctrl.SetupSignalHandler(), logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		err = fmt.Errorf("finding the cluster: %w", err)
	} else {
		logger.Info("starting", "version", version)
		err = run(ctx, config, o)
	}
	if err != nil {
		logger.Error(err, "the process stops")
		os.Exit(1)
	}
}
