// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"net/http"
	"testing"
)

func TestProjects_are_found_and_deleted(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustAdmin(t, New(Config{}), keystone)

	found, err := session.FindProjects(t.Context(), "workflow", "default")
	if err != nil || len(found) != 1 || found[0] != (Project{ID: "p-1", Name: "workflow", DomainID: "default", Description: "d", Enabled: true}) {
		t.Fatalf("found %v, %v", found, err)
	}
	if found, err := session.FindProjects(t.Context(), "another", "default"); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v", found, err)
	}
	if exists, err := session.ProjectExists(t.Context(), "p-1"); err != nil || !exists {
		t.Errorf("exists: %v, %v", exists, err)
	}
	for range 2 { // a delete of what is gone is no failure
		if err := session.DeleteProject(t.Context(), "p-1"); err != nil {
			t.Fatal(err)
		}
	}
	if exists, err := session.ProjectExists(t.Context(), "p-1"); err != nil || exists {
		t.Errorf("exists: %v, %v", exists, err)
	}
}

func TestRoleExists(t *testing.T) {
	session := mustAdmin(t, New(Config{}), newFakeKeystone(t))
	for id, exists := range map[string]bool{"r-member": true, "r-none": false} {
		if got, err := session.RoleExists(t.Context(), id); err != nil || got != exists {
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
}

func TestProjects_a_proxys_404_proves_nothing(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustAdmin(t, New(Config{}), keystone)
	keystone.set(func() {
		keystone.fault = func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }
	})
	_, err := session.ProjectExists(t.Context(), "p-1")
	want(t, err, EndpointUnreachable)
	_, err = session.FindProjects(t.Context(), "workflow", "")
	want(t, err, EndpointUnreachable)
	_, err = session.RoleExists(t.Context(), "r-member")
	want(t, err, EndpointUnreachable)
	want(t, session.DeleteProject(t.Context(), "p-1"), EndpointUnreachable)
}

func TestProjects_refuse_ids_that_are_none(t *testing.T) {
	session := mustAdmin(t, New(Config{}), newFakeKeystone(t))
	for _, id := range []string{"", ".", ".."} {
		_, err := session.ProjectExists(t.Context(), id)
		want(t, err, InvalidRequest)
		_, err = session.RoleExists(t.Context(), id)
		want(t, err, InvalidRequest)
		want(t, session.DeleteProject(t.Context(), id), InvalidRequest)
	}
	_, err := session.FindProjects(t.Context(), "", "default")
	want(t, err, InvalidRequest)
}
