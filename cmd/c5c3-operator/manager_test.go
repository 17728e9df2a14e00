package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// TestManager starts the operator as the command does, with the roles it is deployed with, on an API server that knows neither K-ORC nor
// External Secrets Operator, and has both come, and one go and come back.
func TestManager(t *testing.T) {
	config := dependenciestest.StartAPIServer(t, "../..")
	probes := freeAddress(t)
	o, err := parse([]string{"--metrics-bind-address=0", "--health-probe-bind-address=" + probes,
		"--leader-elect", "--leader-election-namespace=" + dependenciestest.OperatorNamespace, "--log-level=DEBUG"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctrl.SetLogger(o.Logger(t.Output()))
	mgr, err := newManager(t.Context(), dependenciestest.AsOperator(t, config, "../.."), o)
	if err != nil {
		t.Fatal(err)
	}
	start(t, mgr)
	kube, err := client.New(config, client.Options{Scheme: mgr.GetLocalManager().GetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, kube: kube}

	w.eventually("/readyz says ok", func() error { return probe(probes, "/readyz") })
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openstack"}})
	w.create(&v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "cp", Namespace: "openstack"}})

	samplesAreTaken(w)

	w.condition(v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonKindsMissing,
		"Domain, User, Project, Role, ApplicationCredential (openstack.k-orc.cloud/v1alpha1)",
		"PushSecret (external-secrets.io/v1alpha1)", "SecretStore, ClusterSecretStore (external-secrets.io/v1)")
	w.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForAdminPassword, "openstack/keystone-admin", `"password"`)
	w.condition(v1alpha1.ConditionSecretStoreReady, metav1.ConditionFalse, v1alpha1.ReasonSecretStoreNotReady, "SecretStore")

	w.eventually("an Event says so", func() error {
		list := &eventsv1.EventList{}
		if err := kube.List(t.Context(), list, client.InNamespace("openstack")); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == v1alpha1.ReasonKindsMissing && event.Regarding.Name == "cp" && event.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})

	dependenciestest.InstallKORC(t, config)
	w.condition(v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonKindsMissing, "PushSecret", "!Domain")
	dependenciestest.InstallESO(t, config)
	w.condition(v1alpha1.ConditionDependenciesReady, metav1.ConditionTrue, v1alpha1.ReasonKindsServed)
	w.condition(v1alpha1.ConditionSecretStoreReady, metav1.ConditionFalse, v1alpha1.ReasonSecretStoreNotFound, "openstack/openbao-tenant-store")

	// Only the watch on stores can bring this about so fast: the next look of its own is 10 s away.
	w.storeTurnsReady()

	dependenciestest.RemoveESO(t, config)
	w.condition(v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonKindsMissing, "PushSecret", "!Domain")
	w.condition(v1alpha1.ConditionSecretStoreReady, metav1.ConditionFalse, v1alpha1.ReasonSecretStoreNotReady, "does not serve SecretStore")
	readFailsFast(t, mgr)
	w.eventually("/readyz says ok without the kinds too", func() error { return probe(probes, "/readyz") })

	dependenciestest.InstallESO(t, config)
	w.condition(v1alpha1.ConditionDependenciesReady, metav1.ConditionTrue, v1alpha1.ReasonKindsServed)
	w.condition(v1alpha1.ConditionSecretStoreReady, metav1.ConditionFalse, v1alpha1.ReasonSecretStoreNotFound)
	w.storeTurnsReady()
}

// samplesAreTaken has the API server look at each file of config/samples without keeping it.
func samplesAreTaken(w *world) {
	w.Helper()
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(files) < 6 {
		w.Fatalf("the samples are %v, %v", files, err)
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-a"}})
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			w.Fatal(err)
		}
		sample := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &sample.Object); err != nil {
			w.Fatalf("%s: %v", file, err)
		}
		// Another name than that of the ControlPlane of this test.
		sample.SetName("sample-" + sample.GetName())
		if err := w.kube.Create(w.Context(), sample, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			w.Errorf("%s: %v", file, err)
		}
	}
}

// readFailsFast reads a kind that is gone, which the manager has read before.
func readFailsFast(t *testing.T, mgr mcmanager.Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := mgr.GetLocalManager().GetClient().List(ctx, &externalsecrets.SecretStoreList{})
	if !meta.IsNoMatchError(err) {
		t.Errorf("reading a kind that is not served: %v", err)
	}
}

type world struct {
	*testing.T
	kube client.Client
}

func (w *world) create(object client.Object) {
	w.Helper()
	if err := w.kube.Create(w.Context(), object); err != nil {
		w.Fatalf("creating %T: %v", object, err)
	}
}

// storeTurnsReady creates the ControlPlane's store and has it be ready, and expects the ControlPlane to
// follow each time by an event.
func (w *world) storeTurnsReady() {
	w.Helper()
	store := &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Name: order.DefaultSecretStore, Namespace: "openstack"}}
	w.create(store)
	w.condition(v1alpha1.ConditionSecretStoreReady, metav1.ConditionFalse, v1alpha1.ReasonSecretStoreNotReady, "has not been validated")
	store.Status.Conditions = []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue, Reason: "Valid"}}
	if err := w.kube.Status().Update(w.Context(), store); err != nil {
		w.Fatal(err)
	}
	at := time.Now()
	w.condition(v1alpha1.ConditionSecretStoreReady, metav1.ConditionTrue, v1alpha1.ReasonSecretStoreValid)
	if took := time.Since(at); took > 5*time.Second {
		w.Errorf("the ControlPlane followed its store after %s: that was a timer, not the watch", took)
	}
}

// condition expects the ControlPlane to report something. A part of the message that begins with an
// exclamation mark must not be in it.
func (w *world) condition(kind string, status metav1.ConditionStatus, reason string, parts ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s is %s/%s", kind, status, reason), func() error {
		cp := &v1alpha1.ControlPlane{}
		if err := w.kube.Get(w.Context(), client.ObjectKey{Namespace: "openstack", Name: "cp"}, cp); err != nil {
			return err
		}
		got := meta.FindStatusCondition(cp.Status.Conditions, kind)
		if got == nil || got.Status != status || got.Reason != reason {
			return fmt.Errorf("it is %+v", got)
		}
		for _, part := range parts {
			if unwanted, not := strings.CutPrefix(part, "!"); strings.Contains(got.Message, unwanted) == not {
				return fmt.Errorf("its message is %q", got.Message)
			}
		}
		return nil
	})
}

func (w *world) eventually(what string, holds func() error) {
	w.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("after two minutes it does not hold that %s: %v", what, err)
		}
	}
}

// start runs the manager until the test ends, and expects it to end without an error.
func start(t *testing.T, mgr mcmanager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
}

func probe(address, path string) error {
	response, err := http.Get("http://" + address + path) //nolint:gosec // an address of this test
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", response.StatusCode)
	}
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
