// Command generate writes docs/metrics.md to the file that its argument names. `make generate` runs it.
package main

import (
	"fmt"
	"os"

	"github.com/c5c3/c5c3-operator/internal/metrics"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(metrics.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
