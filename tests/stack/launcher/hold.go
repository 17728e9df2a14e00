package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c5c3/c5c3-operator/tests/stack/faultproxy"
	"github.com/c5c3/c5c3-operator/tests/stack/network"
	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

// nodeName is the only node of a stack.
const nodeName = "node1"

// privateFolders are fixed paths that container software writes to whatever it is configured for. In
// the stack's mount namespace each is an empty file system of its own.
var privateFolders = []string{
	"/run/containerd", "/run/netns", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods",
}

// kernelSettings are what kubelet insists on and would otherwise write, machine-wide, at each start. It
// reads first and leaves alone what is right, so it is shown a file that is.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// Hold is the first process of the stack's namespaces: it arranges the mounts and serves the
// supervisor. It returns only when it fails.
func Hold(state string) error {
	if os.Getpid() != 1 {
		return errors.New("this command is started by `stack up`, in namespaces of its own")
	}
	// Private first, so that nothing reaches the machine; then shared among themselves, because
	// kubelet and runc expect a root whose mounts propagate to containers.
	for _, flag := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|flag, ""); err != nil {
			return fmt.Errorf("separating the mounts: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, folder := range privateFolders {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting %s: %w", folder, err)
		}
	}
	for name, value := range kernelSettings {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); err != nil {
			continue // this kernel has no such setting
		}
		source := filepath.Join("/run/containerd", ".kernel-"+filepath.Base(name))
		if err := os.WriteFile(source, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering %s: %w", target, err)
		}
	}
	if err := unix.Sethostname([]byte(nodeName)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	// These belong to the network namespace. Pods reach Services through the bridge's packet filter.
	for name, value := range map[string]string{"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"} {
		_ = os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644)
	}

	socket := filepath.Join(state, "run/supervisor.sock")
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	return supervisor.Serve(listener, []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + filepath.Join(state, "run"), "LANG=C.UTF-8",
		"XTABLES_LOCKFILE=" + filepath.Join(state, "run/xtables.lock"),
	})
}

// startHolder starts the first process of the namespaces, unless it runs.
func (s *Stack) startHolder(ctx context.Context) error {
	if _, err := s.client.HostPID(); err == nil {
		return nil
	}
	for _, folder := range []string{"run", "logs", "bin", "config"} {
		if err := os.MkdirAll(s.path(folder), 0o755); err != nil {
			return err
		}
	}
	if err := s.makeMountPoints(); err != nil {
		return err
	}
	// A copy: `go run` removes its binary, and /proc/<pid>/exe should name something that exists.
	program := s.path("bin/stack")
	if err := copyProgram(program); err != nil {
		return err
	}
	log, err := os.OpenFile(s.path("logs/supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, "hold", "--state", s.State)
	command.Dir = "/"
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("making the stack's namespaces: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return s.poll(ctx, 15*time.Second, func(context.Context) error {
		select {
		case err := <-ended:
			return permanent{fmt.Errorf("the supervisor ended: %w, see %s", err, log.Name())}
		default:
		}
		_, err := s.client.HostPID()
		return err
	})
}

func copyProgram(target string) error {
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer source.Close()
	temporary := target + ".new"
	out, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, source); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(temporary, target)
}

// makeMountPoints makes the folders that Hold covers, and remembers those that were not there.
func (s *Stack) makeMountPoints() error {
	for _, folder := range privateFolders {
		var missing []string
		for dir := folder; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(dir); err == nil {
				break
			}
			missing = append(missing, dir)
		}
		if len(missing) == 0 {
			continue
		}
		s.settings.MountPoints = append(s.settings.MountPoints, missing...)
		// Saved before they are made: a crash in between leaves nothing that nobody knows of.
		if err := s.save(); err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// connect gives the stack its end of the link to the machine, unless it has it.
func (s *Stack) connect(ctx context.Context) error {
	pid, err := s.client.HostPID()
	if err != nil {
		return err
	}
	stack := s.Plan.Stack.String()
	if out, err := s.client.Run(ctx, nil, "ip", "-o", "-4", "addr", "show", "dev", "eth0"); err == nil && strings.Contains(out, stack+"/30") {
		return nil
	}
	// A half-made link of an `up` that was killed.
	_, _ = runHost(ctx, nil, "ip", "link", "del", s.Plan.Interface)
	for _, arguments := range [][]string{
		{"link", "add", s.Plan.Interface, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(pid)},
		{"addr", "add", s.Plan.Host.String() + "/30", "dev", s.Plan.Interface},
		{"link", "set", s.Plan.Interface, "up"},
	} {
		if _, err := runHost(ctx, nil, "ip", arguments...); err != nil {
			return fmt.Errorf("linking the stack with this machine: %w", err)
		}
	}
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "set", "eth0", "up"},
		{"addr", "replace", stack + "/30", "dev", "eth0"},
		// A process of the stack that calls a ClusterIP needs a route before the packet filter
		// rewrites the destination. There is no default route: what is not ours fails at once.
		{"route", "replace", network.Services.String(), "via", s.Plan.Host.String(), "dev", "eth0"},
	} {
		if _, err := s.client.Run(ctx, nil, append([]string{"ip"}, arguments...)...); err != nil {
			return fmt.Errorf("configuring the stack's network: %w", err)
		}
	}
	return nil
}

// FaultProxyOptions are where the proxy before Keystone listens and what it stands before.
type FaultProxyOptions struct {
	// Listen takes plain HTTP, TLSListen the same over TLS with the certificate of CertFile and KeyFile.
	Listen, TLSListen string
	CertFile, KeyFile string
	// Upstream is Keystone's own address, and Control the socket that faults are set on.
	Upstream, Control string
}

// FaultProxy serves the proxy before Keystone; it runs as a process of the stack.
func FaultProxy(o FaultProxyOptions) error {
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return err
	}
	_ = os.Remove(o.Control)
	controlListener, err := net.Listen("unix", o.Control)
	if err != nil {
		return err
	}
	tlsListener, err := net.Listen("tcp", o.TLSListen)
	if err != nil {
		return err
	}
	proxy := faultproxy.New(o.Upstream)
	ended := make(chan error, 2)
	go func() {
		_ = (&http.Server{Handler: proxy.Control(), ReadHeaderTimeout: 5 * time.Second}).Serve(controlListener)
	}()
	go func() { ended <- proxy.Serve(listener) }()
	go func() { ended <- proxy.ServeTLS(tlsListener, o.CertFile, o.KeyFile) }()
	return <-ended
}
