// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/internal/clouds"
)

func mustLogin(t *testing.T, s *Service, cloud clouds.Cloud) *Session {
	t.Helper()
	session, err := s.Login(t.Context(), cloud, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// want checks an error's class and that nothing secret is in it, however it is printed.
func want(t *testing.T, err error, class Class) *Error {
	t.Helper()
	if got := Classify(err); got != class {
		t.Fatalf("got class %s, want %s: %v", got, class, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		if text := fmt.Sprintf(verb, err); strings.Contains(text, adminPassword) || strings.Contains(text, agentSecret) || strings.Contains(text, "gAAAAA") {
			t.Errorf("the error shows a secret: %s", text)
		}
	}
	var e *Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%T is no *Error", err)
	}
	return e
}

func TestLogin(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.credentials["17cb"] = fakeCredential{user: "u-agent", name: "credential-v1", secret: agentSecret}
	service := New(Config{})

	t.Run("with_a_scoped_password", func(t *testing.T) {
		session := mustLogin(t, service, keystone.adminCloud())
		if session.UserID != "u-admin" || session.ProjectID != "p-1" || !reflect.DeepEqual(session.Roles, []Role{{"r-admin", "admin"}}) {
			t.Errorf("got user %s, project %s, roles %v", session.UserID, session.ProjectID, session.Roles)
		}
		if until := time.Until(session.Expiry); until < 50*time.Minute || until > time.Hour {
			t.Errorf("the token lives for %s, want about an hour", until)
		}
		if text := fmt.Sprintf("%v %+v %#v", session, session, session); strings.Contains(text, "gAAAAA") || strings.Contains(text, adminPassword) {
			t.Errorf("printing the session shows a secret: %s", text)
		}
	})
	t.Run("with_a_credential_that_ends_before_its_token_would", func(t *testing.T) {
		keystone.credentials["18cb"] = fakeCredential{user: "u-agent", name: "credential-v2", secret: agentSecret, expiresAt: "2126-03-31T12:00:00.000000"}
		cloud := keystone.adminCloud()
		cloud.Password, cloud.ApplicationCredential = nil, &clouds.ApplicationCredentialAuth{ID: "18cb", Secret: agentSecret}
		session := mustLogin(t, service, cloud)
		if want := time.Date(2126, 3, 31, 12, 0, 0, 0, time.UTC); !session.Expiry.Equal(want) {
			t.Errorf("the token ends at %s, want %s", session.Expiry, want)
		}
	})
	t.Run("with_an_unscoped_password", func(t *testing.T) {
		cloud := keystone.adminCloud()
		cloud.Password.ProjectName, cloud.Password.ProjectDomainName = "", ""
		session := mustLogin(t, service, cloud)
		if session.UserID != "u-admin" || session.ProjectID != "" || session.Roles != nil {
			t.Errorf("got user %s, project %q, roles %v", session.UserID, session.ProjectID, session.Roles)
		}
	})
	t.Run("with_an_application_credential_and_an_auth_url_without_v3", func(t *testing.T) {
		if session := mustLogin(t, service, keystone.agentCloud("17cb")); session.UserID != "u-agent" {
			t.Errorf("got user %s", session.UserID)
		}
	})
	t.Run("with_a_wrong_password_asks_once", func(t *testing.T) {
		before := keystone.count(loginRequest)
		cloud := keystone.adminCloud()
		cloud.Password.Password = "wrong"
		_, err := service.Login(t.Context(), cloud, nil)
		e := want(t, err, AuthenticationFailed)
		if e.StatusCode != 401 || e.Message != "The request you have made requires authentication." {
			t.Errorf("got %+v", e)
		}
		if n := keystone.count(loginRequest) - before; n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("with_a_credential_that_is_gone_is_not_found", func(t *testing.T) {
		_, err := service.Login(t.Context(), keystone.agentCloud("0000"), nil)
		if want(t, err, NotFound); !IsGone(err) {
			t.Error("not gone")
		}
	})
	t.Run("with_a_disabled_user_is_refused_but_not_gone", func(t *testing.T) {
		keystone.set(func() { keystone.users["u-agent"] = fakeUser{"agent", false} })
		_, err := service.Login(t.Context(), keystone.agentCloud("17cb"), nil)
		want(t, err, AuthenticationFailed)
	})
}

func TestLogin_refuses_nonsense_before_asking(t *testing.T) {
	keystone := newFakeKeystone(t)
	for name, change := range map[string]func(*clouds.Cloud){
		"no_way_to_log_in": func(c *clouds.Cloud) { c.Password = nil },
		"two_ways_to_log_in": func(c *clouds.Cloud) {
			c.ApplicationCredential = &clouds.ApplicationCredentialAuth{ID: "i", Secret: "s"}
		},
		"no_secret": func(c *clouds.Cloud) {
			c.Password = nil
			c.ApplicationCredential = &clouds.ApplicationCredentialAuth{ID: "i"}
		},
		"no_password":           func(c *clouds.Cloud) { c.Password.Password = "" },
		"no_user_domain":        func(c *clouds.Cloud) { c.Password.UserDomainName = "" },
		"no_project_domain":     func(c *clouds.Cloud) { c.Password.ProjectDomainName = "" },
		"no_auth_url":           func(c *clouds.Cloud) { c.AuthURL = "" },
		"an_auth_url_of_a_file": func(c *clouds.Cloud) { c.AuthURL = "file:///etc/passwd" },
		"an_auth_url_with_user": func(c *clouds.Cloud) {
			c.AuthURL = strings.Replace(c.AuthURL, "http://", "http://"+adminPassword+"@", 1)
		},
		"an_auth_url_that_is_none": func(c *clouds.Cloud) { c.AuthURL = "http://%zz" + adminPassword },
	} {
		t.Run(name, func(t *testing.T) {
			cloud := keystone.adminCloud()
			change(&cloud)
			_, err := New(Config{}).Login(t.Context(), cloud, nil)
			want(t, err, InvalidRequest)
		})
	}
	if n := keystone.count(loginRequest); n != 0 {
		t.Errorf("Keystone was asked %d times", n)
	}
}

// faults are all the ways in which an answer is not Keystone's word.
func faults() map[string]func(http.ResponseWriter, *http.Request) bool {
	refuse := func(status int, message string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { fakeRefusal(w, status, message); return true }
	}
	html := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><h1>nginx</h1></html>")
			return true
		}
	}
	raw := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			// What the client still sends is read first: closing with unread data would turn the
			// answer into a reset.
			_, _ = io.Copy(io.Discard, r.Body)
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, text)
				_ = connection.Close()
			}
			return true
		}
	}
	return map[string]func(http.ResponseWriter, *http.Request) bool{
		"a_503_in_keystones_form": refuse(503, "The server is currently unavailable."),
		"a_500_in_keystones_form": refuse(500, "An unexpected error prevented the server from fulfilling your request."),
		"a_429_in_keystones_form": refuse(429, "Too many requests."),
		"a_405_in_keystones_form": refuse(405, "Method not allowed."),
		"a_proxys_400":            html(400),
		"a_proxys_401":            html(401),
		"a_proxys_403":            html(403),
		"a_proxys_404":            html(404),
		"a_proxys_409":            html(409),
		"a_proxys_502":            html(502),
		"a_proxys_200":            html(200),
		"a_proxys_201":            html(201),
		"an_empty_404":            func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(404); return true },
		"a_404_in_another_services_form": func(w http.ResponseWriter, _ *http.Request) bool {
			fakeAnswer(w, 404, map[string]any{"itemNotFound": map[string]any{"code": 404, "message": "x"}})
			return true
		},
		"a_404_around_another_code": func(w http.ResponseWriter, _ *http.Request) bool {
			fakeAnswer(w, 404, map[string]any{"error": map[string]any{"code": 503, "message": "x"}})
			return true
		},
		"a_404_cut_short":               raw("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"error\":{\"code\":404,\"mess"),
		"a_success_cut_short":           raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"application_credentials\": []"),
		"a_whole_object_then_cut_short": raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"application_credentials\": []}"),
		"a_success_of_something_else":   func(w http.ResponseWriter, _ *http.Request) bool { fakeAnswer(w, 200, map[string]any{}); return true },
		"a_success_with_a_null_list": func(w http.ResponseWriter, _ *http.Request) bool {
			fakeAnswer(w, 200, map[string]any{"application_credentials": nil})
			return true
		},
		"a_list_that_was_cut_short": func(w http.ResponseWriter, _ *http.Request) bool {
			fakeAnswer(w, 200, map[string]any{"application_credentials": []any{}, "truncated": true})
			return true
		},
		"a_list_that_never_ends": func(w http.ResponseWriter, r *http.Request) bool {
			fakeAnswer(w, 200, map[string]any{"application_credentials": []any{}, "links": map[string]any{"next": "http://elsewhere.invalid/?marker=x"}})
			return true
		},
		"a_redirect": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(307)
			return true
		},
		"no_answer_at_all": raw(""),
		"a_reset": func(w http.ResponseWriter, _ *http.Request) bool {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = connection.(*net.TCPConn).SetLinger(0)
				_ = connection.Close()
			}
			return true
		},
		"no_http": raw("SSH-2.0-OpenSSH_9.2\r\n"),
		"a_slow_answer": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices that the client left only after this
			<-r.Context().Done()
			return true
		},
	}
}

func TestFaults_prove_nothing(t *testing.T) {
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keystone := newFakeKeystone(t)
			keystone.credentials["17cb"] = fakeCredential{user: "u-agent", name: "credential-v1"}
			service := New(Config{})
			session := mustLogin(t, service, keystone.adminCloud())
			keystone.set(func() { keystone.fault = fault })
			if name == "a_slow_answer" {
				// Only from here on: the login above has to succeed on a busy machine too.
				service.config.Timeout = 50 * time.Millisecond
			}

			// A fault that only a list can suffer is no fault of the others.
			if !strings.Contains(name, "list") {
				_, err := service.Login(t.Context(), keystone.adminCloud(), nil)
				first := want(t, err, EndpointUnreachable)
				_, err = service.Login(t.Context(), keystone.adminCloud(), nil)
				if second := want(t, err, EndpointUnreachable); second.Error() != first.Error() {
					t.Errorf("the message changes from try to try: %q, then %q", first, second)
				}
			}
			_, err := session.ApplicationCredentials(t.Context(), "u-agent")
			want(t, err, EndpointUnreachable)
			_, err = session.Proof(t.Context(), "u-agent", "")
			want(t, err, EndpointUnreachable)
			want(t, session.DeleteApplicationCredential(t.Context(), "u-agent", "17cb"), EndpointUnreachable)
			_, err = session.UserExists(t.Context(), "u-agent")
			want(t, err, EndpointUnreachable)
			_, err = session.HasRole(t.Context(), "p-1", "u-agent", "r-member")
			want(t, err, EndpointUnreachable)
			want(t, session.UnassignRole(t.Context(), "p-1", "u-agent", "r-member"), EndpointUnreachable)

			if len(keystone.credentials) != 1 {
				t.Error("the credential is gone")
			}
		})
	}
}

func TestRefusals_have_their_class(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	for status, class := range map[int]Class{400: InvalidRequest, 401: AuthenticationFailed, 403: Forbidden, 404: NotFound, 409: Conflict} {
		t.Run(string(class), func(t *testing.T) {
			keystone.set(func() {
				keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool { fakeRefusal(w, status, "Because."); return true }
			})
			e := want(t, session.AssignRole(t.Context(), "p", "u", "r"), class)
			if e.StatusCode != status || e.Message != "Because." || e.Operation != "assign_role" || !Definite(class) {
				t.Errorf("got %+v", e)
			}
		})
	}
	if Definite(EndpointUnreachable) {
		t.Error("unreachable is no definite answer")
	}
	if Classify(nil) != OK || Classify(errors.New("x")) != EndpointUnreachable || Classify(fmt.Errorf("wrapped: %w", &Error{Class: Conflict})) != Conflict {
		t.Error("Classify")
	}
}

func TestLogin_that_needs_a_second_factor_is_refused(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Openstack-Auth-Receipt", "gAAAAA-receipt")
		fakeAnswer(w, 401, map[string]any{"receipt": map[string]any{"methods": []string{"password"}}, "required_auth_methods": []any{}})
		return true
	}
	_, err := New(Config{}).Login(t.Context(), keystone.adminCloud(), nil)
	want(t, err, AuthenticationFailed)
}

func TestError_carries_retry_after(t *testing.T) {
	for value, wanted := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "-3": 0, "": 0, "soon": 0, "864000": time.Hour,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
	} {
		t.Run(value, func(t *testing.T) {
			keystone := newFakeKeystone(t)
			keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Date", "Sun, 01 Mar 2026 12:00:00 GMT")
				w.Header().Set("Retry-After", value)
				fakeRefusal(w, 429, "Too many requests.")
				return true
			}
			_, err := New(Config{}).Login(t.Context(), keystone.adminCloud(), nil)
			if e := want(t, err, EndpointUnreachable); e.RetryAfter != wanted || e.StatusCode != 429 {
				t.Errorf("got %+v, want %s", e, wanted)
			}
		})
	}
}

func TestError_shows_no_secret_that_the_answer_echoes(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.credentials["17cb"] = fakeCredential{user: "u-agent", secret: agentSecret}
	awkward := "pa ss\"w/\\örd"
	echo := func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		fakeRefusal(w, 400, fmt.Sprintf("Rejected %s with token %s %s %s", body, r.Header.Get("X-Auth-Token"), awkward, "pa+ss%22w%2F%5C%C3%B6rd"))
		return true
	}
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	keystone.set(func() { keystone.fault = echo })

	_, err := New(Config{}).Login(t.Context(), keystone.adminCloud(), nil)
	want(t, err, InvalidRequest)
	_, err = New(Config{}).Login(t.Context(), keystone.agentCloud("17cb"), nil)
	want(t, err, InvalidRequest)
	want(t, session.AssignRole(t.Context(), "p", "u", "r"), InvalidRequest)

	cloud := keystone.adminCloud()
	cloud.Password.Password = awkward
	_, err = New(Config{}).Login(t.Context(), cloud, nil)
	if e := want(t, err, InvalidRequest); strings.Contains(e.Message, "rd") && (strings.Contains(e.Message, "örd") || strings.Contains(e.Message, "%B6rd")) {
		t.Errorf("shows the password in some form: %s", e.Message)
	}
}

func TestError_is_bounded_and_on_one_line(t *testing.T) {
	keystone := newFakeKeystone(t)
	keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		fakeRefusal(w, 400, strings.Repeat("ü\n", 5000))
		return true
	}
	_, err := New(Config{}).Login(t.Context(), keystone.adminCloud(), nil)
	if e := want(t, err, InvalidRequest); len(e.Message) > maxMessage+len("…") || strings.ContainsAny(e.Message, "\n\uFFFD") {
		t.Errorf("got %d bytes: %q", len(e.Message), e.Message)
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	_ = listener.Close()
	keystone := newFakeKeystone(t)

	for name, authURL := range map[string]string{
		"nobody_listens":              closed,
		"no_such_host":                "http://keystone.invalid:5000/v3",
		"https_at_a_port_without_tls": strings.Replace(keystone.URL, "http://", "https://", 1),
	} {
		t.Run(name, func(t *testing.T) {
			cloud := keystone.adminCloud()
			cloud.AuthURL = authURL
			_, err := New(Config{}).Login(t.Context(), cloud, nil)
			if e := want(t, err, EndpointUnreachable); e.StatusCode != 0 || e.Message == "" {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("cancelled_by_the_caller", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := New(Config{}).Login(ctx, keystone.adminCloud(), nil)
		if want(t, err, EndpointUnreachable); !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not unwrap to context.Canceled", err)
		}
	})
}

func TestTLS(t *testing.T) {
	keystone := unstartedFakeKeystone()
	keystone.Server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are meant here
	keystone.StartTLS()
	t.Cleanup(keystone.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: keystone.Certificate().Raw})
	service := New(Config{})

	if _, err := service.Login(t.Context(), keystone.adminCloud(), ca); err != nil {
		t.Errorf("with the CA bundle: %v", err)
	}
	_, err := service.Login(t.Context(), keystone.adminCloud(), nil)
	want(t, err, TLSVerificationFailed)
	_, err = service.Login(t.Context(), keystone.adminCloud(), []byte("not PEM"))
	if e := want(t, err, TLSVerificationFailed); e.Operation != "login" {
		t.Errorf("got %+v", e)
	}
	cloud := keystone.adminCloud()
	cloud.AuthURL = strings.Replace(cloud.AuthURL, "127.0.0.1", "localhost", 1)
	_, err = service.Login(t.Context(), cloud, ca)
	if e := want(t, err, TLSVerificationFailed); !strings.Contains(e.Message, "localhost") {
		t.Errorf("a certificate for another name reads %q", e.Message)
	}

	// Loading the system's roots happens once in a process, so no test can change what they are.
	client, refused := newHTTPClient(nil, ca)
	if refused != nil {
		t.Fatal(refused)
	}
	alone := x509.NewCertPool()
	alone.AppendCertsFromPEM(ca)
	if !client.Transport.(bounded).next.(*http.Transport).TLSClientConfig.RootCAs.Equal(alone) {
		t.Error("more is trusted than the CA bundle")
	}
}

func TestRequests_never_share_a_connection(t *testing.T) {
	keystone := unstartedFakeKeystone()
	var mu sync.Mutex
	opened := 0
	keystone.Server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			opened++
			mu.Unlock()
		}
	}
	keystone.Start()
	t.Cleanup(keystone.Close)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	for range 4 {
		if _, err := session.User(t.Context(), "u-agent"); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if opened != 5 {
		t.Errorf("5 requests took %d connections", opened)
	}
}

func TestRedirect_is_not_followed_with_credentials(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(thief.Close)
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	for _, status := range []int{301, 302, 303, 307, 308} {
		keystone.set(func() {
			keystone.fault = func(w http.ResponseWriter, r *http.Request) bool { http.Redirect(w, r, thief.URL, status); return true }
		})
		_, err := New(Config{}).Login(t.Context(), keystone.adminCloud(), nil)
		want(t, err, EndpointUnreachable)
		_, err = session.User(t.Context(), "u-agent")
		want(t, err, EndpointUnreachable)
	}
}

func TestCatalog(t *testing.T) {
	for name, test := range map[string]struct {
		region, endpointType string
		unscoped             bool
		want                 bool
	}{
		"region_and_interface_fit":         {"RegionOne", "internal", false, true},
		"the_older_name_of_an_interface":   {"RegionOne", "internalURL", false, true},
		"no_interface_means_public":        {"RegionOne", "", false, true},
		"no_region_means_any":              {"", "public", false, true},
		"another_region":                   {"RegionTwo", "public", false, false},
		"an_interface_of_another_service":  {"", "admin", false, false},
		"an_unscoped_token_has_no_catalog": {"RegionOne", "internal", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			keystone := newFakeKeystone(t)
			cloud := keystone.adminCloud()
			cloud.RegionName, cloud.EndpointType = test.region, test.endpointType
			if test.unscoped {
				cloud.Password.ProjectName = ""
			}
			session := mustLogin(t, New(Config{}), cloud)
			if got := session.CatalogHasIdentity(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if err := session.CheckCatalog(); test.want != (err == nil) || (err != nil && Classify(err) != CatalogEndpointMismatch) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSkew(t *testing.T) {
	for name, test := range map[string]struct {
		ahead  time.Duration
		noDate bool
		want   time.Duration
	}{
		"a_clock_that_agrees":     {0, false, 0},
		"ahead":                   {90 * time.Second, false, 90 * time.Second},
		"behind":                  {-10 * time.Minute, false, -10 * time.Minute},
		"no_date_but_an_issuance": {90 * time.Second, true, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ours := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			keystone := newFakeKeystone(t)
			keystone.now = func() time.Time { return ours.Add(test.ahead) }
			if test.noDate {
				keystone.fault = func(w http.ResponseWriter, _ *http.Request) bool {
					// A key in the map keeps net/http from adding a Date of its own, and the fake sets
					// its own only through the wrapped header.
					at := keystone.now().Format(time.RFC3339)
					w.Header()["Date"] = nil
					w.Header().Set("X-Subject-Token", "gAAAAA-token")
					fakeAnswer(w, 201, map[string]any{"token": map[string]any{
						"issued_at": at, "expires_at": keystone.now().Add(time.Hour).Format(time.RFC3339), "user": map[string]any{"id": "u-admin"}}})
					return true
				}
			}
			session := mustLogin(t, New(Config{Now: func() time.Time { return ours }}), keystone.adminCloud())
			if session.Skew() != test.want || !session.ServerTime.Equal(ours.Add(test.ahead)) {
				t.Errorf("got %s at %s, want %s", session.Skew(), session.ServerTime, test.want)
			}
		})
	}
}

func TestObserve_hears_of_every_request(t *testing.T) {
	keystone := newFakeKeystone(t)
	var heard []string
	service := New(Config{Observe: func(operation string, class Class, d time.Duration) {
		if d < 0 {
			t.Errorf("%s took %s", operation, d)
		}
		heard = append(heard, operation+" "+string(class))
	}})
	session := mustLogin(t, service, keystone.adminCloud())
	if _, err := session.UserExists(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	if wanted := []string{"login OK", "get_user NotFound"}; !slices.Equal(heard, wanted) {
		t.Errorf("got %v, want %v", heard, wanted)
	}
}

func TestOperations_refuse_ids_that_are_none(t *testing.T) {
	keystone := newFakeKeystone(t)
	session := mustLogin(t, New(Config{}), keystone.adminCloud())
	for _, id := range []string{"", ".", ".."} {
		_, err := session.ApplicationCredentials(t.Context(), id)
		want(t, err, InvalidRequest)
		_, err = session.Proof(t.Context(), id, "")
		want(t, err, InvalidRequest)
		want(t, session.DeleteApplicationCredential(t.Context(), "u", id), InvalidRequest)
		_, err = session.UserExists(t.Context(), id)
		want(t, err, InvalidRequest)
		_, err = session.HasRole(t.Context(), "p", id, "r")
		want(t, err, InvalidRequest)
		want(t, session.UnassignRole(t.Context(), id, "u", "r"), InvalidRequest)
	}
	_, err := session.FindUsers(t.Context(), "", "default")
	want(t, err, InvalidRequest)
	_, err = session.RoleAssignments(t.Context(), "", "")
	want(t, err, InvalidRequest)
}
