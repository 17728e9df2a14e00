package keystoneapplicationcredential_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/controllers/keystoneapplicationcredential"
	"github.com/c5c3/c5c3-operator/controllers/keystoneproject"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// The orders' namespace on both clusters, and the name of the target cluster.
const (
	namespace = "tenant-a"
	edge      = "edge"
)

// holdTimer is after which time a held order would look again by itself. What goes sooner went by an event.
const holdTimer = time.Minute

// TestAgainstAnAPIServer runs the registered controllers of all four kinds on two real API servers: the
// management cluster, with K-ORC's own CRDs, and a target cluster that serves the operator's kinds and
// nothing else. Nothing plays passes here: what happens, happens because a watch or a timer asked for it.
// K-ORC, ESO and Keystone are imitations.
func TestAgainstAnAPIServer(t *testing.T) {
	e := newEnvironment(t)
	t.Run("on_the_management_cluster", e.onTheManagementCluster)
	t.Run("a_refused_order_holds_what_it_names", e.aRefusedOrderHolds)
	t.Run("on_a_target_cluster", e.onATargetCluster)
}

func (e *environment) onTheManagementCluster(t *testing.T) {
	s := e.service(t, "", e.management)
	s.create()
	s.eventually("the order is fulfilled", s.fulfilled)
	first := s.credential().Status.CredentialID
	s.wantsDelivered()

	// A change of what the order names brings a pass, without a timer of its own.
	document := s.child("mint-cloud").ResourceVersion
	user := &v1alpha1.KeystoneUser{}
	s.get(user, "workflow")
	s.change(user, func() { user.Spec.PasswordGeneration = 2 })
	s.eventually("the mint document follows the user's password", func() bool { return s.child("mint-cloud").ResourceVersion != document })

	credential := s.credential()
	s.change(credential, func() { credential.Spec.CredentialGeneration = 2 })
	s.eventually("it is rotated, and the superseded credential revoked", func() bool {
		status := s.credential().Status
		return s.fulfilled() && status.CredentialGeneration == 2 && status.PreviousCredentialID == "" && s.forgotten(1)
	})
	if id := s.credential().Status.CredentialID; id == first || len(s.held()) != 1 {
		t.Errorf("the credential is %s, Keystone holds %v", id, s.held())
	}
	s.wantsDelivered()

	// The three orders that it names are held while it is there.
	s.delete("workflow", "workflow-project", "workflow-member")
	s.eventually("it holds the three orders that it names", func() bool {
		user, project, assignment := &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}, &v1alpha1.KeystoneRoleAssignment{}
		s.get(user, "workflow")
		s.get(project, "workflow-project")
		s.get(assignment, "workflow-member")
		return reasonOf(assignment.Status.Conditions, v1alpha1.ConditionAssignmentReady) == v1alpha1.ReasonReferencedByApplicationCredentials &&
			reasonOf(user.Status.Conditions, v1alpha1.ConditionUserReady) == v1alpha1.ReasonReferencedByRoleAssignments &&
			reasonOf(project.Status.Conditions, v1alpha1.ConditionProjectReady) == v1alpha1.ReasonReferencedByRoleAssignments
	})
	s.wantsDelivered()
	s.wantsRelease("agent")
}

// aRefusedOrderHolds: without an assignment the credential order never mints, and holds what it names
// nevertheless.
func (e *environment) aRefusedOrderHolds(t *testing.T) {
	s := e.service(t, "", e.management)
	s.create("workflow", "workflow-project", "agent")
	s.eventually("there is no role on the project", func() bool {
		return reasonOf(s.credential().Status.Conditions, v1alpha1.ConditionCredentialReady) == v1alpha1.ReasonNoRoleOnProject
	})
	s.delete("workflow", "workflow-project")
	s.eventually("it holds the two orders that are there", func() bool {
		user, project := &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}
		s.get(user, "workflow")
		s.get(project, "workflow-project")
		return reasonOf(user.Status.Conditions, v1alpha1.ConditionUserReady) == v1alpha1.ReasonReferencedByApplicationCredentials &&
			reasonOf(project.Status.Conditions, v1alpha1.ConditionProjectReady) == v1alpha1.ReasonReferencedByApplicationCredentials
	})
	s.wantsRelease("agent")
}

func (e *environment) onATargetCluster(t *testing.T) {
	here := e.service(t, "", e.management)
	there := e.service(t, edge, e.edge)

	// A namespace without an entry, and a ControlPlane that does not exist, read alike.
	answer := func(name, namespace string, ref v1alpha1.ControlPlaneRefSpec) string {
		project := &v1alpha1.KeystoneProject{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: ref}}
		there.must(e.edge.Create(t.Context(), project))
		there.eventually("the order "+name+" is refused", func() bool {
			there.must(e.edge.Get(t.Context(), client.ObjectKeyFromObject(project), project))
			return reasonOf(project.Status.Conditions, v1alpha1.ConditionProjectReady) == v1alpha1.ReasonNamespaceNotAssigned
		})
		message := meta.FindStatusCondition(project.Status.Conditions, v1alpha1.ConditionProjectReady).Message
		there.must(e.edge.Delete(t.Context(), project))
		return strings.ReplaceAll(message, ref.Namespace+"/"+ref.Name, "the ControlPlane")
	}
	unassigned := answer("unassigned", "tenant-b", v1alpha1.ControlPlaneRefSpec{Name: ordertest.PlaneName, Namespace: ordertest.PlaneNamespace})
	missing := answer("missing", "tenant-b", v1alpha1.ControlPlaneRefSpec{Name: "nowhere", Namespace: ordertest.PlaneNamespace})
	if unassigned != missing {
		t.Errorf("a target cluster learns which ControlPlanes exist:\n%s\n%s", unassigned, missing)
	}

	// Orders of the same names in namespaces of the same name, on both clusters.
	here.create()
	there.create()
	here.eventually("both are fulfilled", func() bool { return here.fulfilled() && there.fulfilled() })
	if here.credential().Status.CredentialID == there.credential().Status.CredentialID {
		t.Error("they share a credential")
	}
	here.wantsDelivered()
	there.wantsDelivered()
	for name, service := range map[string]*service{"": here, edge: there} {
		child := service.child("mint-cloud")
		if child.Labels["c5c3.io/keystoneapplicationcredential-cluster"] != name || child.Labels["c5c3.io/keystoneapplicationcredential-namespace"] != namespace {
			t.Errorf("the children of the order on cluster %q carry %v", name, child.Labels)
		}
	}

	// Watches reach both clusters.
	delivered := there.delivered()
	there.must(e.edge.Delete(t.Context(), delivered))
	there.eventually("a deleted Secret is written again", func() bool {
		again := there.delivered()
		return again != nil && again.UID != delivered.UID
	})
	there.wantsDelivered()

	there.delete()
	there.eventually("the orders of the target cluster are gone", there.gone)
	there.wantsNothingLeft()
	here.wantsDelivered()
	here.delete()
	here.eventually("those of the management cluster, too", here.gone)
	here.wantsNothingLeft()
}

// environment is the two clusters and what is around them.
type environment struct {
	t                *testing.T
	management, edge client.Client
	keystone         *ordertest.FakeKeystone
	korc             *ordertest.FakeKORC
	eso              *ordertest.FakeESO
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, korcapi.AddToScheme, externalsecrets.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	management, target := dependenciestest.StartAPIServer(t, "../.."), dependenciestest.StartAPIServer(t, "../..")
	dependenciestest.InstallKORC(t, management)
	dependenciestest.InstallESO(t, management)
	connect := func(config *rest.Config, namespaces ...string) client.Client {
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namespaces {
			if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	e := &environment{t: t, management: connect(management, ordertest.PlaneNamespace, namespace), edge: connect(target, namespace, "tenant-b"), keystone: ordertest.NewKeystone(t)}
	e.korc = &ordertest.FakeKORC{Client: e.management, Namespace: ordertest.PlaneNamespace, Now: time.Now, HTTP: &http.Client{Timeout: 10 * time.Second}}
	e.eso = &ordertest.FakeESO{Client: e.management, Namespace: ordertest.PlaneNamespace, Now: time.Now, Store: map[string]map[string][]byte{}}
	e.furnish()
	e.startOperator(scheme, management, target)
	return e
}

// furnish creates the ControlPlane, as its own controller would leave it.
func (e *environment) furnish() {
	e.t.Helper()
	must := func(err error) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
	}
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ordertest.PlaneNamespace, Name: ordertest.PlaneName}}
	cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: e.keystone.URL + "/v3"}}
	cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{
		{Namespace: namespace, AllowedRoles: []string{"member"}},
		{Namespace: namespace, AllowedRoles: []string{"member"}, TargetClusterRef: &v1alpha1.ClusterReference{Name: edge}},
	}
	must(e.management.Create(e.t.Context(), cp))
	cp.Status.DomainID = "default"
	meta.SetStatusCondition(&cp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdminCredentialAccepted, Message: "as given",
	})
	must(e.management.Status().Update(e.t.Context(), cp))
	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: e.keystone.URL + "/v3", Password: &clouds.PasswordAuth{
		Username: "admin", UserDomainName: "Default", Password: ordertest.AdminPassword,
	}})
	must(err)
	must(e.management.Create(e.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cp.Namespace, Name: order.AdminCloudName(cp), Labels: map[string]string{order.ManagedByLabel: order.ManagedByValue}},
		Data:       map[string][]byte{order.CloudsKey: document},
	}))
	must(e.management.Create(e.t.Context(), &orcv1alpha1.Domain{
		ObjectMeta: metav1.ObjectMeta{Namespace: cp.Namespace, Name: order.DomainImportName(cp)},
		Spec: orcv1alpha1.DomainSpec{
			ManagementPolicy: orcv1alpha1.ManagementPolicyUnmanaged, CloudCredentialsRef: order.AdminCloudRef(cp),
			Import: &orcv1alpha1.DomainImport{Filter: &orcv1alpha1.DomainFilter{Name: ptr.To(orcv1alpha1.KeystoneName("Default"))}},
		},
	}))
	store := &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Namespace: cp.Namespace, Name: order.DefaultSecretStore}}
	must(e.management.Create(e.t.Context(), store))
	store.Status.Conditions = []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue}}
	must(e.management.Status().Update(e.t.Context(), store))
	_, err = e.korc.Play(e.t.Context())
	must(err)
}

// startOperator runs the four controllers on both clusters, with the cache that the operator has: Secrets
// by its own label only.
func (e *environment) startOperator(scheme *runtime.Scheme, management, target *rest.Config) {
	e.t.Helper()
	must := func(err error) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
	}
	secrets := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{order.ManagedByLabel: order.ManagedByValue})},
	}}
	remote, err := cluster.New(target, func(o *cluster.Options) { o.Scheme, o.Cache = scheme, secrets })
	must(err)
	mgr, err := mcmanager.New(management, oneCluster{remote}, manager.Options{Scheme: scheme, Cache: secrets, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: command.Controllers()})
	must(err)
	env := order.Environment{Manager: mgr, Keystone: keystone.New(keystone.Config{}), Clock: clock.RealClock{}, Late: servedNow{e.t}}
	for _, setup := range []func(context.Context, order.Environment, controller.TypedOptions[mcreconcile.Request]) error{
		keystoneuser.Setup, keystoneproject.Setup, keystoneroleassignment.Setup, keystoneapplicationcredential.Setup,
	} {
		must(setup(e.t.Context(), env, controller.TypedOptions[mcreconcile.Request]{MaxConcurrentReconciles: 2}))
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(e.t.Context()))
	stopped := make(chan error, 2)
	go func() { stopped <- mgr.Start(ctx) }()
	go func() { stopped <- remote.Start(ctx) }()
	e.t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-stopped; err != nil {
				e.t.Errorf("the manager or the target cluster's cache stopped: %v", err)
			}
		}
	})
	<-mgr.Elected()
	must(mgr.Engage(ctx, edge, remote))
}

// oneCluster provides the target cluster. The ones of multicluster-runtime would bring dependencies for
// what a test needs two methods of.
type oneCluster struct{ target cluster.Cluster }

// Get implements multicluster.Provider.
func (p oneCluster) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if name != edge {
		return nil, multicluster.ErrClusterNotFound
	}
	return p.target, nil
}

// IndexField implements multicluster.Provider. The operator indexes the management cluster only.
func (oneCluster) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// servedNow serves every kind but K-ORC's RoleAssignment, which no release of it has.
type servedNow struct{ t *testing.T }

func (servedNow) Serves(gvk schema.GroupVersionKind) bool { return gvk.Kind != korcapi.Kind }

func (s servedNow) WhenServed(gvk schema.GroupVersionKind, start func() error) {
	if !s.Serves(gvk) {
		return
	}
	if err := start(); err != nil {
		s.t.Errorf("watching %s: %v", gvk, err)
	}
}

// service is the four orders of one service on one of the clusters.
type service struct {
	*testing.T
	*environment
	cluster client.Client
	name    string // of the cluster, empty for the management cluster
}

func (e *environment) service(t *testing.T, name string, cluster client.Client) *service {
	t.Helper()
	return &service{T: t, environment: e, cluster: cluster, name: name}
}

func (s *service) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// orders are the four orders, by name.
func (s *service) orders() map[string]order.Object {
	ref := v1alpha1.ControlPlaneRefSpec{Name: ordertest.PlaneName, Namespace: ordertest.PlaneNamespace}
	workflow, project := v1alpha1.OrderRef{Name: "workflow"}, v1alpha1.OrderRef{Name: "workflow-project"}
	return map[string]order.Object{
		// Keystone has one user and one project of a name, whatever cluster they are ordered from.
		"workflow":         &v1alpha1.KeystoneUser{Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: ref, UserName: "workflow" + s.name}},
		"workflow-project": &v1alpha1.KeystoneProject{Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: ref, ProjectName: "workflow-project" + s.name}},
		"workflow-member": &v1alpha1.KeystoneRoleAssignment{Spec: v1alpha1.KeystoneRoleAssignmentSpec{
			ControlPlaneRef: ref, UserRef: workflow, ProjectRef: project, Role: "member",
		}},
		"agent": &v1alpha1.KeystoneApplicationCredential{Spec: v1alpha1.KeystoneApplicationCredentialSpec{
			ControlPlaneRef: ref, UserRef: workflow, ProjectRef: project,
			// No schedule, and a grace period that a test can wait for.
			Rotation: v1alpha1.CredentialRotationSpec{Interval: &metav1.Duration{}, GracePeriod: &metav1.Duration{Duration: 2 * time.Second}},
		}},
	}
}

// each does something with the named orders, with all four when none is named, in whatever order.
func (s *service) each(names []string, do func(order.Object) error) {
	s.Helper()
	for name, object := range s.orders() {
		if len(names) == 0 || slices.Contains(names, name) {
			object.SetNamespace(namespace)
			object.SetName(name)
			s.must(do(object))
		}
	}
}

func (s *service) create(names ...string) {
	s.Helper()
	s.each(names, func(o order.Object) error { return s.cluster.Create(s.Context(), o) })
}

func (s *service) delete(names ...string) {
	s.Helper()
	s.each(names, func(o order.Object) error { return s.cluster.Delete(s.Context(), o) })
}

// wantsRelease deletes the order that holds others, which have to go with it and sooner than by their
// timers.
func (s *service) wantsRelease(name string) {
	s.Helper()
	s.delete(name)
	at := time.Now()
	s.eventually("with it the others go", s.gone)
	if took := time.Since(at); took >= holdTimer {
		s.Errorf("that took %s: they were released by their timers", took)
	}
	s.wantsNothingLeft()
}

func (s *service) get(object client.Object, name string) {
	s.Helper()
	s.must(s.cluster.Get(s.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object))
}

// change patches what do changes and nothing else: the controllers write the same object meanwhile.
func (s *service) change(object client.Object, do func()) {
	s.Helper()
	before := object.DeepCopyObject().(client.Object)
	do()
	s.must(s.cluster.Patch(s.Context(), object, client.MergeFrom(before)))
}

func (s *service) credential() *v1alpha1.KeystoneApplicationCredential {
	s.Helper()
	credential := &v1alpha1.KeystoneApplicationCredential{}
	s.get(credential, "agent")
	return credential
}

func (s *service) fulfilled() bool {
	s.Helper()
	credential := s.credential()
	return meta.IsStatusConditionTrue(credential.Status.Conditions, v1alpha1.ConditionReady) && credential.Status.ObservedGeneration == credential.Generation
}

func (s *service) gone() bool {
	s.Helper()
	for name, object := range s.orders() {
		if err := s.cluster.Get(s.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object); !apierrors.IsNotFound(err) {
			s.must(err)
			return false
		}
	}
	return true
}

func (s *service) prefix(kind order.Kind, name string) string {
	return kind.Prefix(order.Key{Cluster: s.name, Namespace: namespace, Name: name})
}

// child reads a Secret of the credential order's in the ControlPlane's namespace.
func (s *service) child(discriminator string) *corev1.Secret {
	s.Helper()
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: ordertest.PlaneNamespace, Name: s.prefix(order.ApplicationCredentialKind, "agent") + discriminator}
	s.must(s.management.Get(s.Context(), key, secret))
	return secret
}

// forgotten tells whether the record of a generation is gone, which goes last.
func (s *service) forgotten(generation int) bool {
	s.Helper()
	key := types.NamespacedName{Namespace: ordertest.PlaneNamespace, Name: fmt.Sprintf("%ssecret-v%d", s.prefix(order.ApplicationCredentialKind, "agent"), generation)}
	err := s.management.Get(s.Context(), key, &corev1.Secret{})
	s.must(client.IgnoreNotFound(err))
	return err != nil
}

// delivered reads the Secret beside the order, nil when there is none.
func (s *service) delivered() *corev1.Secret {
	s.Helper()
	secret := &corev1.Secret{}
	err := s.cluster.Get(s.Context(), types.NamespacedName{Namespace: namespace, Name: "agent-credentials"}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return secret
}

// wantsDelivered fails unless the Secret is beside the order and carries what Keystone accepts.
func (s *service) wantsDelivered() {
	s.Helper()
	secret := s.delivered()
	if secret == nil {
		s.Fatal("there is no Secret beside the order")
	}
	id := string(secret.Data["application_credential_id"])
	if id != s.credential().Status.CredentialID || !s.keystone.Accepts(id, string(secret.Data["application_credential_secret"])) {
		s.Errorf("the Secret carries %s, and Keystone does not accept it or status names another", id)
	}
}

// held are the order's credentials in Keystone.
func (s *service) held() (names []string) {
	s.keystone.With(func() {
		for _, credential := range s.keystone.Credentials {
			if strings.HasPrefix(credential.Name, s.prefix(order.ApplicationCredentialKind, "agent")) {
				names = append(names, credential.Name)
			}
		}
	})
	return names
}

// wantsNothingLeft fails when there is something left of the four orders.
func (s *service) wantsNothingLeft() {
	s.Helper()
	if s.delivered() != nil {
		s.Error("the Secret beside the order is left")
	}
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &externalsecrets.PushSecretList{}, &orcv1alpha1.ApplicationCredentialList{}, &orcv1alpha1.UserList{}, &orcv1alpha1.ProjectList{}, &orcv1alpha1.RoleList{},
	} {
		s.must(s.management.List(s.Context(), list, client.InNamespace(ordertest.PlaneNamespace)))
		s.must(meta.EachListItem(list, func(item runtime.Object) error {
			left := item.(client.Object) // the lists hold objects
			for _, kind := range order.Kinds {
				if key, ok := kind.KeyFromLabels(left.GetLabels()); ok && key.Cluster == s.name {
					s.Errorf("%T %s is left", left, left.GetName())
				}
			}
			return nil
		}))
	}
	if held := s.held(); len(held) > 0 {
		s.Errorf("Keystone holds %v", held)
	}
	s.keystone.With(func() {
		for _, user := range s.keystone.Users {
			if user.Name == "workflow"+s.name {
				s.Error("Keystone has the user")
			}
		}
	})
	if s.keystone.FindProject("workflow-project"+s.name) != "" {
		s.Error("Keystone has the project")
	}
	for path := range s.eso.Store {
		if strings.Contains(path, strings.TrimSuffix(s.prefix(order.ApplicationCredentialKind, "agent"), "-")) {
			s.Errorf("the store holds %s", path)
		}
	}
}

// eventually plays K-ORC and ESO until something holds. It fails when it does not within three minutes.
func (s *service) eventually(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("after three minutes it does not hold that %s:\n%s", what, strings.Join(s.report(), "\n"))
		}
		for _, play := range []func(context.Context) (time.Time, error){s.korc.Play, s.eso.Play} {
			if _, err := play(s.Context()); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// report is what the orders say.
func (s *service) report() (lines []string) {
	s.Helper()
	for name, object := range s.orders() {
		if s.cluster.Get(s.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object) == nil {
			for _, condition := range *object.GetConditions() {
				lines = append(lines, fmt.Sprintf("%T %s: %s=%s %s: %s", object, name, condition.Type, condition.Status, condition.Reason, condition.Message))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func reasonOf(conditions []metav1.Condition, kind string) string {
	return ptr.Deref(meta.FindStatusCondition(conditions, kind), metav1.Condition{}).Reason
}
