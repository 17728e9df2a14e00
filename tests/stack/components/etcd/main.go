// Command etcd is etcd's own server, built from its module. Debian's etcd is older than what the API
// server expects (it lacks progress notifications), so it is built like the rest.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
