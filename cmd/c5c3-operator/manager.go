package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	agentsv1alpha1 "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/controlplane"
	"github.com/c5c3/c5c3-operator/controllers/credentialupdaterequest"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/keystoneapplicationcredential"
	"github.com/c5c3/c5c3-operator/controllers/keystoneproject"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/operatorcondition"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/metrics"
)

// leaseName is the Lease of the leader election.
const leaseName = "c5c3-operator"

// reconcileTimeout bounds one pass, so that whatever hangs frees its worker in the end.
const reconcileTimeout = 5 * time.Minute

// setups register the controllers of the order kinds.
var setups = []struct {
	kind  order.Kind
	setup func(context.Context, order.Environment, controller.TypedOptions[mcreconcile.Request]) error
}{
	{order.UserKind, keystoneuser.Setup},
	{order.ProjectKind, keystoneproject.Setup},
	{order.RoleAssignmentKind, keystoneroleassignment.Setup},
	{order.ApplicationCredentialKind, keystoneapplicationcredential.Setup},
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, agentsv1alpha1.AddToScheme, orcv1alpha1.AddToScheme, korcapi.AddToScheme, externalsecrets.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// newManager makes the manager with all controllers. It asks the API server once which kinds of
// other projects it serves, and fails when there is no answer.
func newManager(ctx context.Context, config *rest.Config, o *options) (mcmanager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	tracker, err := newTracker(ctx, config)
	if err != nil {
		return nil, err
	}
	// No provider of target clusters yet: every order is one of the management cluster.
	mgr, err := mcmanager.New(config, nil, managerOptions(o, scheme, tracker))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := tracker.Run(mgr.GetLocalManager()); err != nil {
		return nil, err
	}
	if err := command.AddProbes(mgr.GetLocalManager()); err != nil {
		return nil, err
	}
	return mgr, addControllers(ctx, mgr, o, tracker)
}

func newTracker(ctx context.Context, config *rest.Config) (*dependencies.Tracker, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	tracker := dependencies.NewTracker(client, ctrl.Log)
	if err := tracker.Refresh(ctx); err != nil {
		return nil, err
	}
	return tracker, nil
}

func managerOptions(o *options, scheme *runtime.Scheme, tracker *dependencies.Tracker) manager.Options {
	mo := o.Manager(scheme, leaseName)
	mo.NewCache = tracker.Guard
	mo.Cache = cache.Options{
		// Nobody reads them, and they are half of an object's size.
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			// Only the operator's own Secrets. All others are read live, so that a cluster's ten
			// thousand Secrets neither move the operator's memory nor lie in it.
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{order.ManagedByLabel: order.ManagedByValue})},
		},
	}
	return mo
}

// addMetrics adds the operator's own metrics to those of controller-runtime.
func addMetrics(mgr mcmanager.Manager) (*metrics.Counters, error) {
	local := mgr.GetLocalManager()
	counters, err := metrics.NewCounters(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	taker := snapshots{cache: local.GetCache(), elected: local.Elected(), log: mgr.GetLogger().WithName("metrics")}
	if err := ctrlmetrics.Registry.Register(metrics.State{Take: taker.take, Now: time.Now}); err != nil {
		return nil, fmt.Errorf("registering the metrics of state: %w", err)
	}
	return counters, nil
}

func addControllers(ctx context.Context, mgr mcmanager.Manager, o *options, tracker *dependencies.Tracker) error {
	counters, err := addMetrics(mgr)
	if err != nil {
		return err
	}
	env := order.Environment{
		Manager: mgr,
		Keystone: keystone.New(keystone.Config{
			Timeout: o.keystoneTimeout, UserAgent: "c5c3-operator/" + version, Observe: counters.KeystoneRequest,
		}),
		Clock:         clock.RealClock{},
		Late:          tracker,
		AuditInterval: o.auditInterval,
		Counters:      counters,
	}
	controllerOptions := controller.TypedOptions[mcreconcile.Request]{
		MaxConcurrentReconciles: o.maxConcurrentReconciles,
		ReconciliationTimeout:   reconcileTimeout,
	}
	for _, s := range setups {
		if err := s.setup(ctx, env, controllerOptions); err != nil {
			return fmt.Errorf("setting up %s: %w", s.kind.Name, err)
		}
	}
	if err := controlplane.Setup(ctx, env, tracker, controllerOptions); err != nil {
		return fmt.Errorf("setting up ControlPlane: %w", err)
	}
	return errors.Join(addCredentialUpdates(env, o), addOperatorCondition(env, o))
}

// conditionVariable is the environment variable in which OLM names the OperatorCondition of this version of
// the operator. It is in the operator's own namespace.
const conditionVariable = "OPERATOR_CONDITION_NAME"

// namespaceFile is where a pod reads which namespace it is in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// addOperatorCondition tells OLM when not to upgrade the operator, where OLM installed it.
func addOperatorCondition(env order.Environment, o *options) error {
	name := os.Getenv(conditionVariable)
	if name == "" {
		return nil
	}
	namespace := o.LeaderElectionNamespace
	if namespace == "" {
		text, err := os.ReadFile(namespaceFile)
		if err != nil {
			return fmt.Errorf("finding the operator's namespace, where OperatorCondition %s is: %w", name, err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	return operatorcondition.Setup(env, types.NamespacedName{Namespace: namespace, Name: name})
}

// addCredentialUpdates adds the controller of CredentialUpdateRequest where it is asked for. It is not
// enough that the kind is served: where its own project runs, two controllers would determine each request.
func addCredentialUpdates(env order.Environment, o *options) error {
	if !o.credentialUpdates {
		return nil
	}
	catalog, err := o.Catalog()
	if err != nil {
		return err
	}
	settings := credentialupdaterequest.Settings{Catalog: catalog, Egress: o.Egress()}
	if err := credentialupdaterequest.Setup(env, settings); err != nil {
		return fmt.Errorf("setting up %s: %w", credentialupdaterequest.Kind, err)
	}
	return nil
}
