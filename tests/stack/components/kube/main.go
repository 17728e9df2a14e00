// Command kube is one binary with every Kubernetes program of a node: which one it is depends on the
// name it is called by (a link named kubelet) or, called as kube, on its first argument.
//
// Six binaries would each be linked from the same packages: one is a sixth of the link time and of
// the disk, and only the chosen program's constructor runs.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJob time zones, on nodes without the time zone package

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as in Kubernetes' own main packages
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllermanager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
	// Not SetupSignalContext, as kubelet's own main has it: cli.Run installs the signal handler a
	// second time and that panics.
	"kubelet": func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if programs[name] == nil && name != "kubectl" {
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: kube {kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet|kubectl} [flags]")
			os.Exit(2)
		}
		name, os.Args = os.Args[1], os.Args[1:]
	}
	if name == "kubectl" {
		// kubectl wires its own logging and error printing, as its main package does.
		_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	}
	newCommand := programs[name]
	if newCommand == nil {
		fmt.Fprintf(os.Stderr, "kube: no program %q in this binary\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(newCommand()))
}
