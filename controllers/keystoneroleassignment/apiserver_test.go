package keystoneroleassignment

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/keystoneproject"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// TestAgainstAnAPIServer runs the registered controllers of projects and role assignments against a real
// kube-apiserver: what is applied passes the CRDs' validation, watches wake orders without anybody's
// help, and an order moves to K-ORC's kind and back while CRDs come and go. K-ORC and Keystone are
// puppets.
func TestAgainstAnAPIServer(t *testing.T) {
	w := newServer(t)
	w.create(ordered("member", "member", 0))
	w.create(&v1alpha1.KeystoneProject{ObjectMeta: tenant("workflow-project"), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: plane}})

	w.eventually("the operator assigned the role", func() bool { return w.assigned("member", direct) })
	project := w.Keystone.FindProject("workflow-project")
	if got := status(w.World, "member"); got.ProjectID != project || got.UserID != "u-1" || got.RoleID != "r-member" {
		t.Errorf("status is %+v", got)
	}

	before := w.versions("member")
	w.touch("member")
	w.eventually("a change of the order brings a pass", func() bool { return w.observed("member") })
	if after := w.versions("member"); after != before {
		t.Errorf("a pass over a fulfilled order wrote something: %s, before %s", after, before)
	}

	// Within eventually's two minutes only an event can have woken the younger: left to itself, an order
	// that was refused looks again after ten.
	inherits := func(older, younger string, by progress) {
		t.Helper()
		w.create(ordered(younger, "member", 0))
		w.eventually("a second order of the role is refused", func() bool {
			return w.Condition(younger, v1alpha1.ConditionAssignmentReady).Reason == v1alpha1.ReasonDuplicateRoleAssignment
		})
		remove(w.World, older)
		w.eventually(younger+" took over from "+older, func() bool {
			return w.Gone(older) && w.assigned(younger, by) && w.Keystone.Granted(project, "u-1", "r-member")
		})
	}
	inherits("member", "younger", direct)

	t.Log("K-ORC begins to serve RoleAssignment")
	w.gap = func() bool { return !w.Keystone.Granted(project, "u-1", "r-member") }
	w.install()
	w.eventually("K-ORC took the assignment over", func() bool { return w.assigned("younger", byKORC) })
	w.gap = nil
	inherits("younger", "youngest", byKORC)

	t.Log("K-ORC serves it no more, and unassigns what it had")
	w.uninstall()
	w.eventually("the operator assigned the role again", func() bool {
		return w.assigned("youngest", direct) && w.Keystone.Granted(project, "u-1", "r-member")
	})

	credential := &v1alpha1.KeystoneApplicationCredential{ObjectMeta: tenant("agent"), Spec: v1alpha1.KeystoneApplicationCredentialSpec{
		ControlPlaneRef: plane, UserRef: v1alpha1.OrderRef{Name: "workflow"}, ProjectRef: v1alpha1.OrderRef{Name: "workflow-project"},
	}}
	w.create(credential)
	w.Delete(ordertest.Tenant("workflow-project"), &v1alpha1.KeystoneProject{})
	w.eventually("the assignment holds the project", func() bool {
		held := &v1alpha1.KeystoneProject{}
		return w.Get(ordertest.Tenant("workflow-project"), held) &&
			reasonOf(held.Status.Conditions, v1alpha1.ConditionProjectReady) == v1alpha1.ReasonReferencedByRoleAssignments
	})
	remove(w.World, "youngest")
	w.eventually("a credential order holds the assignment", func() bool {
		return w.Condition("youngest", v1alpha1.ConditionAssignmentReady).Reason == v1alpha1.ReasonReferencedByApplicationCredentials
	})
	w.Must(w.Client.Delete(t.Context(), credential))
	w.eventually("both are gone", func() bool {
		return w.Gone("youngest") && !w.Get(ordertest.Tenant("workflow-project"), &v1alpha1.KeystoneProject{})
	})
	if w.Keystone.FindProject("workflow-project") != "" || w.Keystone.Granted(project, "u-1", "r-member") {
		t.Error("Keystone still has something")
	}
	roles := &orcv1alpha1.RoleList{}
	w.Must(w.Client.List(t.Context(), roles))
	if len(roles.Items) > 0 {
		t.Errorf("%d Role imports are left", len(roles.Items))
	}
}

// server is a world on a real kube-apiserver, in which the operator runs by itself.
type server struct {
	*ordertest.World
	config *rest.Config
	// gap tells whether something is missing that must not be missing for a moment; nil watches
	// over nothing.
	gap func() bool
}

func newServer(t *testing.T) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	w := &server{World: &ordertest.World{T: t, Keystone: ordertest.NewKeystone(t)}, config: startAPIServer(t)}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, korcapi.AddToScheme,
	} {
		w.Must(add(scheme))
	}
	direct, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Must(err)
	w.World = ordertest.On(t, direct, w.Keystone, order.RoleAssignmentKind)
	for _, namespace := range []string{ordertest.PlaneNamespace, ordertest.TenantNamespace} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	for _, object := range w.Plane() {
		w.create(object)
	}
	user := &v1alpha1.KeystoneUser{ObjectMeta: tenant("workflow"), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: plane}}
	user.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUserReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUserProvisioned, LastTransitionTime: metav1.Now()}}
	w.create(user)
	w.create(&orcv1alpha1.User{
		ObjectMeta: child(order.UserKind, "workflow", userChild),
		Spec: orcv1alpha1.UserSpec{
			CloudCredentialsRef: orcv1alpha1.CloudCredentialsReference{SecretName: "s", CloudName: "c"},
			Resource:            &orcv1alpha1.UserResourceSpec{},
		},
		Status: orcv1alpha1.UserStatus{ID: ptr.To("u-1")},
	})
	startOperator(t, w.config, scheme)
	return w
}

// create creates an object and then gives it the status that it came with.
func (w *server) create(object client.Object) {
	w.T.Helper()
	withStatus, hasStatus := object.DeepCopyObject().(client.Object)
	w.Must(w.Client.Create(w.T.Context(), object))
	switch object.(type) {
	case *v1alpha1.ControlPlane, *v1alpha1.KeystoneUser, *orcv1alpha1.User:
	default:
		hasStatus = false
	}
	if hasStatus {
		withStatus.SetResourceVersion(object.GetResourceVersion())
		withStatus.SetUID(object.GetUID())
		w.Must(w.Client.Status().Update(w.T.Context(), withStatus))
	}
}

// eventually plays K-ORC until something holds. It fails when that takes more than two minutes, or when
// there is a gap meanwhile.
func (w *server) eventually(what string, holds func() bool) {
	w.T.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, name := range []string{"member", "younger", "youngest"} {
				w.T.Logf("%s: %+v", name, w.Condition(name, v1alpha1.ConditionAssignmentReady))
			}
			w.T.Fatalf("after two minutes it does not hold that %s", what)
		}
		w.PlayKORC()
		if w.gap != nil && w.gap() {
			w.T.Fatalf("there was a gap before %s", what)
		}
	}
}

// assigned tells whether an order is fulfilled, and by whom.
func (w *server) assigned(name string, by progress) bool {
	w.T.Helper()
	role := roleImport(w.World, name)
	return role != nil && recordOf(role).Progress == by &&
		w.Condition(name, v1alpha1.ConditionAssignmentReady).Status == metav1.ConditionTrue
}

// touch spoils what an order reports, and changes it in a way that brings a pass but means nothing else.
func (w *server) touch(name string) {
	w.T.Helper()
	assignment := &v1alpha1.KeystoneRoleAssignment{}
	w.Get(ordertest.Tenant(name), assignment)
	for i := range assignment.Status.Conditions {
		assignment.Status.Conditions[i].Status = metav1.ConditionUnknown
	}
	w.Must(w.Client.Status().Update(w.T.Context(), assignment))
	assignment.Labels = map[string]string{"touched": "true"}
	w.Must(w.Client.Update(w.T.Context(), assignment))
}

func (w *server) observed(name string) bool {
	return w.Condition(name, v1alpha1.ConditionAssignmentReady).Status == metav1.ConditionTrue
}

// versions are the versions of what an order has in the ControlPlane's namespace.
func (w *server) versions(name string) string {
	w.T.Helper()
	return roleImport(w.World, name).ResourceVersion
}

func (w *server) definition() *apiextensionsv1.CustomResourceDefinition {
	w.T.Helper()
	document, err := os.ReadFile("testdata/roleassignments.yaml")
	w.Must(err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	w.Must(yaml.UnmarshalStrict(document, definition))
	return definition
}

func (w *server) install() {
	w.T.Helper()
	w.Must(w.Client.Create(w.T.Context(), w.definition()))
}

// uninstall deletes the CRD and plays K-ORC until it is gone: its objects carry K-ORC's finalizer.
func (w *server) uninstall() {
	w.T.Helper()
	definition := w.definition()
	w.Must(w.Client.Delete(w.T.Context(), definition))
	w.eventually("the CRD is gone", func() bool {
		return apierrors.IsNotFound(w.Client.Get(w.T.Context(), types.NamespacedName{Name: definition.Name}, definition))
	})
}

func startAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	log.SetLogger(logr.Discard())
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("this test needs a real kube-apiserver; `make test` finds one by itself, and for a bare `go test` run: export KUBEBUILDER_ASSETS=$(go -C tests/stack run ./cmd/stack assets)")
	}
	korc, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/k-orc/openstack-resource-controller/v2").Output()
	if err != nil {
		t.Fatalf("finding K-ORC's CRDs: %v", err)
	}
	paths := []string{"../../config/crd/bases"}
	for _, plural := range []string{"users", "projects", "roles", "domains"} {
		paths = append(paths, filepath.Join(strings.TrimSpace(string(korc)), "config", "crd", "bases", "openstack.k-orc.cloud_"+plural+".yaml"))
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, CRDDirectoryPaths: paths, ErrorIfCRDPathMissing: true,
		// A busy machine takes longer than the usual 20 seconds.
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

func startOperator(t *testing.T, config *rest.Config, scheme *runtime.Scheme) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	tracker := dependencies.NewTracker(disco, logr.Discard())
	must(tracker.Refresh(t.Context()))
	local, err := manager.New(config, manager.Options{
		Scheme: scheme, NewCache: tracker.Guard, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: command.Controllers(), Logger: logr.Discard(),
	})
	must(err)
	must(tracker.Run(local))
	mgr, err := mcmanager.WithMultiCluster(local, nil)
	must(err)
	env := order.Environment{Manager: mgr, Keystone: keystone.New(keystone.Config{}), Clock: clock.RealClock{}, Late: tracker}
	options := controller.TypedOptions[mcreconcile.Request]{MaxConcurrentReconciles: 2}
	must(Setup(t.Context(), env, options))
	must(keystoneproject.Setup(t.Context(), env, options))

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

func reasonOf(conditions []metav1.Condition, kind string) string {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition.Reason
		}
	}
	return ""
}
