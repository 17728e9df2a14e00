package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

const defaultDomain = "default" // the id that `keystone-manage bootstrap` gives to the domain Default

// keystoneClient keeps no connection: the suites restart Keystone and break its connections.
var keystoneClient = &http.Client{Timeout: answerIn, Transport: &http.Transport{DisableKeepAlives: true}}

// refusal is Keystone's own "no", with its status.
type refusal struct{ status int }

func (r refusal) Error() string { return fmt.Sprintf("Keystone answers %d", r.status) }

// ask sends one request. Only an answer with Keystone's own error body is a refusal; a proxy's page
// says nothing about what Keystone holds.
func ask(ctx context.Context, method, path, token string, in, out any) (http.Header, error) {
	base := strings.TrimSuffix(os.Getenv("OS_AUTH_URL"), "/")
	if base == "" {
		return nil, errors.New("OS_AUTH_URL is not set")
	}
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}
	response, err := keystoneClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		var answer struct {
			Error *struct{ Code int } `json:"error"`
		}
		ours := json.Unmarshal(text, &answer) == nil && answer.Error != nil
		if ours && response.StatusCode < http.StatusInternalServerError {
			return nil, refusal{response.StatusCode}
		}
		return nil, fmt.Errorf("%s %s answers %d, which is no word of Keystone's", method, path, response.StatusCode)
	}
	if out == nil || len(text) == 0 {
		return response.Header, nil
	}
	return response.Header, json.Unmarshal(text, out)
}

type object = map[string]any

// passwordLogin is a request for a token with a password; project may be empty.
func passwordLogin(user, password, project string) object {
	domain := object{"id": defaultDomain}
	auth := object{"identity": object{
		"methods":  []string{"password"},
		"password": object{"user": object{"name": user, "domain": domain, "password": password}},
	}}
	if project != "" {
		auth["scope"] = object{"project": object{"name": project, "domain": domain}}
	}
	return object{"auth": auth}
}

func credentialLogin(id, secret string) object {
	return object{"auth": object{"identity": object{
		"methods":                []string{"application_credential"},
		"application_credential": object{"id": id, "secret": secret},
	}}}
}

// loginCommand logs in with a delivered Secret: as the user whose password it holds, or with the
// application credential.
func loginCommand(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("login", flag.ContinueOnError)
	user := flags.String("user", "", "")
	if err := flags.Parse(arguments); err != nil || flags.NArg() > 0 {
		return errWrongUse
	}
	secret, err := secretOnStdin()
	if err != nil {
		return err
	}
	request := credentialLogin(string(secret.Data["application_credential_id"]), string(secret.Data["application_credential_secret"]))
	if *user != "" {
		request = passwordLogin(*user, string(secret.Data["password"]), "")
	}
	var no refusal
	_, err = ask(ctx, http.MethodPost, "/auth/tokens", "", request, nil)
	if errors.As(err, &no) {
		return fmt.Errorf("%w: the login is refused (%d)", errNo, no.status)
	}
	if err == nil {
		fmt.Println("accepted")
	}
	return err
}

func adminToken(ctx context.Context) (string, error) {
	password, err := os.ReadFile(os.Getenv("KEYSTONE_ADMIN_PASSWORD_FILE"))
	if err != nil {
		return "", fmt.Errorf("KEYSTONE_ADMIN_PASSWORD_FILE: %w", err)
	}
	header, err := ask(ctx, http.MethodPost, "/auth/tokens", "", passwordLogin("admin", strings.TrimSpace(string(password)), "admin"), nil)
	if err != nil {
		return "", fmt.Errorf("logging in as the administrator: %w", err)
	}
	return header.Get("X-Subject-Token"), nil
}

// asAdmin sends one request as Keystone's administrator.
func asAdmin(ctx context.Context, method, path string, in, out any) error {
	token, err := adminToken(ctx)
	if err != nil {
		return err
	}
	_, err = ask(ctx, method, path, token, in, out)
	return err
}

type named struct{ ID, Name string }

// applicationCredentials lists a user's credentials. A user that is gone has none.
func applicationCredentials(ctx context.Context, user string) ([]string, error) {
	var answer struct {
		ApplicationCredentials []named `json:"application_credentials"`
	}
	err := asAdmin(ctx, http.MethodGet, "/users/"+url.PathEscape(user)+"/application_credentials", nil, &answer)
	if no := (refusal{}); errors.As(err, &no) && no.status == http.StatusNotFound {
		return nil, nil
	}
	var lines []string
	for _, credential := range answer.ApplicationCredentials {
		lines = append(lines, credential.ID+" "+credential.Name)
	}
	return lines, err
}

func directRoles(ctx context.Context, user, project string) ([]string, error) {
	var answer struct{ Roles []named }
	err := asAdmin(ctx, http.MethodGet, "/projects/"+url.PathEscape(project)+"/users/"+url.PathEscape(user)+"/roles", nil, &answer)
	var names []string
	for _, role := range answer.Roles {
		names = append(names, role.Name)
	}
	return names, err
}

// find returns the ids of users or projects of a name.
func find(ctx context.Context, what, name string) ([]string, error) {
	if what != "users" && what != "projects" {
		return nil, errWrongUse
	}
	answer := map[string]json.RawMessage{}
	query := url.Values{"name": {name}, "domain_id": {defaultDomain}}
	if err := asAdmin(ctx, http.MethodGet, "/"+what+"?"+query.Encode(), nil, &answer); err != nil {
		return nil, err
	}
	var found []named
	if err := json.Unmarshal(answer[what], &found); err != nil {
		return nil, err
	}
	var ids []string
	for _, one := range found {
		ids = append(ids, one.ID)
	}
	return ids, nil
}

func createUser(ctx context.Context, name string) error {
	var answer struct{ User named }
	in := object{"user": object{"name": name, "domain_id": defaultDomain, "password": rand.Text()}}
	if err := asAdmin(ctx, http.MethodPost, "/users", in, &answer); err != nil {
		return err
	}
	fmt.Println(answer.User.ID)
	return nil
}

func deleteUser(ctx context.Context, id string) error {
	return asAdmin(ctx, http.MethodDelete, "/users/"+url.PathEscape(id), nil, nil)
}

func enableUser(ctx context.Context, id string, enabled bool) error {
	return asAdmin(ctx, http.MethodPatch, "/users/"+url.PathEscape(id), object{"user": object{"enabled": enabled}}, nil)
}

// changePassword gives a user a password that nobody knows, past its order.
func changePassword(ctx context.Context, id string) error {
	return asAdmin(ctx, http.MethodPatch, "/users/"+url.PathEscape(id), object{"user": object{"password": rand.Text()}}, nil)
}

// changeRole gives a user a role on a project (PUT) or takes it away (DELETE), past every order.
func changeRole(ctx context.Context, method, user, project, role string) error {
	path := "/projects/" + url.PathEscape(project) + "/users/" + url.PathEscape(user) + "/roles/" + url.PathEscape(role)
	return asAdmin(ctx, method, path, nil, nil)
}

// revoke deletes an application credential as an administrator does by hand, past its order.
func revoke(ctx context.Context, user, id string) error {
	return asAdmin(ctx, http.MethodDelete, "/users/"+url.PathEscape(user)+"/application_credentials/"+url.PathEscape(id), nil, nil)
}
