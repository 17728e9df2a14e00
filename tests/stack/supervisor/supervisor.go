// Package supervisor starts and watches the processes of one stack.
//
// The supervisor is the first process of the stack's own network, mount and process namespaces. That
// makes it the truth about what runs (no pid file can go stale: when it does not answer, nothing of
// the stack is alive), and it makes teardown certain: when the first process of a process namespace
// ends, the kernel kills every other one, pods included, and drops the mounts and interfaces.
// Rejected: pid files in the state folder with a check of start times, and `nsenter` for each program.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a program that is kept running.
type Process struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	// Env is added to the supervisor's own small environment.
	Env []string `json:"env,omitempty"`
	// Log is the file that takes standard output and error; it is appended to.
	Log string `json:"log"`
}

// State says what became of a process.
type State string

// States of a process.
const (
	// Running means that it was started and has not ended.
	Running State = "running"
	// Restarting means that it ended by itself and is started again after a pause.
	Restarting State = "restarting"
	// Stopped means that it was stopped or killed by request and stays down.
	Stopped State = "stopped"
)

// Status is what the supervisor knows about a process.
type Status struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"` // as seen inside the stack
	Started  time.Time `json:"started,omitzero"`
	Restarts int       `json:"restarts"`
	// LastExit describes how it ended last, empty when it never did.
	LastExit string   `json:"lastExit,omitempty"`
	Argv     []string `json:"argv"`
	Env      []string `json:"env,omitempty"`
	Log      string   `json:"log"`
}

// Result is what a command that ran to its end left.
type Result struct {
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output"`
}

const (
	firstPause = time.Second
	longPause  = 10 * time.Second
	// healthyAfter is how long a process must have run for the next pause to be the short one.
	healthyAfter = 30 * time.Second
	maxLogSize   = 64 << 20
)

type child struct {
	process  Process
	status   Status
	exited   chan struct{} // closed when the present run ends
	wanted   bool
	failures int
}

type server struct {
	environment []string

	mu       sync.Mutex
	children map[string]*child
	waiters  map[int]chan syscall.WaitStatus
}

// Serve runs the supervisor on the listener until a client asks it to end. It must be the first
// process of its namespace, since it collects orphans.
func Serve(listener net.Listener, environment []string) error {
	s := &server{environment: environment, children: map[string]*child{}, waiters: map[int]chan syscall.WaitStatus{}}
	go s.reap()
	mux := http.NewServeMux()
	quit := make(chan struct{})
	mux.HandleFunc("POST /start", handle(func(p Process) (Status, error) { return s.start(p) }))
	mux.HandleFunc("POST /stop", handle(func(r stopRequest) (Status, error) { return s.stop(r) }))
	mux.HandleFunc("POST /run", handle(func(r runRequest) (Result, error) { return s.run(r) }))
	mux.HandleFunc("POST /status", handle(func(struct{}) ([]Status, error) { return s.statuses(), nil }))
	mux.HandleFunc("POST /quit", handle(func(struct{}) (bool, error) { close(quit); return true, nil }))
	go func() {
		<-quit
		time.Sleep(50 * time.Millisecond) // lets the answer leave
		os.Exit(0)
	}()
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}

type stopRequest struct {
	Name string `json:"name"`
	// Signal is sent first; SIGKILL follows after Patience.
	Signal   int           `json:"signal"`
	Patience time.Duration `json:"patience"`
}

type runRequest struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
}

func handle[In, Out any](do func(In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := do(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

// reap collects every child that ends: the stack's own and the orphans (container shims). Waiting
// for single children as os/exec does would race with that, so nothing here uses os/exec.
func (s *server) reap() {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD)
	for range signals {
		for {
			var status syscall.WaitStatus
			// The lock also covers starting: a child that ends at once is not collected before its
			// pid is known.
			s.mu.Lock()
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			waiter := s.waiters[pid]
			delete(s.waiters, pid)
			s.mu.Unlock()
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if pid <= 0 || err != nil {
				break
			}
			if waiter != nil {
				waiter <- status
			}
		}
	}
}

// spawn starts a program; the caller holds the lock.
func (s *server) spawn(argv, env []string, output *os.File) (int, chan syscall.WaitStatus, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	path := argv[0]
	if !strings.Contains(path, "/") {
		if path, err = lookPath(path); err != nil {
			return 0, nil, err
		}
	}
	process, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir:   "/",
		Env:   append(slices.Clone(s.environment), env...),
		Files: []*os.File{null, output, output},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, err
	}
	pid := process.Pid
	_ = process.Release()
	waiter := make(chan syscall.WaitStatus, 1)
	s.waiters[pid] = waiter
	return pid, waiter, nil
}

func lookPath(name string) (string, error) {
	for _, folder := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		path := folder + "/" + name
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// start starts a process, or leaves it alone when it already runs with the same command.
func (s *server) start(p Process) (Status, error) {
	if p.Name == "" || len(p.Argv) == 0 || p.Log == "" {
		return Status{}, errors.New("a process needs a name, a command and a log file")
	}
	s.mu.Lock()
	c := s.children[p.Name]
	if c != nil && c.wanted {
		same := slices.Equal(c.process.Argv, p.Argv) && slices.Equal(c.process.Env, p.Env)
		status := c.status
		s.mu.Unlock()
		if !same {
			return Status{}, fmt.Errorf("%s already runs with another command: stop it first", p.Name)
		}
		return status, nil
	}
	defer s.mu.Unlock()
	if c == nil {
		c = &child{}
		s.children[p.Name] = c
	}
	c.process, c.wanted, c.failures = p, true, 0
	if err := s.launch(c); err != nil {
		c.wanted = false
		return Status{}, fmt.Errorf("starting %s: %w", p.Name, err)
	}
	return c.status, nil
}

// launch starts one run of a child; the caller holds the lock.
func (s *server) launch(c *child) error {
	if info, err := os.Stat(c.process.Log); err == nil && info.Size() > maxLogSize {
		_ = os.Rename(c.process.Log, c.process.Log+".old")
	}
	log, err := os.OpenFile(c.process.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s starts at %s\n", c.process.Name, time.Now().UTC().Format(time.RFC3339))
	pid, waiter, err := s.spawn(c.process.Argv, c.process.Env, log)
	if err != nil {
		return err
	}
	c.exited = make(chan struct{})
	c.status = Status{
		Name: c.process.Name, State: Running, PID: pid, Started: time.Now(),
		Restarts: c.status.Restarts, LastExit: c.status.LastExit,
		Argv: c.process.Argv, Env: c.process.Env, Log: c.process.Log,
	}
	go s.watch(c, waiter)
	return nil
}

// watch waits for the end of one run and starts the next, as a kubelet would for a pod.
func (s *server) watch(c *child, waiter chan syscall.WaitStatus) {
	status := <-waiter
	s.mu.Lock()
	c.status.LastExit = describe(status)
	c.status.PID = 0
	ran := time.Since(c.status.Started)
	close(c.exited)
	if !c.wanted {
		c.status.State = Stopped
		s.mu.Unlock()
		return
	}
	if ran > healthyAfter {
		c.failures = 0
	}
	pause := min(firstPause<<min(c.failures, 8), longPause)
	c.failures++
	c.status.State = Restarting
	s.mu.Unlock()

	time.Sleep(pause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.wanted || c.status.State != Restarting {
		return
	}
	c.status.Restarts++
	if err := s.launch(c); err != nil {
		c.wanted = false
		c.status.State, c.status.LastExit = Stopped, err.Error()
	}
}

func (s *server) stop(r stopRequest) (Status, error) {
	s.mu.Lock()
	c := s.children[r.Name]
	if c == nil {
		s.mu.Unlock()
		return Status{}, fmt.Errorf("%s was never started", r.Name)
	}
	c.wanted = false
	if c.status.State != Running {
		c.status.State = Stopped
		defer s.mu.Unlock()
		return c.status, nil
	}
	pid, exited := c.status.PID, c.exited
	if syscall.Signal(r.Signal) == syscall.SIGKILL {
		killGroup(pid)
	} else {
		_ = syscall.Kill(pid, syscall.Signal(r.Signal))
	}
	s.mu.Unlock()
	select {
	case <-exited:
	case <-time.After(r.Patience):
		killGroup(pid)
		<-exited
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.status, nil
}

// killGroup kills a process with its workers (each child leads a group of its own). Containers are
// not among them: containerd's shims leave the group on purpose.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// run runs a command to its end and returns what it printed.
func (s *server) run(r runRequest) (Result, error) {
	if len(r.Argv) == 0 {
		return Result{}, errors.New("no command")
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return Result{}, err
	}
	defer reader.Close()
	s.mu.Lock()
	_, waiter, err := s.spawn(r.Argv, r.Env, writer)
	s.mu.Unlock()
	writer.Close()
	if err != nil {
		return Result{}, err
	}
	output, _ := io.ReadAll(reader)
	status := <-waiter
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return Result{ExitCode: code, Output: string(output)}, nil
}

func (s *server) statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, 0, len(s.children))
	for _, c := range s.children {
		all = append(all, c.status)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
