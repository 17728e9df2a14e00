// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"net/http"
	"strings"
	"testing"
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
