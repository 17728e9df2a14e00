package launcher

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"

	_ "embed"

	"golang.org/x/sys/unix"

	"github.com/c5c3/c5c3-operator/tests/stack/imagetar"
	"github.com/c5c3/c5c3-operator/tests/stack/network"
	"github.com/c5c3/c5c3-operator/tests/stack/pki"
)

// Images that the launcher makes itself.
const (
	pauseImage    = "local.test/c5c3/pause:1"
	consumerImage = "local.test/c5c3/consumer:dev"
)

// users of the API server, one kubeconfig each in config/. The controllers act as the ServiceAccounts
// that they would have as pods, so that their RBAC is the real one and the audit log names them.
var users = []pki.Leaf{
	{Name: "admin", CommonName: "stack-admin", Organizations: []string{"system:masters"}},
	{Name: "kube-controller-manager", CommonName: "system:kube-controller-manager"},
	{Name: "kube-scheduler", CommonName: "system:kube-scheduler"},
	{Name: "kube-proxy", CommonName: "system:kube-proxy"},
	{Name: "kubelet", CommonName: "system:node:" + nodeName, Organizations: []string{"system:nodes"}},
	serviceAccount("korc", "orc-system", "orc-controller-manager"),
	serviceAccount("eso", "external-secrets", "external-secrets"),
}

func serviceAccount(name, namespace, account string) pki.Leaf {
	return pki.Leaf{
		Name:          name,
		CommonName:    "system:serviceaccount:" + namespace + ":" + account,
		Organizations: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// configureKube writes certificates, kubeconfigs and the configuration files of the node.
func (s *Stack) configureKube() error {
	folder := s.path("pki")
	authority, err := pki.OpenAuthority(folder, "ca")
	if err != nil {
		return err
	}
	front, err := pki.OpenAuthority(folder, "front-proxy-ca")
	if err != nil {
		return err
	}
	local := netip.MustParseAddr("127.0.0.1")
	for _, leaf := range []pki.Leaf{
		{
			Name: "kube-apiserver", CommonName: "kube-apiserver",
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			IPs:      []netip.Addr{s.Plan.Stack, s.Plan.Host, local, network.APIService},
		},
		{Name: "kubelet-server", CommonName: nodeName, DNSNames: []string{nodeName}, IPs: []netip.Addr{s.Plan.Stack}},
		{Name: "kube-apiserver-kubelet-client", CommonName: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"}},
	} {
		if _, err := authority.Issue(leaf); err != nil {
			return err
		}
	}
	if _, err := front.Issue(pki.Leaf{Name: "front-proxy-client", CommonName: "front-proxy-client"}); err != nil {
		return err
	}
	if _, _, err := pki.ServiceAccountKey(folder); err != nil {
		return err
	}
	for _, user := range users {
		pair, err := authority.Issue(user)
		if err != nil {
			return err
		}
		target := s.path("config", user.Name+".kubeconfig")
		if user.Name == "admin" {
			target = s.path("kubeconfig")
		}
		if err := s.writeKubeconfig(target, user.Name, authority.CertFile, pair); err != nil {
			return err
		}
	}
	return s.writeNodeConfiguration()
}

func (s *Stack) writeKubeconfig(target, user, authority string, pair pki.Pair) error {
	data := map[string][]byte{}
	for key, file := range map[string]string{"ca": authority, "crt": pair.CertFile, "key": pair.KeyFile} {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		data[key] = content
	}
	name := "c5c3-stack-" + s.Name
	// JSON is YAML, and encodes byte slices in base64 as a kubeconfig wants them.
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{
			"server": s.apiServer(), "certificate-authority-data": data["ca"]}}},
		"users": []any{map[string]any{"name": user, "user": map[string]any{
			"client-certificate-data": data["crt"], "client-key-data": data["key"]}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": user}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(target, append(text, '\n'), 0o600)
}

//go:embed node.tmpl
var nodeTemplates string

// writeNodeConfiguration writes what kubelet, containerd, the CNI plugins, kube-proxy and the audit log
// read. The files are templates in node.tmpl.
func (s *Stack) writeNodeConfiguration() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	values := map[string]any{
		"State": s.State, "Node": nodeName, "Address": s.Plan.Stack, "Pods": network.Pods, "DNS": network.DNSService,
		"Cgroup": s.cgroup(), "Pause": pauseImage, "Runc": firstExisting("/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc"),
		"Snapshotter": s.snapshotter(),
		// Without the right to raise limits, kubelet must not ask for more than it has.
		"MaxOpenFiles": min(limit.Max, 1_000_000),
	}
	templates, err := template.New("").Parse(nodeTemplates)
	if err != nil {
		return err
	}
	for name, target := range map[string]string{
		"audit": "config/audit-policy.yaml", "kubelet": "config/kubelet.yaml", "proxy": "config/kube-proxy.yaml",
		"containerd": "config/containerd.toml", "cni": "config/cni/10-bridge.conflist",
	} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, values); err != nil {
			return err
		}
		if err := writeFile(s.path(target), bytes.TrimLeft(text.Bytes(), "\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func firstExisting(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return paths[0]
}

// snapshotter is how containerd keeps image layers: overlayfs, unless the state folder is itself on
// an overlay (a CI job in a container), where the kernel refuses that.
func (s *Stack) snapshotter() string {
	var stat unix.Statfs_t
	if err := unix.Statfs(s.State, &stat); err == nil && stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}

func (s *Stack) kubeServices() []service {
	kube, etcd := s.built("kube"), s.built("etcd")
	pkiFile := func(name string) string { return s.path("pki", name) }
	kubeconfig := func(name string) string { return s.path("config", name+".kubeconfig") }
	version := constant(kube.Version)
	return []service{
		{
			name: "etcd", group: "kube", version: constant(etcd.Version), endpoint: "http://" + s.address(2381) + "/health (metrics only)",
			command: []string{
				etcd.Path("etcd"), "--name=" + nodeName, "--data-dir=" + s.path("data/etcd"),
				"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
				"--listen-peer-urls=http://127.0.0.1:2380", "--listen-metrics-urls=http://" + s.address(2381),
				// A test cluster may lose its last second when the machine dies; without this every
				// write waits for the disk.
				"--unsafe-no-fsync", "--log-level=warn",
			},
			healthy: answers("http://" + s.address(2381) + "/health"), patience: time.Minute, expected: 3 * time.Second,
		},
		{
			name: "kube-apiserver", group: "kube", version: version, endpoint: s.apiServer(),
			command: []string{
				kube.Path("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379",
				"--bind-address=0.0.0.0", "--secure-port=6443", "--advertise-address=" + s.Plan.Stack.String(),
				"--tls-cert-file=" + pkiFile("kube-apiserver.crt"), "--tls-private-key-file=" + pkiFile("kube-apiserver.key"),
				"--client-ca-file=" + pkiFile("ca.crt"), "--authorization-mode=Node,RBAC",
				// OwnerReferencesPermissionEnforcement, as OpenShift has it on: whoever names an owner to block
				// needs a right to that owner's finalizers, and would not notice elsewhere that it is missing.
				"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement", "--allow-privileged=true",
				"--service-cluster-ip-range=" + network.Services.String(),
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + pkiFile("sa.pub"), "--service-account-signing-key-file=" + pkiFile("sa.key"),
				"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + pkiFile("ca.crt"),
				"--kubelet-client-certificate=" + pkiFile("kube-apiserver-kubelet-client.crt"),
				"--kubelet-client-key=" + pkiFile("kube-apiserver-kubelet-client.key"),
				// The aggregation layer, for API servers that run as pods.
				"--requestheader-client-ca-file=" + pkiFile("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
				"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
				"--requestheader-extra-headers-prefix=X-Remote-Extra-",
				"--proxy-client-cert-file=" + pkiFile("front-proxy-client.crt"), "--proxy-client-key-file=" + pkiFile("front-proxy-client.key"),
				"--audit-policy-file=" + s.path("config/audit-policy.yaml"), "--audit-log-path=" + s.path("logs/audit.log"),
				"--audit-log-maxsize=256", "--audit-log-maxbackup=3", "--profiling=false",
			},
			healthy:  func(ctx context.Context) error { return s.getAPI(ctx, "/readyz", nil) },
			patience: 3 * time.Minute, expected: 10 * time.Second,
		},
		{
			name: "kube-controller-manager", group: "kube", version: version, endpoint: "https://" + s.address(10257) + "/healthz",
			command: []string{
				kube.Path("kube-controller-manager"), "--kubeconfig=" + kubeconfig("kube-controller-manager"),
				"--authentication-kubeconfig=" + kubeconfig("kube-controller-manager"), "--authorization-kubeconfig=" + kubeconfig("kube-controller-manager"),
				"--bind-address=0.0.0.0", "--cert-dir=" + s.path("run/kube-controller-manager"), "--leader-elect=false",
				"--use-service-account-credentials=true", "--service-account-private-key-file=" + pkiFile("sa.key"),
				"--root-ca-file=" + pkiFile("ca.crt"), "--cluster-signing-cert-file=" + pkiFile("ca.crt"), "--cluster-signing-key-file=" + pkiFile("ca.key"),
				"--allocate-node-cidrs=true", "--cluster-cidr=" + network.Pods.String(), "--service-cluster-ip-range=" + network.Services.String(),
				"--profiling=false",
			},
			healthy: answers("https://" + s.address(10257) + "/healthz"), patience: 2 * time.Minute, expected: 5 * time.Second,
		},
		{
			name: "kube-scheduler", group: "kube", version: version, endpoint: "https://" + s.address(10259) + "/healthz",
			command: []string{
				kube.Path("kube-scheduler"), "--kubeconfig=" + kubeconfig("kube-scheduler"),
				"--authentication-kubeconfig=" + kubeconfig("kube-scheduler"), "--authorization-kubeconfig=" + kubeconfig("kube-scheduler"),
				"--bind-address=0.0.0.0", "--cert-dir=" + s.path("run/kube-scheduler"), "--leader-elect=false", "--profiling=false",
			},
			healthy: answers("https://" + s.address(10259) + "/healthz"), patience: 2 * time.Minute, expected: 5 * time.Second,
		},
		{
			name: "containerd", group: "kube", endpoint: "unix://" + s.containerdSocket(),
			version: printed(field(2), "containerd", "--version"),
			command: []string{"containerd", "--config", s.path("config/containerd.toml")},
			healthy: func(ctx context.Context) error {
				_, err := s.ctr(ctx, "namespaces", "ls", "-q")
				return err
			},
			patience: time.Minute, expected: 2 * time.Second,
		},
		{
			name: "kubelet", group: "kube", version: version, endpoint: "https://" + s.address(10250),
			command: []string{
				kube.Path("kubelet"), "--config=" + s.path("config/kubelet.yaml"), "--kubeconfig=" + kubeconfig("kubelet"),
				"--hostname-override=" + nodeName, "--node-ip=" + s.Plan.Stack.String(),
				"--root-dir=" + s.path("data/kubelet"), "--cert-dir=" + s.path("data/kubelet/pki"), "--v=2",
			},
			healthy: answers("http://" + s.address(10248) + "/healthz"), patience: 2 * time.Minute, expected: 5 * time.Second,
		},
		{
			name: "kube-proxy", group: "kube", version: version, endpoint: "http://" + s.address(10256) + "/livez",
			command: []string{kube.Path("kube-proxy"), "--config=" + s.path("config/kube-proxy.yaml"), "--v=2"},
			// Not /healthz, which fails until the node has registered: kubelet starts later.
			healthy: answers("http://" + s.address(10256) + "/livez"), patience: 2 * time.Minute, expected: 5 * time.Second,
		},
	}
}

func (s *Stack) containerdSocket() string { return s.path("run/containerd.sock") }

// ctr runs containerd's client from the machine: its socket is a file, which both sides see.
func (s *Stack) ctr(ctx context.Context, arguments ...string) (string, error) {
	return runHost(ctx, nil, "ctr", append([]string{"--address", s.containerdSocket(), "--namespace", "k8s.io"}, arguments...)...)
}

// importImages makes the stack's own images and imports those that containerd lacks.
func (s *Stack) importImages(ctx context.Context) error {
	for component, reference := range map[string]string{"pause": pauseImage, "consumer": consumerImage} {
		program, err := os.ReadFile(s.built(component).Path(component))
		if err != nil {
			return err
		}
		if _, err := s.importImage(ctx, imagetar.Binary(reference, runtime.GOARCH, program)); err != nil {
			return err
		}
	}
	return nil
}

// importImage imports an image unless containerd has it, and returns its digest.
func (s *Stack) importImage(ctx context.Context, image imagetar.Image) (string, error) {
	file, err := os.CreateTemp(s.path("run"), "image-*.tar")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	digest, err := imagetar.Write(file, image)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", err
	}
	listed, err := s.ctr(ctx, "images", "ls", "name=="+image.Reference)
	if err == nil && !strings.Contains(listed, digest) {
		_, err = s.ctr(ctx, "images", "import", file.Name())
	}
	if err != nil {
		return "", fmt.Errorf("importing %s: %w", image.Reference, err)
	}
	return digest, nil
}

// LoadImage imports an OCI or docker image archive into the node. Pods use it under reference, with
// imagePullPolicy IfNotPresent or Never.
func (s *Stack) LoadImage(ctx context.Context, reference, archive string) error {
	if _, err := s.client.HostPID(); err != nil {
		return err
	}
	absolute, err := filepath.Abs(archive)
	if err != nil {
		return err
	}
	before, err := s.ctr(ctx, "images", "ls", "-q")
	if err != nil {
		return err
	}
	// Most archives carry the name. Giving it a second time, to the index around the image, makes containerd
	// collect that index as nobody's before ctr has unpacked it.
	imported, err := s.ctr(ctx, "images", "import", absolute)
	if err != nil || !strings.Contains(imported, "unpacking "+reference+" ") {
		if _, err := s.ctr(ctx, "images", "import", "--index-name", reference, absolute); err != nil {
			return err
		}
	}
	after, err := s.ctr(ctx, "images", "ls", "-q")
	if err != nil {
		return err
	}
	if !hasLine(after, reference) {
		return fmt.Errorf("%s was imported, but not as %s: it holds %s", archive, reference, newLines(before, after))
	}
	s.Board.Say("Loaded %s", reference)
	return nil
}

func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == want {
			return true
		}
	}
	return false
}

func newLines(before, after string) string {
	var found []string
	for line := range strings.Lines(after) {
		if line = strings.TrimSpace(line); !hasLine(before, line) {
			found = append(found, line)
		}
	}
	return strings.Join(found, ", ")
}
