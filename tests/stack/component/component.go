// Package component builds the programs of the stack from their pinned modules and keeps them in a
// cache folder that every clone of the repository and every stack on the machine share.
package component

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/c5c3/c5c3-operator/tests/stack/progress"
)

// Component is one program that the stack builds.
type Component struct {
	Name string
	// Version is the pinned version; it names the cache folder and is what `status` shows.
	Version string
	// Folder of its Go module below tests/stack, and of the sources that are part of its identity.
	Folder string
	// Sources limits the identity to one sub-folder of the module; empty means the whole module.
	Sources string
	// Package to build, "." when the module's own main package.
	Package string
	// Packages, instead of Package, are programs of one module that are always used together: each
	// becomes a binary named after its folder. Built in one call they share the linker's work of finding
	// out what is up to date.
	Packages []string
	// Tags are build tags, separated by commas.
	Tags string
	// OnDemand components are built only when a group that needs them comes up, or by name.
	OnDemand bool
	// LDFlags are set at link time only: they change neither what is compiled nor Go's build cache.
	LDFlags []string
	// Links are further names of the binary, for a program that looks at its own name.
	Links []string
	// CRDModule and CRDFolder say where the component's CustomResourceDefinitions and other manifests come from.
	CRDModule, CRDFolder string
	// Expected is how long a build from nothing takes on two cores.
	Expected time.Duration
}

// OPMVersion is the version of operator-registry's opm in the component olm.
const OPMVersion = "v1.73.0"

// All lists every component, the one that takes longest first: two are built at a time, and a long
// one that starts last would run alone.
var All = []Component{
	{
		Name: "kube", Version: "v1.36.3", Folder: "components/kube", Package: ".", Expected: 20 * time.Minute,
		LDFlags: kubeVersion("v1.36.3", "1", "36"),
		Links:   []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"},
	},
	{
		// OLM, the catalog's opm and the probe that OLM has catalog pods run, of one module: together they
		// compile half of what each would alone.
		Name: "olm", Version: "v0.42.0", Folder: "components/olm", Expected: 14 * time.Minute, OnDemand: true,
		Packages: []string{
			"github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
			"github.com/operator-framework/operator-lifecycle-manager/cmd/catalog",
			"github.com/operator-framework/operator-lifecycle-manager/cmd/package-server",
			"github.com/operator-framework/operator-lifecycle-manager/cmd/copy-content",
			"github.com/operator-framework/operator-lifecycle-manager/util/cpb",
			"github.com/operator-framework/operator-registry/cmd/opm",
			"github.com/grpc-ecosystem/grpc-health-probe",
		},
		// Without the second tag opm wants a C library.
		Tags: "json1,containers_image_openpgp",
		LDFlags: []string{
			"-X github.com/operator-framework/operator-lifecycle-manager/pkg/version.OLMVersion=v0.42.0",
			"-X github.com/operator-framework/operator-registry/cmd/opm/version.opmVersion=" + OPMVersion,
		},
		CRDModule: "github.com/operator-framework/operator-lifecycle-manager", CRDFolder: "deploy/chart",
	},
	{
		Name: "eso", Version: "v0.16.2", Folder: "components/eso", Package: ".", Expected: 7 * time.Minute,
		CRDModule: "github.com/external-secrets/external-secrets", CRDFolder: "config/crds/bases",
	},
	{Name: "kv", Version: "v1.21.4", Folder: "components/kv", Package: ".", Expected: 6 * time.Minute},
	{
		Name: "korc", Version: "v2.6.0", Folder: "components/korc", Expected: 5 * time.Minute,
		Package:   "github.com/k-orc/openstack-resource-controller/v2/cmd/manager",
		CRDModule: "github.com/k-orc/openstack-resource-controller/v2", CRDFolder: "config",
	},
	// The newest whose go.mod allows the same Kubernetes libraries as OLM's: v1.15.0 would compile its own.
	{Name: "coredns", Version: "v1.14.6", Folder: "components/coredns", Package: ".", Expected: 2 * time.Minute, OnDemand: true},
	{Name: "etcd", Version: "v3.6.16", Folder: "components/etcd", Package: ".", Expected: 2 * time.Minute},
	{Name: "consumer", Version: "dev", Folder: ".", Sources: "consumer", Package: "./consumer", Expected: 20 * time.Second},
	{Name: "pause", Version: "dev", Folder: ".", Sources: "pause", Package: "./pause", Expected: 10 * time.Second},
}

// kubeVersion makes `kubelet --version` and GET /version tell the truth; without it they say v0.0.0,
// which kubectl and controllers read as an ancient server.
func kubeVersion(version, major, minor string) []string {
	var flags []string
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+p+".gitVersion="+version, "-X "+p+".gitMajor="+major, "-X "+p+".gitMinor="+minor,
			"-X "+p+".gitTreeState=clean", "-X "+p+".buildDate=2026-01-01T00:00:00Z")
	}
	return flags
}

// Named returns the component of that name.
func Named(name string) (Component, error) {
	for _, c := range All {
		if c.Name == name {
			return c, nil
		}
	}
	return Component{}, fmt.Errorf("no component %q", name)
}

// compileFlags are the same for all components, so that their modules share Go's build cache where
// their dependencies agree.
var compileFlags = []string{"-trimpath", "-buildvcs=false"}

func (c Component) ldflags() string {
	return strings.Join(append([]string{"-s -w"}, c.LDFlags...), " ")
}

// Key identifies a build: everything that goes into the binary and is not fixed by go.sum.
func (c Component) Key(stackFolder, goVersion string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "go %s\nflags %q ldflags %q package %s crds %s %s links %q\n", goVersion,
		compileFlags, c.ldflags(), c.Package, c.CRDModule, c.CRDFolder, c.Links)
	if len(c.Packages) > 0 || c.Tags != "" {
		fmt.Fprintf(hash, "packages %q tags %s\n", c.Packages, c.Tags)
	}
	folder := filepath.Join(stackFolder, c.Folder)
	files := []string{filepath.Join(folder, "go.mod"), filepath.Join(folder, "go.sum")}
	// Folders below count too: a component may bring a stand-in for a module that it does not need.
	err := filepath.WalkDir(filepath.Join(folder, c.Sources), func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err == nil && !entry.IsDir() && !slices.Contains(files, path) && !strings.HasSuffix(name, "_test.go") &&
			(filepath.Ext(name) == ".go" || name == "go.mod") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("identifying %s: %w", c.Name, err)
	}
	slices.Sort(files)
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("identifying %s: %w", c.Name, err)
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "file %s %d\n", name, len(content))
		hash.Write(content)
	}
	return c.Version + "-" + hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// Built is a component in the cache.
type Built struct {
	Component
	// Dir holds the binary under the component's name, its links, and crds/ where it has some.
	Dir string
}

// Path of the binary, or of one of its links.
func (b Built) Path(name string) string { return filepath.Join(b.Dir, name) }

// Store is the cache folder.
type Store struct {
	// Cache is where builds are kept.
	Cache string
	// Stack is the folder of the stack's module, with components/ below it.
	Stack string
	Board *progress.Board
	// GoVersion of the toolchain that builds.
	GoVersion string
}

// GoVersion asks the go command which toolchain it uses.
func GoVersion() (string, error) {
	out, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("asking go for its version: %w", err)
	}
	return strings.TrimSpace(string(out)) + " " + runtime.GOOS + "/" + runtime.GOARCH, nil
}

// Ensure returns the components, building those that are not in the cache: two at a time, in the
// order of All. A build may need 2.5 GiB for its link, so more at once can exhaust a small machine.
func (s *Store) Ensure(ctx context.Context, names ...string) (map[string]Built, error) {
	built := map[string]Built{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, c := range All {
		if !slices.Contains(names, c.Name) {
			continue
		}
		key, err := c.Key(s.Stack, s.GoVersion)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(s.Cache, c.Name, key)
		built[c.Name] = Built{Component: c, Dir: dir}
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		group.Go(func() error { return s.build(ctx, c, dir) })
	}
	return built, group.Wait()
}

func (s *Store) build(ctx context.Context, c Component, dir string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	task := s.Board.Start("building "+c.Name+" "+c.Version, c.Expected)
	defer func() { task.Done(err) }()

	// Another stack may be building the same: wait for it instead of doing it twice.
	lock, err := os.OpenFile(filepath.Join(parent, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}

	// What a killed build left; nobody else builds here while the lock is held.
	abandoned, _ := filepath.Glob(filepath.Join(parent, ".building-*"))
	for _, folder := range abandoned {
		_ = os.RemoveAll(folder)
	}
	temporary, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := s.compile(ctx, c, filepath.Join(temporary, c.Name), task); err != nil {
		return err
	}
	for _, link := range c.Links {
		if err := os.Symlink(c.Name, filepath.Join(temporary, link)); err != nil {
			return err
		}
	}
	if c.CRDModule != "" {
		if err := s.copyManifests(ctx, c, filepath.Join(temporary, "crds")); err != nil {
			return err
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	// The rename is what makes the build count: a killed build leaves nothing that looks complete.
	return os.Rename(temporary, dir)
}

func (s *Store) compile(ctx context.Context, c Component, output string, task *progress.Task) error {
	arguments := append([]string{"build", "-v"}, compileFlags...)
	if c.Tags != "" {
		arguments = append(arguments, "-tags", c.Tags)
	}
	if len(c.Packages) > 0 {
		// A folder, which go tells from a file by the slash at its end.
		arguments = append(arguments, "-ldflags", c.ldflags(), "-o", filepath.Dir(output)+"/")
		arguments = append(arguments, c.Packages...)
	} else {
		arguments = append(arguments, "-ldflags", c.ldflags(), "-o", output, c.Package)
	}
	command := s.goCommand(ctx, c, arguments...)
	messages := &compilerOutput{task: task}
	command.Stdout, command.Stderr = messages, messages
	if err := command.Run(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", c.Name, command.Dir, err, messages.tail())
	}
	return nil
}

func (s *Store) goCommand(ctx context.Context, c Component, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(s.Stack, c.Folder)
	// GOFLAGS and GOWORK of the caller would change what is built without changing the key.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	command.WaitDelay = 5 * time.Second
	return command
}

func (s *Store) copyManifests(ctx context.Context, c Component, target string) error {
	out, err := s.goCommand(ctx, c, "list", "-m", "-f", "{{.Dir}}", c.CRDModule).Output()
	if err != nil {
		return fmt.Errorf("looking for the module of %s: %w", c.Name, err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), c.CRDFolder)
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if extension := filepath.Ext(path); err != nil || entry.IsDir() || extension != ".yaml" && extension != ".tpl" {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(target, relative)), 0o755); err != nil {
			return err
		}
		return copyFile(path, filepath.Join(target, relative))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// compilerOutput counts the packages that `go build -v` names and keeps the rest for the error.
type compilerOutput struct {
	task     *progress.Task
	packages int
	partial  []byte
	other    []string
}

func (o *compilerOutput) Write(b []byte) (int, error) {
	o.partial = append(o.partial, b...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte("\n"))
		if !found {
			return len(b), nil
		}
		o.partial = rest
		text := string(line)
		switch {
		case strings.HasPrefix(text, "go: downloading"):
			o.task.Detail("downloading modules")
		case text == "" || strings.ContainsAny(text, " :#"):
			o.other = append(o.other, text)
		default:
			o.packages++
			o.task.Detail("%d packages compiled", o.packages)
		}
	}
}

func (o *compilerOutput) tail() string {
	lines := append(slices.Clone(o.other), string(o.partial))
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
