package keystoneuser

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

const robotMark = "KeystoneUser tenant-a/robot (uid order-uid)"

// forge writes an id into the order's status, as whoever may write it on the order's cluster can.
func (w *fakeWorld) forge(id string) {
	w.t.Helper()
	user := w.order()
	user.Status.UserID = id
	w.must(w.client.Status().Update(w.t.Context(), user))
}

func (w *fakeWorld) remove() {
	w.t.Helper()
	w.must(w.client.Delete(w.t.Context(), w.order()))
}

// loseKORCUser takes K-ORC's User away while the user in Keystone lives on.
func (w *fakeWorld) loseKORCUser() {
	w.t.Helper()
	w.losesUsers = true
	w.must(w.client.Delete(w.t.Context(), w.korcUser(userChild)))
	w.korc()
	w.losesUsers = false
}

func (w *fakeWorld) describe(id, description string) {
	w.keystone.with(func() { w.keystone.users[id].description = description })
}

func TestTheUserNamesItsOrder(t *testing.T) {
	w := fulfilled(t)
	if got := ptr.Deref(w.korcUser(userChild).Spec.Resource.Description, ""); got != robotMark {
		t.Errorf("K-ORC's User is described as %q", got)
	}
	w.keystone.with(func() {
		if got := w.keystone.users[w.order().Status.UserID].description; got != robotMark {
			t.Errorf("Keystone's user is described as %q", got)
		}
	})
}

// TestTeardownDeletesNobodyThatOnlyTheStatusNames plays what somebody with write access to the order's
// status could try: to have the operator delete another user with the administrator's rights.
func TestTeardownDeletesNobodyThatOnlyTheStatusNames(t *testing.T) {
	t.Run("once_the_orders_own_user_is_gone", func(t *testing.T) {
		w := fulfilled(t)
		w.remove()
		w.pass()
		w.korc()
		w.forge(fakeAdminID)
		w.settle()
		w.wantsNothingLeft()
		if !w.keystone.has(fakeAdminID) {
			t.Error("the administrator is gone")
		}
		if w.happened(order.EventRevocationRepaired) {
			t.Error("an Event tells of a repair")
		}
	})
	t.Run("nor_instead_of_the_orders_own_that_outlived_its_korc_object", func(t *testing.T) {
		w := fulfilled(t)
		w.losesUsers = true
		w.remove()
		w.pass()
		w.korc()
		w.forge(fakeAdminID)
		w.settle()
		w.wantsNothingLeft()
		if !w.keystone.has(fakeAdminID) || w.keystone.find("robot") != "" {
			t.Errorf("the administrator is there: %t, the order's user is left: %t", w.keystone.has(fakeAdminID), w.keystone.find("robot") != "")
		}
	})
	t.Run("for_an_order_that_never_had_a_user", func(t *testing.T) {
		w := newFakeWorld(t, func(user *v1alpha1.KeystoneUser) { user.Spec.UserName = "glance" })
		glance := w.keystone.create("glance", "theirs")
		w.settle()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountCollision)
		w.forge(glance)
		w.remove()
		w.settle()
		w.wantsNothingLeft()
		if !w.keystone.has(glance) {
			t.Error("the service's user is gone")
		}
	})
	t.Run("and_an_order_without_a_user_owes_keystone_no_answer_about_a_name_it_cannot_have", func(t *testing.T) {
		w := newFakeWorld(t, func(user *v1alpha1.KeystoneUser) { user.Spec.UserName = strings.Repeat("a", 256) })
		w.settle()
		w.forge(fakeAdminID)
		w.keystone.with(func() { w.keystone.down = true })
		w.remove()
		w.settle()
		w.wantsNothingLeft()
	})
	t.Run("nor_names_it_when_the_control_plane_is_gone", func(t *testing.T) {
		w := fulfilled(t)
		id := w.order().Status.UserID
		w.must(w.client.Delete(t.Context(), &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: "cp"}}))
		w.remove()
		w.forge(fakeAdminID)
		for len(w.events.Events) > 0 {
			<-w.events.Events
		}
		w.pass()
		warned := false
		for len(w.events.Events) > 0 {
			event := <-w.events.Events
			if strings.Contains(event, fakeAdminID) {
				t.Errorf("an Event sends people after somebody else's user: %s", event)
			}
			warned = warned || strings.Contains(event, id)
		}
		if !w.gone() || !warned {
			t.Errorf("gone %t, warned %t", w.gone(), warned)
		}
	})
}

func TestTeardownKnowsTheOrdersUser(t *testing.T) {
	t.Run("by_its_mark_when_korcs_object_was_lost_before", func(t *testing.T) {
		w := fulfilled(t)
		w.loseKORCUser()
		w.forge("")
		id := w.keystone.find("robot")
		w.keystone.with(func() { w.keystone.users[id].password = "changed" })
		w.remove()
		w.settle()
		w.wantsNothingLeft()
		if w.keystone.find("robot") != "" || !w.happened(order.EventRevocationRepaired) {
			t.Error("the order's user is left, or nobody was told")
		}
	})
	t.Run("by_the_id_that_korc_reported_when_somebody_renamed_and_described_it", func(t *testing.T) {
		w := fulfilled(t)
		id := w.order().Status.UserID
		w.keystone.with(func() { w.keystone.users[id].name, w.keystone.users[id].description = "renamed", "mine now" })
		w.losesUsers = true
		w.remove()
		w.pass()
		w.korc()
		w.forge("")
		w.settle()
		w.wantsNothingLeft()
		if w.keystone.has(id) {
			t.Error("the order's user is left")
		}
	})
	t.Run("and_leaves_a_namesake_alone_that_came_later", func(t *testing.T) {
		w := fulfilled(t)
		w.remove()
		w.pass()
		w.korc()
		theirs := w.keystone.create("robot", "theirs")
		w.forge(theirs)
		w.settle()
		w.wantsNothingLeft()
		if !w.keystone.has(theirs) {
			t.Error("somebody's user is gone")
		}
	})
	t.Run("and_leaves_one_alone_that_names_an_earlier_order_of_the_name", func(t *testing.T) {
		w := fulfilled(t)
		w.remove()
		w.pass()
		w.korc()
		theirs := w.keystone.create("robot", "theirs")
		w.describe(theirs, "KeystoneUser tenant-a/robot (uid another)")
		w.settle()
		w.wantsNothingLeft()
		if !w.keystone.has(theirs) {
			t.Error("somebody's user is gone")
		}
	})
}

func TestTheProbeTakesNobodyOverThatOnlyTheStatusNames(t *testing.T) {
	for name, swallows := range map[string]bool{"found_by_korc": false, "found_by_keystone": true} {
		t.Run(name, func(t *testing.T) {
			w := newFakeWorld(t)
			w.swallows = swallows
			theirs := w.keystone.create("robot", "theirs")
			w.forge(theirs)
			w.settle()
			w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountCollision)
			if w.korcUser(userChild) != nil {
				t.Error("K-ORC was given somebody's user")
			}
			w.keystone.with(func() {
				if user := w.keystone.users[theirs]; user.password != "theirs" || user.description != "" {
					t.Error("somebody's user was changed")
				}
			})
		})
	}
	t.Run("nor_one_that_names_another_order_of_the_same_name", func(t *testing.T) {
		w := newFakeWorld(t)
		w.describe(w.keystone.create("robot", "theirs"), "KeystoneUser tenant-a/robot on cluster edge (uid order-uid)")
		w.settle()
		w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountCollision)
	})
}

func TestAConflictWithSomebodyElsesUserIsNotCleared(t *testing.T) {
	w := fulfilled(t)
	w.forgetID()
	w.describe(w.keystone.find("robot"), "theirs")
	w.giveUp(orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: Expected HTTP response code [201] but got 409 instead")
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountsFailed)
	if w.korcUser(userChild).Status.ID != nil {
		t.Error("K-ORC was told to look again, and took somebody's user over")
	}
}

func TestAForgedIDIsNotWhatAPasswordIsVerifiedAgainst(t *testing.T) {
	w := newFakeWorld(t)
	w.settle()
	id := w.keystone.find("robot")
	w.forge(fakeAdminID)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if got := w.order().Status.UserID; got != id {
		t.Errorf("status names %s, want K-ORC's %s", got, id)
	}
}

// TestTwoOrdersForOneName lets both find the name free before either has taken it.
func TestTwoOrdersForOneName(t *testing.T) {
	w := newFakeWorld(t, func(user *v1alpha1.KeystoneUser) { user.Spec.UserName = "shared" })
	second := &v1alpha1.KeystoneUser{
		ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: "second", UID: "second-uid", Generation: 1},
		Spec: v1alpha1.KeystoneUserSpec{
			ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: planeNamespace}, UserName: "Shared",
		},
	}
	w.must(w.client.Create(t.Context(), second))
	keys := []types.NamespacedName{orderKey, client.ObjectKeyFromObject(second)}
	for range 2 { // the finalizer, and the probe
		for _, key := range keys {
			w.passOf(key)
		}
	}
	w.korc() // both probes find the name free
	for _, key := range keys {
		w.passOf(key)
	}
	prefix := order.UserKind.Prefix(order.KeyOf("", second))
	collision := func() {
		t.Helper()
		w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(second), second))
		condition := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionUserReady)
		if condition == nil || condition.Reason != v1alpha1.ReasonServiceAccountCollision {
			t.Errorf("the second order's condition is %+v", condition)
		} else if strings.Contains(condition.Message, "robot") {
			t.Errorf("the second is told whose the name is: %s", condition.Message)
		}
		for name, object := range map[string]client.Object{userChild: &orcv1alpha1.User{}, passwordChild + "1": &corev1.Secret{}} {
			err := w.client.Get(t.Context(), types.NamespacedName{Namespace: planeNamespace, Name: prefix + name}, object)
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s was made for the second order (%v)", name, err)
			}
		}
	}
	collision()
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	w.passOf(keys[1])
	w.korc()
	w.passOf(keys[1])
	collision()

	// The second one's end is not the first one's.
	w.must(w.client.Delete(t.Context(), second))
	for range 4 {
		w.passOf(keys[1])
		w.korc()
	}
	if w.keystone.find("shared") == "" {
		t.Error("the first order's user is gone")
	}
}
