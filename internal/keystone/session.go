// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// Role is a Keystone role.
type Role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Session is a token and what it may ask for. Its fields are those of the login and do not change.
// It is safe for concurrent use.
type Session struct {
	// UserID is who logged in.
	UserID string
	// ProjectID is the project that the token is scoped to; empty for an unscoped token.
	ProjectID string
	// Roles are the token's roles on the project; none for an unscoped token.
	Roles []Role
	// Expiry is when the token ends, on Keystone's clock.
	Expiry time.Time
	// ServerTime is Keystone's time at the login, to the second. It is the answer's Date, else the
	// token's own time of issue, else zero.
	ServerTime time.Time

	service      *Service
	client       *gophercloud.ServiceClient
	secrets      []string
	catalog      tokens.ServiceCatalog
	regionName   string
	endpointType string
	loggedInAt   time.Time // on our clock
	skew         time.Duration
	// renew logs in again; nil for a session that is not an administrator's.
	renew func(context.Context) (*Session, error)
}

// Skew is how far Keystone's clock is ahead of ours, negative when it is behind, in whole seconds.
// A time to hand to Keystone is ours plus the skew. It is 0 when Keystone did not tell its time.
func (s *Session) Skew() time.Duration { return s.skew }

// String keeps the token and the password out of a careless log line.
func (s *Session) String() string { return fmt.Sprintf("keystone session of user %s", s.UserID) }

// GoString is String, for %#v.
func (s *Session) GoString() string { return s.String() }

// CatalogHasIdentity tells whether the catalog of the token lists an identity endpoint for the
// cloud's region and interface, chosen as K-ORC chooses: an empty region matches any, an interface
// that is neither internal nor admin is public. An unscoped token carries no catalog, so false.
func (s *Session) CatalogHasIdentity() bool {
	for _, service := range s.catalog.Entries {
		if service.Type != "identity" {
			continue
		}
		for _, endpoint := range service.Endpoints {
			if endpoint.Interface == s.availability() &&
				(s.regionName == "" || endpoint.Region == s.regionName || endpoint.RegionID == s.regionName) {
				return true
			}
		}
	}
	return false
}

// CheckCatalog is CatalogHasIdentity as an *Error of class CatalogEndpointMismatch; nil when the
// catalog fits.
func (s *Session) CheckCatalog() error {
	if s.CatalogHasIdentity() {
		return nil
	}
	region := "any region"
	if s.regionName != "" {
		region = fmt.Sprintf("region %q", s.regionName)
	}
	return &Error{
		Operation: "check_catalog",
		Class:     CatalogEndpointMismatch,
		Message:   fmt.Sprintf("Keystone's catalog has no identity endpoint with interface %q in %s", s.availability(), region),
	}
}

func (s *Session) availability() string {
	switch s.endpointType {
	case clouds.EndpointTypeInternal, "internalURL":
		return clouds.EndpointTypeInternal
	case clouds.EndpointTypeAdmin, "adminURL":
		return clouds.EndpointTypeAdmin
	}
	return clouds.EndpointTypePublic
}

// begin fills the session from the answer to the login, which was under way from started to ended.
func (s *Session) begin(created tokens.CreateResult, started, ended time.Time) error {
	if created.Err != nil {
		return created.Err
	}
	var token struct {
		Token *struct {
			IssuedAt  moment `json:"issued_at"`
			ExpiresAt moment `json:"expires_at"`
			Roles     []Role `json:"roles"`
			User      struct {
				ID string `json:"id"`
			} `json:"user"`
			Project struct {
				ID string `json:"id"`
			} `json:"project"`
			Catalog []tokens.CatalogEntry `json:"catalog"`
		} `json:"token"`
	}
	if err := created.ExtractIntoStructPtr(&token, ""); err != nil {
		return errors.New("the answer is not Keystone's: its token cannot be read")
	}
	id := created.Header.Get("X-Subject-Token")
	if id == "" || token.Token == nil || token.Token.User.ID == "" || token.Token.ExpiresAt.IsZero() {
		return errors.New("the answer is not Keystone's: it is a success without a token")
	}

	s.client.SetToken(id)
	s.secrets = append(s.secrets, id)
	s.UserID = token.Token.User.ID
	s.ProjectID = token.Token.Project.ID
	s.Roles = token.Token.Roles
	s.Expiry = token.Token.ExpiresAt.Time
	s.catalog.Entries = token.Token.Catalog
	s.loggedInAt = ended

	s.ServerTime = token.Token.IssuedAt.Truncate(time.Second)
	if date, err := http.ParseTime(created.Header.Get("Date")); err == nil {
		s.ServerTime = date
	}
	if !s.ServerTime.IsZero() {
		// The server looked at its clock somewhere between; the middle errs by half the way.
		middle := started.Add(ended.Sub(started) / 2)
		s.skew = s.ServerTime.Sub(middle).Truncate(time.Second)
	}
	return nil
}

// renewAt is when, on our clock, the token should be replaced: adminRenewBefore its expiry, or
// half-way when it does not even live twice that long.
func (s *Session) renewAt() time.Time {
	expiry := s.Expiry.Add(-s.skew)
	margin := min(adminRenewBefore, expiry.Sub(s.loggedInAt)/2)
	return expiry.Add(-margin)
}

// request runs one exchange with Keystone within the timeout, classifies its failure and reports it
// to the observer.
func (s *Session) request(ctx context.Context, operation string, exchange func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.service.config.Timeout)
	defer cancel()

	started := s.service.config.Now()
	err := exchange(limited)
	var failure *Error
	if err != nil {
		failure = classify(operation, s.service.config.Timeout, s.secrets, err)
	}
	class := OK
	if failure != nil {
		class = failure.Class
	}
	s.service.config.Observe(operation, class, s.service.config.Now().Sub(started))
	if failure != nil {
		return failure
	}
	return nil
}

// call sends one request without a body and, when answer is not nil, decodes what comes back into
// it. An administrator's session whose token is refused logs in again and asks once more. The
// session that renewing gives may be another caller's, remembered and refused in its turn; it is
// replaced too, until a login made during this very call settles it.
func (s *Session) call(ctx context.Context, operation, method, address string, accept int, answer any) error {
	started := s.service.config.Now()
	for current := s; ; {
		err := current.callOnce(ctx, operation, method, address, accept, answer)
		settled := current != s && !current.loggedInAt.Before(started)
		if Classify(err) != AuthenticationFailed || current.renew == nil || settled {
			return err
		}
		if current, err = current.renew(ctx); err != nil {
			return err
		}
	}
}

func (s *Session) callOnce(ctx context.Context, operation, method, address string, accept int, answer any) error {
	return s.request(ctx, operation, func(ctx context.Context) error {
		options := &gophercloud.RequestOpts{OkCodes: []int{accept}, KeepResponseBody: answer != nil}
		response, err := s.client.Request(ctx, method, s.client.Endpoint+address, options)
		if err != nil {
			return err
		}
		if answer == nil {
			return nil
		}
		defer func() { _ = response.Body.Close() }()
		// Read to the end before decoding: a decoder stops at the closing brace and would take an
		// answer that broke off behind it for whole.
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, answer)
	})
}

// maxPages bounds a listing whose links lead nowhere new.
const maxPages = 1000

// list reads all of a collection. It fails rather than return a part: absence from a list is proof
// of a revocation, so a list that was cut short, or an answer without the list, must never pass.
func list[T any](ctx context.Context, s *Session, operation, address string, query url.Values, key string) ([]T, error) {
	incomplete := func(why string) error {
		return &Error{Operation: operation, Class: EndpointUnreachable, Message: why}
	}
	var all []T
	seen := map[string]bool{}
	for raw := query.Encode(); ; {
		if seen[raw] || len(seen) == maxPages {
			return nil, incomplete("Keystone's list does not end")
		}
		seen[raw] = true
		page := address
		if raw != "" {
			page += "?" + raw
		}
		var answer map[string]json.RawMessage
		if err := s.call(ctx, operation, http.MethodGet, page, http.StatusOK, &answer); err != nil {
			return nil, err
		}
		var items *[]T
		if json.Unmarshal(answer[key], &items) != nil || items == nil {
			return nil, incomplete("the answer is not Keystone's: it lacks the list that was asked for")
		}
		all = append(all, *items...)

		var truncated bool
		if answer["truncated"] != nil && (json.Unmarshal(answer["truncated"], &truncated) != nil || truncated) {
			return nil, incomplete("Keystone cut the list short (its option list_limit)")
		}
		var links struct {
			Next string `json:"next"`
		}
		if answer["links"] != nil && json.Unmarshal(answer["links"], &links) != nil {
			return nil, incomplete("the answer is not Keystone's: its links cannot be read")
		}
		if links.Next == "" {
			return all, nil
		}
		// Only the query is taken from the link. Its host is whatever Keystone believes to be called,
		// and the token goes nowhere but to the address that was configured.
		next, err := url.Parse(links.Next)
		if err != nil {
			return nil, incomplete("the answer is not Keystone's: its links cannot be read")
		}
		raw = next.RawQuery
	}
}

// address joins the parts of a path below /v3/, escaped. An empty or dotted part is refused before
// anything is sent: it would name another resource, and the 404 of a wrong path must not pass for
// the proof that an object is gone.
func address(operation string, parts ...string) (string, error) {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "", invalid(operation, "an id is empty or not an id")
		}
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/"), nil
}
