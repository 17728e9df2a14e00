// SPDX-License-Identifier: Apache-2.0

// Command kubectl-c5c3 is `kubectl c5c3`, a plugin of kubectl for people who look after orders: it shows
// what belongs to an order, explains why one is not Ready, rotates, tries what was delivered, and answers
// what agents request.
//
// It works with the rights of whoever calls it, needs none of the operator's, and says what it could
// not read. It never prints a secret.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// version is set by the linker.
var version = "dev"

// Exit statuses, documented in docs/kubectl-plugin.md. A script needs to tell "no" from "nobody knows".
const (
	exitFailed     = 1 // the cluster could not be asked, or refused
	exitWrongUse   = 2
	exitNo         = 3 // not Ready; not rotated; refused by Keystone; a value not stored
	exitUnanswered = 4 // Keystone gave no answer; the wait was over first
)

// exit is an error with an exit status of its own. Its error is nil when everything was said already.
type exit struct {
	status int
	err    error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

func wrongUse(format string, args ...any) error {
	return exit{exitWrongUse, fmt.Errorf(format, args...)}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	status := run(ctx, newPlugin(streams), os.Args[1:])
	stop()
	os.Exit(status)
}

// run carries a command line out and returns the exit status.
func run(ctx context.Context, p *plugin, args []string) int {
	// controller-runtime's client would complain, with a stack trace, that nobody set a logger.
	ctrllog.SetLogger(logr.Discard())
	root := p.command() //nolint:contextcheck // completion takes its context from the command that is completed
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	status := exitFailed
	var e exit
	if errors.As(err, &e) {
		status = e.status
		if e.err == nil {
			return status
		}
	}
	_, _ = fmt.Fprintln(p.streams.ErrOut, "error:", err)
	if status == exitWrongUse {
		_, _ = fmt.Fprintln(p.streams.ErrOut, "See 'kubectl c5c3 --help'.")
	}
	return status
}
