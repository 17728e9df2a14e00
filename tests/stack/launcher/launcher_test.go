package launcher

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/c5c3/c5c3-operator/tests/stack/supervisor"
)

func testStack(t *testing.T) *Stack {
	t.Helper()
	s, err := Open(Options{Name: "test", State: filepath.Join(t.TempDir(), "s"), Cache: t.TempDir(), Subnet: "10.213.7.0/30"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWantedGroups(t *testing.T) {
	for name, c := range map[string]struct {
		only string
		want string
	}{
		"nothing means all":                  {"", "kube,keystone,kv,korc,eso"},
		"a group alone":                      {"keystone", "keystone"},
		"what a group needs comes with it":   {"eso", "kube,eso"},
		"the order is not the user's":        {"korc,keystone,kube", "kube,keystone,korc"},
		"naming one twice is naming it once": {"kube,kube", "kube"},
		"OLM only when it is named":          {"olm,keystone", "kube,keystone,olm"},
	} {
		t.Run(name, func(t *testing.T) {
			var only []string
			if c.only != "" {
				only = strings.Split(c.only, ",")
			}
			got, err := wantedGroups(only)
			if err != nil || strings.Join(got, ",") != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	if _, err := wantedGroups([]string{"cube"}); err == nil {
		t.Error("accepted a group that does not exist")
	}
}

func TestOpen(t *testing.T) {
	t.Run("refuses names that make no interface or folder name", func(t *testing.T) {
		for _, name := range []string{"", "Upper", "a/b", "-a", strings.Repeat("a", 30)} {
			if _, err := Open(Options{Name: name, State: t.TempDir()}); err == nil {
				t.Errorf("accepted %q", name)
			}
		}
	})
	t.Run("refuses a state folder whose sockets would have too long a path", func(t *testing.T) {
		if _, err := Open(Options{Name: "a", State: "/" + strings.Repeat("long/", 20)}); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("remembers what the first call chose", func(t *testing.T) {
		s := testStack(t)
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
		again, err := Open(Options{Name: "test", State: s.State})
		if err != nil || again.Plan != s.Plan || again.settings.Cache != s.settings.Cache {
			t.Errorf("got %+v, %v", again, err)
		}
	})
	t.Run("refuses another stack's folder", func(t *testing.T) {
		s := testStack(t)
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Name: "other", State: s.State}); err == nil {
			t.Error("accepted")
		}
	})
}

func TestNodeConfiguration(t *testing.T) {
	s := testStack(t)
	if err := s.configureKube(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config/kubelet.yaml", "config/kube-proxy.yaml", "config/audit-policy.yaml", "kubeconfig", "config/korc.kubeconfig"} {
		text, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.UnmarshalStrict(text, &object); err != nil || object["kind"] == nil {
			t.Errorf("%s is no configuration object: %v", name, err)
		}
		if strings.Contains(string(text), "<no value>") {
			t.Errorf("%s has a hole", name)
		}
	}
	text, err := os.ReadFile(s.path("config/cni/10-bridge.conflist"))
	if err != nil || !json.Valid(text) {
		t.Errorf("the CNI configuration is no JSON: %v", err)
	}
	for _, name := range []string{"kubeconfig", "config/eso.kubeconfig"} {
		if info, err := os.Stat(s.path(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is readable by others", name)
		}
	}
}

// A client verifies Keystone with the file that `stack env` names, and trusts nothing else for that.
func TestKeystoneCertificate(t *testing.T) {
	s := testStack(t)
	if err := errors.Join(s.configureKube(), s.keystoneCertificate()); err != nil {
		t.Fatal(err)
	}
	certificate := func(path string) *x509.Certificate {
		t.Helper()
		pair, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(pair)
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	address, err := url.Parse(s.keystoneTLSURL())
	if err != nil {
		t.Fatal(err)
	}
	keystone := certificate(s.path("pki/keystone.crt"))
	for authority, trusted := range map[string]bool{s.keystoneCAFile(): true, s.path("pki/ca.crt"): false} {
		roots := x509.NewCertPool()
		roots.AddCert(certificate(authority))
		if _, err := keystone.Verify(x509.VerifyOptions{Roots: roots, DNSName: address.Hostname()}); (err == nil) != trusted {
			t.Errorf("%s verifies Keystone: %v", authority, err)
		}
	}
}

func TestManifestsRender(t *testing.T) {
	entries, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := manifests.ReadFile("manifests/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		// The braces of a template are YAML too, of another meaning.
		plain := strings.NewReplacer("{{.", "", "}}", "").Replace(string(text))
		for _, document := range strings.Split(plain, "\n---\n") {
			var object map[string]any
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil || object["kind"] == nil {
				t.Errorf("%s: %v in\n%s", entry.Name(), err, document)
			}
		}
	}
}

func TestEverythingThatKeepsDataIsStoppedInPeace(t *testing.T) {
	s := testStack(t)
	var all []string
	for _, svc := range s.services() {
		all = append(all, svc.name)
		if svc.patience == 0 || svc.healthy == nil || svc.version == nil || len(svc.command) == 0 || !slices.Contains(Groups, svc.group) {
			t.Errorf("%s is described incompletely", svc.name)
		}
	}
	for _, names := range stopOrder {
		for _, name := range names {
			if !slices.Contains(all, name) {
				t.Errorf("%s is to be stopped but never started", name)
			}
		}
	}
}

func TestAnOwnKVStoreReplacesTheStacks(t *testing.T) {
	s, err := Open(Options{Name: "test", State: filepath.Join(t.TempDir(), "s"), Cache: t.TempDir(), Subnet: "10.213.7.0/30",
		KVAddress: "http://10.213.7.1:8200/", KVTokenFile: "/token"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.kvServices()) != 0 || s.kvAddress() != "http://10.213.7.1:8200" || s.kvTokenFile() != "/token" {
		t.Errorf("got %d processes, %s, %s", len(s.kvServices()), s.kvAddress(), s.kvTokenFile())
	}
}

// What `stack env` prints must survive a shell, whatever is in the paths.
func TestShellQuote(t *testing.T) {
	for _, text := range []string{"plain", "with space", "it's", `$HOME "x" \`, "a\nb"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellQuote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q became %q, %v", text, out, err)
		}
	}
}

func TestStatusOfAStackThatIsDown(t *testing.T) {
	s := testStack(t)
	var out strings.Builder
	healthy, err := s.Status(t.Context(), &out)
	if err != nil || healthy {
		t.Errorf("healthy=%t, %v", healthy, err)
	}
	for _, name := range []string{"etcd", "keystone", "korc", "eso", "kv", "node node1"} {
		if !strings.Contains(out.String(), "\n"+name+" ") {
			t.Errorf("no line for %s in\n%s", name, out.String())
		}
	}
	if s.running() || !errors.Is(s.Kill(t.Context(), "etcd"), supervisor.ErrNotRunning) {
		t.Error("a stack that was never up seems to run")
	}
}

func TestProcessesIn(t *testing.T) {
	mine := namespacesOf(os.Getpid())
	if len(mine) == 0 {
		t.Fatal("this process is in no namespace")
	}
	if found := processesIn(mine); len(found) == 0 {
		t.Error("did not find this process in its own namespaces")
	}
	if found := processesIn([]string{"net:[1]"}); len(found) != 0 {
		t.Errorf("found %v in a namespace that does not exist", found)
	}
}

func TestMountedAnywhere(t *testing.T) {
	proc := t.TempDir()
	for pid, text := range map[string]string{
		"1":    "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n",
		"4711": "170 169 254:0 / / rw - ext4 /dev/vda rw\n201 170 0:88 / /run/containerd rw,relatime shared:59 - tmpfs tmpfs rw\n",
		"self": "201 170 0:88 / /var/lib/cni rw - tmpfs tmpfs rw\n",
	} {
		if err := writeFile(filepath.Join(proc, pid, "mountinfo"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for folder, want := range map[string]bool{
		"/run/containerd": true, "/run": false, "/run/containerd/state": false, "/var/lib/kubelet": false,
	} {
		if got := mountedAnywhere(proc, folder); got != want {
			t.Errorf("%s: mounted %v, want %v", folder, got, want)
		}
	}
}
