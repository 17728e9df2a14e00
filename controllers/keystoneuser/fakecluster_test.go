package keystoneuser

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// fakeWorld is a management cluster in memory with one order, and puppets of K-ORC, of External Secrets
// Operator and of Keystone. Nothing in it runs by itself: a test plays pass after pass.
type fakeWorld struct {
	t        *testing.T
	client   client.WithWatch
	keystone *fakeKeystone
	clock    *testingclock.FakePassiveClock
	events   *events.FakeRecorder
	base     *order.Base
	writes   []string

	// losesUsers makes K-ORC let go of a deleted User without deleting it in Keystone.
	losesUsers bool
	// korcIdle and esoIdle keep them from doing anything.
	korcIdle, esoIdle bool
	// swallows makes K-ORC find nothing when it imports, as it does when its question failed.
	swallows bool
}

var orderKey = types.NamespacedName{Namespace: "tenant-a", Name: "robot"}

const planeNamespace = "openstack"

func newFakeWorld(t *testing.T, change ...func(*v1alpha1.KeystoneUser)) *fakeWorld {
	t.Helper()
	w := &fakeWorld{
		t: t, keystone: newFakeKeystone(t),
		clock:  testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		events: events.NewFakeRecorder(1000),
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, externalsecrets.AddToScheme} {
		w.must(add(scheme))
	}
	user := &v1alpha1.KeystoneUser{
		ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: orderKey.Name, UID: "order-uid", Generation: 1},
		Spec:       v1alpha1.KeystoneUserSpec{ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: planeNamespace}},
	}
	for _, c := range change {
		c(user)
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.KeystoneUser{}, &v1alpha1.ControlPlane{}, &orcv1alpha1.User{}, &externalsecrets.PushSecret{}).
		WithObjects(append(w.plane(), user)...).
		WithInterceptorFuncs(w.recordWrites()).
		Build()
	w.base = order.Environment{
		Manager: fakeManager{world: w}, Keystone: keystone.New(keystone.Config{}), Clock: w.clock, Late: fakeServed{},
	}.NewBase(order.UserKind)
	return w
}

// plane is a ControlPlane that assigns the order's namespace, with all that belongs to it.
func (w *fakeWorld) plane() []client.Object {
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: "cp", UID: "cp-uid"}}
	cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{
		Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: w.keystone.URL + "/v3"},
	}
	cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: orderKey.Namespace}}
	meta.SetStatusCondition(&cp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdminCredentialAccepted,
	})
	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: w.keystone.URL + "/v3", Password: &clouds.PasswordAuth{
		Username: "admin", UserDomainName: "Default", Password: fakeAdminPassword,
	}})
	w.must(err)
	mine := map[string]string{order.ManagedByLabel: order.ManagedByValue}
	return []client.Object{
		cp,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: order.AdminCloudName(cp), Labels: mine},
			Data:       map[string][]byte{order.CloudsKey: document},
		},
		&orcv1alpha1.Domain{
			ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: order.DomainImportName(cp)},
			Spec: orcv1alpha1.DomainSpec{
				ManagementPolicy: orcv1alpha1.ManagementPolicyUnmanaged, CloudCredentialsRef: order.AdminCloudRef(cp),
				Import: &orcv1alpha1.DomainImport{Filter: &orcv1alpha1.DomainFilter{Name: ptr.To(orcv1alpha1.KeystoneName("Default"))}},
			},
			Status: orcv1alpha1.DomainStatus{ID: ptr.To("default")},
		},
		readyStore(),
	}
}

// readyStore is a store that takes pushes.
func readyStore() *externalsecrets.SecretStore {
	return &externalsecrets.SecretStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: order.DefaultSecretStore},
		Status:     externalsecrets.SecretStoreStatus{Conditions: []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue}}},
	}
}

func (w *fakeWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets the operator look once.
func (w *fakeWorld) pass() reconcile.Result {
	w.t.Helper()
	return w.passOf(orderKey)
}

// passOf lets the operator look at one of several orders.
func (w *fakeWorld) passOf(key types.NamespacedName) reconcile.Result {
	w.t.Helper()
	result, err := w.base.Reconcile(w.t.Context(), mcreconcile.Request{Request: reconcile.Request{NamespacedName: key}}, steps{})
	w.must(err)
	return result
}

// settle plays passes with K-ORC and ESO in between, ten seconds apart.
func (w *fakeWorld) settle() {
	w.t.Helper()
	for range 12 {
		w.pass()
		w.korc()
		w.eso()
		w.clock.SetTime(w.clock.Now().Add(10 * time.Second))
	}
}

func (w *fakeWorld) order() *v1alpha1.KeystoneUser {
	w.t.Helper()
	user := &v1alpha1.KeystoneUser{}
	w.must(w.client.Get(w.t.Context(), orderKey, user))
	return user
}

// change updates the order's spec as a person would.
func (w *fakeWorld) change(do func(*v1alpha1.KeystoneUser)) {
	w.t.Helper()
	user := w.order()
	do(user)
	user.Generation++
	w.must(w.client.Update(w.t.Context(), user))
}

// gone tells whether the order is gone.
func (w *fakeWorld) gone() bool {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), orderKey, &v1alpha1.KeystoneUser{})
	return apierrors.IsNotFound(err)
}

// wants fails unless a condition has the reason.
func (w *fakeWorld) wants(kind, reason string) {
	w.t.Helper()
	condition := meta.FindStatusCondition(w.order().Status.Conditions, kind)
	if condition == nil || condition.Reason != reason {
		w.t.Fatalf("%s is %+v, want %s", kind, condition, reason)
	}
}

func child(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: planeNamespace, Name: order.UserKind.Prefix(order.Key{Namespace: orderKey.Namespace, Name: orderKey.Name}) + name}
}

// secret reads a Secret, nil when there is none.
func (w *fakeWorld) secret(key types.NamespacedName) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), key, secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *fakeWorld) delivered() *corev1.Secret {
	w.t.Helper()
	return w.secret(types.NamespacedName{Namespace: orderKey.Namespace, Name: orderKey.Name + "-credentials"})
}

func (w *fakeWorld) korcUser(name string) *orcv1alpha1.User {
	w.t.Helper()
	user := &orcv1alpha1.User{}
	if err := w.client.Get(w.t.Context(), child(name), user); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return user
}

const korcFinalizer = "openstack.k-orc.cloud/user"

// korc plays K-ORC v2.6.0: it imports, creates or adopts by name, writes its description over that of a
// user it adopted, records the first password without sending it to such a user, and sends later ones.
func (w *fakeWorld) korc() {
	w.t.Helper()
	if w.korcIdle {
		return
	}
	list := &orcv1alpha1.UserList{}
	w.must(w.client.List(w.t.Context(), list))
	for i := range list.Items {
		user := &list.Items[i]
		switch {
		case !user.DeletionTimestamp.IsZero():
			if id := ptr.Deref(user.Status.ID, ""); user.Spec.Resource != nil && !w.losesUsers {
				w.keystone.with(func() { delete(w.keystone.users, id) })
			}
			controllerutil.RemoveFinalizer(user, korcFinalizer)
			w.wrote(w.client.Update(w.t.Context(), user))
			continue
		case controllerutil.AddFinalizer(user, korcFinalizer):
			w.wrote(w.client.Update(w.t.Context(), user))
		}
		if condition := meta.FindStatusCondition(user.Status.Conditions, orcv1alpha1.ConditionProgressing); condition != nil &&
			orcv1alpha1.IsConditionReasonTerminal(condition.Reason) {
			continue
		}
		if user.Spec.Import != nil && user.Status.ID == nil {
			w.korcImport(user)
		} else if user.Spec.Import != nil {
			continue
		} else {
			w.korcManage(user)
		}
		w.wrote(w.client.Status().Update(w.t.Context(), user))
	}
}

func (w *fakeWorld) korcImport(user *orcv1alpha1.User) {
	if id := w.keystone.find(string(*user.Spec.Import.Filter.Name)); id != "" && !w.swallows {
		user.Status.ID = &id
		setKORC(user, metav1.ConditionTrue, orcv1alpha1.ConditionReasonSuccess, "OpenStack resource is available")
		return
	}
	setKORC(user, metav1.ConditionFalse, orcv1alpha1.ConditionReasonProgressing, "Waiting for OpenStack resource to be created externally")
}

func (w *fakeWorld) korcManage(user *orcv1alpha1.User) {
	ref := string(*user.Spec.Resource.PasswordRef)
	secret := w.secret(types.NamespacedName{Namespace: planeNamespace, Name: ref})
	if secret == nil {
		setKORC(user, metav1.ConditionFalse, orcv1alpha1.ConditionReasonProgressing, "Waiting for Secret/"+ref+" to be created")
		return
	}
	password, name := string(secret.Data["password"]), string(*user.Spec.Resource.Name)
	condition := meta.FindStatusCondition(user.Status.Conditions, orcv1alpha1.ConditionProgressing)
	if user.Status.Resource != nil && user.Status.Resource.AppliedPasswordRef == ref && condition != nil && condition.Status == metav1.ConditionFalse && condition.ObservedGeneration == user.Generation {
		return // v2.6.0 never looks again by itself
	}
	if user.Status.ID == nil {
		id := w.keystone.find(name)
		if id == "" {
			id = w.keystone.create(name, password)
		}
		user.Status.ID = &id
	}
	if !w.keystone.has(*user.Status.ID) {
		meta.SetStatusCondition(&user.Status.Conditions, metav1.Condition{
			Type: orcv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, ObservedGeneration: user.Generation,
			Reason: orcv1alpha1.ConditionReasonUnrecoverableError, Message: "resource has been deleted from OpenStack",
		})
		return
	}
	w.keystone.with(func() {
		w.keystone.users[*user.Status.ID].description = ptr.Deref(user.Spec.Resource.Description, "")
	})
	if user.Status.Resource == nil {
		user.Status.Resource = &orcv1alpha1.UserResourceStatus{}
	}
	if applied := user.Status.Resource.AppliedPasswordRef; applied != ref {
		if applied != "" {
			w.keystone.with(func() { w.keystone.users[*user.Status.ID].password = password })
		}
		user.Status.Resource.AppliedPasswordRef = ref
	}
	setKORC(user, metav1.ConditionTrue, orcv1alpha1.ConditionReasonSuccess, "OpenStack resource is available")
}

func setKORC(user *orcv1alpha1.User, available metav1.ConditionStatus, reason, message string) {
	progressing := metav1.ConditionFalse
	if reason == orcv1alpha1.ConditionReasonProgressing {
		progressing = metav1.ConditionTrue
	}
	for kind, status := range map[string]metav1.ConditionStatus{orcv1alpha1.ConditionAvailable: available, orcv1alpha1.ConditionProgressing: progressing} {
		meta.SetStatusCondition(&user.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: user.Generation})
	}
}

// wrote takes a lost race for what it is: the puppet writes on its next turn.
func (w *fakeWorld) wrote(err error) {
	w.t.Helper()
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

// giveUp latches a terminal condition on K-ORC's User.
func (w *fakeWorld) giveUp(reason, message string) {
	w.t.Helper()
	user := w.korcUser(userChild)
	meta.SetStatusCondition(&user.Status.Conditions, metav1.Condition{
		Type: orcv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: user.Generation,
	})
	w.must(w.client.Status().Update(w.t.Context(), user))
}

// eso plays External Secrets Operator: it pushes what a PushSecret says.
func (w *fakeWorld) eso() {
	w.t.Helper()
	if w.esoIdle {
		return
	}
	list := &externalsecrets.PushSecretList{}
	w.must(w.client.List(w.t.Context(), list))
	for i := range list.Items {
		push := &list.Items[i]
		push.Status.Conditions = []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue}}
		push.Status.SyncedResourceVersion = externalsecrets.ResourceVersion(push.ObjectMeta)
		w.wrote(w.client.Status().Update(w.t.Context(), push))
	}
}

// recordWrites notes everything that is written. The order's own status is among it.
func (w *fakeWorld) recordWrites() interceptor.Funcs {
	note := func(verb, name string) { w.writes = append(w.writes, verb+" "+name) }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			note("create", o.GetName())
			o.SetUID(types.UID(o.GetName()))
			return c.Create(ctx, o, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			named, _ := o.(interface{ GetName() string })
			note("apply", named.GetName())
			return c.Apply(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			note("patch", o.GetName())
			return c.Patch(ctx, o, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			note("patch "+sub, o.GetName())
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			note("delete", o.GetName())
			return c.Delete(ctx, o, options...)
		},
	}
}

// fakeManager hands out the one cluster, as the management cluster and as every other.
type fakeManager struct {
	mcmanager.Manager
	world *fakeWorld
}

func (m fakeManager) GetCluster(context.Context, multicluster.ClusterName) (cluster.Cluster, error) {
	return fakeLocal{world: m.world}, nil
}

func (m fakeManager) GetLocalManager() manager.Manager { return fakeLocal{world: m.world} }

type fakeLocal struct {
	manager.Manager
	world *fakeWorld
}

func (l fakeLocal) GetClient() client.Client                     { return l.world.client }
func (l fakeLocal) GetAPIReader() client.Reader                  { return l.world.client }
func (l fakeLocal) GetEventRecorder(string) events.EventRecorder { return l.world.events }
func (l fakeLocal) GetScheme() *runtime.Scheme                   { return l.world.client.Scheme() }

type fakeServed struct{}

func (fakeServed) Serves(schema.GroupVersionKind) bool              { return true }
func (fakeServed) WhenServed(schema.GroupVersionKind, func() error) {}
