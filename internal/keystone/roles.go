// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"net/http"
	"net/url"
)

// RoleExists tells whether there is a role with that id. False is Keystone's own word.
func (s *Session) RoleExists(ctx context.Context, roleID string) (bool, error) {
	const operation = "get_role"
	path, err := address(operation, "roles", roleID)
	if err != nil {
		return false, err
	}
	var answer struct {
		Role *Role `json:"role"`
	}
	err = s.call(ctx, operation, http.MethodGet, path, http.StatusOK, &answer)
	switch {
	case IsGone(err):
		return false, nil
	case err != nil:
		return false, err
	case answer.Role == nil || answer.Role.ID != roleID:
		return false, &Error{Operation: operation, Class: EndpointUnreachable, Message: "the answer is not Keystone's: it lacks the role that was asked for"}
	}
	return true, nil
}

// RoleAssignment is a role that a user holds on a project by its own assignment, not through a group
// and not inherited from a domain or a parent project.
type RoleAssignment struct {
	RoleID    string
	UserID    string
	ProjectID string
}

// AssignRole gives a user a role on a project. Assigning it twice is no error. IsGone(err) when
// Keystone does not know the project, the user or the role.
func (s *Session) AssignRole(ctx context.Context, projectID, userID, roleID string) error {
	return s.role(ctx, "assign_role", http.MethodPut, projectID, userID, roleID)
}

// UnassignRole takes it away. It is nil as well when Keystone itself says that there is no such
// assignment, project, user or role.
func (s *Session) UnassignRole(ctx context.Context, projectID, userID, roleID string) error {
	err := s.role(ctx, "unassign_role", http.MethodDelete, projectID, userID, roleID)
	if IsGone(err) {
		return nil
	}
	return err
}

// HasRole tells whether the user holds the role on the project by its own assignment. False is
// Keystone's own word, also when the project, the user or the role does not exist.
//
// It asks with GET, not with HEAD as clients usually do: an answer to HEAD has no body, so
// Keystone's 404 could not be told from a proxy's.
func (s *Session) HasRole(ctx context.Context, projectID, userID, roleID string) (bool, error) {
	err := s.role(ctx, "has_role", http.MethodGet, projectID, userID, roleID)
	if IsGone(err) {
		return false, nil
	}
	return err == nil, err
}

func (s *Session) role(ctx context.Context, operation, method, projectID, userID, roleID string) error {
	path, err := address(operation, "projects", projectID, "users", userID, "roles", roleID)
	if err != nil {
		return err
	}
	return s.call(ctx, operation, method, path, http.StatusNoContent, nil)
}

// RoleAssignments lists the direct assignments of a user on a project. An empty projectID lists
// those on every project, an empty userID those of every user; at least one is needed.
func (s *Session) RoleAssignments(ctx context.Context, userID, projectID string) ([]RoleAssignment, error) {
	const operation = "list_role_assignments"
	if userID == "" && projectID == "" {
		return nil, invalid(operation, "neither a user nor a project is given")
	}
	query := url.Values{}
	if userID != "" {
		query.Set("user.id", userID)
	}
	if projectID != "" {
		query.Set("scope.project.id", projectID)
	}
	type entry struct {
		Role  Role `json:"role"`
		User  Role `json:"user"`
		Scope struct {
			Project     Role   `json:"project"`
			InheritedTo string `json:"OS-INHERIT:inherited_to"`
		} `json:"scope"`
	}
	entries, err := list[entry](ctx, s, operation, "role_assignments", query, "role_assignments")
	if err != nil {
		return nil, err
	}
	var direct []RoleAssignment
	for _, e := range entries {
		// Checked again here, since a Keystone that does not know a filter ignores it.
		wanted := (userID == "" || e.User.ID == userID) && (projectID == "" || e.Scope.Project.ID == projectID)
		if wanted && e.User.ID != "" && e.Scope.Project.ID != "" && e.Scope.InheritedTo == "" {
			direct = append(direct, RoleAssignment{RoleID: e.Role.ID, UserID: e.User.ID, ProjectID: e.Scope.Project.ID})
		}
	}
	return direct, nil
}
