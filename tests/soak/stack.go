// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stack is the local stack's own command, which knows its components and how to tell that they work.
type stack struct{ program string }

// do runs one command of the stack to its end, also when the run is being interrupted: half a kill, or a
// component that was never started again, would outlive it.
func (s stack) do(ctx context.Context, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, s.program, arguments...)
	// Out of reach of a terminal's Ctrl-C, which goes to the whole group.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("stack %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return string(output), nil
}

// kill is kill -9 of a component with its workers. It stays down until start, which returns when the
// component passes its health check.
func (s stack) kill(ctx context.Context, component string) error {
	_, err := s.do(ctx, "kill", component)
	return err
}

func (s stack) start(ctx context.Context, component string) error {
	_, err := s.do(ctx, "start", component)
	return err
}

// healthy is nil when every component is.
func (s stack) healthy(ctx context.Context) error {
	_, err := s.do(ctx, "status")
	return err
}

// stored lists the paths of the KV store that begin with prefix.
func (s stack) stored(ctx context.Context, prefix string) ([]string, error) {
	output, err := s.do(ctx, "kv", "list")
	if err != nil {
		return nil, err
	}
	var found []string
	for path := range strings.Lines(output) {
		if path = strings.TrimSpace(path); strings.HasPrefix(path, prefix) {
			found = append(found, path)
		}
	}
	return found, nil
}
