package keystoneuser

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// fulfilled is a world whose order is fulfilled.
func fulfilled(t *testing.T, change ...func(*v1alpha1.KeystoneUser)) *fakeWorld {
	t.Helper()
	w := newFakeWorld(t, change...)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	return w
}

func TestAnOrderIsFulfilled(t *testing.T) {
	w := fulfilled(t)
	status, secret := w.order().Status, w.delivered()

	if id := w.keystone.find("robot"); status.UserID != id || status.PasswordGeneration != 1 || status.LastPasswordRotation == nil || status.NextRotation != nil {
		t.Errorf("status is %+v, Keystone's user is %s", status, id)
	}
	if status.SecretName != "robot-credentials" || !slices.Equal(status.SecretKeys, []string{"clouds.yaml", "password"}) {
		t.Errorf("status names Secret %q with keys %v", status.SecretName, status.SecretKeys)
	}
	parsed, err := clouds.Parse(secret.Data["clouds.yaml"])
	w.must(err)
	var password string
	w.keystone.with(func() { password = w.keystone.users[status.UserID].password })
	cloud := parsed[order.CloudName]
	if cloud.Password == nil || cloud.Password.Password != password || cloud.Password.Username != "robot" || cloud.Password.ProjectName != "" ||
		cloud.AuthURL != w.keystone.URL+"/v3" || string(secret.Data["password"]) != password || len(password) != 43 {
		t.Errorf("the delivered document does not log in to %s as robot without a project", cloud.AuthURL)
	}
	if got := w.secret(child("source")); len(got.Data) != 6 {
		t.Errorf("the backup has %d keys, want six", len(got.Data))
	}
	if w.korcUser(probeChild) != nil {
		t.Error("the probe is still there")
	}

	w.writes = nil
	w.keystone.asked()
	if result := w.pass(); result.RequeueAfter != 0 || len(w.writes) > 0 {
		t.Errorf("a steady pass wrote %v and comes back after %s", w.writes, result.RequeueAfter)
	}
	if asked := w.keystone.asked(); len(asked) > 0 {
		t.Errorf("a steady pass asked Keystone %v", asked)
	}
}

func TestNothingIsDeliveredBeforeItIsBackedUp(t *testing.T) {
	w := newFakeWorld(t)
	w.esoIdle = true
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonUserProvisioned)
	w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonBackupNotSynced)
	if w.delivered() != nil {
		t.Error("a Secret was delivered without a backup")
	}
}

func TestAnOrderIsRefused(t *testing.T) {
	named := func(name string) func(*v1alpha1.KeystoneUser) {
		return func(user *v1alpha1.KeystoneUser) { user.Spec.UserName = name }
	}
	for name, test := range map[string]struct {
		order  func(*v1alpha1.KeystoneUser)
		world  func(*fakeWorld)
		reason string
	}{
		"a_reserved_name": {order: named("Glance"), reason: v1alpha1.ReasonServiceAccountCollision},
		"a_taken_name": {order: named("robot"), reason: v1alpha1.ReasonServiceAccountCollision,
			world: func(w *fakeWorld) { w.keystone.create("robot", "theirs") }},
		"a_taken_name_that_k_orc_does_not_see": {order: named("robot"), reason: v1alpha1.ReasonServiceAccountCollision,
			world: func(w *fakeWorld) { w.keystone.create("robot", "theirs"); w.swallows = true }},
		"a_name_that_keystone_was_not_asked_about": {order: named("robot"), reason: v1alpha1.ReasonEndpointUnreachable,
			world: func(w *fakeWorld) { w.keystone.down, w.swallows = true, true }},
		"a_name_that_k_orc_has_not_looked_for": {order: named("robot"), reason: v1alpha1.ReasonProbingForCollision,
			world: func(w *fakeWorld) { w.korcIdle = true }},
		"no_store": {order: named("robot"), reason: v1alpha1.ReasonSecretStoreNotReady, world: func(w *fakeWorld) {
			w.must(w.client.Delete(w.t.Context(), &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: order.DefaultSecretStore}}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFakeWorld(t, test.order)
			if test.world != nil {
				test.world(w)
			}
			w.settle()
			w.wants(v1alpha1.ConditionUserReady, test.reason)
			w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForServiceAccounts)
			if w.korcUser(userChild) != nil || w.secret(child("password-v1")) != nil {
				t.Error("something was made for a refused order")
			}

			// Its deletion leaves what is not the order's.
			before := len(w.keystone.users)
			w.must(w.client.Delete(t.Context(), w.order()))
			w.keystone.with(func() { w.keystone.down = false })
			w.korcIdle = false
			w.settle()
			if !w.gone() || len(w.keystone.users) != before {
				t.Errorf("gone %t, %d users of %d left", w.gone(), len(w.keystone.users), before)
			}
		})
	}
}

func TestANameThatBecomesFreeIsTaken(t *testing.T) {
	w := newFakeWorld(t)
	theirs := w.keystone.create("robot", "theirs")
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountCollision)
	w.keystone.with(func() { w.keystone.users[theirs].name = "somebody" })
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	w.keystone.with(func() {
		if w.keystone.users[theirs].password != "theirs" {
			t.Error("the other user was changed")
		}
	})
}

func TestTheAuditFindsAUserThatIsGone(t *testing.T) {
	w := fulfilled(t)
	w.keystone.with(func() { delete(w.keystone.users, w.order().Status.UserID) })
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	w.base.AuditInterval = time.Minute
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonServiceAccountsFailed)

	// What the condition advises helps.
	w.must(w.client.Delete(t.Context(), w.korcUser(userChild)))
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
}

func TestARaisedGenerationRotates(t *testing.T) {
	w := fulfilled(t)
	before := w.delivered().Data["password"]
	w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 3 })

	w.pass()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonWaitingForServiceAccounts)
	if status := w.order().Status; status.PasswordGeneration != 1 || !status.LastPasswordRotation.Time.Equal(w.clock.Now()) {
		t.Errorf("before Keystone accepted it, status is %+v", status)
	}
	// The Secret is repaired to what was accepted, whatever is under way.
	secret := w.delivered()
	secret.Data["password"] = []byte("edited")
	w.must(w.client.Update(t.Context(), secret))
	w.pass()
	w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForServiceAccounts)
	if !bytes.Equal(w.delivered().Data["password"], before) {
		t.Error("the Secret was not repaired while a rotation waits")
	}

	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	status := w.order().Status
	var password string
	w.keystone.with(func() { password = w.keystone.users[status.UserID].password })
	if status.PasswordGeneration != 3 || password == string(before) || string(w.delivered().Data["password"]) != password {
		t.Errorf("status is %+v, and the Secret has Keystone's password: %t", status, string(w.delivered().Data["password"]) == password)
	}
	if w.secret(child("password-v1")) != nil || w.secret(child("password-v3")) == nil {
		t.Error("the superseded password was not pruned, or the current one was")
	}
}

func TestAScheduleRotates(t *testing.T) {
	w := fulfilled(t, func(user *v1alpha1.KeystoneUser) {
		user.Spec.Rotation.Interval = &metav1.Duration{Duration: time.Hour}
	})
	status := w.order().Status
	if want := status.LastPasswordRotation.Add(time.Hour); status.NextRotation == nil || !status.NextRotation.Time.Equal(want) {
		t.Fatalf("the next rotation is %v, want %s", status.NextRotation, want)
	}
	credential := &v1alpha1.KeystoneApplicationCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: "agent", Finalizers: []string{"c5c3.io/test"}},
		Spec:       v1alpha1.KeystoneApplicationCredentialSpec{UserRef: v1alpha1.OrderRef{Name: "robot"}, ProjectRef: v1alpha1.OrderRef{Name: "p"}},
	}
	w.must(w.client.Create(t.Context(), credential))
	w.must(w.client.Delete(t.Context(), credential))
	w.clock.SetTime(status.NextRotation.Time)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.order().Status; status.PasswordGeneration != 1 {
		t.Fatalf("rotated to %d while a credential order is being deleted", status.PasswordGeneration)
	}

	w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(credential), credential))
	credential.Finalizers = nil
	w.must(w.client.Update(t.Context(), credential))
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.order().Status; status.PasswordGeneration != 2 || !status.NextRotation.After(w.clock.Now()) {
		t.Errorf("after that, status is %+v", status)
	}
}

func TestARefusedPasswordIsNotDelivered(t *testing.T) {
	w := fulfilled(t)
	before := w.delivered().Data["password"]
	id := w.order().Status.UserID
	w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 2 })
	w.keystone.with(func() { w.keystone.users[id].disabled = true })
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonWaitingForServiceAccounts)
	if status := w.order().Status; status.PasswordGeneration != 1 || !bytes.Equal(w.delivered().Data["password"], before) {
		t.Errorf("status is %+v", status)
	}
	if w.secret(child("password-v1")) == nil {
		t.Error("the accepted password was pruned before the next one was accepted")
	}
	w.keystone.with(func() { w.keystone.users[id].disabled = false })
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
}

func TestAStoreThatIsAwayStopsRotationsOnly(t *testing.T) {
	w := fulfilled(t)
	w.must(w.client.Delete(t.Context(), &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: order.DefaultSecretStore}}))
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	w.change(func(user *v1alpha1.KeystoneUser) { user.Spec.PasswordGeneration = 2 })
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonSecretStoreNotReady)
	w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
	if w.secret(child("password-v2")) != nil {
		t.Error("a password was made that cannot be backed up")
	}
}

func TestWhatKORCGaveUpOnIsAskedOfKeystone(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*fakeWorld)
		reason, message string
		want            string
		cleared         bool
	}{
		"a_user_that_is_there": {reason: orcv1alpha1.ConditionReasonUnrecoverableError, message: "resource has been deleted from OpenStack",
			want: v1alpha1.ReasonWaitingForServiceAccounts, cleared: true},
		"a_user_that_is_gone": {reason: orcv1alpha1.ConditionReasonUnrecoverableError, message: "resource has been deleted from OpenStack",
			change: func(w *fakeWorld) { delete(w.keystone.users, w.order().Status.UserID) }, want: v1alpha1.ReasonServiceAccountsFailed},
		"nobody_answers": {reason: orcv1alpha1.ConditionReasonUnrecoverableError, message: "resource has been deleted from OpenStack",
			change: func(w *fakeWorld) { w.keystone.down = true }, want: v1alpha1.ReasonEndpointUnreachable},
		"a_conflict_on_a_name_of_ours": {reason: orcv1alpha1.ConditionReasonInvalidConfiguration, message: "invalid configuration creating resource: Expected HTTP response code [201] but got 409 instead",
			change: func(w *fakeWorld) { w.forgetID() }, want: v1alpha1.ReasonWaitingForServiceAccounts, cleared: true},
		"a_refused_password": {reason: orcv1alpha1.ConditionReasonInvalidConfiguration, message: "invalid configuration updating resource: the password does not match the requirements",
			want: v1alpha1.ReasonServiceAccountsFailed},
		"a_lost_connection": {reason: orcv1alpha1.ConditionReasonInvalidConfiguration, message: "invalid configuration updating resource: read tcp: connection reset by peer",
			want: v1alpha1.ReasonUserProvisioned, cleared: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := fulfilled(t)
			if test.change != nil {
				test.change(w)
			}
			w.giveUp(test.reason, test.message)
			// K-ORC leaves no Available=True behind what it cannot reach.
			user := w.korcUser(userChild)
			if test.want != v1alpha1.ReasonUserProvisioned {
				user.Status.Conditions = slices.DeleteFunc(user.Status.Conditions, func(c metav1.Condition) bool { return c.Type == orcv1alpha1.ConditionAvailable })
				w.must(w.client.Status().Update(t.Context(), user))
			}
			w.pass()
			if test.want != v1alpha1.ReasonUserProvisioned {
				w.wants(v1alpha1.ConditionUserReady, test.want)
			}
			latched := slices.ContainsFunc(w.korcUser(userChild).Status.Conditions, func(c metav1.Condition) bool { return c.Type == orcv1alpha1.ConditionProgressing })
			if latched == test.cleared {
				t.Errorf("K-ORC's condition was cleared: %t, want %t", !latched, test.cleared)
			}
			w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
		})
	}
}

// forgetID takes K-ORC's status away, as when it never learned of its create's success.
func (w *fakeWorld) forgetID() {
	user := w.korcUser(userChild)
	user.Status = orcv1alpha1.UserStatus{}
	w.must(w.client.Status().Update(w.t.Context(), user))
}

func TestALostKORCUserIsTakenUpAgain(t *testing.T) {
	for name, lost := range map[string][]string{
		"alone":                      {},
		"together_with_the_password": {"password-v1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fulfilled(t)
			id := w.order().Status.UserID
			for _, secret := range lost {
				w.must(w.client.Delete(t.Context(), w.secret(child(secret))))
			}
			w.losesUsers = true
			w.must(w.client.Delete(t.Context(), w.korcUser(userChild)))
			w.korc()
			w.losesUsers = false
			w.settle()
			w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
			status := w.order().Status
			// K-ORC calls the password of a user that it adopts applied. Only the next one is really set.
			var password string
			w.keystone.with(func() { password = w.keystone.users[id].password })
			if status.UserID != id || status.PasswordGeneration < 2 || string(w.delivered().Data["password"]) != password {
				t.Errorf("status is %+v; the Secret has Keystone's password: %t", status, string(w.delivered().Data["password"]) == password)
			}
		})
	}
}

func TestAUserThatWasMadeAnewIsVerifiedAnew(t *testing.T) {
	w := fulfilled(t)
	old := w.order().Status.UserID
	w.must(w.client.Delete(t.Context(), w.korcUser(userChild)))
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.order().Status; status.UserID == old || status.UserID != w.keystone.find("robot") || status.PasswordGeneration != 1 {
		t.Errorf("status is %+v", status)
	}
}

func TestADeletedOrderIsHeld(t *testing.T) {
	assignment := &v1alpha1.KeystoneRoleAssignment{ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: "member"}, Spec: v1alpha1.KeystoneRoleAssignmentSpec{UserRef: v1alpha1.OrderRef{Name: "robot"}}}
	credential := &v1alpha1.KeystoneApplicationCredential{ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: "agent"}, Spec: v1alpha1.KeystoneApplicationCredentialSpec{UserRef: v1alpha1.OrderRef{Name: "robot"}}}
	w := fulfilled(t)
	w.must(w.client.Create(t.Context(), assignment))
	w.must(w.client.Create(t.Context(), credential))
	w.must(w.client.Delete(t.Context(), w.order()))
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonReferencedByRoleAssignments)
	w.must(w.client.Delete(t.Context(), assignment))
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonReferencedByApplicationCredentials)
	if w.keystone.find("robot") == "" || w.delivered() == nil {
		t.Error("a held order lost something")
	}
	w.must(w.client.Delete(t.Context(), credential))
	w.settle()
	if !w.gone() {
		t.Error("the order is still there")
	}
}

func TestTeardownLeavesNothing(t *testing.T) {
	w := fulfilled(t)
	w.must(w.client.Delete(t.Context(), w.order()))
	w.settle()
	w.wantsNothingLeft()
	if w.happened(order.EventRevocationRepaired) {
		t.Error("an Event says that a revocation was repaired that needed no repair")
	}
}

func TestAUserThatOutlivesItsKORCObjectIsDeleted(t *testing.T) {
	w := fulfilled(t)
	w.losesUsers = true
	w.keystone.with(func() { w.keystone.down = true })
	w.must(w.client.Delete(t.Context(), w.order()))
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonWaitingForRevocation)
	if w.korcUser(userChild) != nil || w.secret(child("password-v1")) == nil {
		t.Error("K-ORC's object is still there, or the password went before Keystone answered")
	}
	w.keystone.with(func() { w.keystone.down = false })
	w.settle()
	w.wantsNothingLeft()
	if !w.happened(order.EventRevocationRepaired) {
		t.Error("no Event tells of the repaired revocation")
	}
}

func TestAUserWhoseIDNobodyKnowsIsFoundByItsPassword(t *testing.T) {
	for name, theirs := range map[string]bool{"ours": false, "somebody_elses": true} {
		t.Run(name, func(t *testing.T) {
			w := newFakeWorld(t)
			for w.korcUser(userChild) == nil {
				w.pass()
				if w.korcUser(userChild) == nil {
					w.korc()
				}
			}
			// K-ORC's create arrived, and its answer did not.
			password := string(w.secret(child("password-v1")).Data["password"])
			if theirs {
				password = "theirs"
			}
			w.keystone.create("robot", password)
			w.must(w.client.Delete(t.Context(), w.korcUser(userChild)))
			w.must(w.client.Delete(t.Context(), w.order()))
			w.settle()
			if left := w.keystone.find("robot") != ""; !w.gone() || left != theirs {
				t.Errorf("gone %t, a user of the name is left: %t", w.gone(), left)
			}
		})
	}
}

func TestWithTheControlPlaneGoneTheOrderIsReleasedWithAWarning(t *testing.T) {
	w := fulfilled(t)
	w.must(w.client.Delete(t.Context(), &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: planeNamespace, Name: "cp"}}))
	w.must(w.client.Delete(t.Context(), w.order()))
	w.pass()
	if !w.gone() || !w.happened("RevocationUnproven") {
		t.Error("the order is not released, or no Event says what is unproven")
	}
	w.korc()
	w.wantsNothingLeft()
}

func TestASecretThatIsNotOursIsNotTouched(t *testing.T) {
	w := newFakeWorld(t)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: "robot-credentials"}, Data: map[string][]byte{"theirs": []byte("x")}}
	w.must(w.client.Create(t.Context(), theirs))
	w.settle()
	w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDeliveryRefused)
	w.must(w.client.Delete(t.Context(), w.order()))
	w.settle()
	if got := w.delivered(); !w.gone() || got == nil || len(got.Data) != 1 {
		t.Error("somebody else's Secret was changed or deleted")
	}
}

func TestNoSecretIsShown(t *testing.T) {
	w := fulfilled(t)
	password := string(w.delivered().Data["password"])
	for _, condition := range w.order().Status.Conditions {
		if strings.Contains(condition.Message, password) {
			t.Errorf("condition %s shows the password", condition.Type)
		}
	}
	for len(w.events.Events) > 0 {
		if strings.Contains(<-w.events.Events, password) {
			t.Error("an Event shows the password")
		}
	}
}

func (w *fakeWorld) happened(reason string) bool {
	for len(w.events.Events) > 0 {
		if strings.Contains(<-w.events.Events, reason) {
			return true
		}
	}
	return false
}

func (w *fakeWorld) wantsNothingLeft() {
	w.t.Helper()
	if !w.gone() {
		w.t.Errorf("the order is still there: %+v", w.order().Status.Conditions)
	}
	if w.delivered() != nil {
		w.t.Error("the delivered Secret is still there")
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &orcv1alpha1.UserList{}, &externalsecrets.PushSecretList{}} {
		w.must(w.client.List(w.t.Context(), list, client.HasLabels{order.UserKind.NameLabel()}))
		switch list := list.(type) {
		case *corev1.SecretList:
			if len(list.Items) > 0 {
				w.t.Errorf("%d Secrets are left", len(list.Items))
			}
		case *orcv1alpha1.UserList:
			if len(list.Items) > 0 {
				w.t.Errorf("%d K-ORC Users are left", len(list.Items))
			}
		case *externalsecrets.PushSecretList:
			if len(list.Items) > 0 {
				w.t.Errorf("%d PushSecrets are left", len(list.Items))
			}
		}
	}
}

func TestNames(t *testing.T) {
	plane := &v1alpha1.ControlPlane{}
	plane.Spec.KORC.AdminCredential.UserName = "Chef"
	for name, want := range map[string]bool{
		"glance": true, "nova": true, "neutron-nova": true, "hypervisor-operator": true, "chef": true,
		"GLANCE": true, "Glancé": true, "Glance\u0301": true, "ＮＯＶＡ": false, "chéf": true, "nova ": true,
		"admin": false, "robot": false, "glance-backup": false,
	} {
		if got := reserved(plane, name); got != want {
			t.Errorf("%q is reserved: %t, want %t", name, got, want)
		}
	}
	if !reserved(&v1alpha1.ControlPlane{}, "Admin") {
		t.Error("the default administrator's name is not reserved")
	}
	for name, want := range map[string]bool{
		"robot": true, strings.Repeat("ü", 255): true,
		strings.Repeat("a", 256): false, "a,b": false, " ": false, "": false,
	} {
		if got := malformed(name) == ""; got != want {
			t.Errorf("%q is well-formed: %t, want %t", name, got, want)
		}
	}
}

func TestGenerationOf(t *testing.T) {
	s := &pass{Pass: &order.Pass{Kind: order.UserKind, Key: order.Key{Namespace: orderKey.Namespace, Name: orderKey.Name}}}
	prefix := s.Child("")
	for name, want := range map[string]int64{
		prefix + "password-v1": 1, prefix + "password-v42": 42, prefix + "password-v9223372036854775807": 9223372036854775807,
		prefix + "password-v0": 0, prefix + "password-v-1": 0, prefix + "password-v01": 0, prefix + "password-v+1": 0,
		prefix + "password-v": 0, prefix + "password-v1a": 0, prefix + "password-v9223372036854775808": 0,
		prefix + "source": 0, "password-v1": 0, "other-00000000-user-password-v1": 0, "": 0,
	} {
		if got := generationOf(name, prefix+passwordChild); got != want {
			t.Errorf("%q is generation %d, want %d", name, got, want)
		}
	}
}

func TestMintedGeneration(t *testing.T) {
	key := order.Key{Namespace: orderKey.Namespace, Name: orderKey.Name}
	prefix := order.UserKind.Prefix(key)
	ours := order.UserKind.Labels(key)
	for name, tc := range map[string]struct {
		labels    map[string]string
		name, ref string
		want      int64
	}{
		"ours":                       {ours, prefix + userChild, prefix + "password-v3", 3},
		"without_a_password_of_ours": {ours, prefix + userChild, "theirs", 0},
		"another_object_of_ours":     {ours, prefix + "source", prefix + "password-v3", 0},
		"without_our_labels":         {nil, prefix + userChild, prefix + "password-v3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			user := &orcv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Labels: tc.labels}}
			user.Spec.Resource = &orcv1alpha1.UserResourceSpec{PasswordRef: ptr.To(orcv1alpha1.KubernetesNameRef(tc.ref))}
			got, generation, ok := MintedGeneration(user)
			if generation != tc.want || ok != (tc.want > 0) {
				t.Errorf("it is generation %d (%t), want %d", generation, ok, tc.want)
			}
			if ok && got != key {
				t.Errorf("it is of %v, want %v", got, key)
			}
		})
	}
	if _, _, ok := MintedGeneration(&orcv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: prefix + userChild, Labels: ours}}); ok {
		t.Error("one that K-ORC only imports has a password")
	}
}

func TestDeclared(t *testing.T) {
	managed := func(ref, applied int64, adopted string) func(*pass) {
		return func(s *pass) {
			s.seen.managed = &orcv1alpha1.User{}
			s.seen.managed.Annotations = map[string]string{s.Kind.Annotation(adoptedAnnotation): adopted}
			s.seen.managed.Spec.Resource = &orcv1alpha1.UserResourceSpec{PasswordRef: ptr.To(orcv1alpha1.KubernetesNameRef(s.passwordName(ref)))}
			s.seen.managed.Status.Resource = &orcv1alpha1.UserResourceStatus{AppliedPasswordRef: s.passwordName(applied)}
		}
	}
	for name, test := range map[string]struct {
		spec, accepted int64
		change         func(*pass)
		want           int64
	}{
		"what_the_order_says":                                      {spec: 2, want: 2},
		"one_when_it_says_nothing":                                 {want: 1},
		"no_less_than_what_was_accepted":                           {spec: 1, accepted: 4, change: func(s *pass) { s.seen.passwords = map[int64][]byte{4: []byte("x")} }, want: 4},
		"more_when_what_was_accepted_is_lost":                      {spec: 1, accepted: 4, want: 5},
		"more_when_what_was_accepted_is_empty":                     {spec: 1, accepted: 4, change: func(s *pass) { s.seen.passwords = map[int64][]byte{4: nil} }, want: 5},
		"with_a_user_what_the_order_says":                          {spec: 2, accepted: 4, change: managed(4, 4, ""), want: 2},
		"more_when_k_orc_adopted_the_user_with_this_one":           {spec: 1, accepted: 4, change: managed(4, 4, "4"), want: 5},
		"not_before_k_orc_recorded_it":                             {spec: 1, accepted: 4, change: managed(4, 0, "4"), want: 1},
		"nothing_more_once_the_user_has_one_that_was_really_given": {spec: 1, accepted: 4, change: managed(5, 5, "4"), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			user := &v1alpha1.KeystoneUser{ObjectMeta: metav1.ObjectMeta{Namespace: orderKey.Namespace, Name: orderKey.Name}}
			user.Spec.PasswordGeneration, user.Status.PasswordGeneration = test.spec, test.accepted
			s := &pass{Pass: &order.Pass{Kind: order.UserKind, Key: order.KeyOf("", user)}, user: user}
			if test.change != nil {
				test.change(s)
			}
			if got := s.declared(); got != test.want {
				t.Errorf("declared is %d, want %d", got, test.want)
			}
		})
	}
}
