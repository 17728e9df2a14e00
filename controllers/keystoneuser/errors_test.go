package keystoneuser

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

var errRefused = errors.New("the API server is in a bad mood")

// failing has the API server refuse an apply of one name, and every patch of a status of K-ORC's, until
// the returned function is called. The puppets write otherwise.
func (w *fakeWorld) failing(apply string, patch error) (mend func()) {
	whole := w.client
	w.client = interceptor.NewClient(whole, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if named, ok := o.(interface{ GetName() string }); ok && named.GetName() == apply {
				return errRefused
			}
			return c.Apply(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, change client.Patch, options ...client.SubResourcePatchOption) error {
			if _, ok := o.(*orcv1alpha1.User); ok && patch != nil {
				return patch
			}
			return c.SubResource(sub).Patch(ctx, o, change, options...)
		},
	})
	return func() { w.client = whole }
}

// tries plays passes that may fail.
func (w *fakeWorld) tries() {
	w.t.Helper()
	for range 12 {
		// A failing pass is one after which the operator comes back.
		_, _ = w.base.Reconcile(w.t.Context(), mcreconcile.Request{Request: reconcile.Request{NamespacedName: orderKey}}, steps{})
		w.korc()
		w.eso()
		w.clock.SetTime(w.clock.Now().Add(10 * time.Second))
	}
}

type nothingServed struct{}

func (nothingServed) Serves(schema.GroupVersionKind) bool { return false }

func TestErrors(t *testing.T) {
	t.Run("a_child_that_cannot_be_written", func(t *testing.T) {
		w := newFakeWorld(t)
		mend := w.failing(child(userChild).Name, nil)
		w.tries()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountError)
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForServiceAccounts)
		mend()
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	t.Run("a_delivered_secret_that_cannot_be_written", func(t *testing.T) {
		w := newFakeWorld(t)
		mend := w.failing(orderKey.Name+"-credentials", nil)
		w.tries()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonUserProvisioned)
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDeliveryError)
		if w.delivered() != nil || w.order().Status.SecretName != "" {
			t.Error("something was delivered")
		}
		mend()
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	t.Run("a_latch_that_may_not_be_cleared", func(t *testing.T) {
		w := newFakeWorld(t)
		for w.korcUser(userChild) == nil {
			w.pass()
			if w.korcUser(userChild) == nil {
				w.korc()
			}
		}
		w.giveUp(orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: read tcp: connection reset by peer")
		mend := w.failing("", apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "x", errRefused))
		w.pass()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonTransportErrorRetryFailed)
		mend()
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	t.Run("a_kind_that_is_not_served", func(t *testing.T) {
		w := newFakeWorld(t)
		w.base.Served = nothingServed{}
		w.settle()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonWaitingForDependencies)
		w.base.Served = fakeServed{}
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	t.Run("a_keystone_that_is_published_nowhere", func(t *testing.T) {
		w := fulfilled(t)
		before := w.delivered().DeepCopy()
		cp := &v1alpha1.ControlPlane{}
		w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: planeNamespace, Name: "cp"}, cp))
		cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneManaged, TargetClusterRef: &v1alpha1.ClusterReference{Name: "edge"}}
		w.must(w.client.Update(t.Context(), cp))
		w.settle()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonKeystoneNotPublished)
		if string(w.delivered().Data["clouds.yaml"]) != string(before.Data["clouds.yaml"]) {
			t.Error("the Secret did not keep what it had")
		}
		cp.Spec.Services.Keystone.PublicEndpoint = "https://keystone.example.com/v3"
		w.must(w.client.Update(t.Context(), cp))
		w.settle()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
		if !strings.Contains(string(w.delivered().Data["clouds.yaml"]), "https://keystone.example.com/v3") {
			t.Error("the Secret does not name the public endpoint")
		}
	})
}

// scheduled is a fulfilled order whose password rotates every hour.
func scheduled(t *testing.T) *fakeWorld {
	t.Helper()
	return fulfilled(t, func(user *v1alpha1.KeystoneUser) { user.Spec.Rotation.Interval = &metav1.Duration{Duration: time.Hour} })
}

// credentialOrder creates a credential order of the user.
func (w *fakeWorld) credentialOrder(deleting bool) *v1alpha1.KeystoneApplicationCredential {
	w.t.Helper()
	credential := &v1alpha1.KeystoneApplicationCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: "agent", Finalizers: []string{"c5c3.io/test"}},
		Spec:       v1alpha1.KeystoneApplicationCredentialSpec{UserRef: v1alpha1.OrderRef{Name: orderKey.Name}, ProjectRef: v1alpha1.OrderRef{Name: "p"}},
	}
	w.must(w.client.Create(w.t.Context(), credential))
	if deleting {
		w.must(w.client.Delete(w.t.Context(), credential))
	}
	return credential
}

func (w *fakeWorld) message(kind string) string {
	w.t.Helper()
	for _, condition := range w.order().Status.Conditions {
		if condition.Type == kind {
			return condition.Message
		}
	}
	return ""
}

func TestAScheduledRotationSaysWhatItWaitsFor(t *testing.T) {
	w := scheduled(t)
	w.credentialOrder(true)
	w.clock.SetTime(w.order().Status.NextRotation.Time)
	w.pass()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if message := w.message(v1alpha1.ConditionUserReady); !strings.Contains(message, "being deleted") {
		t.Errorf("the message is %q", message)
	}
}

func TestARaisedGenerationDoesNotWaitForADeletion(t *testing.T) {
	w := scheduled(t)
	w.credentialOrder(true)
	w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 2 })
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.order().Status; status.PasswordGeneration != 2 {
		t.Errorf("status is %+v", status)
	}
}

func TestAScheduleIsNotHeldByACredentialOrderThatLives(t *testing.T) {
	w := scheduled(t)
	w.credentialOrder(false)
	w.clock.SetTime(w.order().Status.NextRotation.Time)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.order().Status; status.PasswordGeneration != 2 {
		t.Errorf("status is %+v", status)
	}
}

func TestAScheduledRotationWaitsForTheStore(t *testing.T) {
	w := scheduled(t)
	store := &externalsecrets.SecretStore{}
	for _, object := range w.plane() {
		if found, ok := object.(*externalsecrets.SecretStore); ok {
			store = found
		}
	}
	w.must(w.client.Delete(t.Context(), store.DeepCopy()))
	w.clock.SetTime(w.order().Status.NextRotation.Time)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.order().Status; status.PasswordGeneration != 1 || !strings.Contains(w.message(v1alpha1.ConditionUserReady), "scheduled rotation waits") {
		t.Errorf("status is %+v", status)
	}
	w.must(w.client.Create(t.Context(), store))
	w.settle()
	if status := w.order().Status; status.PasswordGeneration != 2 {
		t.Errorf("status is %+v", status)
	}
}
