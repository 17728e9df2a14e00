// SPDX-License-Identifier: Apache-2.0

package keystone

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
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Class is what an answer of Keystone, or its absence, means to the one who asked.
type Class string

const (
	// OK: Keystone did what it was asked.
	OK Class = "OK"
	// AuthenticationFailed: Keystone answered 401. For a login with an application credential that
	// is a wrong secret, a user without a role on the project or a disabled user; never that the
	// credential is gone.
	AuthenticationFailed Class = "AuthenticationFailed"
	// Forbidden: Keystone answered 403.
	Forbidden Class = "Forbidden"
	// NotFound: Keystone itself answered 404. A login with an application credential that is gone
	// ends here.
	NotFound Class = "NotFound"
	// Conflict: Keystone answered 409.
	Conflict Class = "Conflict"
	// InvalidRequest: Keystone answered 400, or what was to be asked makes no sense and was not sent.
	InvalidRequest Class = "InvalidRequest"
	// TLSVerificationFailed: the certificate at the address is not to be trusted.
	TLSVerificationFailed Class = "TLSVerificationFailed"
	// CatalogEndpointMismatch: Keystone's catalog has no identity endpoint for the region and the
	// interface that the cloud names.
	CatalogEndpointMismatch Class = "CatalogEndpointMismatch"
	// EndpointUnreachable: no usable answer. No connection, a broken one, a timeout, a 5xx, a 429,
	// or an answer that is not Keystone's. It says nothing about what was asked.
	EndpointUnreachable Class = "EndpointUnreachable"
)

// Definite tells whether a class is an answer: asking again, with nothing changed, gives the same.
// Only EndpointUnreachable is none. Definite is about the answer, not about a credential: a
// certificate that is not trusted is definite and leaves every credential as good as it was.
func Definite(c Class) bool { return c != EndpointUnreachable }

// Error is a failed operation. Its text is fit for a condition or an Event: it stays the same while
// the cause stays the same (no ephemeral ports, no times), and it holds no secret.
type Error struct {
	// Operation is what was being done, in snake case, as the metrics call it ("login").
	Operation string
	// Class is what the failure means.
	Class Class
	// StatusCode is the HTTP status, 0 when there was no answer.
	StatusCode int
	// RetryAfter is how long the server asked to be left alone, 0 when it did not say.
	RetryAfter time.Duration
	// Message is Keystone's error message, or what went wrong on the way there.
	Message string

	// cause is a context's error or nil. Other causes are not kept: gophercloud's carries the whole
	// answer, and whoever prints a chain of errors must not find more than Message.
	cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.StatusCode != 0 {
		return fmt.Sprintf("keystone: %s: %s (HTTP %d): %s", e.Operation, e.Class, e.StatusCode, e.Message)
	}
	return fmt.Sprintf("keystone: %s: %s: %s", e.Operation, e.Class, e.Message)
}

// Unwrap is context.Canceled or context.DeadlineExceeded when that was the cause, else nil.
func (e *Error) Unwrap() error { return e.cause }

// Classify is the class of an error of this package, however wrapped; OK for nil. An error of
// another origin says nothing about Keystone and is EndpointUnreachable.
func Classify(err error) Class {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return EndpointUnreachable
}

// IsGone tells whether err is Keystone's own word that the thing asked about does not exist.
func IsGone(err error) bool { return Classify(err) == NotFound }

// maxMessage bounds Error.Message, in bytes. Keystone's own messages are one or two sentences.
const maxMessage = 500

// classify turns whatever gophercloud or net/http returned into an *Error. secrets are cut out of
// the message: Keystone does not echo them, but a proxy that shows the request it disliked might.
func classify(operation string, timeout time.Duration, secrets []string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	e := &Error{Operation: operation, Class: EndpointUnreachable}

	var answer gophercloud.ErrUnexpectedResponseCode
	switch {
	case errors.As(err, &answer):
		e.StatusCode = answer.Actual
		e.RetryAfter = retryAfter(answer.ResponseHeader)
		e.Class, e.Message = judge(answer.Actual, answer.ResponseHeader, answer.Body)
	case untrusted(err) != "":
		e.Class, e.Message = TLSVerificationFailed, untrusted(err)
	default:
		e.Message = transportMessage(err, timeout)
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			if errors.Is(err, cause) {
				e.cause = cause
			}
		}
	}
	e.Message = bound(scrub(e.Message, secrets))
	return e
}

// keystoneRefusals are the statuses that mean something when Keystone itself sends them.
var keystoneRefusals = map[int]Class{
	http.StatusBadRequest:   InvalidRequest,
	http.StatusUnauthorized: AuthenticationFailed,
	http.StatusForbidden:    Forbidden,
	http.StatusNotFound:     NotFound,
	http.StatusConflict:     Conflict,
}

// judge reads an answer with an unexpected status. The error body is what tells Keystone from the
// proxies before it: {"error": {"code": 404, "title": "Not Found", "message": "..."}}. The code has
// to equal the status, since a gateway may wrap one service's error in a status of its own.
func judge(status int, header http.Header, body []byte) (Class, string) {
	var parsed struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	keystones := json.Unmarshal(body, &parsed) == nil && parsed.Error.Code == status && parsed.Error.Message != ""

	class, refusal := keystoneRefusals[status]
	switch {
	case keystones && refusal:
		return class, parsed.Error.Message
	case keystones:
		return EndpointUnreachable, parsed.Error.Message
	case status == http.StatusUnauthorized && header.Get("Openstack-Auth-Receipt") != "":
		return AuthenticationFailed, "the user must log in with more than one method, which the operator cannot"
	case status >= 300 && status < 400:
		return EndpointUnreachable, "the address redirects elsewhere, and credentials are not sent after it"
	}
	return EndpointUnreachable, "the answer is not Keystone's: it lacks Keystone's JSON error body"
}

// untrusted is why a certificate was refused, or empty when the failure is another. An expired
// certificate's own text holds the present time, which would make each condition a new one.
func untrusted(err error) string {
	var (
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		unknown  x509.UnknownAuthorityError
		noRoots  x509.SystemRootsError
		verify   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "x509: the certificate has expired or is not valid yet"
	case errors.As(err, &invalid):
		return invalid.Error()
	case errors.As(err, &hostname):
		return hostname.Error()
	case errors.As(err, &unknown):
		return unknown.Error()
	case errors.As(err, &noRoots):
		return noRoots.Error()
	case errors.As(err, &verify):
		return verify.Error()
	}
	return ""
}

// transportMessage describes a failure without an answer, in words that do not change from one try
// to the next: net.OpError's own text names our ephemeral port.
func transportMessage(err error, timeout time.Duration) string {
	var (
		netErr  net.Error
		dns     *net.DNSError
		op      *net.OpError
		request *url.Error
		syntax  *json.SyntaxError
		kind    *json.UnmarshalTypeError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Sprintf("no answer within %s", timeout)
	case errors.As(err, &dns):
		return fmt.Sprintf("looking up %s: %s", dns.Name, dns.Err)
	case errors.As(err, &op):
		if op.Addr == nil {
			return fmt.Sprintf("%s: %v", op.Op, op.Err)
		}
		return fmt.Sprintf("%s %s %s: %v", op.Op, op.Net, op.Addr, op.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection closed before the answer was complete"
	case errors.As(err, &syntax), errors.As(err, &kind):
		// The library's text quotes what it stumbled over, which may be anything.
		return "the answer is not Keystone's: it is not the JSON that was asked for"
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}

// retryAfter reads the header of that name: seconds, or a time on the server's clock.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// maxRetryAfter bounds what a server may ask for. A wrong header must not silence an order for a day.
const maxRetryAfter = time.Hour

// scrub replaces secrets, as they are and as a URL or JSON would show them.
func scrub(message string, secrets []string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		quoted, _ := json.Marshal(secret) // a string always marshals
		for _, form := range []string{
			secret,
			url.QueryEscape(secret),
			url.PathEscape(secret),
			strings.Trim(string(quoted), `"`),
		} {
			if form != "" {
				message = strings.ReplaceAll(message, form, "[redacted]")
			}
		}
	}
	return message
}

// bound puts a message on one line and cuts it between characters.
func bound(message string) string {
	message = strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), "")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}
