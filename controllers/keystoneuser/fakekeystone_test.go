package keystoneuser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeKeystone imitates the little of Keystone that a KeystoneUser needs: logins with a password, and
// users.
type fakeKeystone struct {
	*httptest.Server

	mu       sync.Mutex
	users    map[string]*fakeUser // by id
	next     int
	down     bool
	requests []string
	// accepted and refused count the logins by user id.
	accepted, refused map[string]int
}

type fakeUser struct {
	name, password string
	description    string
	disabled       bool
	locked         bool // as after too many wrong passwords
}

const fakeAdminID, fakeAdminPassword = "u-admin", "fake-admin-password"

func newFakeKeystone(t *testing.T) *fakeKeystone {
	t.Helper()
	k := &fakeKeystone{accepted: map[string]int{}, refused: map[string]int{}, users: map[string]*fakeUser{fakeAdminID: {name: "admin", password: fakeAdminPassword}}}
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

func (k *fakeKeystone) create(name, password string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	id := fmt.Sprintf("u-%d", k.next)
	k.users[id] = &fakeUser{name: name, password: password}
	return id
}

// with changes or reads the fake while nobody else does.
func (k *fakeKeystone) with(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
}

func (k *fakeKeystone) find(name string) (id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for candidate, user := range k.users {
		if strings.EqualFold(user.name, name) {
			id = candidate
		}
	}
	return id
}

func (k *fakeKeystone) acceptedLogins(id string) (count int) {
	k.with(func() { count = k.accepted[id] })
	return count
}

func (k *fakeKeystone) refusedLogins(id string) (count int) {
	k.with(func() { count = k.refused[id] })
	return count
}

func (k *fakeKeystone) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.users[id] != nil
}

// asked returns what was asked since the last call.
func (k *fakeKeystone) asked() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked := k.requests
	k.requests = nil
	return asked
}

func (k *fakeKeystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests = append(k.requests, r.Method+" "+r.URL.Path)
	id, one := strings.CutPrefix(r.URL.Path, "/v3/users/")
	switch {
	case k.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/v3/auth/tokens":
		k.login(w, r)
	case r.Header.Get("X-Auth-Token") != "fake-token-"+fakeAdminID:
		fakeRefusal(w, http.StatusUnauthorized, "The request you have made requires authentication.")
	case r.URL.Path == "/v3/users":
		listed := []any{}
		for id, user := range k.users {
			if strings.EqualFold(user.name, r.URL.Query().Get("name")) {
				listed = append(listed, user.json(id))
			}
		}
		fakeAnswer(w, http.StatusOK, map[string]any{"users": listed, "links": map[string]any{}})
	case one && k.users[id] == nil:
		fakeRefusal(w, http.StatusNotFound, "Could not find user: "+id+".")
	case one && r.Method == http.MethodDelete:
		delete(k.users, id)
		w.WriteHeader(http.StatusNoContent)
	case one:
		fakeAnswer(w, http.StatusOK, map[string]any{"user": k.users[id].json(id)})
	default:
		http.NotFound(w, r)
	}
}

func (u *fakeUser) json(id string) any {
	return map[string]any{"id": id, "name": u.name, "description": u.description, "domain_id": "default", "enabled": !u.disabled}
}

func (k *fakeKeystone) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	asked := body.Auth.Identity.Password.User
	for id, user := range k.users {
		if user.name != asked.Name {
			continue
		}
		if user.password != asked.Password || user.disabled || user.locked {
			k.refused[id]++
			continue
		}
		k.accepted[id]++
		w.Header().Set("X-Subject-Token", "fake-token-"+id)
		fakeAnswer(w, http.StatusCreated, map[string]any{"token": map[string]any{
			"user": map[string]any{"id": id}, "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		}})
		return
	}
	fakeRefusal(w, http.StatusUnauthorized, "The request you have made requires authentication.")
}

func fakeAnswer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fakeRefusal(w http.ResponseWriter, status int, message string) {
	fakeAnswer(w, status, map[string]any{"error": map[string]any{"code": status, "message": message}})
}
