package faultproxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/tests/stack/pki"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func front(t *testing.T, upstream string) (*Proxy, string) {
	t.Helper()
	proxy, listener := New(upstream), listen(t)
	go func() { _ = proxy.Serve(listener) }()
	return proxy, listener.Addr().String()
}

func TestFaults(t *testing.T) {
	var seen atomic.Int64
	keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		_, _ = io.WriteString(w, r.Host)
	}))
	t.Cleanup(keystone.Close)
	proxy, address := front(t, strings.TrimPrefix(keystone.URL, "http://"))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	for name, c := range map[string]struct {
		fault        Fault
		method, path string
		status       int // 0: no answer
		contentType  string
		reached      int64
	}{
		"no fault passes":                       {Fault{Mode: None}, "GET", "/v3", 200, "", 1},
		"503 is Keystone's own form":            {Fault{Mode: Unavailable}, "GET", "/v3", 503, "application/json", 0},
		"a proxy's 404 is a page":               {Fault{Mode: NotFoundHTML}, "GET", "/v3", 404, "text/html", 0},
		"reset gives no answer":                 {Fault{Mode: Reset}, "GET", "/v3", 0, "", 0},
		"a lost answer reaches Keystone":        {Fault{Mode: LostAnswer}, "POST", "/v3", 0, "", 1},
		"delay passes in the end":               {Fault{Mode: Delay, Pause: time.Millisecond}, "GET", "/v3", 200, "", 1},
		"another method passes":                 {Fault{Mode: Unavailable, Method: "DELETE"}, "GET", "/v3", 200, "", 1},
		"another path passes":                   {Fault{Mode: Unavailable, Path: "^/v3/users"}, "GET", "/v3/auth", 200, "", 1},
		"the method and the path that it names": {Fault{Mode: Unavailable, Method: "DELETE", Path: "^/v3/users"}, "DELETE", "/v3/users/1", 503, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if err := proxy.Set(c.fault); err != nil {
				t.Fatal(err)
			}
			before := seen.Load()
			request, _ := http.NewRequest(c.method, "http://"+address+c.path, strings.NewReader("body"))
			response, err := client.Do(request)
			if got := seen.Load() - before; got != c.reached {
				t.Errorf("Keystone saw %d requests, want %d", got, c.reached)
			}
			if c.status == 0 {
				if err == nil {
					t.Fatalf("got an answer: %d", response.StatusCode)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != c.status || (c.contentType != "" && response.Header.Get("Content-Type") != c.contentType) {
				t.Errorf("got %d %s", response.StatusCode, response.Header.Get("Content-Type"))
			}
			if c.status == 200 && string(body) != address {
				t.Errorf("Keystone saw the host %q, want the one that the client used", body)
			}
		})
	}

	t.Run("a fault ends after its number of requests", func(t *testing.T) {
		if err := proxy.Set(Fault{Mode: Unavailable, Times: 2}); err != nil {
			t.Fatal(err)
		}
		var got []int
		for range 3 {
			response, err := client.Get("http://" + address)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			got = append(got, response.StatusCode)
		}
		if got[0] != 503 || got[1] != 503 || got[2] != 200 {
			t.Errorf("got %v", got)
		}
		if n := proxy.Report().Broken; n != 2 {
			t.Errorf("reports %d broken requests", n)
		}
	})
	t.Run("nonsense is refused", func(t *testing.T) {
		if proxy.Set(Fault{Mode: "flood"}) == nil || proxy.Set(Fault{Mode: Reset, Path: "("}) == nil {
			t.Error("accepted")
		}
	})
}

// A server that closes after each answer without saying so is what Keystone is without its
// `Connection: close` header. The proxy must not hide that from a client that keeps connections.
func TestPassThroughKeepsTheServersManners(t *testing.T) {
	upstream := listen(t)
	go func() {
		for {
			conn, err := upstream.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			conn.Close()
		}
	}()
	_, address := front(t, upstream.Addr().String())
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("the connection was not closed with the server's: %v", err)
	}
	if !strings.Contains(string(answer), "200 OK") || strings.Contains(string(answer), "close") {
		t.Errorf("the answer was changed: %q", answer)
	}
	// The second request on that connection must fail, as it does without the proxy.
	var failure error
	for deadline := time.Now().Add(10 * time.Second); failure == nil && time.Now().Before(deadline); {
		_, failure = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
	}
	if !errors.Is(failure, syscall.EPIPE) && !errors.Is(failure, syscall.ECONNRESET) {
		t.Errorf("writing to the closed connection gave %v", failure)
	}
}

func TestRefusedUpstream(t *testing.T) {
	gone := listen(t)
	address := gone.Addr().String()
	gone.Close()
	_, proxied := front(t, address)
	if response, err := http.Get("http://" + proxied); err == nil {
		response.Body.Close()
		t.Error("got an answer from nobody")
	}
}

// The suites on TLS share the stack with those that break Keystone, so a fault is a fault on both ports.
func TestOverTLS(t *testing.T) {
	keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto")+" "+r.Host)
	}))
	t.Cleanup(keystone.Close)
	authority, err := pki.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Leaf{Name: "keystone", CommonName: "keystone", IPs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	proxy, listener := New(strings.TrimPrefix(keystone.URL, "http://")), listen(t)
	go func() { _ = proxy.ServeTLS(listener, pair.CertFile, pair.KeyFile) }()
	url := "https://" + listener.Addr().String() + "/v3"
	get := func(roots *x509.CertPool) (int, string, error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
		response, err := client.Get(url)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	certificate, err := os.ReadFile(authority.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)

	if status, body, err := get(trusted); err != nil || status != 200 || body != "https "+listener.Addr().String() {
		t.Errorf("got %d %q, %v; want Keystone, which knows how it was reached", status, body, err)
	}
	var unknown x509.UnknownAuthorityError
	if _, _, err := get(x509.NewCertPool()); !errors.As(err, &unknown) {
		t.Errorf("a client without the CA got %v", err)
	}
	if err := proxy.Set(Fault{Mode: Unavailable}); err != nil {
		t.Fatal(err)
	}
	if status, _, err := get(trusted); err != nil || status != 503 {
		t.Errorf("with a fault of 503: %d, %v", status, err)
	}
	if err := proxy.Set(Fault{Mode: Reset}); err != nil {
		t.Fatal(err)
	}
	if status, _, err := get(trusted); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("with a reset: %d, %v", status, err)
	}
}
