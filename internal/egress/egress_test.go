package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/c5c3/c5c3-operator/internal/egress"
)

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"140.82.121.6": true, "8.8.8.8": true, "172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true, "2606:4700::1": true, "2a00:1450:4001::200e": true, "::ffff:8.8.8.8": true,

		"0.0.0.0": false, "0.1.2.3": false, "127.0.0.1": false, "127.255.255.254": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "192.0.0.8": false, "198.18.0.1": false,
		"198.19.255.255": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::127.0.0.1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"64:ff9b::7f00:1": false, "2001:db8::1": false, "100::1": false, "2002:7f00:1::": false, "2001:0:7f00:1::": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:10.0.0.1": false,
	} {
		if got := egress.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) is %t", text, got)
		}
	}
	if egress.Public(netip.Addr{}) {
		t.Error("no address at all is public")
	}
}

// resolver answers from a table, and fails for what is not in it.
func resolver(table map[string][]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		var addresses []netip.Addr
		for _, text := range table[host] {
			addresses = append(addresses, netip.MustParseAddr(text))
		}
		if addresses == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return addresses, nil
	}
}

// server counts the requests that reach it.
func server(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	hits := new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s, hits
}

// get is what a server answers through a guard.
func get(t *testing.T, guard *egress.Guard, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := guard.Client().Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestGuard_refuses_what_leads_inside(t *testing.T) {
	target, hits := server(t, func(http.ResponseWriter, *http.Request) {})
	port := target.URL[strings.LastIndex(target.URL, ":"):]
	guard := &egress.Guard{Resolve: resolver(map[string][]string{
		"inside.example": {"127.0.0.1"}, "mixed.example": {"8.8.8.8", "127.0.0.1"}, "mapped.example": {"::ffff:127.0.0.1"},
	})}
	for _, address := range []string{
		target.URL, "http://localhost.example" + port, "http://inside.example" + port, "http://mixed.example" + port, "http://mapped.example" + port,
		"http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://0.0.0.0" + port, "http://169.254.169.254/latest/meta-data",
		"ftp://8.8.8.8", "file:///etc/passwd",
	} {
		if _, err := get(t, guard, address); err == nil {
			t.Errorf("%s was let out", address)
		}
	}
	if _, err := get(t, guard, "http://inside.example"+port); !errors.Is(err, egress.ErrForbidden) {
		t.Errorf("the error is %v, want ErrForbidden", err)
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
}

// Credentials travel in these requests.
func TestGuard_sends_nothing_over_plain_http_to_the_Internet(t *testing.T) {
	table := map[string][]string{"api.example": {"8.8.8.8"}}
	guard := &egress.Guard{Resolve: resolver(table), Proxy: func(*http.Request) (*url.URL, error) {
		t.Error("it was on its way")
		return nil, errors.New("no proxy")
	}}
	if _, err := get(t, guard, "http://api.example/token"); !errors.Is(err, egress.ErrPlainHTTP) {
		t.Errorf("it ended with %v", err)
	}
	sent := errors.New("sent")
	guard = &egress.Guard{Allowed: []string{"api.example:80"}, Resolve: resolver(table), Proxy: func(*http.Request) (*url.URL, error) { return nil, sent }}
	if _, err := get(t, guard, "http://api.example/token"); !errors.Is(err, sent) {
		t.Errorf("to an allowed host it ended with %v", err)
	}
}

func TestGuard_lets_in_what_is_allowed(t *testing.T) {
	target, _ := server(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	port := target.URL[strings.LastIndex(target.URL, ":")+1:]
	resolve := resolver(map[string][]string{"keystone.openstack.svc": {"127.0.0.1"}, "other.openstack.svc": {"127.0.0.1"}})
	for _, allowed := range []string{"keystone.openstack.svc", "Keystone.OpenStack.svc:" + port} {
		guard := &egress.Guard{Allowed: []string{allowed}, Resolve: resolve}
		host, err := get(t, guard, "http://keystone.openstack.svc:"+port)
		if err != nil {
			t.Errorf("allowed as %s: %v", allowed, err)
			continue
		}
		if host != "keystone.openstack.svc:"+port {
			t.Errorf("the server was asked as %q", host)
		}
		if _, err := get(t, guard, "http://other.openstack.svc:"+port); !errors.Is(err, egress.ErrForbidden) {
			t.Errorf("another host: %v", err)
		}
	}
	guard := &egress.Guard{Allowed: []string{"keystone.openstack.svc:1"}, Resolve: resolve}
	if _, err := get(t, guard, "http://keystone.openstack.svc:"+port); !errors.Is(err, egress.ErrForbidden) {
		t.Errorf("another port: %v", err)
	}
}

func TestGuard_judges_every_redirect(t *testing.T) {
	target, hits := server(t, func(http.ResponseWriter, *http.Request) {})
	redirecting, _ := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, http.StatusFound) })
	address, err := url.Parse(redirecting.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, &egress.Guard{Allowed: []string{address.Host}}, redirecting.URL); !errors.Is(err, egress.ErrForbidden) {
		t.Errorf("the redirect ended with %v", err)
	}
	if hits.Load() != 0 {
		t.Error("the redirect arrived inside")
	}

	endless, turns := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	if _, err := get(t, &egress.Guard{Allowed: []string{"127.0.0.1"}}, endless.URL); err == nil {
		t.Error("an endless redirect ended well")
	}
	if turns.Load() != egress.MaxRedirects+1 {
		t.Errorf("%d requests were made, want the first and %d redirects", turns.Load(), egress.MaxRedirects)
	}
}

// A proxy would resolve the name by itself, and could be given another answer than we were.
func TestGuard_tells_a_proxy_the_address_and_not_the_name(t *testing.T) {
	asked := make(chan string, 10)
	proxy, hits := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.RequestURI
		http.Error(w, "not today", http.StatusBadGateway)
	})
	proxyURL, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	guard := &egress.Guard{
		Proxy:   http.ProxyURL(proxyURL),
		Resolve: resolver(map[string][]string{"api.example": {"140.82.121.6"}, "inside.example": {"10.0.0.1"}}),
	}
	if _, err := get(t, guard, "https://api.example/user"); err == nil {
		t.Error("a refused CONNECT ended well")
	}
	if got := <-asked; got != "CONNECT 140.82.121.6:443" {
		t.Errorf("the proxy was asked for %q", got)
	}
	if _, err := get(t, guard, "https://inside.example/user"); !errors.Is(err, egress.ErrForbidden) {
		t.Errorf("through the proxy: %v", err)
	}
	if hits.Load() != 1 {
		t.Errorf("the proxy got %d requests", hits.Load())
	}
}

func TestGuard_checks_the_certificate_of_the_name(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(target.Close)
	roots := x509.NewCertPool()
	roots.AddCert(target.Certificate())
	_, port, err := net.SplitHostPort(target.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	guard := &egress.Guard{
		Allowed: []string{"example.com", "other.test"}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Resolve: resolver(map[string][]string{"example.com": {"127.0.0.1"}, "other.test": {"127.0.0.1"}}),
	}
	if _, err := get(t, guard, "https://example.com:"+port); err != nil {
		t.Errorf("the name that the certificate is for: %v", err) // httptest's certificate is for example.com
	}
	var wrongName x509.HostnameError
	if _, err := get(t, guard, "https://other.test:"+port); !errors.As(err, &wrongName) {
		t.Errorf("another name: %v", err)
	}
}
