// Package launcher brings the whole stack up and down: it installs what Debian has, builds what it has
// not, makes the namespaces, and starts, checks and configures every component in them.
package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c5c3/c5c3-operator/tests/stack/component"
	"github.com/c5c3/c5c3-operator/tests/stack/network"
	"github.com/c5c3/c5c3-operator/tests/stack/progress"
	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

// Groups of components, in the order in which they come up. Each needs those that it names first.
var Groups = []string{"kube", "keystone", "kv", "korc", "eso", "olm"}

// onDemand groups come up only when they are named: they take long to build, and most tests need none.
var onDemand = []string{"olm"}

// Options are what a user may choose. Everything but Name and State is remembered in the state
// folder, so that it need be given to the first `up` only.
type Options struct {
	// Name tells stacks on one machine apart.
	Name string
	// State is the folder of everything that belongs to this stack alone.
	State string
	// Cache is the folder of what stacks share: built components.
	Cache string
	// Subnet is the /30 between the machine and the stack; empty derives it from the name.
	Subnet string
	// Only limits `up` to some groups; empty means all but those that come on demand.
	Only []string
	// KVAddress and KVTokenFile name an OpenBao of the user's own, instead of the stack's store.
	KVAddress, KVTokenFile string
}

// settings is what the state folder remembers.
type settings struct {
	// Owner is the name of the stack, to notice a state folder that is another's.
	Owner       string `json:"name"`
	Subnet      string `json:"subnet"`
	Cache       string `json:"cache"`
	KVAddress   string `json:"kvAddress,omitempty"`
	KVTokenFile string `json:"kvTokenFile,omitempty"`
	// Groups that `up` last brought up: what `status` expects.
	Groups []string `json:"groups,omitempty"`
	// Folders that were made outside the state folder as mount points, for `down` to remove.
	MountPoints []string `json:"mountPoints,omitempty"`
	// Builds maps a component to its cache folder.
	Builds map[string]string `json:"builds,omitempty"`
}

// Stack is one stack of this machine, up or down.
type Stack struct {
	Options
	settings
	Plan  network.Plan
	Board *progress.Board

	client *supervisor.Client
}

var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$`)

// longestState keeps the sockets below the 107 bytes that Linux allows for their paths.
const longestState = 80

// Open reads what is known about a stack. It starts and changes nothing.
func Open(o Options) (*Stack, error) {
	if !nameRule.MatchString(o.Name) {
		return nil, fmt.Errorf("stack name %q: want up to 22 lower-case letters, digits and dashes", o.Name)
	}
	var err error
	if o.State, err = filepath.Abs(o.State); err != nil {
		return nil, err
	}
	if len(o.State) > longestState {
		return nil, fmt.Errorf("the state folder %s has a path of more than %d characters, too long for the sockets in it: choose another with --state", o.State, longestState)
	}
	s := &Stack{Options: o, Board: progress.New(os.Stderr)}
	s.client = supervisor.Dial(s.path("run/supervisor.sock"))
	text, err := os.ReadFile(s.path("stack.json"))
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &s.settings); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path("stack.json"), err)
		}
		if s.settings.Owner != o.Name {
			return nil, fmt.Errorf("the state folder %s belongs to the stack %q, not to %q", o.State, s.settings.Owner, o.Name)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	s.settings.Owner = o.Name
	if o.Subnet != "" {
		s.settings.Subnet = o.Subnet
	}
	if o.Cache != "" {
		if s.settings.Cache, err = filepath.Abs(o.Cache); err != nil {
			return nil, err
		}
	}
	if o.KVAddress != "" {
		s.settings.KVAddress, s.settings.KVTokenFile = o.KVAddress, o.KVTokenFile
	}
	if s.settings.Subnet == "" {
		s.Plan, err = network.ForName(o.Name, network.Taken)
		s.settings.Subnet = s.Plan.Prefix.String()
	} else {
		s.Plan, err = network.Parse(s.settings.Subnet)
	}
	return s, err
}

// path of a file in the state folder.
func (s *Stack) path(elements ...string) string {
	return filepath.Join(append([]string{s.State}, elements...)...)
}

func (s *Stack) save() error {
	text, err := json.MarshalIndent(s.settings, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(s.path("stack.json"), append(text, '\n'), 0o644)
}

// lock keeps two launchers from working on one stack at a time.
func (s *Stack) lock() (func(), error) {
	if err := os.MkdirAll(s.State, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		s.Board.Say("Another command works on the stack %q: waiting for it.", s.Name)
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			return nil, err
		}
	}
	return func() { file.Close() }, nil
}

// address of a port on the stack's end of the link.
func (s *Stack) address(port int) string { return fmt.Sprintf("%s:%d", s.Plan.Stack, port) }

func (s *Stack) has(group string) bool { return slices.Contains(s.settings.Groups, group) }

// built returns a component as the last `up` recorded it.
func (s *Stack) built(name string) component.Built {
	c, err := component.Named(name)
	if err != nil {
		panic(err) // only constants of this package come here
	}
	return component.Built{Component: c, Dir: s.settings.Builds[name]}
}

// store of built components; needs the sources.
func (s *Stack) store() (*component.Store, error) {
	folder, err := sourceFolder()
	if err != nil {
		return nil, err
	}
	version, err := component.GoVersion()
	if err != nil {
		return nil, err
	}
	return &component.Store{Cache: s.settings.Cache, Stack: folder, Board: s.Board, GoVersion: version}, nil
}

const modulePath = "github.com/c5c3/c5c3-operator/tests/stack"

// sourceFolder finds the folder of the stack's module: the working directory when it is started with
// `go -C tests/stack run`, or tests/stack above or below it.
func sourceFolder() (string, error) {
	current, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := current; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "tests/stack")} {
			text, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
			if err == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a clone of the repository: building needs its sources", current)
		}
	}
}

// kubectl runs the stack's own kubectl with its administrator's kubeconfig.
func (s *Stack) kubectl(ctx context.Context, input []byte, arguments ...string) (string, error) {
	arguments = append([]string{"--kubeconfig", s.path("kubeconfig")}, arguments...)
	return runHost(ctx, input, s.built("kube").Path("kubectl"), arguments...)
}

// writeFile writes a whole file or none, and makes its folder.
func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
