// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// ApplicationCredential is an application credential as Keystone lists it. Its secret is known only
// to whoever created it.
type ApplicationCredential struct {
	ID          string
	Name        string
	Description string
	ProjectID   string
	// ExpiresAt is on Keystone's clock; nil means never.
	ExpiresAt *time.Time
	// Roles are those it was created with. What a token gets is what the user still holds of them.
	Roles []Role
}

// UnmarshalJSON implements json.Unmarshaler for Keystone's own form.
func (c *ApplicationCredential) UnmarshalJSON(data []byte) error {
	var raw struct {
		ID          string  `json:"id"`
		Name        string  `json:"name"`
		Description string  `json:"description"`
		ProjectID   string  `json:"project_id"`
		ExpiresAt   *moment `json:"expires_at"`
		Roles       []Role  `json:"roles"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*c = ApplicationCredential{ID: raw.ID, Name: raw.Name, Description: raw.Description, ProjectID: raw.ProjectID, Roles: raw.Roles}
	if raw.ExpiresAt != nil {
		c.ExpiresAt = &raw.ExpiresAt.Time
	}
	return nil
}

// ApplicationCredentials lists all application credentials of a user, in every project. It asks as
// an administrator or as the user itself. Keystone's own 404 (IsGone) means that there is no such
// user.
//
// The list, not a GET by id, is what proves a revocation: Keystone may answer a GET from its cache
// for a while after the delete.
func (s *Session) ApplicationCredentials(ctx context.Context, userID string) ([]ApplicationCredential, error) {
	const operation = "list_application_credentials"
	path, err := address(operation, "users", userID, "application_credentials")
	if err != nil {
		return nil, err
	}
	return list[ApplicationCredential](ctx, s, operation, path, nil, "application_credentials")
}

// Proof maps the application credentials of a user whose name starts with namePrefix by that name.
// A name that is missing from a result without an error is proven gone at the time of asking. A
// user that is gone took its credentials along, so it proves them all gone; Keystone has to say so
// twice, of the list and of the user.
func (s *Session) Proof(ctx context.Context, userID, namePrefix string) (map[string]ApplicationCredential, error) {
	credentials, err := s.ApplicationCredentials(ctx, userID)
	if IsGone(err) {
		exists, err := s.UserExists(ctx, userID)
		if err != nil {
			return nil, err
		}
		if exists {
			return nil, &Error{
				Operation: "list_application_credentials",
				Class:     EndpointUnreachable,
				Message:   "Keystone answered 404 to the list of a user that it does have",
			}
		}
		return map[string]ApplicationCredential{}, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]ApplicationCredential{}
	for _, credential := range credentials {
		if strings.HasPrefix(credential.Name, namePrefix) {
			found[credential.Name] = credential
		}
	}
	return found, nil
}

// DeleteApplicationCredential revokes one. It is nil when Keystone deleted it and when Keystone
// itself says that it, or its user, does not exist.
func (s *Session) DeleteApplicationCredential(ctx context.Context, userID, id string) error {
	const operation = "delete_application_credential"
	path, err := address(operation, "users", userID, "application_credentials", id)
	if err != nil {
		return err
	}
	err = s.call(ctx, operation, http.MethodDelete, path, http.StatusNoContent, nil)
	if IsGone(err) {
		return nil
	}
	return err
}
