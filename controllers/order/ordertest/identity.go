package ordertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

const (
	adminID    = "u-admin"
	domainID   = "default"
	domainName = "Default"
	tokensPath = "/v3/auth/tokens" //nolint:gosec // a path, no credential
	// tokenLifetime is Keystone's default.
	tokenLifetime = time.Hour
)

// FakeUser is a user of a FakeKeystone, in the domain "Default".
type FakeUser struct {
	Name, Password, Description string
	Disabled                    bool
	// PasswordExpiresAt is on Keystone's clock; zero means never.
	PasswordExpiresAt time.Time
}

// FakeCredential is an application credential of a FakeKeystone.
type FakeCredential struct {
	UserID, ProjectID, Name, Description, Secret string
	// ExpiresAt is on Keystone's clock; zero means never.
	ExpiresAt time.Time
}

// fakeToken is a token that was given out. It is unscoped without a project.
type fakeToken struct {
	userID, projectID string
	password          bool
	expires           time.Time
}

func (k *FakeKeystone) newID(kind string) string {
	k.next[kind]++
	return fmt.Sprintf("%s-%d", kind, k.next[kind])
}

// Accepts tells whether a login with an application credential would succeed at this moment, whatever
// Fault and Delivery make of requests.
func (k *FakeKeystone) Accepts(id, secret string) (accepted bool) {
	k.With(func() {
		credential, held := k.Credentials[id]
		accepted = held && k.works(credential, secret)
	})
	return accepted
}

// works tells whether a credential logs in: Keystone wants the secret, an enabled user, and a role that
// the user still holds on the project.
func (k *FakeKeystone) works(c FakeCredential, secret string) bool {
	user := k.Users[c.UserID]
	return c.Secret == secret && user != nil && !user.Disabled && k.hasRole(c.ProjectID, c.UserID) &&
		(c.ExpiresAt.IsZero() || k.Now().Before(c.ExpiresAt))
}

func (k *FakeKeystone) hasRole(project, user string) bool {
	for grant, granted := range k.Grants {
		if granted && strings.HasPrefix(grant, project+"/"+user+"/") {
			return true
		}
	}
	return false
}

func (k *FakeKeystone) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Methods  []string
				Password struct {
					User struct{ Name, Password string }
				}
				ApplicationCredential struct{ ID, Secret string } `json:"application_credential"`
			}
			Scope *struct{ Project struct{ Name string } }
		}
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "Expecting to find auth in request body.")
		return
	}
	token := fakeToken{expires: k.Now().Add(tokenLifetime)}
	identity := body.Auth.Identity
	if len(identity.Methods) == 1 && identity.Methods[0] == "application_credential" {
		credential, held := k.Credentials[identity.ApplicationCredential.ID]
		if !held {
			refuse(w, http.StatusNotFound, "Could not find Application Credential: "+identity.ApplicationCredential.ID+".")
			return
		}
		if k.works(credential, identity.ApplicationCredential.Secret) {
			token.userID, token.projectID = credential.UserID, credential.ProjectID
		}
	} else {
		token.password = true
		for id, user := range k.Users {
			if strings.EqualFold(user.Name, identity.Password.User.Name) && user.Password == identity.Password.User.Password && !user.Disabled &&
				(user.PasswordExpiresAt.IsZero() || k.Now().Before(user.PasswordExpiresAt)) {
				token.userID = id
			}
		}
		if scope := body.Auth.Scope; scope != nil && token.userID != "" {
			for id, project := range k.Projects {
				if strings.EqualFold(project.Name, scope.Project.Name) {
					token.projectID = id
				}
			}
			if token.projectID == "" || token.userID != adminID && !k.hasRole(token.projectID, token.userID) {
				token.userID = ""
			}
		}
	}
	if token.userID == "" {
		refuse(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	id := k.newID("fake-token")
	k.tokens[id] = token
	const layout = "2006-01-02T15:04:05.000000Z"
	content := map[string]any{
		"issued_at": k.Now().UTC().Format(layout), "expires_at": token.expires.UTC().Format(layout), "user": map[string]any{"id": token.userID},
	}
	if token.projectID != "" {
		content["project"] = map[string]any{"id": token.projectID}
	}
	w.Header().Set("X-Subject-Token", id)
	answer(w, http.StatusCreated, map[string]any{"token": content})
}

func (k *FakeKeystone) domains(w http.ResponseWriter, path []string) {
	domain := map[string]any{"id": domainID, "name": domainName, "enabled": true}
	if len(path) > 0 {
		answer(w, http.StatusOK, map[string]any{"domain": domain})
		return
	}
	answer(w, http.StatusOK, map[string]any{"domains": []any{domain}, "links": map[string]any{"next": nil}})
}

// users serves users, users/U, users/U/application_credentials and users/U/application_credentials/C.
func (k *FakeKeystone) users(w http.ResponseWriter, r *http.Request, token fakeToken, path []string) {
	if len(path) == 0 {
		k.allUsers(w, r)
		return
	}
	id := path[0]
	user, known := k.Users[id]
	if !known {
		refuse(w, http.StatusNotFound, "Could not find user: "+id+".")
		return
	}
	switch {
	case len(path) > 2:
		k.credential(w, r.Method, id, path[2])
	case len(path) == 2 && r.Method == http.MethodPost:
		k.newCredential(w, r, token, id)
	case len(path) == 2:
		listed := []any{}
		for credentialID, credential := range k.Credentials {
			if name := r.URL.Query().Get("name"); credential.UserID == id && (name == "" || name == credential.Name) {
				listed = append(listed, credential.json(credentialID))
			}
		}
		answer(w, http.StatusOK, map[string]any{"application_credentials": listed, "links": map[string]any{"next": nil}})
	case r.Method == http.MethodDelete:
		delete(k.Users, id)
		k.endTokens(id)
		maps.DeleteFunc(k.Grants, func(grant string, _ bool) bool { return strings.Contains(grant, "/"+id+"/") })
		maps.DeleteFunc(k.Credentials, func(_ string, c FakeCredential) bool { return c.UserID == id })
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPatch:
		k.changeUser(w, r, id)
	default:
		answer(w, http.StatusOK, map[string]any{"user": user.json(id)})
	}
}

func (k *FakeKeystone) allUsers(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var body struct{ User FakeUser }
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			refuse(w, http.StatusBadRequest, "Expecting to find user in request body.")
			return
		}
		for _, user := range k.Users {
			if strings.EqualFold(user.Name, body.User.Name) {
				refuse(w, http.StatusConflict, "Conflict occurred attempting to store user - Duplicate entry found with name "+user.Name+" at domain ID default.")
				return
			}
		}
		id := k.newID("u")
		k.Users[id] = &body.User
		answer(w, http.StatusCreated, map[string]any{"user": body.User.json(id)})
		return
	}
	found := []any{}
	for id, user := range k.Users {
		if strings.EqualFold(user.Name, r.URL.Query().Get("name")) {
			found = append(found, user.json(id))
		}
	}
	answer(w, http.StatusOK, map[string]any{"users": found, "links": map[string]any{"next": nil}})
}

func (k *FakeKeystone) changeUser(w http.ResponseWriter, r *http.Request, id string) {
	var body struct {
		User struct{ Password, Description *string }
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "Expecting to find user in request body.")
		return
	}
	if body.User.Description != nil {
		k.Users[id].Description = *body.User.Description
	}
	if body.User.Password != nil {
		k.Users[id].Password, k.Users[id].PasswordExpiresAt = *body.User.Password, time.Time{}
		k.endTokens(id)
	}
	answer(w, http.StatusOK, map[string]any{"user": k.Users[id].json(id)})
}

// endTokens revokes a user's tokens, as Keystone does when its password changes and when it goes.
func (k *FakeKeystone) endTokens(userID string) {
	maps.DeleteFunc(k.tokens, func(_ string, token fakeToken) bool { return token.userID == userID })
}

// newCredential makes an application credential for the project of the token. Only the user itself may,
// with a token that no application credential gave it.
func (k *FakeKeystone) newCredential(w http.ResponseWriter, r *http.Request, token fakeToken, userID string) {
	var body struct {
		Credential struct {
			Name, Description, Secret string
			ExpiresAt                 string `json:"expires_at"`
		} `json:"application_credential"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "Expecting to find application_credential in request body.")
		return
	}
	asked := body.Credential
	if token.userID != userID || !token.password || token.projectID == "" {
		refuse(w, http.StatusForbidden, "You are not authorized to perform the requested action: identity:create_application_credential.")
		return
	}
	made := FakeCredential{UserID: userID, ProjectID: token.projectID, Name: asked.Name, Description: asked.Description, Secret: asked.Secret}
	if asked.ExpiresAt != "" {
		expires, err := time.Parse(expiryLayout, asked.ExpiresAt)
		if err != nil || !k.Now().Before(expires) {
			refuse(w, http.StatusBadRequest, "Invalid application credential: The application credential expiration time is in the past.")
			return
		}
		made.ExpiresAt = expires
	}
	for _, other := range k.Credentials {
		if other.UserID == userID && other.Name == asked.Name {
			refuse(w, http.StatusConflict, "Conflict occurred attempting to store application_credential - Duplicate entry found with name "+asked.Name+".")
			return
		}
	}
	id := k.newID("ac")
	k.Credentials[id] = made
	answer(w, http.StatusCreated, map[string]any{"application_credential": made.json(id)})
}

func (k *FakeKeystone) credential(w http.ResponseWriter, method, userID, id string) {
	credential, held := k.Credentials[id]
	switch {
	case !held || credential.UserID != userID:
		refuse(w, http.StatusNotFound, "Could not find Application Credential: "+id+".")
	case method == http.MethodDelete:
		delete(k.Credentials, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, map[string]any{"application_credential": credential.json(id)})
	}
}

func (u FakeUser) json(id string) any {
	content := map[string]any{"id": id, "name": u.Name, "description": u.Description, "domain_id": domainID, "enabled": !u.Disabled, "password_expires_at": nil}
	if !u.PasswordExpiresAt.IsZero() {
		content["password_expires_at"] = u.PasswordExpiresAt.UTC().Format(expiryLayout)
	}
	return content
}

// expiryLayout is how Keystone writes, and gophercloud asks for, the expiry of an application credential:
// without a zone, in UTC.
const expiryLayout = "2006-01-02T15:04:05.999999"

func (c FakeCredential) json(id string) any {
	var expires any
	if !c.ExpiresAt.IsZero() {
		expires = c.ExpiresAt.UTC().Format("2006-01-02T15:04:05.000000")
	}
	return map[string]any{"id": id, "name": c.Name, "description": c.Description, "project_id": c.ProjectID, "expires_at": expires}
}
