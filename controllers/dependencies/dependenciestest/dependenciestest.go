// Package dependenciestest starts API servers for tests, with and without the kinds of other projects.
package dependenciestest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// StartAPIServer starts a real kube-apiserver and etcd for a test. They serve the operator's own
// kinds, read from the folder config/crd/bases at root, and none of another project's.
func StartAPIServer(t *testing.T, root string) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("this test needs a real kube-apiserver; `make test` finds one by itself, and for a bare `go test` run: export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)")
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting kube-apiserver and etcd: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping kube-apiserver and etcd: %v", err)
		}
	})
	return config
}

// OperatorNamespace is where the operator's ServiceAccount is in tests.
const OperatorNamespace = "c5c3-operator-system"

// AsOperator is a config of the operator's ServiceAccount, which may do what the roles in the folder
// config/rbac at root say and nothing else.
func AsOperator(t *testing.T, config *rest.Config, root string) *rest.Config {
	t.Helper()
	kube, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) {
		t.Helper()
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: OperatorNamespace}})
	for file, object := range map[string]client.Object{
		"role.yaml": &rbacv1.ClusterRole{}, "role_binding.yaml": &rbacv1.ClusterRoleBinding{},
		"leader_election_role.yaml": &rbacv1.Role{}, "leader_election_role_binding.yaml": &rbacv1.RoleBinding{},
	} {
		text, err := os.ReadFile(filepath.Join(root, "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		// Kustomize replaces the placeholder with the namespace of config/default.
		text = []byte(strings.ReplaceAll(string(text), "namespace: system", "namespace: "+OperatorNamespace))
		if err := yaml.UnmarshalStrict(text, object); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		create(object)
	}
	operator := rest.CopyConfig(config)
	operator.Impersonate.UserName = "system:serviceaccount:" + OperatorNamespace + ":c5c3-operator"
	return operator
}

// InstallKORC has the API server serve the kinds of the K-ORC release that the operator is built
// with, as that release defines them.
func InstallKORC(t *testing.T, config *rest.Config) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/k-orc/openstack-resource-controller/v2").Output()
	if err != nil {
		t.Fatalf("finding K-ORC's CRDs: %v", err)
	}
	var paths []string
	for _, plural := range []string{"domains", "users", "projects", "roles", "applicationcredentials"} {
		paths = append(paths, filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "bases", "openstack.k-orc.cloud_"+plural+".yaml"))
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}); err != nil {
		t.Fatalf("installing K-ORC's CRDs: %v", err)
	}
}

// InstallESO has the API server serve the kinds of External Secrets Operator, without its validation.
func InstallESO(t *testing.T, config *rest.Config) {
	t.Helper()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: esoDefinitions()}); err != nil {
		t.Fatalf("installing External Secrets Operator's CRDs: %v", err)
	}
}

// RemoveESO takes those kinds away again.
func RemoveESO(t *testing.T, config *rest.Config) {
	t.Helper()
	if err := envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: esoDefinitions()}); err != nil {
		t.Fatalf("removing External Secrets Operator's CRDs: %v", err)
	}
}

func esoDefinitions() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		open(externalsecrets.PushSecretGroupVersion.WithKind(externalsecrets.PushSecretKind), apiextensionsv1.NamespaceScoped),
		open(externalsecrets.StoreGroupVersion.WithKind(externalsecrets.SecretStoreKind), apiextensionsv1.NamespaceScoped),
		open(externalsecrets.StoreGroupVersion.WithKind(externalsecrets.ClusterSecretStoreKind), apiextensionsv1.ClusterScoped),
	}
}

// open defines a kind that takes any fields.
func open(gvk schema.GroupVersionKind, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(gvk.Kind)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group,
			Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gvk.Kind, ListKind: gvk.Kind + "List", Plural: singular + "s", Singular: singular},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// olmAPI is the module that OLM's CRDs are read from. The operator itself is not built with it.
const olmAPI = "github.com/operator-framework/api@v0.45.0"

// InstallOperatorConditions has the API server serve OLM's OperatorCondition, as OLM defines it.
func InstallOperatorConditions(t *testing.T, config *rest.Config) {
	t.Helper()
	answer, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", olmAPI).Output()
	if err != nil {
		t.Fatalf("downloading %s: %v: %s", olmAPI, err, answer)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(answer, &module); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(module.Dir, "crds", "operators.coreos.com_operatorconditions.yaml")
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{path}, ErrorIfPathMissing: true}); err != nil {
		t.Fatalf("installing OLM's CRD: %v", err)
	}
}

// OperatorCondition creates the OperatorCondition that OLM makes for a version of the operator in
// OperatorNamespace, and the rights on it that OLM gives the operator's ServiceAccount.
func OperatorCondition(t *testing.T, kube client.Client, name string) {
	t.Helper()
	condition := &unstructured.Unstructured{}
	condition.SetAPIVersion("operators.coreos.com/v2")
	condition.SetKind("OperatorCondition")
	meta := metav1.ObjectMeta{Namespace: OperatorNamespace, Name: name}
	condition.SetNamespace(meta.Namespace)
	condition.SetName(meta.Name)
	for _, object := range []client.Object{
		condition,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{name},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: OperatorNamespace, Name: "c5c3-operator"}},
		},
	} {
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, name, err)
		}
	}
}
