// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/c5c3/c5c3-operator/tests/soak/ledger"
)

// victim is something that can be killed and brought back.
type victim struct {
	name string
	// boot is how long a start usually takes.
	boot time.Duration
	// kill does it without a warning, and says how.
	kill func(context.Context) (how string, err error)
	// start brings it back and returns when it answers.
	start func(context.Context) error
}

// victims are what the run kills. The API server goes and etcd stays: a cluster that loses its store is
// another one afterwards.
func victims(s stack, o *operator) []victim {
	var all []victim
	for _, c := range []struct {
		name string
		boot time.Duration
	}{
		{"korc", 5 * time.Second}, {"eso", 5 * time.Second}, {"kv", 5 * time.Second},
		{ledger.Keystone, 20 * time.Second}, {ledger.APIServer, 15 * time.Second},
	} {
		all = append(all, victim{
			name: c.name, boot: c.boot,
			kill:  func(ctx context.Context) (string, error) { return "SIGKILL", s.kill(ctx, c.name) },
			start: func(ctx context.Context) error { return s.start(ctx, c.name) },
		})
	}
	return append(all, victim{name: "operator", boot: 30 * time.Second, kill: o.kill, start: o.await})
}

// killer kills one victim after the other, never two at once.
type killer struct {
	victims  []victim
	plan     *plan
	ledger   *ledger.Ledger
	stack    stack
	operator *operator
}

// run kills until the deadline, and returns when nothing is down any more: some time after it, as a rule.
func (k *killer) run(ctx context.Context, deadline time.Time) error {
	for {
		next := k.plan.next()
		if err := pause(ctx, min(next.pause, time.Until(deadline))); err != nil {
			return err
		}
		if !time.Now().Before(deadline) {
			return nil
		}
		if err := k.strike(ctx, k.victims[next.victim], next.down); err != nil {
			return err
		}
	}
}

func (k *killer) strike(ctx context.Context, v victim, down time.Duration) error {
	began := time.Now()
	how, err := v.kill(ctx)
	if err != nil {
		return err
	}
	k.ledger.Kill(v.name, how, began)
	say("killed %s (%s), to be started after %s", v.name, how, down.Round(time.Second))
	interrupted := pause(ctx, down)
	// Whatever happens: nothing is left dead behind an interrupted run.
	if err := v.start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	back := time.Now()
	k.ledger.Back(back)
	if interrupted != nil {
		return interrupted
	}
	if err := k.whole(ctx); err != nil {
		return err
	}
	k.ledger.Whole(time.Now())
	say("%s is back after %s and everything works after %s", v.name, back.Sub(began).Round(time.Second), time.Since(began).Round(time.Second))
	return nil
}

// whole waits until nothing is down. The operator ends by itself when it cannot renew its Lease, so an
// API server that was away takes it along.
func (k *killer) whole(ctx context.Context) error {
	k.operator.mark()
	if err := within(ctx, 3*time.Minute, k.stack.healthy); err != nil {
		return err
	}
	return k.operator.await(ctx)
}

// pause waits, and ends early with the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// within asks every second until the answer is nil, and ends with the last answer when it takes too long.
func within(ctx context.Context, patience time.Duration, holds func(context.Context) error) error {
	deadline := time.Now().Add(patience)
	for {
		err := holds(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
