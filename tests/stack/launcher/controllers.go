package launcher

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// tenantNamespace is where the stack's ControlPlane is meant to live: it holds the namespaced
// SecretStore and the Secret with Keystone's admin password.
const tenantNamespace = "openstack"

//go:embed manifests/*.yaml
var manifests embed.FS

func (s *Stack) controllerServices() []service {
	korc, eso := s.built("korc"), s.built("eso")
	return []service{
		{
			name: "korc", group: "korc", version: constant(korc.Version), endpoint: "http://" + s.address(8081) + "/readyz",
			command: []string{
				korc.Path("korc"), "--kubeconfig", s.path("config/korc.kubeconfig"), "--metrics-bind-address=0",
				"--health-probe-bind-address=0.0.0.0:8081",
				// Each order has a cloud document of its own; with the default of 10 the sessions of a
				// larger number push each other out and log in again on every pass.
				"--scope-cache-max-size=1000", "--zap-log-level=info",
			},
			healthy: answers("http://" + s.address(8081) + "/readyz"), patience: time.Minute, expected: 3 * time.Second,
		},
		{
			name: "eso", group: "eso", version: constant(eso.Version), endpoint: "http://" + s.address(8082) + "/readyz",
			command: []string{
				eso.Path("eso"), "--kubeconfig", s.path("config/eso.kubeconfig"), "--health-probe-bind-address=0.0.0.0:8082",
			},
			healthy: answers("http://" + s.address(8082) + "/readyz"), patience: time.Minute, expected: 3 * time.Second,
		},
	}
}

// apply renders one of the embedded manifests and applies it.
func (s *Stack) apply(ctx context.Context, name string, values map[string]string) error {
	text, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	parsed, err := template.New(name).Parse(string(text))
	if err != nil {
		return err
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, values); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, rendered.Bytes(), "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("applying %s: %w", name, err)
	}
	return nil
}

// applyCRDs installs a component's CustomResourceDefinitions and waits until they are served.
func (s *Stack) applyCRDs(ctx context.Context, component, folder string) error {
	files, err := filepath.Glob(filepath.Join(s.built(component).Path("crds"), folder, "*.yaml"))
	if err != nil {
		return err
	}
	arguments := []string{"apply", "--server-side", "--force-conflicts"}
	for _, file := range files {
		if filepath.Base(file) != "kustomization.yaml" {
			arguments = append(arguments, "-f", file)
		}
	}
	// Server-side: some are larger than the annotation that a client-side apply would write.
	if _, err := s.kubectl(ctx, nil, arguments...); err != nil {
		return fmt.Errorf("installing the CRDs of %s: %w", component, err)
	}
	arguments = append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, arguments[3:]...)
	if _, err := s.kubectl(ctx, nil, arguments...); err != nil {
		return fmt.Errorf("waiting for the CRDs of %s: %w", component, err)
	}
	return nil
}

// upCluster applies what every stack has, whatever groups are wanted.
func (s *Stack) upCluster(ctx context.Context) error {
	return s.apply(ctx, "cluster.yaml", map[string]string{"Namespace": tenantNamespace})
}

func (s *Stack) upKORC(ctx context.Context) error {
	if err := s.applyCRDs(ctx, "korc", "crd/bases"); err != nil {
		return err
	}
	// Its own role, as its kustomization would bind it.
	if _, err := s.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "-f", s.built("korc").Path("crds/rbac/role.yaml")); err != nil {
		return fmt.Errorf("applying K-ORC's role: %w", err)
	}
	if err := s.apply(ctx, "korc.yaml", nil); err != nil {
		return err
	}
	return s.ensureNamed(ctx, "korc")
}

func (s *Stack) upESO(ctx context.Context) error {
	if err := s.applyCRDs(ctx, "eso", ""); err != nil {
		return err
	}
	if err := s.apply(ctx, "eso.yaml", nil); err != nil {
		return err
	}
	return s.ensureNamed(ctx, "eso")
}

// upStores makes the SecretStores and waits until ESO has found the KV store behind them.
func (s *Stack) upStores(ctx context.Context) (err error) {
	tokenFile := s.esoTokenFile()
	if s.settings.KVAddress != "" {
		tokenFile = s.settings.KVTokenFile
	}
	token, err := s.kvToken(tokenFile)
	if err != nil {
		return err
	}
	task := s.Board.Start("connecting the SecretStores with the KV store", 3*time.Second)
	defer func() { task.Done(err) }()
	if err := s.apply(ctx, "stores.yaml", map[string]string{
		"Namespace": tenantNamespace, "Server": s.kvAddress(), "Path": kvMount,
		"Token": base64.StdEncoding.EncodeToString([]byte(token)),
	}); err != nil {
		return err
	}
	_, err = s.kubectl(ctx, nil, "wait", "--for=condition=Ready", "--timeout=60s",
		"clustersecretstore/openbao", "secretstore/openbao-tenant-store", "-n", tenantNamespace)
	return err
}

// upAdminSecret leaves Keystone's admin password in the cluster, where whoever installs Keystone with a
// chart would leave it.
func (s *Stack) upAdminSecret(ctx context.Context) error {
	password, err := os.ReadFile(s.adminPasswordFile())
	if err != nil {
		return err
	}
	return s.apply(ctx, "keystone-admin.yaml", map[string]string{
		"Namespace": tenantNamespace,
		"Password":  base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(string(password)))),
	})
}

func (s *Stack) ensureNamed(ctx context.Context, names ...string) error {
	for _, name := range names {
		svc, err := s.service(name)
		if err != nil {
			return err
		}
		if err := s.ensure(ctx, svc); err != nil {
			return err
		}
	}
	return nil
}
