// Package faultproxy stands before the stack's Keystone and breaks it on request.
//
// Without a fault it joins the two connections byte for byte and closes one when the other closes:
// how Keystone's server treats connections is itself a thing that tests are about, so the proxy must
// not tidy it up. Only a fault makes it look at the requests.
//
// Over TLS it is what terminates TLS before a real Keystone: it reads every request. The present fault
// is the same on both ports.
package faultproxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// Mode says what happens to a request.
type Mode string

// Modes of a fault.
const (
	// None passes everything through.
	None Mode = "none"
	// Unavailable answers 503 with Keystone's JSON error body.
	Unavailable Mode = "503"
	// NotFoundHTML answers 404 with a web page: a proxy's or an ingress's 404, which says nothing
	// about what Keystone holds.
	NotFoundHTML Mode = "404-html"
	// Reset drops the connection instead of answering; Keystone never sees the request.
	Reset Mode = "reset"
	// LostAnswer lets Keystone do the work and drops the connection instead of its answer.
	LostAnswer Mode = "lost-answer"
	// Delay passes the request on after a pause.
	Delay Mode = "delay"
)

// Modes lists every mode that a fault can have.
var Modes = []Mode{None, Unavailable, NotFoundHTML, Reset, LostAnswer, Delay}

// Fault says which requests break, and how.
type Fault struct {
	Mode Mode `json:"mode"`
	// Method and Path limit the fault to requests of that method and to paths that the regular
	// expression matches; empty means all. Other requests pass.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Times ends the fault after so many broken requests; 0 means never.
	Times int64 `json:"times,omitempty"`
	// Pause is how long Delay waits.
	Pause time.Duration `json:"pause,omitempty"`
}

// Report is what the proxy says about itself.
type Report struct {
	Fault Fault `json:"fault"`
	// Broken counts the requests that the present fault broke.
	Broken int64 `json:"broken"`
}

// Proxy joins clients with one upstream address.
type Proxy struct {
	upstream string
	reverse  *httputil.ReverseProxy

	mu     sync.Mutex
	fault  Fault
	path   *regexp.Regexp
	broken *atomic.Int64 // of the present fault
	joined map[net.Conn]struct{}
}

// New makes a proxy for an upstream host:port. It starts without a fault.
func New(upstream string) *Proxy {
	p := &Proxy{upstream: upstream, fault: Fault{Mode: None}, broken: new(atomic.Int64), joined: map[net.Conn]struct{}{}}
	p.reverse = &httputil.ReverseProxy{
		// SetURL alone would send the upstream's own address as Host, and Keystone builds its links
		// from that header.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: upstream})
			r.Out.Host = r.In.Host
			if r.In.TLS != nil {
				// Keystone would link to http otherwise, at a port that speaks TLS.
				r.Out.Header.Set("X-Forwarded-Proto", "https")
			}
		},
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	return p
}

// Set replaces the present fault. Connections that are open are dropped: they were made under other rules.
func (p *Proxy) Set(f Fault) error {
	known := false
	for _, m := range Modes {
		known = known || m == f.Mode
	}
	if !known {
		return fmt.Errorf("no fault %q: one of %v", f.Mode, Modes)
	}
	path, err := regexp.Compile(f.Path)
	if err != nil {
		return fmt.Errorf("path of the fault: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.path, p.broken = f, path, new(atomic.Int64)
	for conn := range p.joined {
		drop(conn)
	}
	return nil
}

// Report returns the present fault and what it did.
func (p *Proxy) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Report{Fault: p.fault, Broken: p.broken.Load()}
}

// Serve accepts connections until the listener is closed.
func (p *Proxy) Serve(listener net.Listener) error {
	inspected := &queue{connections: make(chan net.Conn), closed: make(chan struct{}), address: listener.Addr()}
	defer inspected.Close()
	go func() { _ = p.server().Serve(inspected) }()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		p.mu.Lock()
		mode := p.fault.Mode
		p.mu.Unlock()
		if mode == None {
			go p.join(conn)
			continue
		}
		inspected.connections <- conn
	}
}

// ServeTLS accepts connections until the listener is closed. The certificate is read at each handshake:
// one that was signed anew needs no restart.
func (p *Proxy) ServeTLS(listener net.Listener, certFile, keyFile string) error {
	return p.server().Serve(tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			return &pair, err
		},
	}))
}

func (p *Proxy) server() *http.Server {
	server := &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second}
	// Every request decides anew whether it is broken.
	server.SetKeepAlivesEnabled(false)
	return server
}

// join copies both ways. When Keystone closes, the client's connection is closed at once, as if it
// had been connected to Keystone itself.
func (p *Proxy) join(client net.Conn) {
	defer client.Close()
	upstream, err := net.DialTimeout("tcp", p.upstream, 5*time.Second)
	if err != nil {
		// Nobody listens: a reset is the nearest thing to a refused connection that can be had once
		// the connection is accepted.
		drop(client)
		return
	}
	defer upstream.Close()
	p.mu.Lock()
	p.joined[client] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.joined, client)
		p.mu.Unlock()
	}()
	go func() {
		_, err := io.Copy(upstream, client)
		if err != nil {
			drop(upstream)
			return
		}
		_ = upstream.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(client, upstream); err != nil {
		drop(client)
	}
}

// ServeHTTP handles the requests that came while there was a fault, and all that came over TLS.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, broken := p.judge(r)
	if !broken {
		p.reverse.ServeHTTP(w, r)
		return
	}
	switch fault.Mode {
	case Unavailable:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
			"code": 503, "title": "Service Unavailable", "message": "The stack's fault proxy was told to answer so.",
		}})
	case NotFoundHTML:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html><body><h1>404 Not Found</h1></body></html>\n")
	case Delay:
		select {
		case <-time.After(fault.Pause):
			p.reverse.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	case LostAnswer:
		p.reverse.ServeHTTP(&discarded{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
		hijackAndDrop(w)
	default:
		hijackAndDrop(w)
	}
}

func (p *Proxy) judge(r *http.Request) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fault
	if f.Mode == None || (f.Method != "" && f.Method != r.Method) || !p.path.MatchString(r.URL.Path) {
		return f, false
	}
	if f.Times > 0 && p.broken.Load() >= f.Times {
		return f, false
	}
	p.broken.Add(1)
	return f, true
}

// Control is the handler of the control socket: GET reports, PUT sets a fault.
func (p *Proxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fault", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(p.Report())
	})
	mux.HandleFunc("PUT /fault", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := p.Set(f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(p.Report())
	})
	return mux
}

// drop closes a connection with a reset instead of a goodbye.
func drop(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func hijackAndDrop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	drop(conn)
}

// discarded is an answer that nobody gets.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(int)             {}

// queue is a listener that is fed by hand.
type queue struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
	address     net.Addr
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.connections:
		return conn, nil
	case <-q.closed:
		return nil, errors.New("closed")
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *queue) Addr() net.Addr { return q.address }
