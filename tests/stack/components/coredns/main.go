// Command coredns is CoreDNS with the plugins that a cluster of one node needs. Its own command links
// every plugin, clouds' included, which would triple the compile time.
package main

import (
	_ "github.com/coredns/caddy/onevent" // the hooks that plugins register with
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"

	"github.com/coredns/coredns/coremain"
)

func main() { coremain.Run() }
