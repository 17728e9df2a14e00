package keystoneapplicationcredential

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// The order of these tests, and the orders that it names.
const (
	agent      = "agent"
	user       = "workflow"
	project    = "workflow-project"
	assignment = "workflow-member"
)

// world is a management cluster in memory with one credential order and the three orders that it names,
// and imitations of K-ORC, External Secrets Operator and Keystone. Nothing in it runs by itself: a test
// plays pass after pass. The three other orders are fulfilled and nobody reconciles them.
type world struct {
	t        *testing.T
	client   client.WithWatch
	keystone *ordertest.FakeKeystone
	korc     *ordertest.FakeKORC
	eso      *ordertest.FakeESO
	clock    *testingclock.FakePassiveClock
	base     *order.Base
	// events are the Events so far, as "Type Reason note".
	events []string
	// writes are the operator's writes so far, as "verb name", and reads its reads in the ControlPlane's
	// namespace.
	writes, reads []string
	// changes counts the writes of everybody.
	changes int
	// fail fails a write of the operator's when it returns an error.
	fail func(write string) error
	// korcAway and esoAway keep them from doing anything.
	korcAway, esoAway bool
	// cluster is where the orders live, empty for the management cluster.
	cluster string
	// userID and projectID are Keystone's.
	userID, projectID string

	operating bool
}

func newWorld(t *testing.T, change ...func(*v1alpha1.KeystoneApplicationCredential)) *world {
	t.Helper()
	w := &world{t: t, keystone: ordertest.NewKeystone(t), clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	w.keystone.Now = w.clock.Now
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, externalsecrets.AddToScheme} {
		w.must(add(scheme))
	}
	ordered := &v1alpha1.KeystoneApplicationCredential{ObjectMeta: tenant(agent), Spec: v1alpha1.KeystoneApplicationCredentialSpec{
		ControlPlaneRef: plane, UserRef: v1alpha1.OrderRef{Name: user}, ProjectRef: v1alpha1.OrderRef{Name: project},
	}}
	for _, c := range change {
		c(ordered)
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(
			&v1alpha1.ControlPlane{}, &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}, &v1alpha1.KeystoneRoleAssignment{},
			&v1alpha1.KeystoneApplicationCredential{}, &orcv1alpha1.Domain{}, &orcv1alpha1.User{}, &orcv1alpha1.Project{},
			&orcv1alpha1.ApplicationCredential{}, &externalsecrets.PushSecret{}).
		WithObjects(append(append(w.plane(), w.references()...), ordered)...).
		WithInterceptorFuncs(w.recorded()).
		Build()
	w.korc = &ordertest.FakeKORC{
		Client: w.client, Namespace: plane.Namespace, Now: w.clock.Now,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	w.eso = &ordertest.FakeESO{Client: w.client, Namespace: plane.Namespace, Now: w.clock.Now, Store: map[string]map[string][]byte{}}
	for range 3 {
		w.playKORC()
		w.advance(20 * time.Second)
	}
	w.projectID = w.keystone.FindProject(project)
	w.keystone.With(func() {
		for id, made := range w.keystone.Users {
			if made.Name == user {
				w.userID = id
			}
		}
	})
	if w.userID == "" || w.projectID == "" {
		t.Fatal("K-ORC made no user or no project")
	}
	w.role(true)
	w.restart()
	return w
}

var plane = v1alpha1.ControlPlaneRefSpec{Name: ordertest.PlaneName, Namespace: ordertest.PlaneNamespace}

func tenant(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ordertest.TenantNamespace, Name: name, UID: types.UID("uid-" + name), Generation: 1}
}

// restart forgets what the operator keeps in memory.
func (w *world) restart() {
	w.base = order.Environment{
		Manager:  ordertest.FakeManager{Cached: w.client, Live: w.client, Events: recorder{w}},
		Keystone: keystone.New(keystone.Config{Now: w.clock.Now}), Clock: w.clock, Late: served{},
	}.NewBase(order.ApplicationCredentialKind)
}

// plane is the ControlPlane with all that belongs to it, an External one: its Keystone is at the URL of
// the imitation.
func (w *world) plane() []client.Object {
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: plane.Name, UID: "cp-uid"}}
	cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{
		Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: w.keystone.URL + "/v3"},
	}
	cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: ordertest.TenantNamespace}}
	cp.Status.DomainID = "default"
	meta.SetStatusCondition(&cp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdminCredentialAccepted,
	})
	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: w.keystone.URL + "/v3", Password: &clouds.PasswordAuth{
		Username: "admin", UserDomainName: "Default", Password: ordertest.AdminPassword,
	}})
	w.must(err)
	return []client.Object{
		cp, w.store(),
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: order.AdminCloudName(cp), Labels: map[string]string{order.ManagedByLabel: order.ManagedByValue}},
			Data:       map[string][]byte{order.CloudsKey: document},
		},
		&orcv1alpha1.Domain{
			ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: order.DomainImportName(cp)},
			Spec: orcv1alpha1.DomainSpec{
				ManagementPolicy: orcv1alpha1.ManagementPolicyUnmanaged, CloudCredentialsRef: order.AdminCloudRef(cp),
				Import: &orcv1alpha1.DomainImport{Filter: &orcv1alpha1.DomainFilter{Name: ptr.To(orcv1alpha1.KeystoneName("Default"))}},
			},
		},
	}
}

func (*world) store() *externalsecrets.SecretStore {
	return &externalsecrets.SecretStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: order.DefaultSecretStore},
		Status:     externalsecrets.SecretStoreStatus{Conditions: []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue}}},
	}
}

// references are the three orders that a credential order needs, and their children.
func (w *world) references() []client.Object {
	admin := order.AdminCloudRef(&v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: plane.Name}})
	return []client.Object{
		w.user(), w.project(), w.assignment(), w.password(1, "password-1"),
		&orcv1alpha1.User{ObjectMeta: childMeta(order.UserKind, user, "user"), Spec: orcv1alpha1.UserSpec{
			ManagementPolicy: orcv1alpha1.ManagementPolicyManaged, CloudCredentialsRef: admin,
			Resource: &orcv1alpha1.UserResourceSpec{
				Name:        ptr.To(orcv1alpha1.OpenStackName(user)),
				DomainRef:   ptr.To(orcv1alpha1.KubernetesNameRef(plane.Name + "-domain-default")),
				PasswordRef: ptr.To(orcv1alpha1.KubernetesNameRef(childMeta(order.UserKind, user, "password-v1").Name)),
			},
		}},
		&orcv1alpha1.Project{ObjectMeta: childMeta(order.ProjectKind, project, "project"), Spec: orcv1alpha1.ProjectSpec{
			ManagementPolicy: orcv1alpha1.ManagementPolicyManaged, CloudCredentialsRef: admin,
			Resource: &orcv1alpha1.ProjectResourceSpec{Name: ptr.To(orcv1alpha1.KeystoneName(project))},
		}},
	}
}

func holds(condition, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: reason}}
}

func (*world) user() *v1alpha1.KeystoneUser {
	o := &v1alpha1.KeystoneUser{ObjectMeta: tenant(user), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: plane}}
	o.Status.PasswordGeneration = 1
	o.Status.Conditions = holds(v1alpha1.ConditionUserReady, v1alpha1.ReasonUserProvisioned)
	return o
}

func (*world) project() *v1alpha1.KeystoneProject {
	o := &v1alpha1.KeystoneProject{ObjectMeta: tenant(project), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: plane}}
	o.Status.ProjectName = project
	o.Status.Conditions = holds(v1alpha1.ConditionProjectReady, v1alpha1.ReasonProjectProvisioned)
	return o
}

func (*world) assignment() *v1alpha1.KeystoneRoleAssignment {
	o := &v1alpha1.KeystoneRoleAssignment{ObjectMeta: tenant(assignment), Spec: v1alpha1.KeystoneRoleAssignmentSpec{
		ControlPlaneRef: plane, UserRef: v1alpha1.OrderRef{Name: user}, ProjectRef: v1alpha1.OrderRef{Name: project}, Role: "member",
	}}
	o.Status.RoleID = "r-member"
	o.Status.Conditions = holds(v1alpha1.ConditionAssignmentReady, v1alpha1.ReasonRoleAssigned)
	return o
}

// password is the Secret with a generation of the user's password.
func (*world) password(generation int, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: childMeta(order.UserKind, user, fmt.Sprintf("password-v%d", generation)),
		Data:       map[string][]byte{"password": []byte(value)},
	}
}

// changePassword has the user order at its second password.
func (w *world) changePassword() {
	w.t.Helper()
	w.create(w.password(2, "password-2"))
	w.keystone.With(func() { w.keystone.Users[w.userID].Password = "password-2" })
	owner := &v1alpha1.KeystoneUser{}
	w.wantGet(ordertest.Tenant(user), owner)
	owner.Status.PasswordGeneration = 2
	w.must(w.client.Status().Update(w.t.Context(), owner))
}

// role assigns the user its role in Keystone, or takes it away.
func (w *world) role(assigned bool) {
	w.keystone.Grant(w.projectID, w.userID, "r-member", assigned)
}

func childMeta(kind order.Kind, name, discriminator string) metav1.ObjectMeta {
	key := ordertest.Child(kind, name, discriminator)
	labels := kind.Labels(order.Key{Namespace: ordertest.TenantNamespace, Name: name})
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// tryPass lets the operator look once.
func (w *world) tryPass() (reconcile.Result, error) {
	w.operating = true
	defer func() { w.operating = false }()
	request := mcreconcile.Request{Request: reconcile.Request{NamespacedName: ordertest.Tenant(agent)}, ClusterName: multicluster.ClusterName(w.cluster)}
	return w.base.Reconcile(log.IntoContext(w.t.Context(), logr.Discard()), request, reconciler{})
}

func (w *world) pass() reconcile.Result {
	w.t.Helper()
	result, err := w.tryPass()
	w.must(err)
	return result
}

func (w *world) playKORC() {
	w.t.Helper()
	if !w.korcAway {
		_, err := w.korc.Play(w.t.Context())
		w.must(err)
	}
}

func (w *world) playESO() {
	w.t.Helper()
	if !w.esoAway {
		_, err := w.eso.Play(w.t.Context())
		w.must(err)
	}
}

// settle plays passes with K-ORC and ESO in between, ten seconds apart, until nobody has written anything
// for 100 seconds, which is longer than a refused order, K-ORC or an audit of these tests waits, and for
// five minutes at most. A failing pass is one after which the operator comes back.
func (w *world) settle() {
	w.t.Helper()
	for quiet, rounds := 0, 0; quiet < 10 && rounds < 30; rounds++ {
		before := w.changes
		_, _ = w.tryPass()
		w.playKORC()
		w.playESO()
		w.advance(10 * time.Second)
		if quiet++; w.changes != before {
			quiet = 0
		}
	}
}

func (w *world) advance(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// fulfilled is a world whose order is fulfilled.
func fulfilled(t *testing.T, change ...func(*v1alpha1.KeystoneApplicationCredential)) *world {
	t.Helper()
	w := newWorld(t, change...)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	return w
}

func schedule(interval, grace time.Duration) func(*v1alpha1.KeystoneApplicationCredential) {
	return func(o *v1alpha1.KeystoneApplicationCredential) {
		o.Spec.Rotation = v1alpha1.CredentialRotationSpec{Interval: &metav1.Duration{Duration: interval}, GracePeriod: &metav1.Duration{Duration: grace}}
	}
}

// rotated is a fulfilled world that is in the grace period of its first credential.
func rotated(t *testing.T, change ...func(*v1alpha1.KeystoneApplicationCredential)) *world {
	t.Helper()
	w := fulfilled(t, change...)
	w.raise(2)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if w.status().CredentialGeneration != 2 {
		t.Fatalf("status is %+v", w.status())
	}
	return w
}

func (w *world) order() *v1alpha1.KeystoneApplicationCredential {
	w.t.Helper()
	o := &v1alpha1.KeystoneApplicationCredential{}
	w.wantGet(ordertest.Tenant(agent), o)
	return o
}

func (w *world) status() v1alpha1.KeystoneApplicationCredentialStatus {
	w.t.Helper()
	return w.order().Status
}

// change updates the order's spec as a person would.
func (w *world) change(do func(*v1alpha1.KeystoneApplicationCredential)) {
	w.t.Helper()
	o := w.order()
	do(o)
	o.Generation++
	w.must(w.client.Update(w.t.Context(), o))
}

// raise raises spec.credentialGeneration.
func (w *world) raise(generation int64) {
	w.t.Helper()
	w.change(func(o *v1alpha1.KeystoneApplicationCredential) { o.Spec.CredentialGeneration = generation })
}

func (w *world) changePlane(do func(*v1alpha1.ControlPlane)) {
	w.t.Helper()
	cp := &v1alpha1.ControlPlane{}
	w.wantGet(types.NamespacedName{Namespace: plane.Namespace, Name: plane.Name}, cp)
	do(cp)
	w.must(w.client.Update(w.t.Context(), cp))
}

// assign writes the entry that consents, or takes it away.
func (w *world) assign(assigned bool) {
	w.t.Helper()
	w.changePlane(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.NamespaceAssignments = nil
		if assigned {
			cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: ordertest.TenantNamespace}}
		}
	})
}

// get reads an object and tells whether it is there.
func (w *world) get(key types.NamespacedName, object client.Object) bool {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), key, object)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) wantGet(key types.NamespacedName, object client.Object) {
	w.t.Helper()
	if !w.get(key, object) {
		w.t.Fatalf("%T %s is not there", object, key)
	}
}

// create creates an object with the status that it comes with.
func (w *world) create(object client.Object) {
	w.t.Helper()
	withStatus := object.DeepCopyObject().(client.Object)
	object.SetResourceVersion("")
	w.must(w.client.Create(w.t.Context(), object))
	withStatus.SetResourceVersion(object.GetResourceVersion())
	if _, ok := object.(order.Object); ok {
		w.must(w.client.Status().Update(w.t.Context(), withStatus))
	}
}

func (w *world) remove(object client.Object) {
	w.t.Helper()
	w.must(w.client.Delete(w.t.Context(), object))
}

// gone tells whether the order is gone.
func (w *world) gone() bool {
	w.t.Helper()
	return !w.get(ordertest.Tenant(agent), &v1alpha1.KeystoneApplicationCredential{})
}

func (w *world) condition(kind string) metav1.Condition {
	w.t.Helper()
	return ptr.Deref(meta.FindStatusCondition(w.status().Conditions, kind), metav1.Condition{})
}

// wants fails unless a condition has the reason, and returns its message.
func (w *world) wants(kind, reason string) string {
	w.t.Helper()
	condition := w.condition(kind)
	if condition.Reason != reason {
		w.t.Fatalf("%s is %s/%s (%s), want %s; all: %+v", kind, condition.Status, condition.Reason, condition.Message, reason, w.status())
	}
	return condition.Message
}

func childKey(discriminator string) types.NamespacedName {
	return ordertest.Child(order.ApplicationCredentialKind, agent, discriminator)
}

// secret reads a Secret, nil when there is none.
func (w *world) secret(key types.NamespacedName) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	if !w.get(key, secret) {
		return nil
	}
	return secret
}

func (w *world) delivered() *corev1.Secret {
	w.t.Helper()
	return w.secret(types.NamespacedName{Namespace: ordertest.TenantNamespace, Name: agent + "-credentials"})
}

// edit changes a Secret as somebody else would.
func (w *world) edit(secret *corev1.Secret, change func(*corev1.Secret)) {
	w.t.Helper()
	change(secret)
	w.must(w.client.Update(w.t.Context(), secret))
}

// korcCredential reads K-ORC's object of a generation, nil when there is none.
func (w *world) korcCredential(generation int64) *orcv1alpha1.ApplicationCredential {
	w.t.Helper()
	object := &orcv1alpha1.ApplicationCredential{}
	if !w.get(childKey(credentialChild(generation)), object) {
		return nil
	}
	return object
}

// latch has K-ORC give up on a generation.
func (w *world) latch(generation int64, reason, message string) {
	w.t.Helper()
	object := w.korcCredential(generation)
	ordertest.GiveUp(object, &object.Status.Conditions, reason, message)
	w.must(w.client.Status().Update(w.t.Context(), object))
}

// held are the names of the order's credentials that Keystone holds, without their common beginning.
func (w *world) held() []string {
	var names []string
	w.keystone.With(func() {
		for _, credential := range w.keystone.Credentials {
			names = append(names, strings.TrimPrefix(credential.Name, childKey("").Name))
		}
	})
	slices.Sort(names)
	return names
}

// revokeInKeystone removes a credential behind everybody's back.
func (w *world) revokeInKeystone(id string) {
	w.keystone.With(func() { delete(w.keystone.Credentials, id) })
}

// wantsWorking fails unless the Secret carries the credential that status names and Keystone accepts it.
func (w *world) wantsWorking() {
	w.t.Helper()
	secret, status := w.delivered(), w.status()
	if secret == nil {
		w.t.Fatal("there is no Secret")
	}
	id := string(secret.Data[keyCredentialID])
	if id != status.CredentialID {
		w.t.Errorf("the Secret carries %s, status names %s", id, status.CredentialID)
	}
	w.wantsAccepted(secret)
}

// wantsAccepted fails unless Keystone accepts what a Secret carries.
func (w *world) wantsAccepted(secret *corev1.Secret) {
	w.t.Helper()
	if id := string(secret.Data[keyCredentialID]); !w.keystone.Accepts(id, string(secret.Data[keyCredentialSecret])) {
		w.t.Errorf("Keystone refuses the delivered credential %s", id)
	}
}

func (w *world) announced(reason string) bool {
	return slices.ContainsFunc(w.events, func(event string) bool { return strings.Contains(event, " "+reason+" ") })
}

// certificate is a CA bundle that means nothing here: this Keystone speaks plain HTTP.
func certificate() []byte {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// recorded notes what the operator reads and writes, and fails its writes.
func (w *world) recorded() interceptor.Funcs {
	read := func(namespace, what string) {
		if w.operating && namespace == plane.Namespace {
			w.reads = append(w.reads, what)
		}
	}
	write := func(verb, name string) error {
		w.changes++
		if !w.operating {
			return nil
		}
		w.writes = append(w.writes, verb+" "+name)
		if w.fail != nil {
			return w.fail(verb + " " + name)
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			read(key.Namespace, fmt.Sprintf("%T %s", o, key.Name))
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			read((&client.ListOptions{}).ApplyOptions(options).Namespace, fmt.Sprintf("%T", list))
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := write("create", o.GetName()); err != nil {
				return err
			}
			if o.GetUID() == "" {
				o.SetUID(types.UID(o.GetName()))
			}
			return c.Create(ctx, o, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			named, _ := o.(interface{ GetName() string }) // the operator applies unstructured objects only
			if err := write("apply", named.GetName()); err != nil {
				return err
			}
			return c.Apply(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := write("patch", o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if err := write("update", o.GetName()); err != nil {
				return err
			}
			return c.Update(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := write("patch-"+sub, o.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := write("delete", o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	}
}

// recorder takes the Events.
type recorder struct{ world *world }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.world.events = append(r.world.events, eventType+" "+reason+" "+fmt.Sprintf(note, args...))
}

// served serves every kind.
type served struct{}

func (served) Serves(schema.GroupVersionKind) bool              { return true }
func (served) WhenServed(schema.GroupVersionKind, func() error) {}
