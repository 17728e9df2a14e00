// Package manifests tests what `make dist` writes, which is what `make deploy` applies: a real kube-apiserver takes
// it, admits the operator's pod where only restricted pods may run, and lets people do what the
// documentation says and no more.
package manifests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	operatorNamespace = "c5c3-operator-system"
	operatorName      = "c5c3-operator"
	tenantNamespace   = "tenant-a"
)

// One control plane, with everything installed, serves all tests of the package.
var (
	api      client.Client
	rendered []*unstructured.Unstructured
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		// A test run that checked nothing must not look like one that found nothing.
		fmt.Fprintln(os.Stderr, "tests/manifests:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New("these tests need a real kube-apiserver and etcd; `make test` finds them by itself, and for a bare `go test` run: " +
			"export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)")
	}
	if rendered, err = render(); err != nil {
		return 0, err
	}
	environment := &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	defer func() {
		if stopped := environment.Stop(); stopped != nil && err == nil {
			err = fmt.Errorf("stopping the control plane: %w", stopped)
		}
	}()
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("starting kube-apiserver and etcd: %w", err)
	}
	api, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return 0, err
	}
	if err := install(context.Background()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// render returns the objects of the file that `make dist` writes.
func render() ([]*unstructured.Unstructured, error) {
	folder, err := os.MkdirTemp("", "c5c3-dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	command := exec.CommandContext(context.Background(), "../../hack/dist.sh")
	command.Stderr = os.Stderr
	command.Env = append(os.Environ(), "DIST_DIR="+folder)
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("hack/dist.sh: %w", err)
	}
	written, err := os.ReadFile(filepath.Join(folder, "install.yaml")) //nolint:gosec // a path of our own making
	if err != nil {
		return nil, err
	}
	return split(string(written))
}

// split returns the objects of a YAML text.
func split(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("what is rendered is no YAML: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// install does what `make deploy` does, and takes no field that the API server does not know.
func install(ctx context.Context) error {
	for _, object := range rendered {
		err := api.Create(ctx, object.DeepCopy(), &client.CreateOptions{Raw: &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}})
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}})
}

// object decodes the only rendered object of a kind and name into its Go type.
func object[T any](t *testing.T, kind, name string) *T {
	t.Helper()
	var found *T
	for _, candidate := range rendered {
		if candidate.GetKind() != kind || candidate.GetName() != name {
			continue
		}
		if found != nil {
			t.Fatalf("there are two %s %s", kind, name)
		}
		found = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(candidate.Object, found, true); err != nil {
			t.Fatal(err)
		}
	}
	if found == nil {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return found
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	return object[appsv1.Deployment](t, "Deployment", operatorName)
}
