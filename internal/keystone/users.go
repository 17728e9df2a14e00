// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// User is a user of Keystone.
type User struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	DomainID string `json:"domain_id"`
	// Description is free text, empty when there is none. The operator's own users name their order
	// in it.
	Description string `json:"description"`
	// Enabled users may log in.
	Enabled bool `json:"enabled"`
	// PasswordExpiresAt is when the password ends, on Keystone's clock; nil when it does not.
	PasswordExpiresAt *time.Time `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler: Keystone writes that time without a zone.
func (u *User) UnmarshalJSON(data []byte) error {
	type plain User
	read := struct {
		*plain
		PasswordExpiresAt *moment `json:"password_expires_at"`
	}{plain: (*plain)(u)}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	u.PasswordExpiresAt = nil
	if read.PasswordExpiresAt != nil {
		u.PasswordExpiresAt = &read.PasswordExpiresAt.Time
	}
	return nil
}

// User looks a user up by id. IsGone(err) when Keystone itself says that there is none.
func (s *Session) User(ctx context.Context, userID string) (*User, error) {
	const operation = "get_user"
	path, err := address(operation, "users", userID)
	if err != nil {
		return nil, err
	}
	var answer struct {
		User *User `json:"user"`
	}
	if err := s.call(ctx, operation, http.MethodGet, path, http.StatusOK, &answer); err != nil {
		return nil, err
	}
	if answer.User == nil || answer.User.ID != userID {
		return nil, &Error{Operation: operation, Class: EndpointUnreachable, Message: "the answer is not Keystone's: it lacks the user that was asked for"}
	}
	return answer.User, nil
}

// UserExists tells whether there is a user with that id. False is Keystone's own word.
func (s *Session) UserExists(ctx context.Context, userID string) (bool, error) {
	_, err := s.User(ctx, userID)
	if IsGone(err) {
		return false, nil
	}
	return err == nil, err
}

// FindUsers lists the users of that name in a domain, or in every domain when domainID is empty.
// Keystone compares names as its database does, usually without regard to case.
func (s *Session) FindUsers(ctx context.Context, name, domainID string) ([]User, error) {
	const operation = "find_users"
	if name == "" {
		// Keystone would take it for no filter at all and list everyone.
		return nil, invalid(operation, "the name is empty")
	}
	query := url.Values{"name": {name}}
	if domainID != "" {
		query.Set("domain_id", domainID)
	}
	return list[User](ctx, s, operation, "users", query, "users")
}

// DeleteUser deletes a user, and with it its roles and application credentials. deleted is false when
// Keystone itself says that there is no such user, which proves it gone: unlike a GET, a DELETE is not
// answered from Keystone's cache.
func (s *Session) DeleteUser(ctx context.Context, userID string) (deleted bool, err error) {
	const operation = "delete_user"
	path, err := address(operation, "users", userID)
	if err != nil {
		return false, err
	}
	err = s.call(ctx, operation, http.MethodDelete, path, http.StatusNoContent, nil)
	if IsGone(err) {
		return false, nil
	}
	return err == nil, err
}
