// Command stack brings the local real stack up and down. `stack help` lists what it can do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/c5c3/c5c3-operator/tests/stack/faultproxy"
	"github.com/c5c3/c5c3-operator/tests/stack/launcher"
)

const usage = `stack runs Kubernetes, Keystone, K-ORC, External Secrets and a KV store on this machine.

  stack up [--only GROUP,...]     bring it up, or finish what an earlier call began
  stack status                    one line per component; exit status 1 unless all are healthy
  stack down [--purge]            end everything and verify it; --purge removes the state folder too
  stack env                       what a shell needs, as export commands
  stack build [--only NAME,...]   build components into the cache, all but those on demand when none is named
  stack assets                    build kube-apiserver, kubectl and etcd; print a folder for KUBEBUILDER_ASSETS
  stack load-image REF TAR        import an image archive into the node
  stack bundles FOLDER            write OLM bundles of K-ORC and ESO, made from their own manifests
  stack load-bundle REF FOLDER    make an image of a bundle and import it; prints its reference by digest
  stack load-catalog REF FOLDER   the same for a file-based catalog, with the opm that serves it
  stack stores                    make the SecretStores, once ESO's kinds are there from elsewhere
  stack kubectl ARGUMENTS         the stack's own kubectl, as administrator
  stack kv list [PATH]            paths in the KV store
  stack kv get PATH [--show-values]
                                  keys of a stored document, with their values when asked for
  stack keystone stop|start|restart [--no-connection-close] [--fail MODE]
  stack keystone fault [MODE] [--method M] [--path REGEXP] [--times N] [--pause D]
                                  break Keystone: none, 503, 404-html, reset, lost-answer, delay;
                                  without a mode, print the present fault
  stack kill|stop|start COMPONENT crash, end or start one component
  stack enter [COMMAND]           a shell in the stack's namespaces

Groups: ` + "kube, keystone, kv, korc, eso, and on demand olm (OLM and CoreDNS)" + `.
Flags of every command:
  --name NAME       tells stacks on one machine apart (C5C3_STACK_NAME, default c5c3)
  --state FOLDER    what belongs to this stack alone (C5C3_STACK_STATE,
                    default ~/.local/state/c5c3-operator/stack/NAME)
  --cache FOLDER    built components, shared by all stacks (C5C3_STACK_CACHE,
                    default ~/.cache/c5c3-operator/stack)
Flags of up:
  --subnet CIDR     the /30 between this machine and the stack (default 10.213.N.0/30, N from the name)
  --kv-address URL --kv-token-file FILE
                    use an OpenBao of your own instead of the stack's KV store
`

// wrongUse is an error that is answered with a hint at the usage and exit status 2.
type wrongUse struct{ error }

// silent ends the command with exit status 1 and no further message.
var errSilent = errors.New("")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var use wrongUse
	switch {
	case err == nil:
	case errors.Is(err, errSilent):
		os.Exit(1)
	case errors.As(err, &use):
		fmt.Fprintf(os.Stderr, "stack: %v\nRun `stack help` for what it can do.\n", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	command := "help"
	if len(arguments) > 0 {
		command, arguments = arguments[0], arguments[1:]
	}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.Usage = func() {}
	var options launcher.Options
	flags.StringVar(&options.Name, "name", environment("C5C3_STACK_NAME", "c5c3"), "")
	flags.StringVar(&options.State, "state", os.Getenv("C5C3_STACK_STATE"), "")
	flags.StringVar(&options.Cache, "cache", os.Getenv("C5C3_STACK_CACHE"), "")

	open := func(positional ...*string) (*launcher.Stack, error) {
		if err := parse(flags, arguments, positional...); err != nil {
			return nil, err
		}
		return openStack(options)
	}
	var first, second, third string
	switch command {
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil

	case "up":
		only := flags.String("only", "", "")
		flags.StringVar(&options.Subnet, "subnet", os.Getenv("C5C3_STACK_SUBNET"), "")
		flags.StringVar(&options.KVAddress, "kv-address", "", "")
		flags.StringVar(&options.KVTokenFile, "kv-token-file", "", "")
		if err := parse(flags, arguments); err != nil {
			return err
		}
		if *only != "" {
			options.Only = strings.Split(*only, ",")
		}
		if (options.KVAddress == "") != (options.KVTokenFile == "") {
			return wrongUse{errors.New("--kv-address and --kv-token-file go together")}
		}
		stack, err := openStack(options)
		if err != nil {
			return err
		}
		return stack.Up(ctx)

	case "down":
		purge := flags.Bool("purge", false, "")
		stack, err := open()
		if err != nil {
			return err
		}
		return stack.Down(ctx, *purge)

	case "status":
		stack, err := open()
		if err != nil {
			return err
		}
		healthy, err := stack.Status(ctx, os.Stdout)
		if err == nil && !healthy {
			return errSilent
		}
		return err

	case "env":
		stack, err := open()
		if err != nil {
			return err
		}
		stack.Env(os.Stdout)
		return nil

	case "build":
		only := flags.String("only", "", "")
		stack, err := open()
		if err != nil {
			return err
		}
		if *only == "" {
			return stack.Build(ctx)
		}
		return stack.Build(ctx, strings.Split(*only, ",")...)

	case "assets":
		stack, err := open()
		if err != nil {
			return err
		}
		folder, err := stack.Assets(ctx)
		if err == nil {
			fmt.Println(folder)
		}
		return err

	case "load-image":
		stack, err := open(&first, &second)
		if err != nil {
			return err
		}
		return stack.LoadImage(ctx, first, second)

	case "bundles":
		stack, err := open(&first)
		if err != nil {
			return err
		}
		return stack.Bundles(ctx, first)

	case "load-bundle", "load-catalog":
		stack, err := open(&first, &second)
		if err != nil {
			return err
		}
		load := stack.LoadBundle
		if command == "load-catalog" {
			load = stack.LoadCatalog
		}
		reference, err := load(ctx, first, second)
		if err == nil {
			fmt.Println(reference)
		}
		return err

	case "stores":
		stack, err := open()
		if err != nil {
			return err
		}
		return stack.Stores(ctx)

	case "kubectl":
		// Its arguments are kubectl's: which stack is meant comes from the environment.
		stack, err := openStack(options)
		if err != nil {
			return err
		}
		return stack.Kubectl(arguments)

	case "enter":
		stack, err := openStack(options)
		if err != nil {
			return err
		}
		if len(arguments) == 0 {
			arguments = []string{"/bin/sh"}
		}
		return stack.Exec(arguments)

	case "kv":
		show := flags.Bool("show-values", false, "")
		stack, err := open(&first, optional(&second))
		if err != nil {
			return err
		}
		return kv(ctx, stack, first, second, *show)

	case "keystone":
		var fault faultproxy.Fault
		noClose := flags.Bool("no-connection-close", false, "")
		fail := flags.String("fail", "", "")
		flags.StringVar(&fault.Method, "method", "", "")
		flags.StringVar(&fault.Path, "path", "", "")
		flags.Int64Var(&fault.Times, "times", 0, "")
		flags.DurationVar(&fault.Pause, "pause", 0, "")
		stack, err := open(&first, optional(&second))
		if err != nil {
			return err
		}
		fault.Mode = faultproxy.Mode(second)
		return keystone(ctx, stack, first, !*noClose, *fail, fault)

	case "kill", "stop", "start":
		stack, err := open(&first)
		if err != nil {
			return err
		}
		return map[string]func(context.Context, string) error{
			"kill": stack.Kill, "stop": stack.Stop, "start": stack.Start,
		}[command](ctx, first)

	// What follows is run by the stack itself, inside its namespaces.
	case "hold":
		if err := parse(flags, arguments); err != nil {
			return err
		}
		return launcher.Hold(options.State)

	case "fault-proxy":
		var proxy launcher.FaultProxyOptions
		flags.StringVar(&proxy.Listen, "listen", "", "")
		flags.StringVar(&proxy.TLSListen, "tls-listen", "", "")
		flags.StringVar(&proxy.CertFile, "tls-cert", "", "")
		flags.StringVar(&proxy.KeyFile, "tls-key", "", "")
		flags.StringVar(&proxy.Upstream, "upstream", "", "")
		flags.StringVar(&proxy.Control, "control", "", "")
		if err := parse(flags, arguments); err != nil {
			return err
		}
		return launcher.FaultProxy(proxy)

	case "probe":
		if err := parse(flags, arguments, &third); err != nil {
			return err
		}
		return launcher.Probe(ctx, third)
	}
	return wrongUse{fmt.Errorf("no command %q", command)}
}

// optionalArguments are the positional arguments that may be missing.
var optionalArguments = map[*string]bool{}

func optional(target *string) *string {
	optionalArguments[target] = true
	return target
}

// parse takes flags before, between and after the positional arguments.
func parse(flags *flag.FlagSet, arguments []string, positional ...*string) error {
	var words []string
	for {
		if err := flags.Parse(arguments); err != nil {
			return wrongUse{err}
		}
		if flags.NArg() == 0 {
			break
		}
		words = append(words, flags.Arg(0))
		arguments = flags.Args()[1:]
	}
	if len(words) > len(positional) {
		return wrongUse{fmt.Errorf("%s: unexpected argument %q", flags.Name(), words[len(positional)])}
	}
	for i, target := range positional {
		switch {
		case i < len(words):
			*target = words[i]
		case !optionalArguments[target]:
			return wrongUse{fmt.Errorf("%s: an argument is missing", flags.Name())}
		}
	}
	return nil
}

func openStack(o launcher.Options) (*launcher.Stack, error) {
	// After `eval "$(stack env)"` the variables describe one stack; a --name that asks for another
	// must not be sent to that one's folder.
	if o.State == os.Getenv("C5C3_STACK_STATE") && o.Name != environment("C5C3_STACK_NAME", "c5c3") {
		o.State = ""
	}
	home, err := os.UserHomeDir()
	if err != nil && (o.State == "" || o.Cache == "") {
		return nil, err
	}
	if o.State == "" {
		o.State = filepath.Join(environment("XDG_STATE_HOME", filepath.Join(home, ".local/state")), "c5c3-operator/stack", o.Name)
	}
	if o.Cache == "" {
		o.Cache = filepath.Join(environment("XDG_CACHE_HOME", filepath.Join(home, ".cache")), "c5c3-operator/stack")
	}
	return launcher.Open(o)
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func kv(ctx context.Context, stack *launcher.Stack, verb, path string, showValues bool) error {
	switch verb {
	case "list":
		paths, err := stack.KVList(ctx, path)
		for _, p := range paths {
			fmt.Println(p)
		}
		return err
	case "get":
		if path == "" {
			return wrongUse{errors.New("kv get: a path is missing")}
		}
		document, err := stack.KVGet(ctx, path)
		if err != nil {
			return err
		}
		if showValues {
			return json.NewEncoder(os.Stdout).Encode(document)
		}
		for _, key := range launcher.SortedKeys(document) {
			fmt.Println(key)
		}
		return nil
	}
	return wrongUse{fmt.Errorf("kv: no command %q, list or get", verb)}
}

func keystone(ctx context.Context, stack *launcher.Stack, verb string, closeHeader bool, fail string, fault faultproxy.Fault) error {
	if fail != "" {
		fault.Mode = faultproxy.Mode(fail)
	}
	switch verb {
	case "fault":
	case "stop":
		return stack.Stop(ctx, "keystone")
	case "start", "restart":
		if err := stack.RestartKeystone(ctx, closeHeader); err != nil {
			return err
		}
		if fail == "" {
			fault.Mode = faultproxy.None // a Keystone that was just started works
		}
	default:
		return wrongUse{fmt.Errorf("keystone: no command %q: stop, start, restart or fault", verb)}
	}
	var report faultproxy.Report
	var err error
	if fault.Mode == "" {
		report, err = stack.Fault(ctx)
	} else {
		if !slices.Contains(faultproxy.Modes, fault.Mode) {
			return wrongUse{fmt.Errorf("keystone: no fault %q: one of %v", fault.Mode, faultproxy.Modes)}
		}
		report, err = stack.SetFault(ctx, fault)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
