// Command eso runs External Secrets' own controllers, the ones that this project depends on, as a
// plain process beside a local API server.
//
// ESO's own command links every provider (AWS, Azure, Google, ...), which costs an hour of compile
// time on two cores. This one links the same controllers and the Vault provider only; the
// controllers' code and settings are ESO's.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	esv1alpha1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1alpha1"
	genv1alpha1 "github.com/external-secrets/external-secrets/apis/generators/v1alpha1"
	ctrlmetrics "github.com/external-secrets/external-secrets/pkg/controllers/metrics"
	"github.com/external-secrets/external-secrets/pkg/controllers/pushsecret"
	"github.com/external-secrets/external-secrets/pkg/controllers/pushsecret/psmetrics"
	"github.com/external-secrets/external-secrets/pkg/controllers/secretstore"
	"github.com/external-secrets/external-secrets/pkg/controllers/secretstore/cssmetrics"
	"github.com/external-secrets/external-secrets/pkg/controllers/secretstore/ssmetrics"
	_ "github.com/external-secrets/external-secrets/pkg/provider/vault" // registers itself as a store provider
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// controllerClass is ESO's default: stores that name no class belong to it.
const controllerClass = "default"

func main() {
	// --kubeconfig comes from controller-runtime's own flag set.
	probe := flag.String("health-probe-bind-address", "127.0.0.1:8082", "address of /healthz and /readyz")
	storeInterval := flag.Duration("store-requeue-interval", 15*time.Second,
		"how often a store is validated again; ESO's default of 5m would make every outage test wait that long")
	concurrent := flag.Int("concurrent", 4, "reconciles at once, per controller")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	if err := run(*probe, *storeInterval, *concurrent); err != nil {
		ctrl.Log.Error(err, "external secrets controllers stopped")
		os.Exit(1)
	}
}

func run(probe string, storeInterval time.Duration, concurrent int) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		esv1.AddToScheme,
		esv1alpha1.AddToScheme,
		// The PushSecret controller lists GeneratorStates on every pass, even when nothing uses a
		// generator: without this each push logs "no kind is registered".
		genv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// ESO's own command sets the same limits; the client's defaults (20/30) slow a burst of pushes.
	cfg.QPS, cfg.Burst = 50, 100

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: probe,
		// As in ESO's own command: Secrets are read live. With a cached client a changed source
		// Secret could be pushed in its old version.
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}

	// The reconcilers fill these metrics on each pass and panic when they do not exist.
	ctrlmetrics.SetUpLabelNames(false)
	ssmetrics.SetUpMetrics()
	cssmetrics.SetUpMetrics()
	psmetrics.SetUpMetrics()

	opts := controller.Options{MaxConcurrentReconciles: concurrent}
	log := ctrl.Log.WithName("controllers")
	if err := (&secretstore.StoreReconciler{
		Client: mgr.GetClient(), Log: log.WithName("SecretStore"), Scheme: scheme,
		ControllerClass: controllerClass, RequeueInterval: storeInterval,
	}).SetupWithManager(mgr, opts); err != nil {
		return fmt.Errorf("adding the SecretStore controller: %w", err)
	}
	if err := (&secretstore.ClusterStoreReconciler{
		Client: mgr.GetClient(), Log: log.WithName("ClusterSecretStore"), Scheme: scheme,
		ControllerClass: controllerClass, RequeueInterval: storeInterval,
	}).SetupWithManager(mgr, opts); err != nil {
		return fmt.Errorf("adding the ClusterSecretStore controller: %w", err)
	}
	if err := (&pushsecret.Reconciler{
		Client: mgr.GetClient(), Log: log.WithName("PushSecret"), Scheme: scheme,
		ControllerClass: controllerClass, RestConfig: cfg, RequeueInterval: time.Hour,
	}).SetupWithManager(mgr, opts); err != nil {
		return fmt.Errorf("adding the PushSecret controller: %w", err)
	}
	for name, add := range map[string]func(string, healthz.Checker) error{
		"healthz": mgr.AddHealthzCheck, "readyz": mgr.AddReadyzCheck,
	} {
		if err := add("ping", healthz.Ping); err != nil {
			return fmt.Errorf("adding %s: %w", name, err)
		}
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
