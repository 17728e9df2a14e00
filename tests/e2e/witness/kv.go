package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

var kvClient = &http.Client{Timeout: answerIn}

// kvAsk reads from the store. found is false when the store says that nothing is there.
func kvAsk(ctx context.Context, method, part, path string, out any) (found bool, err error) {
	token, err := os.ReadFile(os.Getenv("KV_TOKEN_FILE"))
	if err != nil {
		return false, fmt.Errorf("KV_TOKEN_FILE: %w", err)
	}
	address := strings.TrimSuffix(os.Getenv("KV_ADDRESS"), "/")
	if address == "" {
		return false, errors.New("KV_ADDRESS is not set")
	}
	target := fmt.Sprintf("%s/v1/%s/%s/%s", address, cmp.Or(os.Getenv("KV_MOUNT"), "kv"), part, strings.Trim(path, "/"))
	request, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("X-Vault-Token", strings.TrimSpace(string(token)))
	response, err := kvClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return true, json.NewDecoder(response.Body).Decode(out)
	case http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("the KV store answers %d to %s %s/%s", response.StatusCode, method, part, path)
}

// kvSame succeeds when the newest version at path has these keys with the Secret's values.
func kvSame(ctx context.Context, path string, secret secretObject, keys ...string) error {
	var answer struct {
		Data struct{ Data map[string]string }
	}
	found, err := kvAsk(ctx, http.MethodGet, "data", path, &answer)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w: nothing is stored at %s", errNo, path)
	}
	for _, key := range keys {
		value, ok := secret.Data[key]
		if !ok {
			return fmt.Errorf("%w: the Secret on stdin has no key %s", errNo, key)
		}
		stored, ok := answer.Data.Data[key]
		if !ok {
			return fmt.Errorf("%w: %s has no key %s", errNo, path, key)
		}
		if stored != string(value) {
			return fmt.Errorf("%w: key %s of %s differs from the Secret", errNo, key, path)
		}
	}
	return nil
}

// kvAbsent succeeds when neither the path nor anything below it is stored. The metadata counts, not
// only the newest version: a deleted version can be brought back.
func kvAbsent(ctx context.Context, path string) error {
	var ignored any
	found, err := kvAsk(ctx, http.MethodGet, "metadata", path, &ignored)
	if err == nil && !found {
		found, err = kvAsk(ctx, "LIST", "metadata", path, &ignored)
	}
	if err == nil && found {
		return fmt.Errorf("%w: something is stored at %s", errNo, path)
	}
	return err
}
