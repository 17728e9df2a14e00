package ordertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// Where a world's ControlPlane and orders are.
const (
	PlaneNamespace  = "openstack"
	PlaneName       = "cp"
	TenantNamespace = "tenant-a"
)

// AuditInterval is the time between two audits in a world.
const AuditInterval = time.Hour

// World is one management cluster with a ControlPlane that assigns TenantNamespace and admits the role
// "member".
type World struct {
	T        *testing.T
	Client   client.WithWatch
	Keystone *FakeKeystone
	Clock    *testingclock.FakePassiveClock
	// Events are the Events so far, as "Type Reason note".
	Events []string
	// Writes are the writes so far, as "verb name".
	Writes []string
	// Fail fails a write when it returns an error. It is given "verb name".
	Fail func(write string) error
	// NotServed are kinds of K-ORC that the API server does not serve.
	NotServed map[string]bool
	KORC      KORC

	kind  order.Kind
	base  *order.Base
	steps order.Steps
}

// NewWorld makes a world for one kind of order.
func NewWorld(t *testing.T, kind order.Kind, steps order.Steps, objects ...client.Object) *World {
	t.Helper()
	w := &World{
		T: t, Keystone: NewKeystone(t), NotServed: map[string]bool{}, kind: kind, steps: steps,
		Clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, korcapi.AddToScheme} {
		w.Must(add(scheme))
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(
			&v1alpha1.ControlPlane{}, &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}, &v1alpha1.KeystoneRoleAssignment{},
			&orcv1alpha1.User{}, &orcv1alpha1.Project{}, &orcv1alpha1.Role{}, &korcapi.RoleAssignment{}).
		WithObjects(append(w.Plane(), objects...)...).
		WithInterceptorFuncs(w.writes()).
		Build()
	w.Restart()
	return w
}

// On is a world on another client, such as one of a real API server. The operator does not run in it:
// the test starts it, and Pass and its kin are of no use.
func On(t *testing.T, c client.WithWatch, keystone *FakeKeystone, kind order.Kind) *World {
	t.Helper()
	return &World{T: t, Client: c, Keystone: keystone, NotServed: map[string]bool{}, kind: kind}
}

// Restart forgets what the operator keeps in memory.
func (w *World) Restart() {
	w.base = order.Environment{
		Manager: FakeManager{Cached: w.Client, Live: w.Client, Events: fakeRecorder{w}}, Keystone: keystone.New(keystone.Config{Now: w.Clock.Now}), Clock: w.Clock,
		Late: fakeServed{w}, AuditInterval: AuditInterval,
	}.NewBase(w.kind)
}

// Plane is the ControlPlane with all that belongs to it.
func (w *World) Plane() []client.Object {
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: PlaneNamespace, Name: PlaneName, UID: "cp-uid"}}
	cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneManaged}
	cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: TenantNamespace, AllowedRoles: []string{"member"}}}
	cp.Status.DomainID = "default"
	cp.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdminCredentialAccepted, LastTransitionTime: metav1.Now()}}
	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: w.Keystone.URL + "/v3", Password: &clouds.PasswordAuth{
		Username: "admin", UserDomainName: "Default", Password: AdminPassword,
	}})
	w.Must(err)
	return []client.Object{
		cp,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: PlaneNamespace, Name: order.AdminCloudName(cp), Labels: map[string]string{order.ManagedByLabel: order.ManagedByValue},
		}, Data: map[string][]byte{order.CloudsKey: document}},
	}
}

// ControlPlane reads the ControlPlane.
func (w *World) ControlPlane() *v1alpha1.ControlPlane {
	w.T.Helper()
	cp := &v1alpha1.ControlPlane{}
	w.Must(w.Client.Get(w.T.Context(), types.NamespacedName{Namespace: PlaneNamespace, Name: PlaneName}, cp))
	return cp
}

// Must ends the test on an error.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// TryPass lets the operator look at one order once.
func (w *World) TryPass(name string) (reconcile.Result, error) {
	request := mcreconcile.Request{Request: reconcile.Request{NamespacedName: Tenant(name)}}
	return w.base.Reconcile(log.IntoContext(w.T.Context(), logr.Discard()), request, w.steps)
}

// Pass is TryPass without an error.
func (w *World) Pass(name string) reconcile.Result {
	w.T.Helper()
	result, err := w.TryPass(name)
	w.Must(err)
	return result
}

// Settle plays passes with K-ORC in between, ten seconds apart, until things have come to rest.
func (w *World) Settle(names ...string) {
	w.T.Helper()
	for range 10 {
		for _, name := range names {
			w.Pass(name)
		}
		w.PlayKORC()
		w.Advance(10 * time.Second)
	}
}

// Advance moves the clock.
func (w *World) Advance(d time.Duration) { w.Clock.SetTime(w.Clock.Now().Add(d)) }

// Tenant is the key of an order.
func Tenant(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: TenantNamespace, Name: name}
}

// Child is the key of an order's child.
func Child(kind order.Kind, name, discriminator string) types.NamespacedName {
	return types.NamespacedName{Namespace: PlaneNamespace, Name: kind.Prefix(order.Key{Namespace: TenantNamespace, Name: name}) + discriminator}
}

// Get reads an object and tells whether it is there.
func (w *World) Get(key types.NamespacedName, object client.Object) bool {
	w.T.Helper()
	err := w.Client.Get(w.T.Context(), key, object)
	if apierrors.IsNotFound(err) {
		return false
	}
	w.Must(err)
	return true
}

// Condition reads a condition of an order; it is empty when the order or the condition is not there.
func (w *World) Condition(name, kind string) metav1.Condition {
	w.T.Helper()
	object := w.kind.New()
	if !w.Get(Tenant(name), object) {
		return metav1.Condition{}
	}
	return ptr.Deref(meta.FindStatusCondition(*object.GetConditions(), kind), metav1.Condition{})
}

// Wants fails unless the kind's first condition has the reason, and returns its message.
func (w *World) Wants(name, reason string) string {
	w.T.Helper()
	condition := w.Condition(name, w.kind.Conditions[0])
	if condition.Reason != reason {
		w.T.Fatalf("%s of %s is %s/%s (%s), want %s", w.kind.Conditions[0], name, condition.Status, condition.Reason, condition.Message, reason)
	}
	return condition.Message
}

// Gone tells whether an order is gone.
func (w *World) Gone(name string) bool {
	w.T.Helper()
	return !w.Get(Tenant(name), w.kind.New())
}

// Delete deletes an object as a person would, whom Fail does not concern.
func (w *World) Delete(key types.NamespacedName, object client.Object) {
	w.T.Helper()
	fail := w.Fail
	w.Fail = nil
	defer func() { w.Fail = fail }()
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	w.Must(w.Client.Delete(w.T.Context(), object))
}

// Quiet runs something and fails when it writes anything or asks Keystone anything.
func (w *World) Quiet(do func()) {
	w.T.Helper()
	w.Writes = nil
	w.Keystone.Asked()
	do()
	if asked := w.Keystone.Asked(); len(w.Writes) > 0 || len(asked) > 0 {
		w.T.Errorf("wrote %v and asked %v", w.Writes, asked)
	}
}

// Announced tells whether an Event with a reason was recorded.
func (w *World) Announced(reason string) bool {
	return slices.ContainsFunc(w.Events, func(event string) bool { return strings.Contains(event, " "+reason+" ") })
}

// writes notes and fails writes.
func (w *World) writes() interceptor.Funcs {
	note := func(verb, name string) error {
		write := verb + " " + name
		w.Writes = append(w.Writes, write)
		if w.Fail != nil {
			return w.Fail(write)
		}
		return nil
	}
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			named, _ := o.(interface{ GetName() *string })
			name := ""
			if named != nil {
				name = ptr.Deref(named.GetName(), "")
			}
			if err := note("apply", name); err != nil {
				return err
			}
			return c.Apply(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := note("patch", o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := note("patch-"+sub, o.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := note("delete", o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	}
}

// FakeManager hands out one cluster, as the management cluster and as every other. Order controllers ask
// nothing else of a manager once they are set up.
type FakeManager struct {
	mcmanager.Manager
	// Cached reads from what passes for the cache, and writes.
	Cached client.Client
	// Live reads at the API server.
	Live client.Reader
	// Events takes the Events.
	Events events.EventRecorder
}

// GetCluster implements mcmanager.Manager.
func (m FakeManager) GetCluster(context.Context, multicluster.ClusterName) (cluster.Cluster, error) {
	return fakeLocal{manager: m}, nil
}

// GetLocalManager implements mcmanager.Manager.
func (m FakeManager) GetLocalManager() manager.Manager { return fakeLocal{manager: m} }

type fakeLocal struct {
	manager.Manager
	manager FakeManager
}

func (l fakeLocal) GetClient() client.Client                     { return l.manager.Cached }
func (l fakeLocal) GetAPIReader() client.Reader                  { return l.manager.Live }
func (l fakeLocal) GetScheme() *runtime.Scheme                   { return l.manager.Cached.Scheme() }
func (l fakeLocal) GetEventRecorder(string) events.EventRecorder { return l.manager.Events }

type fakeRecorder struct{ world *World }

// Eventf implements events.EventRecorder.
func (r fakeRecorder) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.world.Events = append(r.world.Events, eventType+" "+reason+" "+fmt.Sprintf(note, args...))
}

type fakeServed struct{ world *World }

// Serves implements order.Served.
func (s fakeServed) Serves(gvk schema.GroupVersionKind) bool { return !s.world.NotServed[gvk.Kind] }

// WhenServed implements order.LateStarter.
func (fakeServed) WhenServed(schema.GroupVersionKind, func() error) {}
