// Package ordertest is a world in memory to test order kinds in: a management cluster, a Keystone, and
// puppets of K-ORC. Nothing in it runs by itself: a test plays pass after pass, so that it can stop,
// break or crash anything between two of them.
package ordertest

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

// AdminPassword is what the administrator of a FakeKeystone logs in with.
const AdminPassword = "fake-admin-password"

// FakeProject is a project of a FakeKeystone.
type FakeProject struct{ Name, Description string }

// FakeKeystone imitates the part of Keystone that projects and role assignments need, answer by answer:
// statuses, and the JSON error body that tells its word from a proxy's.
type FakeKeystone struct {
	*httptest.Server

	mu sync.Mutex
	// Projects by id, Roles by id, and Grants by "project/user/role". Use With to touch them.
	Projects map[string]FakeProject
	Roles    map[string]string
	Grants   map[string]bool
	// Fault answers instead of Keystone when it is not nil and returns true.
	Fault func(http.ResponseWriter, *http.Request) bool

	next  int
	asked []string
}

// NewKeystone starts one that has the role "member" and the administrator's project.
func NewKeystone(t *testing.T) *FakeKeystone {
	t.Helper()
	k := &FakeKeystone{
		Projects: map[string]FakeProject{"p-admin": {Name: "admin"}},
		Roles:    map[string]string{"r-member": "member"},
		Grants:   map[string]bool{},
	}
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

// With changes or reads the fake while nobody else does.
func (k *FakeKeystone) With(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
}

// Asked returns what was asked since the last call, as "METHOD path". Logins are left out: whether a
// session is there already is not what a test of an order is about.
func (k *FakeKeystone) Asked() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked := k.asked
	k.asked = nil
	return asked
}

// Down makes each answer a 503 of a proxy, or ends that.
func (k *FakeKeystone) Down(down bool) {
	k.With(func() {
		k.Fault = nil
		if down {
			k.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
				return true
			}
		}
	})
}

// CreateProject makes a project and returns its id. Keystone refuses a second one of a name, and then
// the id is empty.
func (k *FakeKeystone) CreateProject(name, description string) string {
	if k.FindProject(name) != "" {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	id := fmt.Sprintf("p-%d", k.next)
	k.Projects[id] = FakeProject{name, description}
	return id
}

// FindProject returns the id of the project of a name, else nothing. Names are compared without case.
func (k *FakeKeystone) FindProject(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, project := range k.Projects {
		if strings.EqualFold(project.Name, name) {
			return id
		}
	}
	return ""
}

// FindRole returns the id of the role of a name, else nothing.
func (k *FakeKeystone) FindRole(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, role := range k.Roles {
		if role == name {
			return id
		}
	}
	return ""
}

// Grant assigns or unassigns a role, as somebody other than the operator would.
func (k *FakeKeystone) Grant(project, user, role string, assigned bool) {
	k.With(func() {
		delete(k.Grants, project+"/"+user+"/"+role)
		if assigned {
			k.Grants[project+"/"+user+"/"+role] = true
		}
	})
}

// Granted tells whether a role is assigned.
func (k *FakeKeystone) Granted(project, user, role string) (granted bool) {
	k.With(func() { granted = k.Grants[project+"/"+user+"/"+role] })
	return granted
}

// ServeHTTP implements http.Handler.
func (k *FakeKeystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.URL.Path != "/v3/auth/tokens" {
		k.asked = append(k.asked, r.Method+" "+r.URL.Path)
	}
	if k.Fault != nil && k.Fault(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v3/"), "/")
	switch {
	case r.URL.Path == "/v3/auth/tokens":
		login(w, r)
	case parts[0] == "projects" && len(parts) == 1:
		found := []any{}
		for id, project := range k.Projects {
			if strings.EqualFold(project.Name, r.URL.Query().Get("name")) && r.URL.Query().Get("domain_id") == "default" {
				found = append(found, project.json(id))
			}
		}
		answer(w, http.StatusOK, map[string]any{"projects": found, "links": map[string]any{"next": nil}})
	case parts[0] == "projects" && len(parts) == 2:
		k.project(w, r.Method, parts[1])
	case parts[0] == "projects" && len(parts) == 6: // projects/P/users/U/roles/R
		k.grant(w, r.Method, parts[1], parts[3], parts[5])
	case parts[0] == "roles" && len(parts) == 2:
		if name, ok := k.Roles[parts[1]]; ok {
			answer(w, http.StatusOK, map[string]any{"role": map[string]any{"id": parts[1], "name": name}})
			return
		}
		refuse(w, http.StatusNotFound, "Could not find role: "+parts[1]+".")
	default:
		http.NotFound(w, r)
	}
}

func (p FakeProject) json(id string) any {
	return map[string]any{"id": id, "name": p.Name, "description": p.Description, "domain_id": "default", "enabled": true}
}

func (k *FakeKeystone) project(w http.ResponseWriter, method, id string) {
	project, ok := k.Projects[id]
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "Could not find project: "+id+".")
	case method == http.MethodDelete:
		delete(k.Projects, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, map[string]any{"project": project.json(id)})
	}
}

func (k *FakeKeystone) grant(w http.ResponseWriter, method, project, user, role string) {
	key := project + "/" + user + "/" + role
	_, known := k.Roles[role]
	switch {
	case !known:
		refuse(w, http.StatusNotFound, "Could not find role: "+role+".")
		return
	case method == http.MethodPut:
		k.Grants[key] = true
	case !k.Grants[key]:
		refuse(w, http.StatusNotFound, "Could not find role assignment with role: "+role+".")
		return
	case method == http.MethodDelete:
		delete(k.Grants, key)
	}
	w.WriteHeader(http.StatusNoContent)
}

func login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	user := &body.Auth.Identity.Password.User
	if json.NewDecoder(r.Body).Decode(&body) != nil || user.Name != "admin" || user.Password != AdminPassword {
		refuse(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	now := time.Now().UTC()
	const layout = "2006-01-02T15:04:05.000000Z"
	w.Header().Set("X-Subject-Token", "fake-token")
	answer(w, http.StatusCreated, map[string]any{"token": map[string]any{
		"issued_at": now.Format(layout), "expires_at": now.Add(time.Hour).Format(layout), "user": map[string]any{"id": "u-admin"},
	}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": message}})
}
