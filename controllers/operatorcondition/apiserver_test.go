package operatorcondition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/command"
)

const lease = "c5c3-operator"

// bench is an API server with OLM's kind, on which the reporter runs with the operator's rights.
type bench struct {
	*testing.T
	kube     client.Client
	operator *rest.Config
	scheme   *runtime.Scheme
}

// TestReporter runs the reporter, without the orders' own controllers: the test writes the statuses.
func TestReporter(t *testing.T) {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config := dependenciestest.StartAPIServer(t, "../..")
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, kube: kube, operator: dependenciestest.AsOperator(t, config, "../.."), scheme: scheme}
	dependenciestest.InstallOperatorConditions(t, config)
	for _, namespace := range []string{"tenant-a", "openstack"} {
		b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	t.Run("a_replica_that_waits_writes_the_default_and_nothing_else", func(t *testing.T) { b.with(t).waits() })
	t.Run("the_leader_follows_the_orders", func(t *testing.T) { b.with(t).follows(config) })
}

func (b *bench) with(t *testing.T) *bench {
	clone := *b
	clone.T = t
	return &clone
}

func (b *bench) waits() {
	key := b.condition("c5c3-operator.v0.0.1")
	// Somebody holds the lease for as long as this test runs.
	b.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: dependenciestest.OperatorNamespace, Name: lease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	})
	r := b.start(key)
	b.eventually("the replica is ready", func() error { return r.ready(nil) })
	b.expect(key, metav1.ConditionFalse, ReasonStarting, "has not looked")

	// What the leader said stays, also for a replica that starts.
	b.set(key, metav1.Condition{Type: Upgradeable, Status: metav1.ConditionTrue, Reason: ReasonNothingUnderWay})
	again := b.start(key)
	b.eventually("the second replica is ready", func() error { return again.ready(nil) })
	b.expect(key, metav1.ConditionTrue, ReasonNothingUnderWay, "")
	if err := b.kube.Delete(b.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: dependenciestest.OperatorNamespace, Name: lease}}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) follows(config *rest.Config) {
	key := b.condition("c5c3-operator.v0.1.0")
	// An administrator's word and another condition are not the operator's to touch.
	object := b.read(key)
	override := map[string]any{"type": Upgradeable, "status": "True", "reason": "maintenance", "message": "go ahead"}
	if err := errors.Join(unstructured.SetNestedSlice(object.Object, []any{override}, "spec", "overrides"), b.kube.Update(b.Context(), object)); err != nil {
		b.Fatal(err)
	}
	b.set(key, metav1.Condition{Type: "Other", Status: metav1.ConditionFalse, Reason: "Theirs"})

	r := b.start(key)
	b.expect(key, metav1.ConditionTrue, ReasonNothingUnderWay, "no order")
	if err := r.ready(nil); err != nil {
		b.Errorf("it reports and is not ready: %v", err)
	}

	dependenciestest.InstallKORC(b.T, config)
	b.create(b.order())
	b.create(b.child(1))
	b.expect(key, metav1.ConditionFalse, ReasonAwaitingDelivery, "KeystoneApplicationCredential tenant-a/appcred")
	b.status(1, "appcred-credentials")
	b.expect(key, metav1.ConditionTrue, ReasonNothingUnderWay, "")

	before := b.read(key).GetResourceVersion()
	b.touch()
	b.create(b.child(2))
	b.expect(key, metav1.ConditionFalse, ReasonAwaitingDelivery, "tenant-a/appcred")
	b.status(2, "")
	b.touch()
	b.expect(key, metav1.ConditionFalse, ReasonAwaitingDelivery, "tenant-a/appcred")
	if after := b.read(key).GetResourceVersion(); after == before {
		b.Error("nothing was written")
	}

	// Errors pass: the rights come back, and with them the report.
	binding := &rbacv1.RoleBinding{}
	if err := errors.Join(b.kube.Get(b.Context(), key, binding), b.kube.Delete(b.Context(), binding)); err != nil {
		b.Fatal(err)
	}
	b.eventually("the operator has lost its rights", func() error {
		if b.denied(key) {
			return nil
		}
		return errors.New("it may still write")
	})
	b.status(2, "appcred-credentials")
	b.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, RoleRef: binding.RoleRef, Subjects: binding.Subjects})
	b.expect(key, metav1.ConditionTrue, ReasonNothingUnderWay, "")

	if found := b.conditions(key); meta.FindStatusCondition(found, "Other") == nil {
		b.Errorf("another condition is gone: %+v", found)
	}
	if overrides, _, _ := unstructured.NestedSlice(b.read(key).Object, "spec", "overrides"); len(overrides) != 1 {
		b.Errorf("the overrides are %v", overrides)
	}
}

// start runs a reporter until the test ends.
func (b *bench) start(key types.NamespacedName) *reporter {
	b.Helper()
	tracker := dependencies.NewTracker(discovery.NewDiscoveryClientForConfigOrDie(b.operator), logr.Discard())
	mgr, err := mcmanager.New(b.operator, nil, manager.Options{
		Scheme: b.scheme, NewCache: tracker.Guard, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     command.Controllers(),
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: dependenciestest.OperatorNamespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	r := newReporter(order.Environment{Manager: mgr, Late: tracker}, key)
	if err := errors.Join(tracker.Run(mgr.GetLocalManager()), r.addTo(mgr.GetLocalManager())); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the manager ended: %v", err)
		}
	})
	return r
}

func (b *bench) create(object client.Object) {
	b.Helper()
	if err := b.kube.Create(b.Context(), object); err != nil {
		b.Fatalf("creating %T: %v", object, err)
	}
}

func (b *bench) condition(name string) types.NamespacedName {
	b.Helper()
	dependenciestest.OperatorCondition(b.T, b.kube, name)
	return types.NamespacedName{Namespace: dependenciestest.OperatorNamespace, Name: name}
}

func (b *bench) read(key types.NamespacedName) *unstructured.Unstructured {
	b.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(groupVersionKind)
	if err := b.kube.Get(b.Context(), key, object); err != nil {
		b.Fatal(err)
	}
	return object
}

// conditions are those of the OperatorCondition's spec.
func (b *bench) conditions(key types.NamespacedName) []metav1.Condition {
	b.Helper()
	var content operatorCondition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(b.read(key).Object, &content); err != nil {
		b.Fatal(err)
	}
	return content.Spec.Conditions
}

// set writes a condition as somebody else.
func (b *bench) set(key types.NamespacedName, condition metav1.Condition) {
	b.Helper()
	object := b.read(key)
	if _, err := setCondition(object, condition, always); err != nil {
		b.Fatal(err)
	}
	if err := b.kube.Update(b.Context(), object); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) expect(key types.NamespacedName, status metav1.ConditionStatus, reason, part string) {
	b.Helper()
	b.eventually(fmt.Sprintf("Upgradeable is %s/%s", status, reason), func() error {
		got := meta.FindStatusCondition(b.conditions(key), Upgradeable)
		if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, part) {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	})
}

func (b *bench) eventually(what string, holds func() error) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("after a minute it does not hold that %s: %v", what, err)
		}
	}
}

// denied tells whether the operator may not read the condition any more.
func (b *bench) denied(key types.NamespacedName) bool {
	b.Helper()
	kube, err := client.New(b.operator, client.Options{Scheme: b.scheme})
	if err != nil {
		b.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(groupVersionKind)
	return kube.Get(b.Context(), key, object) != nil
}

var orderKey = order.Key{Namespace: "tenant-a", Name: "appcred"}

func (b *bench) order() *v1alpha1.KeystoneApplicationCredential {
	return &v1alpha1.KeystoneApplicationCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: orderKey.Name},
		Spec: v1alpha1.KeystoneApplicationCredentialSpec{
			ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: "openstack"},
			UserRef:         v1alpha1.OrderRef{Name: "user"}, ProjectRef: v1alpha1.OrderRef{Name: "project"},
		},
	}
}

// child is what K-ORC is asked for a generation with.
func (b *bench) child(generation int64) *orcv1alpha1.ApplicationCredential {
	kind := order.ApplicationCredentialKind
	return &orcv1alpha1.ApplicationCredential{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "openstack", Name: fmt.Sprintf("%scredential-v%d", kind.Prefix(orderKey), generation), Labels: kind.Labels(orderKey),
		},
		Spec: orcv1alpha1.ApplicationCredentialSpec{
			ManagementPolicy:    orcv1alpha1.ManagementPolicyManaged,
			CloudCredentialsRef: orcv1alpha1.CloudCredentialsReference{SecretName: "mint", CloudName: "c5c3"},
			Resource:            &orcv1alpha1.ApplicationCredentialResourceSpec{UserRef: "user", SecretRef: "secret"},
		},
	}
}

// status writes what the order's controller would.
func (b *bench) status(generation int64, secret string) {
	b.Helper()
	o := &v1alpha1.KeystoneApplicationCredential{}
	if err := b.kube.Get(b.Context(), types.NamespacedName{Namespace: orderKey.Namespace, Name: orderKey.Name}, o); err != nil {
		b.Fatal(err)
	}
	o.Status.ObservedGeneration, o.Status.CredentialGeneration, o.Status.SecretName = 1, generation, secret
	meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotAllReady})
	if err := b.kube.Status().Update(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// touch changes the order in a way that means nothing.
func (b *bench) touch() {
	b.Helper()
	o := b.order()
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now())))
	if err := b.kube.Patch(b.Context(), o, patch); err != nil {
		b.Fatal(err)
	}
}
