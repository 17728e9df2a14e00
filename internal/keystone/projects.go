// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"net/http"
	"net/url"
)

// Project is a project of Keystone.
type Project struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	DomainID string `json:"domain_id"`
	// Description is free text. The operator's own projects name their order in it.
	Description string `json:"description"`
	// Enabled projects may be logged in to.
	Enabled bool `json:"enabled"`
}

// Project looks a project up by id. IsGone(err) when Keystone itself says that there is none.
func (s *Session) Project(ctx context.Context, projectID string) (*Project, error) {
	const operation = "get_project"
	path, err := address(operation, "projects", projectID)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Project *Project `json:"project"`
	}
	if err := s.call(ctx, operation, http.MethodGet, path, http.StatusOK, &answer); err != nil {
		return nil, err
	}
	if answer.Project == nil || answer.Project.ID != projectID {
		return nil, &Error{Operation: operation, Class: EndpointUnreachable, Message: "the answer is not Keystone's: it lacks the project that was asked for"}
	}
	return answer.Project, nil
}

// ProjectExists tells whether there is a project with that id. False is Keystone's own word.
func (s *Session) ProjectExists(ctx context.Context, projectID string) (bool, error) {
	_, err := s.Project(ctx, projectID)
	if IsGone(err) {
		return false, nil
	}
	return err == nil, err
}

// FindProjects lists the projects of that name in a domain, or in every domain when domainID is
// empty. Keystone compares names as its database does, usually without regard to case.
func (s *Session) FindProjects(ctx context.Context, name, domainID string) ([]Project, error) {
	const operation = "find_projects"
	if name == "" {
		// Keystone would take it for no filter at all and list every project.
		return nil, invalid(operation, "the name is empty")
	}
	query := url.Values{"name": {name}}
	if domainID != "" {
		query.Set("domain_id", domainID)
	}
	return list[Project](ctx, s, operation, "projects", query, "projects")
}

// DeleteProject deletes a project and with it every role on it. It is nil as well when Keystone
// itself says that there is no such project.
func (s *Session) DeleteProject(ctx context.Context, projectID string) error {
	const operation = "delete_project"
	path, err := address(operation, "projects", projectID)
	if err != nil {
		return err
	}
	err = s.call(ctx, operation, http.MethodDelete, path, http.StatusNoContent, nil)
	if IsGone(err) {
		return nil
	}
	return err
}
