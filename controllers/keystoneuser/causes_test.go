package keystoneuser

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// probing is a world whose order waits for what K-ORC says of the name.
func probing(t *testing.T) *fakeWorld {
	t.Helper()
	w := newFakeWorld(t)
	w.pass() // the finalizer
	w.pass() // the probe
	return w
}

// rotating is a world whose order waits for K-ORC to apply a new password.
func rotating(t *testing.T) *fakeWorld {
	t.Helper()
	w := fulfilled(t)
	w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 2 })
	w.pass()
	return w
}

func TestAnExternalKeystonesCauseReplacesTheWait(t *testing.T) {
	unavailable := func(user *orcv1alpha1.User, message string) {
		ordertest.Retrying(user, &user.Status.Conditions, message)
	}
	for name, c := range map[string]struct {
		child string
		await func(*testing.T) *fakeWorld
		tell  func(user *orcv1alpha1.User, message string)
	}{
		"for_the_probe": {probeChild, probing, unavailable},
		"for_the_user":  {userChild, func(t *testing.T) *fakeWorld { return fulfilled(t) }, unavailable},
		// K-ORC calls a user Available whatever becomes of its next password.
		"for_the_next_password": {userChild, rotating, func(user *orcv1alpha1.User, message string) {
			meta.SetStatusCondition(&user.Status.Conditions, metav1.Condition{
				Type: orcv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: user.Generation,
				Reason: orcv1alpha1.ConditionReasonSuccess, Message: "OpenStack resource is available",
			})
			meta.SetStatusCondition(&user.Status.Conditions, metav1.Condition{
				Type: orcv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, ObservedGeneration: user.Generation,
				Reason: orcv1alpha1.ConditionReasonTransientError, Message: message,
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for cause, message := range ordertest.Causes {
				t.Run(cause, func(t *testing.T) {
					w := c.await(t)
					user := w.korcUser(c.child)
					c.tell(user, message)
					w.must(w.client.Status().Update(t.Context(), user))
					w.pass()
					w.wants(v1alpha1.ConditionUserReady, cause)
					condition := meta.FindStatusCondition(w.order().Status.Conditions, v1alpha1.ConditionUserReady)
					if want := "external Keystone at " + w.keystone.URL + "/v3: " + message; condition.Message != want {
						t.Errorf("the message is\n%s, want\n%s", condition.Message, want)
					}
				})
			}
		})
	}
	t.Run("for_the_operators_own_login", func(t *testing.T) {
		w := rotating(t)
		w.korc()
		w.keystone.with(func() { w.keystone.down = true })
		w.pass()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonEndpointUnreachable)
		w.keystone.with(func() { w.keystone.down = false })
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
}
