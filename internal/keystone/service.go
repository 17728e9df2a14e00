// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/sync/singleflight"

	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// DefaultTimeout is how long one request to Keystone may take unless Config says otherwise.
const DefaultTimeout = 15 * time.Second

// adminRenewBefore is how long before its expiry an administrator's token is replaced, so that no
// pass starts with one that expires under its hands.
const adminRenewBefore = 5 * time.Minute

// Config is how the operator talks to every Keystone.
type Config struct {
	// Timeout bounds each request, connecting included. 0 means DefaultTimeout.
	Timeout time.Duration
	// UserAgent is prepended to gophercloud's. Empty means "c5c3-operator".
	UserAgent string
	// Observe is told of each request: which operation, how it ended, how long it took. It is
	// called from any goroutine. Nil observes nothing.
	Observe func(operation string, class Class, d time.Duration)
	// Transport carries the requests, and decides whom to trust and which proxy to use; no CA bundle counts then.
	// Nil is a transport of the service's own.
	Transport http.RoundTripper
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Service logs in to Keystones and remembers administrators' sessions. It is safe for concurrent
// use.
type Service struct {
	config Config

	flight singleflight.Group
	mu     sync.Mutex
	admins map[string]adminSession
}

// adminSession is a remembered session and what it was made from.
type adminSession struct {
	digest  [sha256.Size]byte
	session *Session
}

// New makes a Service. It does not talk to anything yet.
func New(config Config) *Service {
	if config.Timeout <= 0 {
		config.Timeout = DefaultTimeout
	}
	if config.UserAgent == "" {
		config.UserAgent = "c5c3-operator"
	}
	if config.Observe == nil {
		config.Observe = func(string, Class, time.Duration) {}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Service{config: config, admins: map[string]adminSession{}}
}

// Endpoint is a Keystone without a way to log in: what a ControlPlane says of it.
type Endpoint struct {
	// AuthURL, RegionName and EndpointType are those of clouds.Cloud.
	AuthURL, RegionName, EndpointType string
	// CABundle is PEM, trusted instead of the system's roots. Empty leaves it to those.
	CABundle []byte
}

// WithPassword is the cloud that logs in here with a password.
func (e Endpoint) WithPassword(auth clouds.PasswordAuth) clouds.Cloud {
	return clouds.Cloud{AuthURL: e.AuthURL, RegionName: e.RegionName, EndpointType: e.EndpointType, Password: &auth}
}

// WithApplicationCredential is the cloud that logs in here with an application credential.
func (e Endpoint) WithApplicationCredential(auth clouds.ApplicationCredentialAuth) clouds.Cloud {
	return clouds.Cloud{AuthURL: e.AuthURL, RegionName: e.RegionName, EndpointType: e.EndpointType, ApplicationCredential: &auth}
}

// Login asks for a token with exactly one request, POST /v3/auth/tokens, and never repeats it: a
// repeated wrong password may lock the account. ca is PEM, trusted instead of the system's roots; empty
// leaves it to those.
//
// The error is an *Error. With an application credential, NotFound means that it is gone, and
// AuthenticationFailed that it exists or may exist and does not log in.
func (s *Service) Login(ctx context.Context, cloud clouds.Cloud, ca []byte) (*Session, error) {
	const operation = "login"

	options, secrets, err := loginOptions(operation, cloud)
	if err != nil {
		return nil, err
	}
	client, err := s.newClient(operation, cloud.AuthURL, ca)
	if err != nil {
		return nil, err
	}

	session := &Session{
		service:      s,
		client:       client,
		secrets:      secrets,
		regionName:   cloud.RegionName,
		endpointType: cloud.EndpointType,
	}
	err = session.request(ctx, operation, func(ctx context.Context) error {
		started := s.config.Now()
		created := tokens.Create(ctx, client, options)
		return session.begin(created, started, s.config.Now())
	})
	if err != nil {
		return nil, err
	}
	return session, nil
}

// Admin is Login for an administrator, remembered under key until the token is about to expire, the
// cloud or ca is another, or Forget is called. Callers that come together share one login.
//
// A session from here replaces its token once by itself when Keystone answers an operation with
// 401: Keystone revokes tokens for reasons that say nothing of the password (a changed role, a
// rotated key), and all operations of a Session may be repeated without harm. If the new login is
// refused, that refusal is the operation's error.
func (s *Service) Admin(ctx context.Context, key string, cloud clouds.Cloud, ca []byte) (*Session, error) {
	document, err := clouds.Render("admin", cloud)
	if err != nil {
		return nil, invalid("login", err.Error())
	}
	digest := sha256.Sum256(append(append(document, 0), ca...))
	if session := s.remembered(key, digest); session != nil {
		return session, nil
	}

	// The login belongs to everyone who waits for it, so it must not end with the context of the
	// one who came first; the request's own timeout bounds it.
	shared := context.WithoutCancel(ctx)
	result := s.flight.DoChan(key+"\x00"+string(digest[:]), func() (any, error) {
		// A flight may have landed between the look above and this one's start.
		if session := s.remembered(key, digest); session != nil {
			return session, nil
		}
		session, err := s.Login(shared, cloud, ca)
		if err != nil {
			return nil, err
		}
		session.renew = func(ctx context.Context) (*Session, error) {
			s.forget(key, session)
			return s.Admin(ctx, key, cloud, ca)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.admins[key] = adminSession{digest: digest, session: session}
		return session, nil
	})
	select {
	case <-ctx.Done():
		return nil, classify("login", s.config.Timeout, nil, ctx.Err())
	case done := <-result:
		if done.Err != nil {
			return nil, done.Err
		}
		return done.Val.(*Session), nil
	}
}

// Forget drops what Admin remembers under key. Call it when the ControlPlane is gone.
func (s *Service) Forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.admins, key)
}

// forget drops session, and leaves a newer one of the same key.
func (s *Service) forget(key string, session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admins[key].session == session {
		delete(s.admins, key)
	}
}

func (s *Service) remembered(key string, digest [sha256.Size]byte) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	admin, ok := s.admins[key]
	if !ok || admin.digest != digest || !s.config.Now().Before(admin.session.renewAt()) {
		return nil
	}
	return admin.session
}

// loginOptions turns a cloud into gophercloud's options, and lists what must never be shown.
func loginOptions(operation string, cloud clouds.Cloud) (*tokens.AuthOptions, []string, error) {
	password, credential := cloud.Password, cloud.ApplicationCredential
	switch {
	case (password == nil) == (credential == nil):
		return nil, nil, invalid(operation, "the cloud must carry either a password or an application credential")
	case credential != nil && (credential.ID == "" || credential.Secret == ""):
		return nil, nil, invalid(operation, "the application credential has no id or no secret")
	case credential != nil:
		return &tokens.AuthOptions{
			ApplicationCredentialID:     credential.ID,
			ApplicationCredentialSecret: credential.Secret,
		}, []string{credential.Secret}, nil
	case password.Username == "" || password.UserDomainName == "" || password.Password == "":
		return nil, nil, invalid(operation, "the cloud has no username, no user domain or no password")
	case password.ProjectName != "" && password.ProjectDomainName == "":
		return nil, nil, invalid(operation, "the cloud has a project and no project domain")
	}
	options := &tokens.AuthOptions{
		Username:   password.Username,
		DomainName: password.UserDomainName,
		Password:   password.Password,
	}
	if password.ProjectName != "" {
		options.Scope = tokens.Scope{ProjectName: password.ProjectName, DomainName: password.ProjectDomainName}
	}
	return options, []string{password.Password}, nil
}

// newClient makes gophercloud's client for the Keystone at authURL. Every operation goes there and
// not where the catalog points: the address is known to answer, and a wrong catalog must not keep
// the operator from proving a revocation (Session.CheckCatalog tells of it instead).
func (s *Service) newClient(operation, authURL string, ca []byte) (*gophercloud.ServiceClient, error) {
	base, err := url.Parse(authURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, invalid(operation, "the auth URL is not an http or https address")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, invalid(operation, "the auth URL must not carry a user, a query or a fragment")
	}
	endpoint := strings.TrimRight(base.String(), "/")
	if !strings.HasSuffix(endpoint, "/v3") {
		endpoint += "/v3"
	}

	httpClient, refused := newHTTPClient(s.config.Transport, ca)
	if refused != nil {
		refused.Operation = operation
		return nil, refused
	}
	provider := &gophercloud.ProviderClient{HTTPClient: *httpClient}
	provider.UserAgent.Prepend(s.config.UserAgent)
	// Sessions are used by several reconcilers at once.
	provider.UseTokenLock()
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint + "/"}, nil
}

func invalid(operation, message string) *Error {
	return &Error{Operation: operation, Class: InvalidRequest, Message: message}
}
