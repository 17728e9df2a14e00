package order_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

const planeNamespace = "openstack"

var orderKey = types.NamespacedName{Namespace: "tenant-a", Name: "workflow"}

// scaffold is one order of a kind and its ControlPlane, with steps that only note that they were called:
// what every kind does alike, whatever its steps do.
type scaffold struct {
	*testing.T
	kind    order.Kind
	client  client.Client
	base    *order.Base
	cluster string
	// reads are the reads in the ControlPlane's namespace, writes all writes.
	reads, writes []string
	fail          error

	provisioned, tornDown int
	// provision and teardown say what the steps do.
	provision func(*order.Pass)
	teardown  func(*order.Pass) bool
}

func newScaffold(t *testing.T, kind order.Kind, change ...func(order.Object)) *scaffold {
	t.Helper()
	s := &scaffold{T: t, kind: kind, provision: func(p *order.Pass) { p.ReportAll(order.Done("Provisioned", "as ordered")) }, teardown: func(*order.Pass) bool { return true }}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		s.must(add(scheme))
	}
	object := kind.New()
	object.SetNamespace(orderKey.Namespace)
	object.SetName(orderKey.Name)
	ref := v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: planeNamespace}
	switch o := object.(type) {
	case *v1alpha1.KeystoneUser:
		o.Spec.ControlPlaneRef = ref
	case *v1alpha1.KeystoneProject:
		o.Spec.ControlPlaneRef = ref
	case *v1alpha1.KeystoneRoleAssignment:
		o.Spec.ControlPlaneRef = ref
	case *v1alpha1.KeystoneApplicationCredential:
		o.Spec.ControlPlaneRef = ref
	default:
		t.Fatalf("the test knows no %s", kind.Name)
	}
	for _, c := range change {
		c(object)
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).
		WithStatusSubresource(object, &v1alpha1.ControlPlane{}).WithInterceptorFuncs(s.recorded()).Build()
	s.base = order.Environment{
		Manager:  ordertest.FakeManager{Cached: s.client, Live: s.client, Events: events.NewFakeRecorder(100)},
		Keystone: keystone.New(keystone.Config{}), Clock: clock.RealClock{}, Late: nothingServed{},
	}.NewBase(kind)
	return s
}

// Provision implements order.Steps.
func (s *scaffold) Provision(_ context.Context, p *order.Pass) {
	s.provisioned++
	s.provision(p)
}

// Teardown implements order.Steps.
func (s *scaffold) Teardown(_ context.Context, p *order.Pass) bool {
	s.tornDown++
	return s.teardown(p)
}

func (s *scaffold) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scaffold) tryPass() (reconcile.Result, error) {
	request := mcreconcile.Request{Request: reconcile.Request{NamespacedName: orderKey}, ClusterName: multicluster.ClusterName(s.cluster)}
	return s.base.Reconcile(log.IntoContext(s.Context(), logr.Discard()), request, s)
}

func (s *scaffold) pass() reconcile.Result {
	s.Helper()
	result, err := s.tryPass()
	s.must(err)
	return result
}

func (s *scaffold) order() order.Object {
	s.Helper()
	object := s.kind.New()
	s.must(s.client.Get(s.Context(), orderKey, object))
	return object
}

// plane writes the ControlPlane anew.
func (s *scaffold) plane(letIn bool, entries ...v1alpha1.NamespaceAssignment) {
	s.Helper()
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: "cp"}}
	s.must(client.IgnoreNotFound(s.client.Delete(s.Context(), cp.DeepCopy())))
	cp.Spec.NamespaceAssignments = entries
	s.must(s.client.Create(s.Context(), cp))
	admin := metav1.Condition{Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAuthenticationFailed, Message: "Keystone says 401"}
	if letIn {
		admin.Status, admin.Reason = metav1.ConditionTrue, v1alpha1.ReasonAdminCredentialAccepted
	}
	meta.SetStatusCondition(&cp.Status.Conditions, admin)
	s.must(s.client.Status().Update(s.Context(), cp))
}

func (s *scaffold) entry() v1alpha1.NamespaceAssignment {
	entry := v1alpha1.NamespaceAssignment{Namespace: orderKey.Namespace}
	if s.cluster != "" {
		entry.TargetClusterRef = &v1alpha1.ClusterReference{Name: s.cluster}
	}
	return entry
}

// wants fails unless every condition of the order is False with the reason, and Ready says so.
func (s *scaffold) wants(reason string) {
	s.Helper()
	conditions := *s.order().GetConditions()
	if len(conditions) != len(s.kind.Conditions)+1 {
		s.Errorf("the conditions are %+v", conditions)
	}
	for _, kind := range s.kind.Conditions {
		if got := ptr.Deref(meta.FindStatusCondition(conditions, kind), metav1.Condition{}); got.Status != metav1.ConditionFalse || got.Reason != reason || got.Message == "" {
			s.Errorf("%s is %s/%s (%s), want %s", kind, got.Status, got.Reason, got.Message, reason)
		}
	}
	if ready := ptr.Deref(meta.FindStatusCondition(conditions, v1alpha1.ConditionReady), metav1.Condition{}); ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonNotAllReady {
		s.Errorf("Ready is %s/%s", ready.Status, ready.Reason)
	}
}

func (s *scaffold) held() bool {
	s.Helper()
	return controllerutil.ContainsFinalizer(s.order(), s.kind.Finalizer())
}

func (s *scaffold) recorded() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Namespace == planeNamespace {
				s.reads = append(s.reads, fmt.Sprintf("%T", o))
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if (&client.ListOptions{}).ApplyOptions(options).Namespace == planeNamespace {
				s.reads = append(s.reads, fmt.Sprintf("%T", list))
			}
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			s.writes = append(s.writes, "patch")
			if s.fail != nil {
				return s.fail
			}
			return c.Patch(ctx, o, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			s.writes = append(s.writes, "patch "+sub)
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	}
}

type nothingServed struct{}

func (nothingServed) Serves(schema.GroupVersionKind) bool              { return false }
func (nothingServed) WhenServed(schema.GroupVersionKind, func() error) {}

// everyKind runs a test for each kind of order.
func everyKind(t *testing.T, test func(t *testing.T, kind order.Kind)) {
	t.Helper()
	for _, kind := range order.Kinds {
		t.Run(kind.Name, func(t *testing.T) { test(t, kind) })
	}
}

func TestScaffold_gates(t *testing.T) {
	for name, c := range map[string]struct {
		cluster string
		set     func(*scaffold)
		reason  string
		after   time.Duration
		held    bool
	}{
		"no_control_plane": {"", func(*scaffold) {}, v1alpha1.ReasonControlPlaneNotFound, 10 * time.Second, false},
		"no_control_plane_seen_from_a_target_cluster": {"edge", func(*scaffold) {}, v1alpha1.ReasonNamespaceNotAssigned, time.Minute, false},
		"no_assignment": {"", func(s *scaffold) { s.plane(true) }, v1alpha1.ReasonNamespaceNotAssigned, time.Minute, false},
		"a_cluster_name_that_is_too_long": {strings.Repeat("c", 64), func(s *scaffold) { s.plane(true, s.entry()) },
			// Only another name helps; what remains is the look at every order of a target cluster.
			v1alpha1.ReasonClusterNameTooLong, 10 * time.Minute, false},
		"no_admin_credential": {"", func(s *scaffold) { s.plane(false, s.entry()) }, v1alpha1.ReasonWaitingForAdminCredential, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			everyKind(t, func(t *testing.T, kind order.Kind) {
				s := newScaffold(t, kind)
				s.cluster = c.cluster
				c.set(s)
				if s.pass(); c.held {
					s.pass() // the first one added the finalizer
				}
				s.wants(c.reason)
				if s.held() != c.held {
					t.Errorf("the finalizer is there: %t", !c.held)
				}
				if s.provisioned > 0 {
					t.Error("something was provisioned")
				}
				s.writes = nil
				if result := s.pass(); result.RequeueAfter != c.after || len(s.writes) > 0 {
					t.Errorf("a second pass wrote %v and comes back after %s, want %s", s.writes, result.RequeueAfter, c.after)
				}
			})
		})
	}
}

func TestScaffold_gates_in_order(t *testing.T) {
	everyKind(t, func(t *testing.T, kind order.Kind) {
		// Everything is wrong at once, and is put right one by one.
		s := newScaffold(t, kind)
		s.cluster = strings.Repeat("c", 64)
		s.pass()
		s.wants(v1alpha1.ReasonClusterNameTooLong)
		s.cluster = ""
		s.pass()
		s.wants(v1alpha1.ReasonControlPlaneNotFound)
		s.plane(false)
		s.pass()
		s.wants(v1alpha1.ReasonNamespaceNotAssigned)
		if s.held() {
			t.Error("the finalizer was added without consent")
		}
		s.plane(false, s.entry())
		if result := s.pass(); result.RequeueAfter != time.Second || !s.held() {
			t.Errorf("the finalizer is there: %t; comes back after %s", s.held(), result.RequeueAfter)
		}
		s.wants(v1alpha1.ReasonNamespaceNotAssigned) // no condition is written on that pass
		s.pass()
		s.wants(v1alpha1.ReasonWaitingForAdminCredential)
		if s.provisioned > 0 {
			t.Fatal("provisioned before all gates were passed")
		}
		s.plane(true, s.entry())
		s.pass()
		if s.provisioned != 1 {
			t.Error("not provisioned although all gates are passed")
		}
	})
}

func TestScaffold_finalizer(t *testing.T) {
	everyKind(t, func(t *testing.T, kind order.Kind) {
		s := newScaffold(t, kind)
		s.plane(true, s.entry())
		s.fail = errors.New("the API server is in a bad mood")
		if _, err := s.tryPass(); err == nil || s.provisioned > 0 {
			t.Errorf("the error is %v, and something was provisioned %d times", err, s.provisioned)
		}
		s.wants(kind.ErrorReason)
		s.fail = nil
		s.pass()
		if !s.held() || s.provisioned > 0 {
			t.Errorf("the finalizer is there: %t; provisioned %d times before the pass after it", s.held(), s.provisioned)
		}
		s.pass()
		if s.provisioned != 1 {
			t.Errorf("provisioned %d times", s.provisioned)
		}
	})
}

func TestScaffold_a_frozen_order_touches_nothing(t *testing.T) {
	everyKind(t, func(t *testing.T, kind order.Kind) {
		s := newScaffold(t, kind)
		s.plane(true, s.entry())
		s.pass()
		s.pass()
		s.plane(true)
		s.pass()
		s.wants(v1alpha1.ReasonNamespaceNotAssigned)
		s.reads, s.writes, s.provisioned = nil, nil, 0
		for range 3 {
			s.pass()
		}
		if len(s.writes) > 0 || s.provisioned > 0 {
			t.Errorf("it wrote %v, and was provisioned %d times", s.writes, s.provisioned)
		}
		if slices.ContainsFunc(s.reads, func(read string) bool { return read != "*v1alpha1.ControlPlane" }) {
			t.Errorf("it read %v", s.reads)
		}
		if !s.held() {
			t.Error("it lost its finalizer")
		}
	})
}

func TestScaffold_ready_follows_the_conditions(t *testing.T) {
	everyKind(t, func(t *testing.T, kind order.Kind) {
		s := newScaffold(t, kind)
		s.plane(true, s.entry())
		s.pass()
		s.pass()
		ready := func() metav1.Condition {
			return ptr.Deref(meta.FindStatusCondition(*s.order().GetConditions(), v1alpha1.ConditionReady), metav1.Condition{})
		}
		if got := ready(); got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonAllReady {
			t.Errorf("Ready is %s/%s", got.Status, got.Reason)
		}
		for _, condition := range kind.Conditions {
			s.provision = func(p *order.Pass) {
				p.ReportAll(order.Done("Provisioned", "as ordered"))
				p.Report(condition, order.Wait("Missing", time.Minute, "not there yet"))
			}
			s.pass()
			if got := ready(); got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonNotAllReady || got.Message != condition+": Missing: not there yet" {
				t.Errorf("with %s False Ready is %s/%s (%s)", condition, got.Status, got.Reason, got.Message)
			}
		}
	})
}

func TestScaffold_comes_back(t *testing.T) {
	for name, c := range map[string]struct {
		cluster string
		after   time.Duration
	}{
		"to_a_converged_order_on_the_management_cluster_never_by_itself": {"", 0},
		// Nothing that happens on the management cluster wakes it there.
		"to_a_converged_order_on_a_target_cluster_every_ten_minutes": {"edge", 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			everyKind(t, func(t *testing.T, kind order.Kind) {
				s := newScaffold(t, kind)
				s.cluster = c.cluster
				s.plane(true, s.entry())
				s.pass()
				if result := s.pass(); s.provisioned != 1 || result.RequeueAfter != c.after {
					t.Errorf("provisioned %d times, comes back after %s", s.provisioned, result.RequeueAfter)
				}
			})
		})
	}
}

// withoutClusters knows no cluster but the management cluster.
type withoutClusters struct{ ordertest.FakeManager }

// GetCluster implements mcmanager.Manager.
func (withoutClusters) GetCluster(context.Context, multicluster.ClusterName) (cluster.Cluster, error) {
	return nil, multicluster.ErrClusterNotFound
}

func TestScaffold_an_order_of_a_cluster_that_is_not_registered_is_left_alone(t *testing.T) {
	everyKind(t, func(t *testing.T, kind order.Kind) {
		s := newScaffold(t, kind)
		s.plane(true, v1alpha1.NamespaceAssignment{Namespace: orderKey.Namespace, TargetClusterRef: &v1alpha1.ClusterReference{Name: "edge"}})
		s.cluster = "edge"
		s.base.Manager = withoutClusters{s.base.Manager.(ordertest.FakeManager)} // newScaffold made it
		s.reads, s.writes = nil, nil
		if result := s.pass(); result.RequeueAfter != 0 || len(s.writes) > 0 || len(s.reads) > 0 || s.provisioned+s.tornDown > 0 {
			t.Errorf("it read %v, wrote %v and comes back after %s", s.reads, s.writes, result.RequeueAfter)
		}
	})
}

func TestScaffold_teardown(t *testing.T) {
	deleted := func(finalizers ...string) func(order.Object) {
		return func(o order.Object) {
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
			o.SetFinalizers(finalizers)
		}
	}
	gone := func(s *scaffold) bool { return s.client.Get(s.Context(), orderKey, s.kind.New()) != nil }
	t.Run("without_the_finalizer_there_is_none", func(t *testing.T) {
		everyKind(t, func(t *testing.T, kind order.Kind) {
			s := newScaffold(t, kind, deleted("somebody.else/holds"))
			s.plane(true, s.entry())
			if s.pass(); s.tornDown > 0 || len(s.writes) > 0 {
				t.Errorf("torn down %d times, wrote %v", s.tornDown, s.writes)
			}
		})
	})
	t.Run("runs_whatever_the_consent_says", func(t *testing.T) {
		everyKind(t, func(t *testing.T, kind order.Kind) {
			s := newScaffold(t, kind, deleted(kind.Finalizer()))
			s.plane(false)
			s.teardown = func(p *order.Pass) bool { return p.ControlPlane != nil }
			if s.pass(); s.tornDown != 1 || !gone(s) {
				t.Errorf("torn down %d times, gone: %t", s.tornDown, gone(s))
			}
		})
	})
	t.Run("keeps_the_finalizer_until_nothing_is_left", func(t *testing.T) {
		everyKind(t, func(t *testing.T, kind order.Kind) {
			s := newScaffold(t, kind, deleted(kind.Finalizer()))
			s.plane(true, s.entry())
			s.teardown = func(*order.Pass) bool { return false }
			if result := s.pass(); result.RequeueAfter != 10*time.Second || gone(s) {
				t.Errorf("comes back after %s, gone: %t", result.RequeueAfter, gone(s))
			}
			s.teardown = func(*order.Pass) bool { return true }
			if s.pass(); !gone(s) {
				t.Error("it is still held")
			}
		})
	})
	t.Run("knows_when_the_control_plane_is_gone", func(t *testing.T) {
		everyKind(t, func(t *testing.T, kind order.Kind) {
			s := newScaffold(t, kind, deleted(kind.Finalizer()))
			s.teardown = func(p *order.Pass) bool { return p.ControlPlane == nil }
			if s.pass(); !gone(s) {
				t.Error("it is still held")
			}
		})
	})
}
