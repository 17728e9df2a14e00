// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// fakeKeystone imitates the part of Keystone 22 that the package asks, answer by answer as a real
// one gave them: status, error body, the zoneless expiry, the 404 for a credential that is gone and
// the 401 for one that does not log in.
type fakeKeystone struct {
	*httptest.Server

	mu sync.Mutex
	// fault answers instead of Keystone when it is not nil and returns true.
	fault func(http.ResponseWriter, *http.Request) bool
	// requests counts what arrived, by "METHOD path".
	requests map[string]int
	// now is Keystone's clock; lifetime is how long its tokens live.
	now      func() time.Time
	lifetime time.Duration

	password    string // the admin's
	tokens      map[string]bool
	users       map[string]fakeUser
	credentials map[string]fakeCredential // by id
	projects    map[string]string         // name by id
	assigned    map[string]bool           // "project/user/role"
	catalog     []any
	extraRoles  []any // entries of role_assignments that are not direct
}

type fakeUser struct {
	name    string
	enabled bool
}

type fakeCredential struct{ user, name, secret, expiresAt string }

func newFakeKeystone(t *testing.T) *fakeKeystone {
	t.Helper()
	k := unstartedFakeKeystone()
	k.Server.Start()
	t.Cleanup(k.Close)
	return k
}

func unstartedFakeKeystone() *fakeKeystone {
	k := &fakeKeystone{
		requests:    map[string]int{},
		now:         time.Now,
		lifetime:    time.Hour,
		password:    adminPassword,
		tokens:      map[string]bool{},
		users:       map[string]fakeUser{"u-admin": {"admin", true}, "u-agent": {"agent", true}},
		credentials: map[string]fakeCredential{},
		projects:    map[string]string{"p-1": "workflow"},
		assigned:    map[string]bool{},
		catalog:     []any{fakeService("identity", "RegionOne", "public", "internal"), fakeService("compute", "RegionTwo", "admin")},
	}
	k.Server = httptest.NewUnstartedServer(k)
	return k
}

func fakeService(kind, region string, interfaces ...string) any {
	endpoints := []any{}
	for _, i := range interfaces {
		endpoints = append(endpoints, map[string]any{"interface": i, "region": region, "region_id": region, "url": "http://elsewhere.invalid/v3"})
	}
	return map[string]any{"type": kind, "endpoints": endpoints}
}

const (
	adminPassword = "correct-horse-battery"
	agentSecret   = "s3cr3t-of-the-agent"
)

func (k *fakeKeystone) adminCloud() clouds.Cloud {
	return clouds.Cloud{AuthURL: k.URL + "/v3", RegionName: "RegionOne", EndpointType: "internal", Password: &clouds.PasswordAuth{
		Username: "admin", UserDomainName: "Default", Password: adminPassword, ProjectName: "admin", ProjectDomainName: "Default",
	}}
}

func (k *fakeKeystone) agentCloud(id string) clouds.Cloud {
	return clouds.Cloud{AuthURL: k.URL, ApplicationCredential: &clouds.ApplicationCredentialAuth{ID: id, Secret: agentSecret}}
}

// set changes the fake while requests may be under way.
func (k *fakeKeystone) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// count is how many requests arrived for "METHOD path".
func (k *fakeKeystone) count(request string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests[request]
}

const loginRequest = "POST /v3/auth/tokens"

func (k *fakeKeystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	k.requests[r.Method+" "+r.URL.Path]++
	fault := k.fault
	k.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w.Header().Set("Date", k.now().UTC().Format(http.TimeFormat))

	if r.Method+" "+r.URL.Path == loginRequest {
		k.login(w, r)
		return
	}
	if !k.tokens[r.Header.Get("X-Auth-Token")] {
		fakeRefusal(w, 401, "The request you have made requires authentication.")
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v3/"), "/")
	switch {
	case parts[0] == "users" && len(parts) == 1:
		var users []any
		for id, u := range k.users {
			if u.name == r.URL.Query().Get("name") {
				users = append(users, map[string]any{"id": id, "name": u.name, "description": "d", "enabled": u.enabled, "domain_id": r.URL.Query().Get("domain_id")})
			}
		}
		fakeAnswer(w, 200, map[string]any{"users": append([]any{}, users...), "links": map[string]any{"next": nil}})
	case parts[0] == "users":
		user, ok := k.users[parts[1]]
		if !ok {
			fakeRefusal(w, 404, "Could not find user: "+parts[1]+".")
			return
		}
		switch {
		case len(parts) == 2:
			fakeAnswer(w, 200, map[string]any{"user": map[string]any{"id": parts[1], "name": user.name, "description": "d", "enabled": user.enabled, "domain_id": "default"}})
		case len(parts) == 3:
			listed := []any{}
			for id, c := range k.credentials {
				if c.user == parts[1] {
					listed = append(listed, c.json(id))
				}
			}
			fakeAnswer(w, 200, map[string]any{"application_credentials": listed, "links": map[string]any{"next": nil, "self": "http://elsewhere.invalid/"}})
		case r.Method == http.MethodDelete:
			if _, ok := k.credentials[parts[3]]; !ok {
				fakeRefusal(w, 404, "Could not find Application Credential: "+parts[3]+".")
				return
			}
			delete(k.credentials, parts[3])
			w.WriteHeader(204)
		}
	case parts[0] == "projects" && len(parts) < 3:
		k.answerProjects(w, r, parts[1:])
	case parts[0] == "roles" && len(parts) == 2:
		if parts[1] != "r-member" {
			fakeRefusal(w, 404, "Could not find role: "+parts[1]+".")
			return
		}
		fakeAnswer(w, 200, map[string]any{"role": map[string]any{"id": "r-member", "name": "member"}})
	case parts[0] == "projects": // projects/P/users/U/roles/R
		key := strings.Join([]string{parts[1], parts[3], parts[5]}, "/")
		switch {
		case r.Method == http.MethodPut:
			k.assigned[key] = true
		case !k.assigned[key]:
			fakeRefusal(w, 404, "Could not find role assignment with role: "+parts[5]+", user or group: "+parts[3]+", project, domain, or system: "+parts[1]+".")
			return
		case r.Method == http.MethodDelete:
			delete(k.assigned, key)
		}
		w.WriteHeader(204)
	case parts[0] == "role_assignments":
		entries := append([]any{}, k.extraRoles...)
		for key := range k.assigned {
			ids := strings.Split(key, "/")
			entries = append(entries, map[string]any{
				"scope": map[string]any{"project": map[string]any{"id": ids[0]}}, "user": map[string]any{"id": ids[1]}, "role": map[string]any{"id": ids[2]},
			})
		}
		fakeAnswer(w, 200, map[string]any{"role_assignments": entries, "links": map[string]any{"next": nil}})
	default:
		http.NotFound(w, r)
	}
}

func (k *fakeKeystone) answerProjects(w http.ResponseWriter, r *http.Request, id []string) {
	project := func(id string) any {
		return map[string]any{"id": id, "name": k.projects[id], "description": "d", "enabled": true, "domain_id": "default"}
	}
	if len(id) == 0 {
		found := []any{}
		for id, name := range k.projects {
			if name == r.URL.Query().Get("name") {
				found = append(found, project(id))
			}
		}
		fakeAnswer(w, 200, map[string]any{"projects": found, "links": map[string]any{"next": nil}})
		return
	}
	if _, ok := k.projects[id[0]]; !ok {
		fakeRefusal(w, 404, "Could not find project: "+id[0]+".")
		return
	}
	if r.Method == http.MethodDelete {
		delete(k.projects, id[0])
		w.WriteHeader(204)
		return
	}
	fakeAnswer(w, 200, map[string]any{"project": project(id[0])})
}

func (c fakeCredential) json(id string) any {
	var expires any
	if c.expiresAt != "" {
		expires = c.expiresAt
	}
	return map[string]any{
		"id": id, "name": c.name, "description": "d", "project_id": "p-1", "expires_at": expires,
		"roles": []any{map[string]any{"id": "r-member", "name": "member"}},
	}
}

func (k *fakeKeystone) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Methods  []string `json:"methods"`
				Password struct {
					User struct {
						Name, Password string
						Domain         struct{ Name string }
					}
				}
				ApplicationCredential struct{ ID, Secret string } `json:"application_credential"`
			}
			Scope *struct {
				Project struct {
					Name   string
					Domain struct{ Name string }
				}
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fakeRefusal(w, 400, "Expecting to find auth in request body.")
		return
	}
	now := k.now().UTC()
	token := map[string]any{
		"issued_at": now.Format("2006-01-02T15:04:05.000000Z"), "expires_at": now.Add(k.lifetime).Format("2006-01-02T15:04:05.000000Z"),
	}
	scope := func() {
		token["project"] = map[string]any{"id": "p-1", "name": "admin"}
		token["roles"] = []any{map[string]any{"id": "r-admin", "name": "admin"}}
		token["catalog"] = k.catalog
	}
	switch identity := body.Auth.Identity; {
	case len(identity.Methods) == 1 && identity.Methods[0] == "application_credential":
		c, ok := k.credentials[identity.ApplicationCredential.ID]
		if !ok {
			fakeRefusal(w, 404, "Could not find Application Credential: "+identity.ApplicationCredential.ID+".")
			return
		}
		if c.secret != identity.ApplicationCredential.Secret || !k.users[c.user].enabled {
			fakeRefusal(w, 401, "The request you have made requires authentication.")
			return
		}
		token["user"] = map[string]any{"id": c.user}
		if c.expiresAt != "" {
			// As Keystone 22 does: a token that ends with its credential has no zone in its expiry.
			token["expires_at"] = strings.TrimSuffix(c.expiresAt, ".000000")
		}
		scope()
	default:
		user := identity.Password.User
		if user.Name != "admin" || user.Domain.Name != "Default" || user.Password != k.password {
			fakeRefusal(w, 401, "The request you have made requires authentication.")
			return
		}
		token["user"] = map[string]any{"id": "u-admin"}
		if s := body.Auth.Scope; s != nil {
			if s.Project.Name != "admin" || s.Project.Domain.Name != "Default" {
				fakeRefusal(w, 401, "The request you have made requires authentication.")
				return
			}
			scope()
		}
	}
	id := fmt.Sprintf("gAAAAA-token-%d", len(k.tokens))
	k.tokens[id] = true
	w.Header().Set("X-Subject-Token", id)
	fakeAnswer(w, 201, map[string]any{"token": token})
}

func fakeAnswer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fakeRefusal(w http.ResponseWriter, status int, message string) {
	fakeAnswer(w, status, map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": message}})
}
