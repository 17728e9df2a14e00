// Package egress lets requests out to addresses on the Internet only. Who can make the operator send a
// request must not be able to choose what inside the cluster, or which metadata service of a cloud, gets
// it.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The limits of one request.
const (
	// MaxRedirects is how many redirects are followed; each is judged anew.
	MaxRedirects = 10
	dialTimeout  = 10 * time.Second
	tlsTimeout   = 10 * time.Second
	totalTimeout = 30 * time.Second
)

// ErrForbidden is what a request to an address inside fails with.
var ErrForbidden = errors.New("the address is not on the Internet")

// ErrPlainHTTP is what a request without TLS fails with: it would show whoever carries it a credential.
var ErrPlainHTTP = errors.New("plain http goes to allowed hosts only")

// inside are the networks that nothing is sent to, from IANA's registries of special-purpose addresses
// (https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry). Those
// that carry an IPv4 address are refused whole: the inner one would have to be judged as well, and no
// provider needs them.
var inside = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
	"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public tells whether an address is on the Internet. An IPv4 address in IPv6's clothes is judged as
// what it is.
func Public(address netip.Addr) bool {
	address = address.Unmap()
	if !address.IsValid() || address.Zone() != "" {
		return false
	}
	return !slices.ContainsFunc(inside, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Guard is an http.RoundTripper that judges where a request goes before it goes there: after the name
// was resolved, for every redirect, and also when a proxy carries it. It then connects to the address that
// it judged, so that a name cannot mean one thing when it is judged and another when it is dialled. A
// proxy is given the address as well, and not the name, for the same reason.
type Guard struct {
	// Allowed are hosts that may be inside, as they stand in a URL: "keystone.openstack.svc:5000", or
	// without a port for each of its ports. For providers in the cluster, which alone may lack TLS.
	Allowed []string
	// Proxy chooses the proxy of a request; nil uses none. http.ProxyFromEnvironment is one. The proxy
	// itself is not judged: whoever runs the operator chose it.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is the configuration that connections start from; nil is the default one.
	TLS *tls.Config
	// Resolve resolves a name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Client is an http.Client behind the guard, with all of the limits of a request.
func (g *Guard) Client() *http.Client {
	return &http.Client{
		Transport: g,
		Timeout:   totalTimeout,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > MaxRedirects {
				return fmt.Errorf("more than %d redirects", MaxRedirects)
			}
			return nil
		},
	}
}

// RoundTrip implements http.RoundTripper. A request to an address inside fails with ErrForbidden, one
// without TLS with ErrPlainHTTP, unless the host is allowed.
func (g *Guard) RoundTrip(request *http.Request) (*http.Response, error) {
	address, err := g.judge(request.Context(), request.URL)
	if err != nil {
		return nil, err
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.TLS != nil {
		tlsConfig = g.TLS.Clone()
	}
	tlsConfig.ServerName = request.URL.Hostname()
	transport := &http.Transport{
		Proxy: func(*http.Request) (*url.URL, error) {
			if g.Proxy == nil {
				return nil, nil
			}
			return g.Proxy(request) // by the name: NO_PROXY lists names
		},
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: tlsTimeout,
		TLSClientConfig:     tlsConfig,
		ForceAttemptHTTP2:   true,
		// A connection is good for the name it was judged for, and the transport would hand it to whoever
		// asks for the address.
		DisableKeepAlives: true,
	}
	sent := request.Clone(request.Context())
	sent.Host = request.Host
	if sent.Host == "" {
		sent.Host = request.URL.Host
	}
	sent.URL.Host = net.JoinHostPort(address.String(), port(request.URL))
	return transport.RoundTrip(sent)
}

// judge resolves the host of a URL and returns the address to connect to. One bad address among many
// condemns the name: whoever answers for it would only have to be asked often enough.
func (g *Guard) judge(ctx context.Context, target *url.URL) (netip.Addr, error) {
	if target.Scheme != "https" && target.Scheme != "http" {
		return netip.Addr{}, fmt.Errorf("%q is neither http nor https", target.Scheme)
	}
	host := target.Hostname()
	addresses, err := g.resolve(ctx, host)
	if err != nil {
		return netip.Addr{}, err
	}
	if len(addresses) == 0 {
		return netip.Addr{}, fmt.Errorf("%s has no address", host)
	}
	if !g.allowed(target) {
		for _, address := range addresses {
			if !Public(address) {
				return netip.Addr{}, fmt.Errorf("%s: %w", host, ErrForbidden)
			}
		}
		if target.Scheme != "https" {
			return netip.Addr{}, fmt.Errorf("%s: %w", host, ErrPlainHTTP)
		}
	}
	return addresses[0].Unmap(), nil
}

func (g *Guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	if g.Resolve != nil {
		return g.Resolve(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// CheckURL says what is wrong with a URL that a configuration names, without the URL, which may hold a secret: it has
// to be absolute, and https, or http where Allowed names the host.
func (g *Guard) CheckURL(text string) error {
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Hostname() == "" || target.User != nil || target.Scheme != "http" && target.Scheme != "https":
		return errors.New("it is no absolute http or https URL")
	case target.Scheme == "http" && !g.allowed(target):
		return errors.New("it is http, which is for hosts inside the cluster only (--egress-allow)")
	}
	return nil
}

func (g *Guard) allowed(target *url.URL) bool {
	host := target.Hostname()
	return slices.ContainsFunc(g.Allowed, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, net.JoinHostPort(host, port(target)))
	})
}

func port(target *url.URL) string {
	switch {
	case target.Port() != "":
		return target.Port()
	case target.Scheme == "http":
		return "80"
	default:
		return "443"
	}
}
