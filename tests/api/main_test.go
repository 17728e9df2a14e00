// Package api tests the kinds of group c5c3.io where their rules live: in a real kube-apiserver
// with the CRDs of config/crd/bases. No kind has a webhook, so what these tests see is everything
// that admission ever does, on the management cluster and on every target cluster.
package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// crdFolder holds what `make manifests` generates, relative to this package.
const crdFolder = "../../config/crd/bases"

// One control plane serves all tests of the package: starting one takes longer than all of them.
var (
	config *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		// A test run that checked nothing must not look like one that found nothing.
		fmt.Fprintln(os.Stderr, "tests/api:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	assets, err := assetsFolder()
	if err != nil {
		return 0, err
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{crdFolder},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	// Stopping comes first: a start that fails at the CRDs leaves kube-apiserver and etcd running.
	defer func() {
		if stopped := environment.Stop(); stopped != nil && err == nil {
			err = fmt.Errorf("stopping the control plane: %w", stopped)
		}
	}()
	config, err = environment.Start()
	if err != nil {
		return 0, fmt.Errorf("starting kube-apiserver and etcd of %s: %w", assets, err)
	}
	// The tests are the only client, and admission is what they measure, not client-side throttling.
	config.QPS, config.Burst = -1, -1

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	api, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return 0, err
	}
	if err := api.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: admission.Namespace}}); err != nil {
		return 0, fmt.Errorf("creating the tests' namespace: %w", err)
	}
	return m.Run(), nil
}

// assetsFolder returns the folder with kube-apiserver and etcd.
func assetsFolder() (string, error) {
	const howTo = "`make test` builds and finds them by itself; for a bare `go test` run\n" +
		"  export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)"
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return "", fmt.Errorf("these tests need a real kube-apiserver and etcd, and KUBEBUILDER_ASSETS is not set; %s", howTo)
	}
	for _, binary := range []string{"kube-apiserver", "etcd"} {
		info, err := os.Stat(filepath.Join(folder, binary))
		if err != nil || info.IsDir() {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS=%s holds no %s; %s", folder, binary, howTo)
		}
	}
	return folder, nil
}
