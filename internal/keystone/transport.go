// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
)

// maxAnswer bounds an answer, in bytes. The largest one, a user with thousands of application
// credentials, stays far below it; something that sends more is no Keystone.
const maxAnswer = 16 << 20

// newHTTPClient makes the client of one session. Without a transport it makes one, and ca is PEM and is trusted instead of the system's roots,
// as K-ORC does: what the operator accepts and K-ORC does not would pass the login that vouches for an
// administrator's cloud, and then fail for every order.
//
// Connections are not reused. A Keystone behind a server that closes each connection after its
// answer without saying so (no "Connection: close") resets a request that reuses one, and a login
// is a POST: net/http does not repeat it by itself, and repeating it ourselves would mean retrying
// a request that may have been carried out. The operator asks Keystone rarely, so a handshake per
// request is cheaper than that doubt.
//
// Redirects are not followed: 307 and 308 would carry the password, and any of them the token
// (net/http strips Authorization from a request to another host, not X-Auth-Token), to an address
// that nobody configured.
func newHTTPClient(transport http.RoundTripper, ca []byte) (*http.Client, *Error) {
	if transport == nil {
		own, err := newTransport(ca)
		if err != nil {
			return nil, err
		}
		transport = own
	}
	return &http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func newTransport(ca []byte) (*http.Transport, *Error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, &Error{Class: TLSVerificationFailed, Message: "the CA bundle holds no PEM certificate"}
		}
		config.RootCAs = roots
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true}, nil
}

// bounded cuts answers off at maxAnswer.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxAnswer), response.Body}
	return response, nil
}
