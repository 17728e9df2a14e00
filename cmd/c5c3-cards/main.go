// Command c5c3-cards asks people about CredentialUpdateRequests: it publishes a card for each that only a person
// can help with, and serves the page on which it is answered. It alone holds the key that links are signed with.
package main

import (
	"context"
	"os"

	// The image has no /usr/share/zoneinfo.
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
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
