// Package ordertest is a world in memory to test order kinds in: a management cluster, a Keystone, and
// puppets of K-ORC. Nothing in it runs by itself: a test plays pass after pass, so that it can stop,
// break or crash anything between two of them.
package ordertest

import (
	"encoding/json"
	"maps"
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

// FakeKeystone imitates the part of Keystone that orders need, answer by answer: statuses, and the JSON
// error body that tells its word from a proxy's. One thing it is lenient about: a role can be assigned to
// a user that it does not have, so that a test of assignments need not make one.
type FakeKeystone struct {
	*httptest.Server

	mu sync.Mutex
	// Projects by id, Roles by id, and Grants by "project/user/role". Use With to touch them.
	Projects map[string]FakeProject
	Roles    map[string]string
	Grants   map[string]bool
	// Users and Credentials (application credentials) by id. Use With to touch them.
	Users       map[string]*FakeUser
	Credentials map[string]FakeCredential
	// Now is Keystone's clock. It dates the answers and ends tokens and credentials.
	Now func() time.Time
	// Fault answers instead of Keystone when it is not nil and returns true.
	Fault func(http.ResponseWriter, *http.Request) bool
	// Delivery decides what becomes of an answer, after Keystone did what it was asked. Nil delivers all.
	Delivery func(r *http.Request, status int) Delivery

	next   map[string]int // the last id by kind
	asked  []string
	tokens map[string]fakeToken
}

// NewKeystone starts one that has the role "member", and the administrator with a project.
func NewKeystone(t *testing.T) *FakeKeystone {
	t.Helper()
	k := &FakeKeystone{
		Projects:    map[string]FakeProject{"p-admin": {Name: "admin"}},
		Roles:       map[string]string{"r-member": "member"},
		Grants:      map[string]bool{},
		Users:       map[string]*FakeUser{adminID: {Name: "admin", Password: AdminPassword}},
		Credentials: map[string]FakeCredential{},
		Now:         time.Now,
		next:        map[string]int{},
		tokens:      map[string]fakeToken{},
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
	id := k.newID("p")
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

// HasProject tells whether Keystone has a project of that id.
func (k *FakeKeystone) HasProject(id string) (there bool) {
	k.With(func() { _, there = k.Projects[id] })
	return there
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
	if r.URL.Path != tokensPath {
		k.asked = append(k.asked, r.Method+" "+r.URL.Path)
	}
	if k.Fault != nil && k.Fault(w, r) {
		return
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.Header().Set("Date", k.Now().UTC().Format(http.TimeFormat))
	k.serve(answer, r)
	delivery := Answered
	if k.Delivery != nil {
		delivery = k.Delivery(r, answer.Code)
	}
	delivery.send(w, answer)
}

func (k *FakeKeystone) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == tokensPath {
		k.login(w, r)
		return
	}
	token, ok := k.tokens[r.Header.Get("X-Auth-Token")]
	if !ok || !k.Now().Before(token.expires) {
		refuse(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v3/"), "/")
	switch {
	case parts[0] == "users":
		k.users(w, r, token, parts[1:])
	case parts[0] == "domains":
		k.domains(w, parts[1:])
	case parts[0] == "projects" && len(parts) == 1 && r.Method == http.MethodPost:
		k.newProject(w, r)
	case parts[0] == "projects" && len(parts) == 1:
		found := []any{}
		for id, project := range k.Projects {
			if strings.EqualFold(project.Name, r.URL.Query().Get("name")) && r.URL.Query().Get("domain_id") == domainID {
				found = append(found, project.json(id))
			}
		}
		answer(w, http.StatusOK, map[string]any{"projects": found, "links": map[string]any{"next": nil}})
	case parts[0] == "projects" && len(parts) == 2:
		k.project(w, r.Method, parts[1])
	case parts[0] == "projects" && len(parts) == 6: // projects/P/users/U/roles/R
		k.grant(w, r.Method, parts[1], parts[3], parts[5])
	case parts[0] == "role_assignments" && len(parts) == 1:
		query, found := r.URL.Query(), []any{}
		for grant, granted := range k.Grants {
			of := strings.Split(grant, "/")
			if granted && of[0] == query.Get("scope.project.id") && of[1] == query.Get("user.id") {
				id := func(id string) any { return map[string]any{"id": id} }
				found = append(found, map[string]any{"role": id(of[2]), "user": id(of[1]), "scope": map[string]any{"project": id(of[0])}})
			}
		}
		answer(w, http.StatusOK, map[string]any{"role_assignments": found, "links": map[string]any{"next": nil}})
	case parts[0] == "roles" && len(parts) == 1:
		found := []any{}
		for id, name := range k.Roles {
			if name == r.URL.Query().Get("name") {
				found = append(found, map[string]any{"id": id, "name": name})
			}
		}
		answer(w, http.StatusOK, map[string]any{"roles": found, "links": map[string]any{"next": nil}})
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
	return map[string]any{"id": id, "name": p.Name, "description": p.Description, "domain_id": domainID, "enabled": true}
}

func (k *FakeKeystone) newProject(w http.ResponseWriter, r *http.Request) {
	var body struct{ Project FakeProject }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "Expecting to find project in request body.")
		return
	}
	for _, project := range k.Projects {
		if strings.EqualFold(project.Name, body.Project.Name) {
			refuse(w, http.StatusConflict, "Conflict occurred attempting to store project - it is not permitted to have two projects with the same name in the same domain.")
			return
		}
	}
	id := k.newID("p")
	k.Projects[id] = body.Project
	answer(w, http.StatusCreated, map[string]any{"project": body.Project.json(id)})
}

func (k *FakeKeystone) project(w http.ResponseWriter, method, id string) {
	project, ok := k.Projects[id]
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "Could not find project: "+id+".")
	case method == http.MethodDelete:
		delete(k.Projects, id)
		maps.DeleteFunc(k.Grants, func(grant string, _ bool) bool { return strings.HasPrefix(grant, id+"/") })
		maps.DeleteFunc(k.Credentials, func(_ string, c FakeCredential) bool { return c.ProjectID == id })
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

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": message}})
}
