// SPDX-License-Identifier: Apache-2.0

// Command soak has orders rotate on the local stack while it kills what they depend on, has consumers log in
// with what is delivered, and judges the ledger of it. hack/soak.sh prepares the stack and calls it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/tests/soak/ledger"
)

const (
	// prompt is how long everything may work with a rotation due before the rotation counts as missed.
	// K-ORC, ESO and the operator try again at growing intervals after an outage of up to a minute.
	prompt = time.Minute
	// settling is how long everything may take to be Ready again after the last kill.
	settling = 2 * time.Minute
)

type options struct {
	duration  time.Duration
	orders    int
	seed      uint64
	out       string
	stack     string
	namespace string
}

var errFailed = errors.New("the soak found something, see above")

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long to kill and to log in")
	flag.IntVar(&o.orders, "orders", 20, "how many credential orders rotate")
	flag.Uint64Var(&o.seed, "seed", 0, "what the kills and the consumers are drawn from; 0 takes one from the clock")
	flag.StringVar(&o.out, "out", "bin/soak", "folder that the ledger is written to")
	flag.StringVar(&o.stack, "stack", "bin/soak/stack", "the local stack's command")
	flag.StringVar(&o.namespace, "operator-namespace", "c5c3-operator-system", "namespace of the operator")
	flag.Parse()
	if flag.NArg() > 0 || o.orders < 1 || o.duration <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// say tells the time with everything: the logs of the components have theirs.
func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, arguments...))
}

// soak is one run.
type soak struct {
	options
	ledger    *ledger.Ledger
	orders    *orders
	registry  *registry
	consumers *consumers
	killer    *killer
}

func run(ctx context.Context, o options) error {
	s, err := newSoak(o)
	if err != nil {
		return err
	}
	say("seed %d: %d orders for %s; the same seed draws the same kills", o.seed, o.orders, o.duration)
	say("clearing what an earlier run left")
	if _, err := s.orders.remove(ctx); err != nil {
		return fmt.Errorf("clearing up: %w", err)
	}
	say("placing %d users, projects and roles, and %d credential orders", people, o.orders)
	if err := s.orders.place(ctx); err != nil {
		return err
	}
	say("all orders are Ready: logging in four times a second, and killing")
	err = s.stress(ctx)
	if err == nil {
		say("deleting every order")
		err = s.clear(ctx)
	}
	if err != nil {
		s.ledger.Problem(ledger.Problem{At: time.Now(), What: "the run was not finished: " + err.Error()})
	}
	return s.report()
}

func newSoak(o options) (*soak, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	// Throttling on this side would look like a slow API server.
	config.QPS, config.Burst = -1, -1
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	service := keystone.New(keystone.Config{UserAgent: "c5c3-soak", Timeout: loginTimeout})
	registry, err := newRegistry(service)
	if err != nil {
		return nil, err
	}
	s := &soak{options: o, registry: registry}
	local := stack{program: o.stack}
	s.orders = &orders{api: api, stack: local, registry: registry, plane: os.Getenv("C5C3_STACK_NAMESPACE"), count: o.orders}
	s.ledger = ledger.New(ledger.Settings{Seed: o.seed, Orders: s.orders.credentials(), Interval: interval, Prompt: prompt, Every: loginEvery})
	registry.ledger = s.ledger
	// Streams of their own: how often one is drawn from must not change the other.
	s.consumers = &consumers{api: api, keystone: service, ledger: s.ledger, random: rand.New(rand.NewPCG(o.seed, 1))}
	for _, credential := range s.orders.credentials() {
		s.consumers.orders = append(s.consumers.orders, client.ObjectKey{Namespace: name, Name: credential})
	}
	operator := &operator{api: api, namespace: o.namespace, ledger: s.ledger, crashes: map[string]bool{}}
	doomed := victims(local, operator)
	var boots []time.Duration
	for _, v := range doomed {
		boots = append(boots, v.boot)
	}
	s.killer = &killer{
		victims: doomed, plan: newPlan(rand.New(rand.NewPCG(o.seed, 2)), boots),
		ledger: s.ledger, stack: local, operator: operator,
	}
	return s, nil
}

// stress is the part that counts: kills, logins and samples. It ends when everything works again and every
// order is Ready with one or two credentials, or not soon enough.
func (s *soak) stress(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	watchers.Go(func() { s.consumers.run(watching) })
	watchers.Go(func() { s.registry.run(watching) })
	watchers.Go(func() {
		for pause(watching, 30*time.Second) == nil {
			say("%s", s.ledger.Progress())
		}
	})

	began := time.Now()
	s.ledger.Begin(began)
	err := s.killer.run(ctx, began.Add(s.duration))
	s.ledger.End(time.Now())
	if err != nil {
		return err
	}
	say("the last kill is over: waiting for every order to be Ready")
	if err := within(ctx, settling, s.orders.ready); err != nil {
		return fmt.Errorf("not Ready %s after the last kill: %w", settling, err)
	}
	sample, err := s.registry.look(ctx)
	if err != nil {
		return fmt.Errorf("looking at what Keystone holds: %w", err)
	}
	s.ledger.Sample(sample)
	return nil
}

// clear deletes everything, which must leave nothing.
func (s *soak) clear(ctx context.Context) error {
	left, err := s.orders.remove(ctx)
	s.ledger.Left(left)
	return err
}

// report prints the ledger and keeps it beside the JSON.
func (s *soak) report() error {
	report := s.ledger.Report()
	if err := report.Write(os.Stdout); err != nil {
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(s.out, fmt.Sprintf("ledger-%d.json", s.seed))
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	say("the ledger is in %s", file)
	if !report.Passed {
		return errFailed
	}
	return nil
}
