package keystoneuser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// TestAgainstAnAPIServer runs the registered controller against a real kube-apiserver with K-ORC's own
// CRDs: what is applied passes their validation, watches wake the order without anybody's help, and
// what is converged is not written again. K-ORC, ESO and Keystone are the puppets of the other tests.
func TestAgainstAnAPIServer(t *testing.T) {
	w := newFakeWorld(t)
	config := startAPIServer(t)
	direct, err := client.NewWithWatch(config, client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	w.client = direct
	for _, namespace := range []string{planeNamespace, orderKey.Namespace} {
		w.must(direct.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	for _, object := range w.plane() {
		createWithStatus(t, direct, object)
	}
	startOperator(t, w, config)

	w.must(direct.Create(t.Context(), &v1alpha1.KeystoneUser{
		ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: orderKey.Name},
		Spec:       v1alpha1.KeystoneUserSpec{ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: planeNamespace}},
	}))
	w.eventually("the order is fulfilled", func() bool { return w.ready() })
	first := string(w.delivered().Data["password"])

	// A K-ORC User without the mark, as an earlier operator left it, gets the mark and nothing else.
	described := w.korcUser(userChild)
	described.Spec.Resource.Description = nil
	w.must(direct.Update(t.Context(), described))
	w.keystone.with(func() { w.keystone.users[w.order().Status.UserID].description = "" })
	w.eventually("the user names its order again", func() bool {
		var description string
		w.keystone.with(func() { description = w.keystone.users[w.order().Status.UserID].description })
		return w.ready() && description == fmt.Sprintf("KeystoneUser %s/%s (uid %s)", orderKey.Namespace, orderKey.Name, w.order().UID)
	})
	if status := w.order().Status; status.PasswordGeneration != 1 || string(w.delivered().Data["password"]) != first {
		t.Errorf("the password was touched: %+v", status)
	}

	w.must(direct.Delete(t.Context(), w.delivered()))
	w.eventually("a deleted Secret is back", func() bool {
		secret := w.delivered()
		return secret != nil && string(secret.Data["password"]) == first
	})

	user := w.order()
	user.Spec.PasswordGeneration = 2
	w.must(direct.Update(t.Context(), user))
	w.eventually("the password is rotated", func() bool {
		return w.ready() && w.order().Status.PasswordGeneration == 2 && string(w.delivered().Data["password"]) != first && w.secret(child("password-v1")) == nil
	})

	// An edit of the Secret is repaired, which proves a pass; the pass writes nothing else.
	before := w.versions()
	edited := w.delivered()
	edited.Data["password"] = []byte("edited")
	w.must(direct.Update(t.Context(), edited))
	w.eventually("an edited Secret is repaired", func() bool { return string(w.delivered().Data["password"]) != "edited" })
	if after := w.versions(); after != before {
		t.Errorf("a pass over a fulfilled order wrote more than the Secret:\n%s\n%s", before, after)
	}

	w.must(direct.Delete(t.Context(), w.order()))
	w.eventually("the order is gone", w.gone)
	w.wantsNothingLeft()
	if w.keystone.find("robot") != "" {
		t.Error("Keystone still has the user")
	}
}

// versions are the versions of the order's children.
func (w *fakeWorld) versions() string {
	w.t.Helper()
	versions := "user " + w.korcUser(userChild).ResourceVersion
	for _, name := range []string{"source", "password-v2"} {
		versions += " " + name + " " + w.secret(child(name)).ResourceVersion
	}
	push := &externalsecrets.PushSecret{}
	w.must(w.client.Get(w.t.Context(), child("backup"), push))
	return versions + " backup " + push.ResourceVersion
}

// eventually plays K-ORC and ESO until something holds. It fails when it does not within two minutes.
func (w *fakeWorld) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("after two minutes it does not hold that %s; the conditions are %+v", what, w.order().Status.Conditions)
		}
		w.korc()
		w.eso()
	}
}

func (w *fakeWorld) ready() bool {
	status := w.order().Status
	return meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) && status.ObservedGeneration == w.order().Generation
}

func startAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("this test needs a real kube-apiserver; `make test` finds one by itself, and for a bare `go test` run: export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)")
	}
	korc, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/k-orc/openstack-resource-controller/v2").Output()
	if err != nil {
		t.Fatalf("finding K-ORC's CRDs: %v", err)
	}
	crds := filepath.Join(strings.TrimSpace(string(korc)), "config", "crd", "bases")
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths: []string{
			"../../config/crd/bases",
			filepath.Join(crds, "openstack.k-orc.cloud_users.yaml"),
			filepath.Join(crds, "openstack.k-orc.cloud_domains.yaml"),
		},
		ErrorIfCRDPathMissing: true,
		CRDs: []*apiextensionsv1.CustomResourceDefinition{
			looseCRD("PushSecret", "pushsecrets", "v1alpha1"),
			looseCRD("SecretStore", "secretstores", "v1"),
		},
		ControlPlaneStartTimeout: 2 * time.Minute,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting kube-apiserver and etcd of %s: %v", assets, err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// looseCRD serves a kind of ESO's and takes anything for it. That ESO itself takes what we write is
// tested where ESO's own types are.
func looseCRD(kind, plural, version string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + externalsecrets.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: externalsecrets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// createWithStatus creates an object together with the status that it has in memory.
func createWithStatus(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	wanted, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", object)
	}
	object.SetUID("")
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, secret := object.(*corev1.Secret); secret {
		return
	}
	wanted.SetResourceVersion(object.GetResourceVersion())
	wanted.SetUID(object.GetUID())
	if err := c.Status().Update(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
}

// startOperator runs the controller with the cache that the operator has: Secrets by our label only.
func startOperator(t *testing.T, w *fakeWorld, config *rest.Config) {
	t.Helper()
	mgr, err := mcmanager.New(config, nil, manager.Options{
		Scheme:     w.client.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: command.Controllers(),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{order.ManagedByLabel: order.ManagedByValue})},
		}},
	})
	w.must(err)
	w.must(Setup(t.Context(), order.Environment{
		Manager: mgr, Keystone: keystone.New(keystone.Config{}), Clock: clock.RealClock{}, Late: servedNow{t},
	}, controller.TypedOptions[mcreconcile.Request]{}))

	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(fmt.Errorf("the manager stopped: %w", err))
		}
	})
}

// servedNow starts every watch at once.
type servedNow struct{ t *testing.T }

func (servedNow) Serves(schema.GroupVersionKind) bool { return true }

func (s servedNow) WhenServed(gvk schema.GroupVersionKind, start func() error) {
	if err := start(); err != nil {
		s.t.Errorf("watching %s: %v", gvk, err)
	}
}
