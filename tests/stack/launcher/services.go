package launcher

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

// service is a component that runs as a process of the stack.
type service struct {
	name  string
	group string
	// endpoint is where it answers, for people.
	endpoint string
	version  func(context.Context) string
	command  []string
	env      []string
	// healthy says whether it does its work, not only whether it runs.
	healthy func(context.Context) error
	// patience is how long it may take to become healthy on a slow machine, expected what is usual.
	patience, expected time.Duration
}

// services lists every process of the stack, in the order in which `status` shows them.
func (s *Stack) services() []service {
	list := append(s.kubeServices(), s.keystoneServices()...)
	list = append(list, s.kvServices()...)
	return append(list, s.controllerServices()...)
}

func (s *Stack) service(name string) (service, error) {
	var names []string
	for _, svc := range s.services() {
		if svc.name == name {
			return svc, nil
		}
		names = append(names, svc.name)
	}
	return service{}, fmt.Errorf("no component %q: one of %s", name, strings.Join(names, ", "))
}

func (s *Stack) logFile(name string) string { return s.path("logs", name+".log") }

// ensure starts a service with its present command and waits until it is healthy.
func (s *Stack) ensure(ctx context.Context, svc service) (err error) {
	process := supervisor.Process{Name: svc.name, Argv: svc.command, Env: svc.env, Log: s.logFile(svc.name)}
	running, err := s.client.Statuses(ctx)
	if err != nil {
		return err
	}
	old := running[svc.name]
	if old.State != "" && old.State != supervisor.Stopped && !sameCommand(old, process) {
		s.Board.Say("%s runs with another version or setting: restarting it", svc.name)
		if _, err := s.client.Stop(ctx, svc.name, 20*time.Second); err != nil {
			return err
		}
	}
	if old.State == supervisor.Running && sameCommand(old, process) && svc.healthy(ctx) == nil {
		return nil
	}
	task := s.Board.Start("starting "+svc.name, svc.expected)
	defer func() { task.Done(err) }()
	if _, err := s.client.Start(ctx, process); err != nil {
		return err
	}
	err = s.poll(ctx, svc.patience, func(ctx context.Context) error {
		if err := svc.healthy(ctx); err != nil {
			return err
		}
		// Another process may have answered on its port: the one of an `up` before this.
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s is not healthy: %w\nlast lines of %s:\n%s", svc.name, err, process.Log, lastLines(process.Log, 15))
	}
	return nil
}

func sameCommand(old supervisor.Status, p supervisor.Process) bool {
	return strings.Join(old.Argv, "\x00") == strings.Join(p.Argv, "\x00") &&
		strings.Join(old.Env, "\x00") == strings.Join(p.Env, "\x00")
}

func lastLines(file string, n int) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 16<<10 {
		_, _ = f.Seek(-16<<10, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// answers checks that a URL answers 200. TLS is not verified: these are health endpoints of
// components with certificates that they signed themselves.
func answers(url string) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %d", url, response.StatusCode)
		}
		return nil
	}
}

// accepts checks that something listens on a unix socket.
func accepts(socket string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

func constant(version string) func(context.Context) string {
	return func(context.Context) string { return version }
}

// printed takes the version from what a program prints.
func printed(pick func(string) string, name string, arguments ...string) func(context.Context) string {
	return func(ctx context.Context) string {
		out, err := exec.CommandContext(ctx, name, arguments...).Output()
		if err != nil {
			return "?"
		}
		return pick(strings.TrimSpace(string(out)))
	}
}

// field picks the n-th word.
func field(n int) func(string) string {
	return func(text string) string {
		if words := strings.Fields(text); len(words) > n {
			return words[n]
		}
		return "?"
	}
}

// getAPI reads an object of the stack's Kubernetes API as its administrator.
func (s *Stack) getAPI(ctx context.Context, path string, into any) error {
	pair, err := tls.LoadX509KeyPair(s.path("pki/admin.crt"), s.path("pki/admin.key"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(s.path("pki/ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New("pki/ca.crt holds no certificate")
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.apiServer()+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers %d for %s", response.StatusCode, path)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func (s *Stack) apiServer() string { return "https://" + s.address(6443) }

// nodeReady checks the condition that makes pods be scheduled.
func (s *Stack) nodeReady(ctx context.Context) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := s.getAPI(ctx, "/api/v1/nodes/"+nodeName, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" {
			if c.Status == "True" {
				return nil
			}
			return fmt.Errorf("the node is not ready: %s", c.Message)
		}
	}
	return errors.New("the node has not reported yet")
}
