package launcher

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/c5c3/c5c3-operator/tests/stack/faultproxy"
	"github.com/c5c3/c5c3-operator/tests/stack/pki"
)

const (
	keystonePort = 5000
	// keystoneOwnPort is where Keystone itself listens, behind the fault proxy.
	keystoneOwnPort = 5001
	// keystoneTLSPort is the fault proxy's too, with a certificate of a CA that nobody knows.
	keystoneTLSPort = 5443
	region          = "RegionOne"
	// tlsRegion has a public endpoint over TLS and no other. A region of its own, because clients take
	// the address from the catalog: over TLS in RegionOne, everything that has no CA bundle would fail.
	tlsRegion = "RegionTLS"
)

// KeystoneURL is the address that everybody uses, the fault proxy's.
func (s *Stack) keystoneURL() string { return "http://" + s.address(keystonePort) + "/v3" }

// keystoneTLSURL is the same Keystone over TLS.
func (s *Stack) keystoneTLSURL() string { return "https://" + s.address(keystoneTLSPort) + "/v3" }

// keystoneCAFile is the certificate that verifies the one at keystoneTLSURL.
func (s *Stack) keystoneCAFile() string { return s.path("pki/keystone-ca.crt") }

// keystoneCertificate is Keystone's certificate, signed by a CA of its own: a client that trusts the
// Kubernetes API server must not trust Keystone for that.
func (s *Stack) keystoneCertificate() error {
	authority, err := pki.OpenAuthority(s.path("pki"), "keystone-ca")
	if err != nil {
		return err
	}
	_, err = authority.Issue(pki.Leaf{Name: "keystone", CommonName: "keystone", IPs: []netip.Addr{s.Plan.Stack}})
	return err
}

func (s *Stack) adminPasswordFile() string { return s.path("keystone/admin-password") }

// keystoneConfig is all of Keystone's configuration. The hash rounds make a login cheap (Debian's
// default of 12 costs a quarter of a second each); the application credential cache would let a
// worker accept a deleted credential for a while. SQLite's usual patience of 5 s turns a busy machine
// into "database is locked".
const keystoneConfig = `[DEFAULT]
use_stderr = true

[database]
connection = sqlite:///%[1]s/keystone.db?timeout=60&check_same_thread=false
sqlite_synchronous = false

[token]
provider = fernet

[fernet_tokens]
key_repository = %[1]s/fernet-keys

[fernet_receipts]
key_repository = %[1]s/fernet-keys

[credential]
key_repository = %[1]s/credential-keys

[identity]
password_hash_rounds = 4

[application_credential]
caching = false
`

// prepareKeystone makes Keystone's configuration, its database, its keys and its administrator, once.
func (s *Stack) prepareKeystone(ctx context.Context) (err error) {
	folder := s.path("keystone")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := writeFile(s.path("keystone/keystone.conf"), fmt.Appendf(nil, keystoneConfig, folder), 0o600); err != nil {
		return err
	}
	password, err := s.adminPassword()
	if err != nil {
		return err
	}
	if err := s.writeAdminClouds(password); err != nil {
		return err
	}
	if err := s.keystoneCertificate(); err != nil {
		return fmt.Errorf("making Keystone's certificate: %w", err)
	}
	// The marker holds the addresses: Keystone's catalog must name those that are in use.
	marker, catalog := s.path("keystone/bootstrapped"), s.keystoneURL()+" "+s.keystoneTLSURL()
	if done, err := os.ReadFile(marker); err == nil && string(done) == catalog {
		return nil
	}
	task := s.Board.Start("preparing Keystone's database", 25*time.Second)
	defer func() { task.Done(err) }()
	manage := func(env []string, arguments ...string) error {
		_, err := s.client.Run(ctx, env, append([]string{"/usr/bin/keystone-manage", "--config-file", s.path("keystone/keystone.conf")}, arguments...)...)
		return err
	}
	if err := s.keystoneDatabase(ctx, manage); err != nil {
		return err
	}
	for _, folder := range []string{"fernet-keys", "credential-keys"} {
		if err := s.keystoneKeys(folder); err != nil {
			return fmt.Errorf("making Keystone's %s: %w", folder, err)
		}
	}
	// Readers and a writer side by side; the mode is a property of the file.
	if _, err := s.client.Run(ctx, nil, "sqlite3", s.path("keystone/keystone.db"), "PRAGMA journal_mode=WAL;"); err != nil {
		return fmt.Errorf("preparing Keystone's database: %w", err)
	}
	// By environment, not by argument: every user of the machine can read arguments.
	if err := manage([]string{"OS_BOOTSTRAP_PASSWORD=" + password}, "bootstrap", "--bootstrap-region-id", region,
		"--bootstrap-admin-url", s.keystoneURL(), "--bootstrap-public-url", s.keystoneURL(), "--bootstrap-internal-url", s.keystoneURL()); err != nil {
		return fmt.Errorf("making Keystone's administrator: %w", err)
	}
	if _, err := s.client.Run(ctx, nil, "sqlite3", s.path("keystone/keystone.db"), fmt.Sprintf(addTLSRegion, tlsRegion, s.keystoneTLSURL())); err != nil {
		return fmt.Errorf("adding %s to Keystone's catalog: %w", tlsRegion, err)
	}
	return writeFile(marker, []byte(catalog), 0o644)
}

// addTLSRegion puts a region with one public endpoint into the catalog. A second bootstrap would do so
// too, but takes as long as the first, while the whole stack waits for Keystone.
const addTLSRegion = `
INSERT OR REPLACE INTO region (id, description, extra) VALUES ('%[1]s', '', '{}');
INSERT OR REPLACE INTO endpoint (id, interface, region_id, service_id, url, extra, enabled)
SELECT 'public-over-tls', 'public', '%[1]s', id, '%[2]s', '{}', 1 FROM service WHERE type = 'identity';`

// keystoneDatabase makes the empty database. Fifteen years of migrations take a quarter of a minute, so
// the result is kept in the cache for the next stack, under the version of the package.
func (s *Stack) keystoneDatabase(ctx context.Context, manage func([]string, ...string) error) error {
	database := s.path("keystone/keystone.db")
	if _, err := os.Stat(database); err == nil {
		return manage(nil, "db_sync") // of an `up` that did not finish, or of an older package
	}
	cached := filepath.Join(s.settings.Cache, "keystone", keystoneVersion(ctx), "empty.db")
	if empty, err := os.ReadFile(cached); err == nil {
		return writeFile(database, empty, 0o600)
	}
	if err := manage(nil, "db_sync"); err != nil {
		return fmt.Errorf("making Keystone's database: %w", err)
	}
	empty, err := os.ReadFile(database)
	if err != nil {
		return err
	}
	return writeFile(cached, empty, 0o644)
}

// keystoneKeys makes the two keys that `keystone-manage fernet_setup` would make (0 the next, 1 the
// present one); that command takes seconds to start.
func (s *Stack) keystoneKeys(folder string) error {
	for _, name := range []string{"0", "1"} {
		path := s.path("keystone", folder, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return err
		}
		if err := writeFile(path, []byte(base64.URLEncoding.EncodeToString(key)), 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(s.path("keystone", folder), 0o700) // Keystone warns about a folder that others may read
}

// keystoneVersion of Debian's package.
func keystoneVersion(ctx context.Context) string {
	return printed(func(text string) string { return text }, "dpkg-query", "-W", "-f", "${Version}", "keystone")(ctx)
}

func (s *Stack) adminPassword() (string, error) {
	text, err := os.ReadFile(s.adminPasswordFile())
	if err == nil {
		return string(text), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	password := base64.RawURLEncoding.EncodeToString(random)
	return password, writeFile(s.adminPasswordFile(), []byte(password), 0o600)
}

// writeAdminClouds writes the administrator's clouds.yaml, for the openstack client.
func (s *Stack) writeAdminClouds(password string) error {
	// JSON is YAML.
	text, err := json.MarshalIndent(map[string]any{"clouds": map[string]any{"admin": map[string]any{
		"auth": map[string]string{
			"auth_url": s.keystoneURL(), "username": "admin", "password": password,
			"project_name": "admin", "user_domain_name": "Default", "project_domain_name": "Default",
		},
		"region_name": region, "identity_api_version": 3,
	}}}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(s.path("keystone/clouds.yaml"), append(text, '\n'), 0o600)
}

func (s *Stack) keystoneServices() []service {
	return []service{
		{
			name: "keystone", group: "keystone", endpoint: "behind the fault proxy",
			version: keystoneVersion,
			command: s.keystoneCommand(true),
			env:     []string{"OS_KEYSTONE_CONFIG_FILES=" + s.path("keystone/keystone.conf"), "PYTHONWARNINGS=ignore"},
			// Through the supervisor: Keystone itself listens on the stack's loopback only.
			healthy: func(ctx context.Context) error {
				_, err := s.client.Run(ctx, nil, s.path("bin/stack"), "probe", fmt.Sprintf("http://127.0.0.1:%d/v3", keystoneOwnPort))
				return err
			},
			patience: 3 * time.Minute, expected: 15 * time.Second,
		},
		{
			name: "fault-proxy", group: "keystone", version: constant("dev"), endpoint: s.keystoneURL() + " " + s.keystoneTLSURL(),
			command: []string{
				s.path("bin/stack"), "fault-proxy", "--listen", fmt.Sprintf("0.0.0.0:%d", keystonePort),
				"--tls-listen", fmt.Sprintf("0.0.0.0:%d", keystoneTLSPort), "--tls-cert", s.path("pki/keystone.crt"), "--tls-key", s.path("pki/keystone.key"),
				"--upstream", fmt.Sprintf("127.0.0.1:%d", keystoneOwnPort), "--control", s.faultSocket(),
			},
			healthy: accepts(s.faultSocket()), patience: 30 * time.Second, expected: time.Second,
		},
	}
}

// keystoneCommand serves Keystone with uwsgi. Bodies are buffered, or a POST whose body Keystone does
// not read first ends in a reset. closeHeader announces that the server closes each connection after
// its answer: it does in any case, and clients that are not told reuse connections that are gone. Each worker loads Keystone itself (lazy-apps): its
// greenlets don't survive a fork, so loading once in the master ends every request in an error.
func (s *Stack) keystoneCommand(closeHeader bool) []string {
	command := []string{
		firstExisting("/usr/bin/uwsgi-core", "/usr/bin/uwsgi"), "--plugins", "python3",
		"--http-socket", fmt.Sprintf("127.0.0.1:%d", keystoneOwnPort), "--wsgi-file", "/usr/bin/keystone-wsgi-public",
		"--master", "--no-orphans", "--lazy-apps", "--processes", "2", "--threads", "4", "--enable-threads",
		"--buffer-size", "65535", "--post-buffering", "65535", "--die-on-term", "--need-app",
		// Every server before a real Keystone sends the time; uwsgi alone does not.
		"--route-run", "addheader:Date: ${httptime[]}",
	}
	if closeHeader {
		command = append(command, "--add-header", "Connection: close")
	}
	return command
}

// RestartKeystone starts Keystone again, with or without its `Connection: close` header.
func (s *Stack) RestartKeystone(ctx context.Context, closeHeader bool) error {
	svc, err := s.service("keystone")
	if err != nil {
		return err
	}
	if _, err := s.client.Stop(ctx, svc.name, 15*time.Second); err != nil {
		return err
	}
	svc.command = s.keystoneCommand(closeHeader)
	return s.ensure(ctx, svc)
}

func (s *Stack) faultSocket() string { return s.path("run/fault-proxy.sock") }

// SetFault tells the fault proxy what to break.
func (s *Stack) SetFault(ctx context.Context, fault faultproxy.Fault) (faultproxy.Report, error) {
	body, err := json.Marshal(fault)
	if err != nil {
		return faultproxy.Report{}, err
	}
	return s.faultControl(ctx, http.MethodPut, body)
}

// Fault asks the fault proxy what it breaks.
func (s *Stack) Fault(ctx context.Context) (faultproxy.Report, error) {
	return s.faultControl(ctx, http.MethodGet, nil)
}

func (s *Stack) faultControl(ctx context.Context, method string, body []byte) (faultproxy.Report, error) {
	var report faultproxy.Report
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.faultSocket())
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://fault-proxy/fault", bytes.NewReader(body))
	if err != nil {
		return report, err
	}
	response, err := client.Do(request)
	if err != nil {
		return report, fmt.Errorf("the fault proxy does not answer (is the stack up?): %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return report, errors.New(strings.TrimSpace(string(text)))
	}
	err = json.NewDecoder(response.Body).Decode(&report)
	return report, err
}

// Probe succeeds when a URL answers 200; it runs as a process of the stack.
func Probe(ctx context.Context, url string) error { return answers(url)(ctx) }
