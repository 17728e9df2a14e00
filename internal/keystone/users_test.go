// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDeleteUser(t *testing.T) {
	for name, test := range map[string]struct {
		id      string
		answer  func(http.ResponseWriter)
		deleted bool
		class   Class
	}{
		"deletes_a_user":                        {"u-agent", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, true, OK},
		"takes_keystones_404_for_gone":          {"u-agent", func(w http.ResponseWriter) { fakeRefusal(w, 404, "Could not find user: u-agent.") }, false, OK},
		"does_not_take_a_proxys_404_for_gone":   {"u-agent", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, false, EndpointUnreachable},
		"does_not_take_an_outage_for_gone":      {"u-agent", func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, false, EndpointUnreachable},
		"reports_a_refusal":                     {"u-agent", func(w http.ResponseWriter) { fakeRefusal(w, 403, "You are not authorized.") }, false, Forbidden},
		"does_not_ask_for_a_user_without_an_id": {"", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, false, InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			keystone := newFakeKeystone(t)
			keystone.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodDelete || !strings.HasPrefix(r.URL.Path, "/v3/users") {
					return false
				}
				test.answer(w)
				return true
			}
			session := mustAdmin(t, New(Config{}), keystone)
			deleted, err := session.DeleteUser(t.Context(), test.id)
			if deleted != test.deleted || Classify(err) != test.class {
				t.Errorf("deleted %t, %v; want %t, %s", deleted, err, test.deleted, test.class)
			}
		})
	}
}

// Keystone writes the time without a zone and means UTC.
func TestUser_reads_when_its_password_expires(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": "u", "enabled": true, "password_expires_at": "2026-03-01T12:00:00.000000"}`: "2026-03-01T12:00:00Z",
		`{"id": "u", "enabled": true, "password_expires_at": null}`:                         "",
		`{"id": "u", "enabled": true}`:                                                      "",
	} {
		user := User{PasswordExpiresAt: new(time.Time)}
		if err := json.Unmarshal([]byte(text), &user); err != nil || user.ID != "u" || !user.Enabled {
			t.Errorf("%s is read as %+v, %v", text, user, err)
			continue
		}
		got := ""
		if user.PasswordExpiresAt != nil {
			got = user.PasswordExpiresAt.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s expires at %q, want %q", text, got, want)
		}
	}
	if err := json.Unmarshal([]byte(`{"id": "u", "password_expires_at": "soon"}`), &User{}); err == nil {
		t.Error("a time that is none was read")
	}
}
