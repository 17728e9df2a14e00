package ordertest

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// Delivery is what becomes of an answer on its way from a FakeKeystone.
type Delivery int

const (
	// Answered: whoever asked gets the answer.
	Answered Delivery = iota
	// Lost: the connection is reset before anything of the answer arrives.
	Lost
	// Truncated: the connection closes in the middle of the answer.
	Truncated
)

// send writes the answer, or what arrives of it.
func (d Delivery) send(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	body := answer.Body.Bytes()
	if d == Lost || d == Truncated && len(body) == 0 {
		Reset(w)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	if d == Truncated {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+100))
		body = body[:len(body)/2]
	}
	w.WriteHeader(answer.Code)
	// The server closes the connection of an answer that is shorter than it said. A client that is gone
	// already is no concern of Keystone's.
	_, _ = w.Write(body)
}

// Reset breaks the connection of a request the hard way, so that the client reads "connection reset by
// peer" and not an orderly end.
func Reset(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic("a FakeKeystone serves HTTP/1 only")
	}
	connection, buffered, err := hijacker.Hijack()
	if err != nil {
		panic(fmt.Sprintf("taking over the connection of a request: %v", err))
	}
	_ = buffered.Flush()
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

// Proxied answers like a proxy whose Keystone is away: a status, and no JSON body of Keystone's.
func Proxied(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, http.StatusText(status), status)
		return true
	}
}

// Refused answers like Keystone itself, with its JSON error body and further headers (name, value, ...).
func Refused(status int, message string, headers ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		refuse(w, status, message)
		return true
	}
}

// Silent answers nothing until whoever asked gives up.
func Silent(_ http.ResponseWriter, r *http.Request) bool {
	// Only once the body is read does the server notice that the client hung up.
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return true
}
