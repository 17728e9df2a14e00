package publish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/c5c3/c5c3-operator/internal/egress"
)

// fault is what goes wrong with a request.
type fault int

const (
	healthy fault = iota
	// loseAnswer: it is done, and the answer gets lost.
	loseAnswer
	// failing: it is not done, and the answer says so.
	failing
)

// faulty is an HTTP server of this package's that breaks on demand.
type faulty struct {
	*httptest.Server
	mutex  sync.Mutex
	next   []fault
	status int // of failing
}

func newFaulty(t *testing.T, handle http.HandlerFunc) *faulty {
	f := &faulty{status: http.StatusServiceUnavailable}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		now := healthy
		if len(f.next) > 0 {
			now, f.next = f.next[0], f.next[1:]
		}
		switch now {
		case failing:
			w.WriteHeader(f.status)
		case loseAnswer:
			handle(httptest.NewRecorder(), r)
			connection, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = connection.Close()
		default:
			handle(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *faulty) breaks(next ...fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.next = next
}

// faultySlack speaks the few methods of Slack's API that a card needs, and breaks on demand. There is no Slack
// to test with.
type faultySlack struct {
	*faulty
	posted []*slackMessage
	// refuses is the error code of every answer; empty for none.
	refuses string
	questions,
	updates int
}

type slackMessage struct {
	timestamp, text string
	blocks          string
	metadata        json.RawMessage
	closed          bool
}

func newFaultySlack(t *testing.T) *faultySlack {
	s := &faultySlack{}
	s.faulty = newFaulty(t, s.serve)
	return s
}

func (s *faultySlack) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	if s.refuses != "" {
		_, _ = fmt.Fprintf(w, `{"ok":false,"error":%q}`, s.refuses)
		return
	}
	switch r.URL.Path {
	case "/api/chat.postMessage":
		m := &slackMessage{timestamp: fmt.Sprintf("1700000000.%06d", len(s.posted)), text: r.Form.Get("text"), blocks: r.Form.Get("blocks"), metadata: json.RawMessage(r.Form.Get("metadata"))}
		s.posted = append(s.posted, m)
		_, _ = fmt.Fprintf(w, `{"ok":true,"channel":%q,"ts":%q}`, r.Form.Get("channel"), m.timestamp)
	case "/api/chat.update":
		s.updates++
		for _, m := range s.posted {
			if m.timestamp == r.Form.Get("ts") {
				m.text, m.blocks, m.closed = r.Form.Get("text"), r.Form.Get("blocks"), true
				_, _ = fmt.Fprintf(w, `{"ok":true,"channel":%q,"ts":%q}`, r.Form.Get("channel"), m.timestamp)
				return
			}
		}
		_, _ = fmt.Fprint(w, `{"ok":false,"error":"message_not_found"}`)
	case "/api/conversations.history":
		s.questions++
		var messages []map[string]any
		for _, m := range s.posted {
			messages = append(messages, map[string]any{"ts": m.timestamp, "text": m.text, "metadata": m.metadata})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "messages": messages})
	case "/hook":
		var message struct {
			Text   string
			Blocks json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.posted = append(s.posted, &slackMessage{text: message.Text, blocks: string(message.Blocks)})
		_, _ = fmt.Fprint(w, "ok")
	default:
		_, _ = fmt.Fprint(w, `{"ok":false,"error":"unknown_method"}`)
	}
}

// app is the configuration of an app at this server.
func (s *faultySlack) app(t *testing.T) *SlackConfig {
	return &SlackConfig{BotTokenFile: file(t, "xoxb-secret-of-a-test"), Channel: "C0123456789", APIURL: s.URL + "/api/"}
}

// hook is the configuration of an incoming webhook at this server.
func (s *faultySlack) hook(t *testing.T) *SlackConfig {
	return &SlackConfig{WebhookURLFile: file(t, s.URL+"/hook?secret-of-a-test")}
}

// faultyReceiver takes CloudEvents and breaks on demand.
type faultyReceiver struct {
	*faulty
	events  []event.Event
	headers []http.Header
}

func newFaultyReceiver(t *testing.T) *faultyReceiver {
	r := &faultyReceiver{}
	r.faulty = newFaulty(t, func(w http.ResponseWriter, request *http.Request) {
		message, err := cehttp.NewEventFromHTTPRequest(request)
		if err != nil || message.Validate() != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.events, r.headers = append(r.events, *message), append(r.headers, request.Header)
		w.WriteHeader(http.StatusAccepted)
	})
	return r
}

// distinct are the events that a receiver keeps, by source and id.
func (r *faultyReceiver) distinct() []event.Event {
	var kept []event.Event
	seen := map[string]bool{}
	for _, e := range r.events {
		if key := e.Source() + " " + e.ID(); !seen[key] {
			seen[key] = true
			kept = append(kept, e)
		}
	}
	return kept
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// guard lets out what goes to the servers of a test.
func guard(t *testing.T, servers ...string) *egress.Guard {
	t.Helper()
	g := &egress.Guard{}
	for _, server := range servers {
		target, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		g.Allowed = append(g.Allowed, target.Host)
	}
	return g
}

// leaks fails the test when a text holds a secret of it.
func leaks(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, "secret-of-a-test") {
		t.Errorf("%s holds a secret: %s", where, text)
	}
}
