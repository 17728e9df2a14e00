package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

// stopOrder says which processes are asked to end, each list at once: first those that would complain
// about the loss of another, last those that keep data. Everything else dies with the namespaces.
var stopOrder = [][]string{{"korc", "eso", "kubelet"}, {"kube-apiserver", "keystone", "kv"}, {"etcd"}}

// Down ends everything of the stack and removes what it left outside the state folder; with purge,
// the state folder too. The cache stays. It verifies the result and reports what it could not remove.
func (s *Stack) Down(ctx context.Context, purge bool) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("the stack's namespaces belong to root: run this as root")
	}
	if _, err := os.Stat(s.State); err != nil {
		s.Board.Say("There is no stack %q in %s.", s.Name, s.State)
		return nil
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	task := s.Board.Start("taking the stack down", 5*time.Second)
	defer func() { task.Done(err) }()

	var namespaces []string
	if pid, err := s.client.HostPID(); err == nil {
		namespaces = namespacesOf(pid)
		if err := s.stopAll(ctx, pid); err != nil {
			return err
		}
	}
	_, _ = runHost(ctx, nil, "ip", "link", "del", s.Plan.Interface) // gone with the namespace, usually
	if err := s.removeCgroup(); err != nil {
		return err
	}
	points := slices.Clone(s.settings.MountPoints)
	// Another stack may have its own file systems on them by now: those stay, and on record.
	s.settings.MountPoints = slices.DeleteFunc(slices.Clone(points), func(folder string) bool { return !mountedAnywhere("/proc", folder) })
	points = slices.DeleteFunc(points, func(folder string) bool { return slices.Contains(s.settings.MountPoints, folder) })
	// Deepest first. A folder that something else uses by now is not empty, and stays.
	slices.SortFunc(points, func(a, b string) int { return len(b) - len(a) })
	for _, folder := range points {
		_ = unix.Rmdir(folder)
	}
	if err := os.RemoveAll(s.path("run")); err != nil {
		return err
	}
	// Not at once: the supervisor counts as ended a moment before the kernel has collected its threads.
	if err := s.poll(ctx, 10*time.Second, func(context.Context) error {
		if left := s.leftovers(namespaces, points); len(left) > 0 {
			return errors.New(strings.Join(left, "\n  "))
		}
		return nil
	}); err != nil {
		return fmt.Errorf("the stack is down, but this is left:\n  %w", err)
	}
	if purge {
		return os.RemoveAll(s.State)
	}
	return s.save()
}

// mountedAnywhere reports whether anybody has something mounted on a folder, in whatever mount namespace.
// An empty folder can be one: the kernel removes it all the same, and takes the mounts away from under
// whoever uses them.
func mountedAnywhere(proc, folder string) bool {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "mountinfo"))
	for _, file := range files {
		text, _ := os.ReadFile(file) // a process that is gone has nothing mounted
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 4 && words[4] == folder {
				return true
			}
		}
	}
	return false
}

// stopAll lets the processes that keep data end in peace and then ends the namespaces.
func (s *Stack) stopAll(ctx context.Context, pid int) error {
	statuses, err := s.client.Statuses(ctx)
	if err != nil && !errors.Is(err, supervisor.ErrNotRunning) {
		return err
	}
	for _, names := range stopOrder {
		var stopping sync.WaitGroup
		for _, name := range names {
			if statuses[name].State == supervisor.Running {
				// What does not end in time is killed.
				stopping.Go(func() { _, _ = s.client.Stop(ctx, name, 5*time.Second) })
			}
		}
		stopping.Wait()
	}
	_ = s.client.Quit(ctx)
	// The first process of the namespaces is gone only when the kernel has ended all the others.
	gone := func(context.Context) error {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || isZombie(pid) {
			return nil
		}
		return fmt.Errorf("the supervisor, process %d, has not ended", pid)
	}
	if s.poll(ctx, 5*time.Second, gone) == nil {
		return nil
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	return s.poll(ctx, 30*time.Second, gone)
}

// isZombie reports whether a process has ended and its parent has not looked yet.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(stat), ") ")
	return found && strings.HasPrefix(rest, "Z")
}

// leftovers lists what a stack that is down must not leave on the machine.
func (s *Stack) leftovers(namespaces, points []string) []string {
	var left []string
	for _, process := range processesIn(namespaces) {
		left = append(left, "process "+process)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err == nil {
		for line := range strings.Lines(string(mounts)) {
			if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[1], s.State+"/") {
				left = append(left, "mount "+words[1])
			}
		}
	}
	if _, err := os.Stat("/sys/class/net/" + s.Plan.Interface); err == nil {
		left = append(left, "network interface "+s.Plan.Interface)
	}
	folders, _ := s.cgroupFolders()
	for _, folder := range folders {
		if _, err := os.Stat(folder); err == nil {
			left = append(left, "control group "+folder)
		}
	}
	for _, folder := range points {
		if entries, err := os.ReadDir(folder); err == nil && len(entries) == 0 {
			left = append(left, "folder "+folder)
		}
	}
	return left
}
