// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestApplicationCredentials(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.credentials["17cb"] = fakeCredential{user: "u-agent", name: "credential-v1", expiresAt: "2026-03-31T12:00:00.500000"}
	keystone.credentials["29ab"] = fakeCredential{user: "u-admin", name: "credential-v1"}
	session := mustLogin(t, New(Config{}), keystone.adminCloud())

	got, err := session.ApplicationCredentials(t.Context(), "u-agent")
	if err != nil {
		t.Fatal(err)
	}
	expiry := time.Date(2026, 3, 31, 12, 0, 0, 500_000_000, time.UTC)
	wanted := []ApplicationCredential{{ID: "17cb", Name: "credential-v1", Description: "d", ProjectID: "p-1", ExpiresAt: &expiry, Roles: []Role{{"r-member", "member"}}}}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %+v, want %+v", got, wanted)
	}

	if got, err = session.ApplicationCredentials(t.Context(), "u-admin"); err != nil || len(got) != 1 || got[0].ExpiresAt != nil {
		t.Errorf("one without an expiry reads %+v (%v)", got, err)
	}
	_, err = session.ApplicationCredentials(t.Context(), "nobody")
	want(t, err, NotFound)
}

func TestApplicationCredentials_reads_every_page_at_the_configured_address(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	keystone.set(func() {
		keystone.fault = func(w http.ResponseWriter, r *http.Request) bool {
			page := map[string]any{"application_credentials": []any{fakeCredential{name: "last"}.json("2")}, "links": map[string]any{"next": nil}}
			if r.URL.Query().Get("marker") == "" {
				page = map[string]any{
					"application_credentials": []any{fakeCredential{name: "first"}.json("1")},
					"links":                   map[string]any{"next": "http://elsewhere.invalid/v3/users/u-agent/application_credentials?marker=1"},
				}
			}
			fakeAnswer(w, 200, page)
			return true
		}
	})
	got, err := session.ApplicationCredentials(t.Context(), "u-agent")
	if err != nil || len(got) != 2 || got[0].Name != "first" || got[1].Name != "last" {
		t.Errorf("got %+v (%v)", got, err)
	}
}

func TestProof(t *testing.T) {
	const path = "/v3/users/u-agent/application_credentials"
	for name, test := range map[string]struct {
		arrange func(*fakeKeystone)
		want    []string
		class   Class
	}{
		"names_what_is_alive_under_the_prefix_and_nothing_else": {
			arrange: func(k *fakeKeystone) {
				k.credentials["1"] = fakeCredential{user: "u-agent", name: "agent-0123abcd-credential-v1"}
				k.credentials["2"] = fakeCredential{user: "u-agent", name: "agent-0123abcd-credential-v2"}
				k.credentials["3"] = fakeCredential{user: "u-agent", name: "somebody-elses"}
				k.credentials["4"] = fakeCredential{user: "u-admin", name: "agent-0123abcd-credential-v3"}
			},
			want: []string{"agent-0123abcd-credential-v1", "agent-0123abcd-credential-v2"}, class: OK,
		},
		"a_user_without_credentials_has_none": {arrange: func(*fakeKeystone) {}, class: OK},
		"a_user_that_is_gone_took_them_along": {arrange: func(k *fakeKeystone) { delete(k.users, "u-agent") }, class: OK},
		"a_404_to_the_list_of_a_user_that_exists_proves_nothing": {
			arrange: func(k *fakeKeystone) {
				k.fault = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == path {
						fakeRefusal(w, 404, "Not here.")
					}
					return r.URL.Path == path
				}
			},
			class: EndpointUnreachable,
		},
		"a_proxys_404_about_the_user_proves_nothing": {
			arrange: func(k *fakeKeystone) {
				delete(k.users, "u-agent")
				k.fault = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/v3/users/u-agent" {
						http.NotFound(w, r)
						return true
					}
					return false
				}
			},
			class: EndpointUnreachable,
		},
		"a_forbidden_list_proves_nothing": {
			arrange: func(k *fakeKeystone) {
				k.fault = func(w http.ResponseWriter, r *http.Request) bool {
					fakeRefusal(w, 403, "You are not authorized to perform the requested action: identity:list_application_credentials.")
					return true
				}
			},
			class: Forbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			keystone := newFakeKeystone(t)
			session := mustLogin(t, New(Config{}), keystone.adminCloud())
			keystone.set(func() { test.arrange(keystone) })
			got, err := session.Proof(t.Context(), "u-agent", "agent-0123abcd-")
			want(t, err, test.class)
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, test.want) {
				t.Errorf("got %v, want %v", names, test.want)
			}
			if (got == nil) != (test.class != OK) {
				t.Errorf("got %v, and an empty proof must be told from none", got)
			}
		})
	}
}

func TestDeleteApplicationCredential(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.credentials["17cb"] = fakeCredential{user: "u-agent", name: "credential-v1"}
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	for _, call := range []struct{ name, user, id string }{
		{"one_that_exists", "u-agent", "17cb"},
		{"one_that_is_gone", "u-agent", "17cb"},
		{"one_of_a_user_that_is_gone", "nobody", "17cb"},
	} {
		if err := session.DeleteApplicationCredential(t.Context(), call.user, call.id); err != nil {
			t.Errorf("%s: %v", call.name, err)
		}
	}
	if len(keystone.credentials) != 0 {
		t.Error("it is still there")
	}
}

func TestUsers(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.users["u-off"] = fakeUser{"off", false}
	session := mustLogin(t, New(Config{}), keystone.adminCloud())

	user, err := session.User(t.Context(), "u-off")
	if err != nil || user.Enabled || user.Name != "off" || user.Description != "d" || user.DomainID != "default" {
		t.Errorf("got %+v (%v)", user, err)
	}
	_, err = session.User(t.Context(), "nobody")
	want(t, err, NotFound)
	for id, wanted := range map[string]bool{"u-agent": true, "nobody": false} {
		if got, err := session.UserExists(t.Context(), id); err != nil || got != wanted {
			t.Errorf("%s exists: %v (%v)", id, got, err)
		}
	}
	found, err := session.FindUsers(t.Context(), "agent", "default")
	if wanted := []User{{ID: "u-agent", Name: "agent", DomainID: "default", Description: "d", Enabled: true}}; err != nil || !reflect.DeepEqual(found, wanted) {
		t.Errorf("got %+v (%v), want %+v", found, err, wanted)
	}
	if found, err = session.FindUsers(t.Context(), "a b&c", ""); err != nil || len(found) != 0 {
		t.Errorf("got %+v (%v)", found, err)
	}
}

func TestUser_of_another_id_is_no_answer(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	keystone.set(func() {
		keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool {
			fakeAnswer(w, 200, map[string]any{"user": map[string]any{"id": "u-other", "enabled": true}})
			return true
		}
	})
	_, err := session.User(t.Context(), "u-agent")
	want(t, err, EndpointUnreachable)
}

func TestRoles(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	has := func(wanted bool) {
		t.Helper()
		if got, err := session.HasRole(t.Context(), "p-1", "u-agent", "r-member"); err != nil || got != wanted {
			t.Errorf("has the role: %v (%v), want %v", got, err, wanted)
		}
	}
	has(false)
	for range 2 {
		if err := session.AssignRole(t.Context(), "p-1", "u-agent", "r-member"); err != nil {
			t.Fatal(err)
		}
	}
	has(true)

	// What Keystone lists beside it is not the user's own on a project.
	entry := func(scope map[string]any, holder string) any {
		return map[string]any{"scope": scope, holder: map[string]any{"id": "u-agent"}, "role": map[string]any{"id": "r-other"}}
	}
	project := map[string]any{"id": "p-1"}
	keystone.set(func() {
		keystone.extraRoles = []any{
			entry(map[string]any{"project": project}, "group"),
			entry(map[string]any{"project": project, "OS-INHERIT:inherited_to": "projects"}, "user"),
			entry(map[string]any{"domain": map[string]any{"id": "default"}}, "user"),
			entry(map[string]any{"system": map[string]any{"all": true}}, "user"),
		}
		keystone.assigned["p-2/u-agent/r-member"] = true
		keystone.assigned["p-1/u-other/r-member"] = true
	})
	for _, test := range []struct {
		user, project string
		want          []string
	}{
		{"u-agent", "p-1", []string{"p-1/u-agent/r-member"}},
		{"u-agent", "", []string{"p-1/u-agent/r-member", "p-2/u-agent/r-member"}},
		{"", "p-1", []string{"p-1/u-agent/r-member", "p-1/u-other/r-member"}},
	} {
		assignments, err := session.RoleAssignments(t.Context(), test.user, test.project)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range assignments {
			got = append(got, strings.Join([]string{a.ProjectID, a.UserID, a.RoleID}, "/"))
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("of user %q on project %q: got %v, want %v", test.user, test.project, got, test.want)
		}
	}

	for range 2 {
		if err := session.UnassignRole(t.Context(), "p-1", "u-agent", "r-member"); err != nil {
			t.Fatal(err)
		}
	}
	has(false)
}
