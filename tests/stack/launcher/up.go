package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/c5c3/c5c3-operator/tests/stack/component"
	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

// groupComponents says what must be built for a group.
var groupComponents = map[string][]string{
	"kube": {"kube", "etcd", "pause", "consumer"},
	"kv":   {"kv"},
	"korc": {"korc"},
	"eso":  {"eso"},
	// K-ORC and ESO too: there they are installed from a catalog, as pods of these binaries.
	"olm": {"olm", "coredns", "korc", "eso"},
}

// groupNeeds says which groups a group can't do without.
var groupNeeds = map[string][]string{"korc": {"kube"}, "eso": {"kube"}, "olm": {"kube"}}

// wantedGroups completes the user's choice and puts it in the order of Groups.
func wantedGroups(only []string) ([]string, error) {
	if len(only) == 0 {
		return slices.DeleteFunc(slices.Clone(Groups), func(g string) bool { return slices.Contains(onDemand, g) }), nil
	}
	wanted := map[string]bool{}
	for _, group := range only {
		if !slices.Contains(Groups, group) {
			return nil, fmt.Errorf("no group %q: one of %s", group, strings.Join(Groups, ", "))
		}
		wanted[group] = true
		for _, needed := range groupNeeds[group] {
			wanted[needed] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(Groups), func(g string) bool { return !wanted[g] }), nil
}

// Up brings the stack up. It may be called at any time: what is there and healthy is left alone, what
// an earlier call left unfinished is finished.
func (s *Stack) Up(ctx context.Context) error {
	begun := time.Now()
	if os.Geteuid() != 0 {
		return errors.New("the stack makes namespaces, mounts and network interfaces: run it as root")
	}
	groups, err := wantedGroups(s.Only)
	if err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// A group that is up stays wanted when another is added with --only.
	if _, err := s.client.HostPID(); err == nil {
		groups, err = wantedGroups(append(groups, s.settings.Groups...))
		if err != nil {
			return err
		}
	}
	s.settings.Groups = groups
	if err := s.installPackages(ctx, groups); err != nil {
		return err
	}
	if err := s.build(ctx, groups); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	building := time.Since(begun)

	if err := s.startHolder(ctx); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.upGroups(ctx); err != nil {
		return err
	}
	s.Board.Say("The stack %q is up after %s (of which %s for packages and builds).", s.Name,
		time.Since(begun).Round(100*time.Millisecond), building.Round(100*time.Millisecond))
	return nil
}

func (s *Stack) build(ctx context.Context, groups []string) error {
	var names []string
	for _, group := range groups {
		if group == "kv" && s.settings.KVAddress != "" {
			continue
		}
		names = append(names, groupComponents[group]...)
	}
	s.settings.Builds = map[string]string{}
	if len(names) == 0 {
		return nil
	}
	built, err := s.buildNamed(ctx, names...)
	if err != nil {
		return err
	}
	for name, b := range built {
		s.settings.Builds[name] = b.Dir
	}
	return nil
}

func (s *Stack) buildNamed(ctx context.Context, names ...string) (map[string]component.Built, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	return store.Ensure(ctx, names...)
}

// Build builds components into the cache, all but those on demand when none is named, and prints where they are.
func (s *Stack) Build(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		for _, c := range component.All {
			if !c.OnDemand {
				names = append(names, c.Name)
			}
		}
	}
	for _, name := range names {
		if _, err := component.Named(name); err != nil {
			return err
		}
	}
	built, err := s.buildNamed(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(built[name].Path(name))
	}
	return nil
}

// Assets builds what envtest needs and returns the folder for KUBEBUILDER_ASSETS.
func (s *Stack) Assets(ctx context.Context) (string, error) {
	built, err := s.buildNamed(ctx, "kube", "etcd")
	if err != nil {
		return "", err
	}
	kube, etcd := built["kube"], built["etcd"]
	folder := filepath.Join(s.settings.Cache, "assets", filepath.Base(kube.Dir)+"_"+filepath.Base(etcd.Dir))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for name, target := range map[string]string{
		"kube-apiserver": kube.Path("kube-apiserver"), "kubectl": kube.Path("kubectl"), "etcd": etcd.Path("etcd"),
	} {
		link := filepath.Join(folder, name)
		if old, err := os.Readlink(link); err == nil && old == target {
			continue
		}
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// upGroups starts everything, side by side where nothing is needed from each other.
func (s *Stack) upGroups(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	if s.has("kube") {
		group.Go(func() error { return s.upKube(gctx) })
	}
	if s.has("keystone") {
		group.Go(func() error { return s.upKeystone(gctx) })
	}
	if s.has("kv") {
		group.Go(func() error {
			for _, svc := range s.kvServices() {
				if err := s.ensure(gctx, svc); err != nil {
					return err
				}
			}
			return s.prepareKV(gctx)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if !s.has("kube") {
		return nil
	}
	group, gctx = errgroup.WithContext(ctx)
	if s.has("keystone") {
		group.Go(func() error { return s.upAdminSecret(gctx) })
	}
	if s.has("korc") {
		group.Go(func() error { return s.upKORC(gctx) })
	}
	if s.has("eso") {
		group.Go(func() error {
			if err := s.upESO(gctx); err != nil || !s.has("kv") {
				return err
			}
			return s.upStores(gctx)
		})
	}
	if s.has("olm") {
		group.Go(func() error { return s.upOLM(gctx) })
	}
	return group.Wait()
}

func (s *Stack) upKube(ctx context.Context) (err error) {
	if err := s.configureKube(); err != nil {
		return err
	}
	if err := s.makeCgroup(); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.ensureNamed(gctx, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
	})
	group.Go(func() error {
		if err := s.ensureNamed(gctx, "containerd"); err != nil {
			return err
		}
		return s.importImages(gctx)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.ensureNamed(ctx, "kubelet"); err != nil {
		return err
	}
	if s.nodeReady(ctx) != nil {
		task := s.Board.Start("waiting for the node", 5*time.Second)
		err := s.poll(ctx, 2*time.Minute, s.nodeReady)
		task.Done(err)
		if err != nil {
			return err
		}
	}
	if err := s.upCluster(ctx); err != nil {
		return err
	}
	// Pods can't be created in a namespace before its ServiceAccount is there.
	return s.poll(ctx, time.Minute, func(ctx context.Context) error {
		return s.getAPI(ctx, "/api/v1/namespaces/"+tenantNamespace+"/serviceaccounts/default", nil)
	})
}

func (s *Stack) upKeystone(ctx context.Context) error {
	if err := s.prepareKeystone(ctx); err != nil {
		return err
	}
	if err := s.ensureNamed(ctx, "keystone", "fault-proxy"); err != nil {
		return err
	}
	return s.poll(ctx, 30*time.Second, func(ctx context.Context) error {
		if err := answers(s.keystoneURL())(ctx); err != nil {
			return err
		}
		return answers(s.keystoneTLSURL())(ctx)
	})
}

// Kill ends a component without a warning and keeps it down.
func (s *Stack) Kill(ctx context.Context, name string) error {
	if _, err := s.service(name); err != nil {
		return err
	}
	_, err := s.client.Kill(ctx, name)
	return err
}

// Stop asks a component to end and keeps it down.
func (s *Stack) Stop(ctx context.Context, name string) error {
	if _, err := s.service(name); err != nil {
		return err
	}
	_, err := s.client.Stop(ctx, name, 20*time.Second)
	return err
}

// Start starts a component that was killed and waits until it is healthy.
func (s *Stack) Start(ctx context.Context, name string) error { return s.ensureNamed(ctx, name) }

// Exec replaces this process by a command that runs in the stack's namespaces, for a look around.
func (s *Stack) Exec(argv []string) error {
	pid, err := s.client.HostPID()
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	all := append([]string{"nsenter", "--target", fmt.Sprint(pid), "--mount", "--net", "--pid", "--ipc", "--uts"}, argv...)
	return syscall.Exec(nsenter, all, os.Environ())
}

// Kubectl replaces this process by the stack's kubectl, as its administrator.
func (s *Stack) Kubectl(arguments []string) error {
	path := s.built("kube").Path("kubectl")
	return syscall.Exec(path, append([]string{"kubectl", "--kubeconfig", s.path("kubeconfig")}, arguments...), os.Environ())
}

// running reports whether the supervisor answers.
func (s *Stack) running() bool {
	_, err := s.client.HostPID()
	return !errors.Is(err, supervisor.ErrNotRunning)
}
