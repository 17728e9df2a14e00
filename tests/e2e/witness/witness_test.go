package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const planted = "d2l0bmVzcy1wbGFudGVkLXZhbHVlLTQzLWNoYXJhY3Rl"

func secretEvent(t *testing.T, namespace string, data map[string][]byte) []byte {
	t.Helper()
	var event struct {
		Object secretObject `json:"object"`
	}
	event.Object.Metadata.Namespace, event.Object.Metadata.Name = namespace, "s"
	event.Object.Data = data
	line, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// recorded makes a folder as `witness record` leaves it.
func recorded(t *testing.T, events string) string {
	t.Helper()
	folder := t.TempDir()
	var secrets bytes.Buffer
	taker := newSecretTaker("chainsaw-")
	for _, event := range [][]byte{
		secretEvent(t, "chainsaw-a", map[string][]byte{"value": []byte(planted), "application_credential_id": []byte("0123456789abcdef0123")}),
		secretEvent(t, "elsewhere", map[string][]byte{"value": []byte("somebody-elses-secret")}),
	} {
		if err := taker.take(&secrets, event); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{secretsFile: secrets.String(), "events.jsonl": events} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestLeaks(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		leak bool
	}{
		"finds_a_planted_secret":              {"first\nsecond " + planted + " end", true},
		"finds_it_in_base64":                  {"x" + base64.StdEncoding.EncodeToString([]byte(planted)), true},
		"finds_a_keystone_token":              {"X-Subject-Token: gAAAAA" + strings.Repeat("b1_-", 30), true},
		"lets_public_values_pass":             {"credential 0123456789abcdef0123 is in Keystone", false},
		"ignores_secrets_of_other_namespaces": {"somebody-elses-secret", false},
	} {
		for _, where := range []string{"event", "file"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				events, file := c.text, filepath.Join(t.TempDir(), "log")
				if where == "file" {
					events = ""
				}
				if err := os.WriteFile(file, []byte(strings.Repeat(c.text, map[string]int{"file": 1}[where])), 0o600); err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				err := leaks([]string{"--record", recorded(t, events), file}, &out)
				if errors.Is(err, errNo) != c.leak || (err != nil) != c.leak {
					t.Fatalf("leak %v expected, got error %v and output %q", c.leak, err, out.String())
				}
				if strings.Contains(out.String(), planted) {
					t.Error("the report repeats the secret")
				}
			})
		}
	}
}

func TestLeaks_needs_a_recorded_secret(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, secretsFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := leaks([]string{"--record", folder}, &bytes.Buffer{}); err == nil || errors.Is(err, errNo) {
		t.Errorf("a recorder that saw nothing passed as clean: %v", err)
	}
}

func TestValuesOf_takes_the_secret_fields_of_a_clouds_yaml(t *testing.T) {
	var secret secretObject
	secret.Data = map[string][]byte{"clouds.yaml": []byte(`clouds:
  "c5c3":
    auth:
      auth_url: http://keystone.example:5000/v3
      application_credential_id: 0123456789abcdef0123
      application_credential_secret: "` + planted + `"
      password: ` + planted + `2
`)}
	values := valuesOf(secret)
	if len(values) != 2 || values[0].Value != planted || values[1].Value != planted+"2" {
		t.Errorf("got %d values", len(values))
	}
}

// fakeKeystone answers every request the same way.
func fakeKeystone(t *testing.T, status int, body string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	t.Setenv("OS_AUTH_URL", server.URL+"/v3")
}

func TestAsk_tells_keystones_no_from_no_answer(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		refused bool
	}{
		"keystones_401":  {401, `{"error":{"code":401}}`, true},
		"keystones_404":  {404, `{"error":{"code":404}}`, true},
		"a_proxys_404":   {404, `<html>not found</html>`, false},
		"keystones_503":  {503, `{"error":{"code":503}}`, false},
		"an_empty_error": {404, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			fakeKeystone(t, c.status, c.body)
			_, err := ask(t.Context(), http.MethodGet, "/users", "", nil, nil)
			if no := (refusal{}); err == nil || errors.As(err, &no) != c.refused {
				t.Errorf("refused %v expected, got %v", c.refused, err)
			}
		})
	}
}

func TestKV(t *testing.T) {
	store := map[string]string{
		"/v1/kv/data/there":      `{"data":{"data":{"key":"value"}}}`,
		"/v1/kv/metadata/there":  `{"data":{}}`,
		"/v1/kv/metadata/folder": "LIST",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := store[r.URL.Path]
		if !ok || (body == "LIST") != (r.Method == "LIST") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(strings.Replace(body, "LIST", "{}", 1)))
	}))
	defer server.Close()
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KV_ADDRESS", server.URL)
	t.Setenv("KV_TOKEN_FILE", tokenFile)

	same := func(path, key, value string) error {
		return kvSame(t.Context(), path, secretObject{Data: map[string][]byte{key: []byte(value)}}, key)
	}
	for name, c := range map[string]struct {
		err error
		no  bool
	}{
		"the_same_value":           {same("there", "key", "value"), false},
		"another_value":            {same("there", "key", "other"), true},
		"another_key":              {same("there", "other", "value"), true},
		"nothing_stored":           {same("gone", "key", "value"), true},
		"absent":                   {kvAbsent(t.Context(), "gone"), false},
		"a_document_is_there":      {kvAbsent(t.Context(), "there"), true},
		"something_below_is_there": {kvAbsent(t.Context(), "folder"), true},
	} {
		if (c.err != nil) != c.no || errors.Is(c.err, errNo) != c.no {
			t.Errorf("%s: no %v expected, got %v", name, c.no, c.err)
		}
	}
}

func TestRecord_writes_down_what_comes_and_goes(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// kubectl proxy refuses every other name.
		if r.Host != "localhost" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/api/v1/secrets":
			_, _ = w.Write(append(secretEvent(t, "chainsaw-a", map[string][]byte{"value": []byte(planted)}), '\n'))
		case "/apis/events.k8s.io/v1/events":
			_, _ = w.Write([]byte(`{"type":"ADDED","object":{"note":"` + planted + `"}}` + "\n"))
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.(http.Flusher).Flush()
		<-ctx.Done()
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	folder := t.TempDir()
	done := make(chan error, 1)
	go func() { done <- record(ctx, []string{"--api", socket, "--out", folder, "--namespaces", "chainsaw-"}) }()
	for {
		events, _ := os.ReadFile(filepath.Join(folder, "events.jsonl"))
		secrets, _ := os.ReadFile(filepath.Join(folder, secretsFile))
		if len(events) > 0 && len(secrets) > 0 {
			break
		}
		select {
		case err := <-done:
			t.Fatal("the recorder ended: ", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := leaks([]string{"--record", folder}, &bytes.Buffer{}); !errors.Is(err, errNo) {
		t.Errorf("a secret in an Event was not found: %v", err)
	}
}
