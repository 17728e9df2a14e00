// Command c5c3-operator is the manager: it runs the controllers of ControlPlane and of the four
// Keystone orders until it is told to stop.
package main

import (
	"context"
	"os"

	// The image has no /usr/share/zoneinfo. An import and not the build tag of the same purpose, which
	// would have every package compiled a second time beside what the tests use.
	_ "time/tzdata"

	"k8s.io/client-go/rest"

	"github.com/c5c3/c5c3-operator/internal/command"
)

// version is set by the linker.
var version = "dev"

func main() {
	command.Main(version, func(arguments []string) (*options, error) { return parse(arguments, os.Stderr) }, run)
}

func run(ctx context.Context, config *rest.Config, o *options) error {
	mgr, err := newManager(ctx, config, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
