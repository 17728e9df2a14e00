package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runHost runs a command on the machine, outside the stack's namespaces.
func runHost(ctx context.Context, input []byte, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Stdin = bytes.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// permanent is an error that waiting does not cure.
type permanent struct{ error }

// poll calls check until it succeeds, fails for good, or the time is over.
func (s *Stack) poll(ctx context.Context, patience time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		attempt, cancelAttempt := context.WithTimeout(ctx, 10*time.Second)
		err := check(attempt)
		cancelAttempt()
		if err == nil {
			return nil
		}
		var final permanent
		if errors.As(err, &final) {
			return final.error
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not after %s: %w", patience, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// debianPackage is a package and a file by which to see that its program is there, from wherever.
type debianPackage struct{ name, file string }

var debianPackages = map[string][]debianPackage{
	"kube": {
		{"iproute2", "/usr/sbin/ip /sbin/ip /usr/bin/ip /bin/ip"},
		{"containerd", "/usr/bin/containerd /usr/local/bin/containerd"},
		{"runc", "/usr/sbin/runc /usr/bin/runc /usr/local/sbin/runc"},
		{"containernetworking-plugins", "/usr/lib/cni/bridge"},
		{"iptables", "/usr/sbin/iptables"},
		{"conntrack", "/usr/sbin/conntrack"},
	},
	"keystone": {
		{"keystone", "/usr/bin/keystone-wsgi-public"},
		{"uwsgi-core", "/usr/bin/uwsgi-core"},
		{"uwsgi-plugin-python3", "/usr/lib/uwsgi/plugins/python3_plugin.so"},
		{"sqlite3", "/usr/bin/sqlite3"},
		{"python3-openstackclient", "/usr/bin/openstack"},
	},
	"olm": {{"busybox-static", "/bin/busybox"}},
}

// installPackages installs what is missing and says so. Nothing is removed by `down`.
func (s *Stack) installPackages(ctx context.Context, groups []string) (err error) {
	var missing []string
	for _, group := range groups {
		for _, p := range debianPackages[group] {
			if !slices.ContainsFunc(strings.Fields(p.file), func(f string) bool { _, err := os.Stat(f); return err == nil }) {
				missing = append(missing, p.name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	s.Board.Say("Installing Debian packages: %s", list)
	task := s.Board.Start("installing Debian packages", 5*time.Minute)
	defer func() { task.Done(err) }()
	restore, err := keepServicesStopped()
	if err != nil {
		return err
	}
	defer restore()
	install := func() error {
		arguments := append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q", "--no-install-recommends"}, missing...)
		_, err := runHost(ctx, nil, "env", arguments...)
		return err
	}
	if install() == nil {
		return nil
	}
	// A fresh machine has no package lists.
	if _, err := runHost(ctx, nil, "apt-get", "update", "-q"); err != nil {
		return fmt.Errorf("these Debian packages are missing: %s: %w", list, err)
	}
	if err := install(); err != nil {
		return fmt.Errorf("these Debian packages are missing: %s: %w", list, err)
	}
	return nil
}

// keepServicesStopped tells Debian not to start the services of the packages that are installed: the
// stack starts them itself, inside its namespaces.
func keepServicesStopped() (func(), error) {
	const policy = "/usr/sbin/policy-rc.d"
	if _, err := os.Stat(policy); err == nil {
		return func() {}, nil // an administrator's own policy
	}
	if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(policy) }, nil
}

// cgroup is the control group of all pods of this stack.
func (s *Stack) cgroup() string { return "/c5c3-" + s.Name }

// cgroupFolders lists the folders of the stack's control group, one per hierarchy in version 1.
func (s *Stack) cgroupFolders() ([]string, error) {
	const root = "/sys/fs/cgroup"
	var stat unix.Statfs_t
	if err := unix.Statfs(root, &stat); err != nil {
		return nil, fmt.Errorf("looking at control groups: %w", err)
	}
	if stat.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{root + s.cgroup()}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, e := range entries {
		hierarchy := filepath.Join(root, e.Name())
		if err := unix.Statfs(hierarchy, &stat); err == nil && e.IsDir() && stat.Type == unix.CGROUP_SUPER_MAGIC {
			folders = append(folders, hierarchy+s.cgroup())
		}
	}
	return folders, nil
}

// makeCgroup makes the control group; kubelet refuses to start without it.
func (s *Stack) makeCgroup() error {
	folders, err := s.cgroupFolders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		parent := filepath.Dir(folder)
		if controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers")); err == nil {
			for _, controller := range strings.Fields(string(controllers)) {
				// One by one: a controller that can't be given does not keep the others back.
				_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			}
		}
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making a control group: %w", err)
		}
		// A version 1 cpuset is empty at first and then admits no process.
		for _, name := range []string{"cpuset.mems", "cpuset.cpus"} {
			if value, err := os.ReadFile(filepath.Join(parent, name)); err == nil {
				_ = os.WriteFile(filepath.Join(folder, name), value, 0o644)
			}
		}
	}
	return nil
}

// removeCgroup removes the control group with everything below it. Its processes must be dead.
func (s *Stack) removeCgroup() error {
	folders, err := s.cgroupFolders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		var below []string
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		slices.Reverse(below)
		for _, dir := range below {
			// Busy for a moment, until the kernel has forgotten the last process.
			if err := s.poll(context.Background(), 5*time.Second, func(context.Context) error {
				if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
					return err
				}
				return nil
			}); err != nil {
				return fmt.Errorf("removing the control group %s: %w", dir, err)
			}
		}
	}
	return nil
}

// namespacesOf returns the identities of the namespaces of a process.
func namespacesOf(pid int) []string {
	var all []string
	for _, kind := range []string{"mnt", "net", "pid_for_children"} {
		if id, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)); err == nil {
			all = append(all, id)
		}
	}
	return all
}

// processesIn lists the processes that are in one of the namespaces, as "pid command".
func processesIn(namespaces []string) []string {
	if len(namespaces) == 0 {
		return nil
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/*")
	var found []string
	for _, link := range links {
		id, err := os.Readlink(link)
		if err != nil || !slices.Contains(namespaces, id) {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue // gone meanwhile
		}
		found = append(found, pid+" "+strings.TrimSpace(string(name)))
	}
	slices.Sort(found)
	return slices.Compact(found)
}
