package supervisor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests run the supervisor inside the test's own process, where it collects that process's
// children; nothing else in this package starts any.
func serve(t *testing.T) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = Serve(listener, []string{"PATH=/usr/bin:/bin"}) }()
	t.Cleanup(func() { listener.Close() })
	return Dial(socket)
}

func eventually(t *testing.T, c *Client, name string, want func(Status) bool) Status {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		all, err := c.Statuses(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if want(all[name]) {
			return all[name]
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never got there: %+v", name, all[name])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestSupervisor(t *testing.T) {
	ctx := context.Background()
	client := serve(t)
	folder := t.TempDir()
	sleeper := Process{Name: "sleeper", Argv: []string{"sleep", "600"}, Log: filepath.Join(folder, "sleeper.log")}

	t.Run("runs a command and returns its output", func(t *testing.T) {
		out, err := client.Run(ctx, []string{"A=b"}, "sh", "-c", "echo $A; echo c >&2")
		if err != nil || out != "b\nc\n" {
			t.Errorf("got %q, %v", out, err)
		}
	})
	t.Run("a command that fails is an error with its output", func(t *testing.T) {
		_, err := client.Run(ctx, nil, "sh", "-c", "echo reason; exit 7")
		if err == nil || !strings.Contains(err.Error(), "7") || !strings.Contains(err.Error(), "reason") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("starting twice starts once", func(t *testing.T) {
		first, err := client.Start(ctx, sleeper)
		if err != nil {
			t.Fatal(err)
		}
		second, err := client.Start(ctx, sleeper)
		if err != nil || second.PID != first.PID {
			t.Errorf("got pid %d, then %d, %v", first.PID, second.PID, err)
		}
	})
	t.Run("another command under the same name is refused", func(t *testing.T) {
		other := sleeper
		other.Argv = []string{"sleep", "601"}
		if _, err := client.Start(ctx, other); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("a killed process stays down until it is started", func(t *testing.T) {
		status, err := client.Kill(ctx, "sleeper")
		if err != nil || status.State != Stopped || status.LastExit != "killed by SIGKILL" {
			t.Fatalf("got %+v, %v", status, err)
		}
		if status, err := client.Start(ctx, sleeper); err != nil || status.State != Running {
			t.Errorf("got %+v, %v", status, err)
		}
	})
	t.Run("a process that ends by itself is started again", func(t *testing.T) {
		marker := filepath.Join(folder, "marker")
		script := "if [ -e " + marker + " ]; then exec sleep 600; fi; touch " + marker + "; exit 3"
		if _, err := client.Start(ctx, Process{Name: "crasher", Argv: []string{"sh", "-c", script}, Log: filepath.Join(folder, "c.log")}); err != nil {
			t.Fatal(err)
		}
		status := eventually(t, client, "crasher", func(s Status) bool { return s.Restarts == 1 && s.State == Running })
		if status.LastExit != "exit status 3" {
			t.Errorf("last exit reads %q", status.LastExit)
		}
	})
	t.Run("a process that ignores the request to end is killed", func(t *testing.T) {
		stubborn := Process{Name: "stubborn", Log: filepath.Join(folder, "s.log"),
			Argv: []string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}}
		if _, err := client.Start(ctx, stubborn); err != nil {
			t.Fatal(err)
		}
		status, err := client.Stop(ctx, "stubborn", 200*time.Millisecond)
		if err != nil || status.State != Stopped {
			t.Errorf("got %+v, %v", status, err)
		}
	})
	t.Run("knows its own process id", func(t *testing.T) {
		if pid, err := client.HostPID(); err != nil || pid != os.Getpid() {
			t.Errorf("got %d, %v", pid, err)
		}
	})
	for _, name := range []string{"sleeper", "crasher"} {
		if _, err := client.Kill(ctx, name); err != nil {
			t.Error(err)
		}
	}
}

func TestNotRunning(t *testing.T) {
	client := Dial(filepath.Join(t.TempDir(), "nothing"))
	if _, err := client.Statuses(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
	if _, err := client.HostPID(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}
