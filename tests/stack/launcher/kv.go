package launcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	kvPort = 8200
	// kvMount is the KV version 2 engine that the SecretStores use.
	kvMount = "kv"
)

// kvAddress is the store's address as the stack's processes and the machine see it.
func (s *Stack) kvAddress() string {
	if s.settings.KVAddress != "" {
		return strings.TrimSuffix(s.settings.KVAddress, "/")
	}
	return "http://" + s.address(kvPort)
}

// kvTokenFile is the token that may do everything.
func (s *Stack) kvTokenFile() string {
	if s.settings.KVAddress != "" {
		return s.settings.KVTokenFile
	}
	return s.path("data/kv/root-token")
}

// esoTokenFile is the token that ESO uses: it reads and writes the engine and nothing else.
func (s *Stack) esoTokenFile() string { return s.path("data/kv/eso-token") }

func (s *Stack) kvServices() []service {
	kv := s.built("kv")
	if s.settings.KVAddress != "" {
		return nil
	}
	return []service{{
		name: "kv", group: "kv", version: constant(kv.Version), endpoint: s.kvAddress(),
		command: []string{kv.Path("kv"), "--address", fmt.Sprintf("0.0.0.0:%d", kvPort), "--data", s.path("data/kv")},
		healthy: answers(s.kvAddress() + "/v1/sys/health"), patience: time.Minute, expected: 3 * time.Second,
	}}
}

const esoPolicy = `path "kv/data/*" { capabilities = ["create", "read", "update", "patch", "delete"] }
path "kv/metadata/*" { capabilities = ["create", "read", "update", "delete", "list"] }`

// prepareKV mounts the engine and makes ESO's token, where they are missing.
func (s *Stack) prepareKV(ctx context.Context) error {
	if s.settings.KVAddress != "" {
		return nil // the user's own store: they have prepared it
	}
	root, err := s.kvToken(s.kvTokenFile())
	if err != nil {
		return err
	}
	var mounts struct {
		Data map[string]any `json:"data"`
	}
	if err := s.kvCall(ctx, root, http.MethodGet, "sys/mounts", nil, &mounts); err != nil {
		return err
	}
	if _, ok := mounts.Data[kvMount+"/"]; !ok {
		engine := map[string]any{"type": "kv", "options": map[string]string{"version": "2"}}
		if err := s.kvCall(ctx, root, http.MethodPost, "sys/mounts/"+kvMount, engine, nil); err != nil {
			return fmt.Errorf("mounting the KV engine: %w", err)
		}
	}
	if err := s.kvCall(ctx, root, http.MethodPut, "sys/policies/acl/eso", map[string]string{"policy": esoPolicy}, nil); err != nil {
		return fmt.Errorf("writing ESO's policy: %w", err)
	}
	if token, err := s.kvToken(s.esoTokenFile()); err == nil && s.kvCall(ctx, token, http.MethodGet, "auth/token/lookup-self", nil, nil) == nil {
		return s.kvEngineReady(ctx, token)
	}
	var created struct {
		Auth struct {
			ClientToken string `json:"client_token"`
		} `json:"auth"`
	}
	// A period of a year: a stack that lives long needs no renewal, and the store's usual limit of
	// 32 days would end every push on the 33rd.
	request := map[string]any{"policies": []string{"eso"}, "period": "8760h", "no_parent": true, "display_name": "eso"}
	if err := s.kvCall(ctx, root, http.MethodPost, "auth/token/create", request, &created); err != nil {
		return fmt.Errorf("making ESO's token: %w", err)
	}
	if err := writeFile(s.esoTokenFile(), []byte(created.Auth.ClientToken), 0o600); err != nil {
		return err
	}
	return s.kvEngineReady(ctx, created.Auth.ClientToken)
}

// kvEngineReady waits until the engine has upgraded itself to version 2: it refuses requests for a
// moment after it was mounted.
func (s *Stack) kvEngineReady(ctx context.Context, token string) error {
	return s.poll(ctx, 30*time.Second, func(ctx context.Context) error {
		_, err := s.kvList(ctx, token, "")
		return err
	})
}

func (s *Stack) kvToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// errNoPath is what the store says about a path that holds nothing.
var errNoPath = errors.New("nothing is stored there")

func (s *Stack) kvCall(ctx context.Context, token, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.kvAddress()+"/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Vault-Token", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	switch {
	case response.StatusCode == http.StatusNotFound:
		return errNoPath
	case response.StatusCode >= 300:
		var answer struct{ Errors []string }
		_ = json.Unmarshal(text, &answer)
		return fmt.Errorf("the KV store answers %d to %s %s: %s", response.StatusCode, method, path, strings.Join(answer.Errors, "; "))
	case out == nil || len(text) == 0:
		return nil
	}
	return json.Unmarshal(text, out)
}

func (s *Stack) kvList(ctx context.Context, token, path string) ([]string, error) {
	var listed struct {
		Data struct {
			Keys []string `json:"keys"`
		} `json:"data"`
	}
	target := kvMount + "/metadata/" + strings.Trim(path, "/")
	err := s.kvCall(ctx, token, "LIST", target, nil, &listed)
	if errors.Is(err, errNoPath) && path == "" {
		return nil, nil // an empty store
	}
	return listed.Data.Keys, err
}

// KVList lists every path below one, to the leaves.
func (s *Stack) KVList(ctx context.Context, path string) ([]string, error) {
	token, err := s.kvToken(s.kvTokenFile())
	if err != nil {
		return nil, err
	}
	var walk func(string) ([]string, error)
	walk = func(path string) ([]string, error) {
		keys, err := s.kvList(ctx, token, path)
		if err != nil {
			return nil, err
		}
		var all []string
		for _, key := range keys {
			child := strings.TrimPrefix(strings.Trim(path, "/")+"/"+key, "/")
			if !strings.HasSuffix(key, "/") {
				all = append(all, child)
				continue
			}
			below, err := walk(child)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		}
		return all, nil
	}
	return walk(path)
}

// KVGet returns the newest version of what is stored under a path. A path whose newest version was
// deleted counts as empty.
func (s *Stack) KVGet(ctx context.Context, path string) (map[string]any, error) {
	token, err := s.kvToken(s.kvTokenFile())
	if err != nil {
		return nil, err
	}
	var read struct {
		Data struct {
			Data map[string]any `json:"data"`
		} `json:"data"`
	}
	if err := s.kvCall(ctx, token, http.MethodGet, kvMount+"/data/"+strings.Trim(path, "/"), nil, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return read.Data.Data, nil
}

// SortedKeys returns the keys of a stored document in order.
func SortedKeys(document map[string]any) []string {
	keys := make([]string, 0, len(document))
	for key := range document {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
