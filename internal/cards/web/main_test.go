package web

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// One API server serves all tests, which have a namespace each: who somebody is and what they may is not for a fake
// to say.
var (
	apiServer *rest.Config
	scheme    = runtime.NewScheme()
	// admin may everything.
	admin client.Client
)

func TestMain(m *testing.M) {
	code, err := serve(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func serve(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New("these tests need a real kube-apiserver; `make test` finds one by itself, and for a bare `go test` run: export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)")
	}
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), agents.AddToScheme(scheme)); err != nil {
		return 0, err
	}
	flag.Parse()
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		return m.Run(), nil
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{"../../../config/crd/agentprimitives"}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	if apiServer, err = environment.Start(); err != nil {
		return 0, fmt.Errorf("starting kube-apiserver and etcd: %w", err)
	}
	if admin, err = client.New(apiServer, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
