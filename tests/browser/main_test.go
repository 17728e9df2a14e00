package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// One API server, one browser and one OpenID provider serve all tests.
var (
	api      client.Client
	chromium context.Context
	provider *openID
)

// pictures is where what the pages look like is kept: no file of the repository, but CI can keep it.
const pictures = "../../bin/browser"

func TestMain(m *testing.M) {
	code, err := serve(m)
	if err != nil {
		// A test run that looked at nothing must not look like one that found nothing.
		fmt.Fprintln(os.Stderr, "tests/browser:", err)
		code = 1
	}
	os.Exit(code)
}

func serve(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New("these tests need a real kube-apiserver and etcd; `make test` finds them by itself, and for a bare `go test` run: " +
			"export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)")
	}
	log.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return 0, err
	}
	var leave func()
	if chromium, leave, err = startChromium(); err != nil {
		return 0, err
	}
	defer leave()
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "agentprimitives")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	defer func() {
		if stopped := environment.Stop(); stopped != nil && err == nil {
			err = fmt.Errorf("stopping the control plane: %w", stopped)
		}
	}()
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("starting kube-apiserver and etcd: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), agents.AddToScheme(scheme)); err != nil {
		return 0, err
	}
	if api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	provider = startOpenID()
	defer provider.Close()
	return m.Run(), nil
}
