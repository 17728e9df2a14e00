package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotRunning means that no supervisor listens: nothing of the stack is alive.
var ErrNotRunning = errors.New("the stack is not running")

// Client talks to the supervisor of one stack.
type Client struct {
	socket string
	http   *http.Client
}

// Dial makes a client for the supervisor that listens on the unix socket.
func Dial(socket string) *Client {
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
}

// HostPID returns the supervisor's process id as this process sees it, or ErrNotRunning.
func (c *Client) HostPID() (int, error) {
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		return 0, ErrNotRunning
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		// The kernel translates the listener's pid into the reader's namespace.
		credentials, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if sockErr != nil {
		return 0, sockErr
	}
	return int(credentials.Pid), nil
}

// Start starts a process unless it already runs with the same command.
func (c *Client) Start(ctx context.Context, p Process) (Status, error) {
	return call[Status](ctx, c, "start", p)
}

// Stop asks a process to end and kills it when it has not after patience.
func (c *Client) Stop(ctx context.Context, name string, patience time.Duration) (Status, error) {
	return call[Status](ctx, c, "stop", stopRequest{Name: name, Signal: int(syscall.SIGTERM), Patience: patience})
}

// Kill ends a process without a warning, as a crash does, and keeps it down.
func (c *Client) Kill(ctx context.Context, name string) (Status, error) {
	return call[Status](ctx, c, "stop", stopRequest{Name: name, Signal: int(syscall.SIGKILL), Patience: time.Minute})
}

// Run runs a command inside the stack. An exit status other than 0 is an error that holds the output.
func (c *Client) Run(ctx context.Context, env []string, argv ...string) (string, error) {
	result, err := call[Result](ctx, c, "run", runRequest{Argv: argv, Env: env})
	if err != nil {
		return "", fmt.Errorf("%s: %w", argv[0], err)
	}
	if result.ExitCode != 0 {
		return result.Output, fmt.Errorf("%s ended with %d: %s", argv[0], result.ExitCode, strings.TrimSpace(result.Output))
	}
	return result.Output, nil
}

// Statuses lists every process that was ever started.
func (c *Client) Statuses(ctx context.Context) (map[string]Status, error) {
	list, err := call[[]Status](ctx, c, "status", struct{}{})
	if err != nil {
		return nil, err
	}
	byName := make(map[string]Status, len(list))
	for _, s := range list {
		byName[s.Name] = s
	}
	return byName, nil
}

// Quit ends the supervisor and with it every process of the stack.
func (c *Client) Quit(ctx context.Context) error {
	_, err := call[bool](ctx, c, "quit", struct{}{})
	return err
}

func call[Out any](ctx context.Context, c *Client, verb string, in any) (Out, error) {
	var out Out
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://supervisor/"+verb, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
			return out, ErrNotRunning
		}
		return out, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return out, errors.New(strings.TrimSpace(string(text)))
	}
	err = json.NewDecoder(response.Body).Decode(&out)
	return out, err
}
