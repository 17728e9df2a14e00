package credentialupdaterequest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

const (
	robot       = "robot"
	robotID     = "ac-1"
	robotSecret = "a-credential-secret-that-nobody-may-see"
	delivery    = "robot-credentials"
)

// newDelivery is a world in which the agent's credential "keystone" is delivered by the order "robot", and works.
func newDelivery(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, object := range (&ordertest.World{T: t, Keystone: w.keystone}).Plane() {
		w.must(w.client.Create(t.Context(), object))
	}
	plane := v1alpha1.ControlPlaneRefSpec{Namespace: ordertest.PlaneNamespace, Name: ordertest.PlaneName}
	w.must(w.client.Create(t.Context(), &v1alpha1.KeystoneUser{ObjectMeta: named("workflow"), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: plane}, Status: v1alpha1.KeystoneUserStatus{UserID: "u-1"}}))
	w.must(w.client.Create(t.Context(), &orcv1alpha1.User{
		ObjectMeta: korcUser,
		Spec:       orcv1alpha1.UserSpec{Resource: &orcv1alpha1.UserResourceSpec{PasswordRef: ptr.To(orcv1alpha1.KubernetesNameRef(passwordSecret.Name))}},
		Status:     orcv1alpha1.UserStatus{ID: ptr.To("u-1"), Resource: &orcv1alpha1.UserResourceStatus{AppliedPasswordRef: passwordSecret.Name}},
	}))
	w.must(w.client.Create(t.Context(), &v1alpha1.KeystoneApplicationCredential{
		ObjectMeta: named(robot),
		Spec:       v1alpha1.KeystoneApplicationCredentialSpec{ControlPlaneRef: plane, UserRef: v1alpha1.OrderRef{Name: "workflow"}, ProjectRef: v1alpha1.OrderRef{Name: "p"}},
		Status: v1alpha1.KeystoneApplicationCredentialStatus{
			CredentialID: robotID, CredentialGeneration: 1, SecretName: delivery, SecretKeys: []string{"id", order.CloudsKey, "secret"},
		},
	}))
	w.holds(robotID)
	w.keystone.With(func() {
		w.keystone.Users["u-1"] = &ordertest.FakeUser{Name: "workflow", Password: "p"}
		w.keystone.Projects["p-1"] = ordertest.FakeProject{Name: "p"}
		w.keystone.Grants["p-1/u-1/r-member"] = true
		w.keystone.Credentials[robotID] = ordertest.FakeCredential{UserID: "u-1", ProjectID: "p-1", Name: "robot", Secret: robotSecret}
	})
	return w
}

// holds writes the delivered Secret and its source, as the order does.
func (w *world) holds(id string) {
	w.t.Helper()
	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: w.keystone.URL + "/v3", ApplicationCredential: &clouds.ApplicationCredentialAuth{ID: id, Secret: robotSecret}})
	w.must(err)
	delivered := &corev1.Secret{ObjectMeta: named(delivery), Data: map[string][]byte{order.CloudsKey: document, "id": []byte(id), "secret": []byte(robotSecret)}}
	delivered.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KeystoneApplicationCredential", Name: robot, UID: robot + "-uid", Controller: ptr.To(true)}}
	source := ordertest.Child(order.ApplicationCredentialKind, robot, order.SourceChild)
	for _, secret := range []*corev1.Secret{delivered, {ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name}, Data: map[string][]byte{order.CloudsKey: document}}} {
		w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), secret.DeepCopy())))
		w.must(w.client.Create(w.t.Context(), secret))
	}
}

func (w *world) order() *v1alpha1.KeystoneApplicationCredential {
	w.t.Helper()
	o := &v1alpha1.KeystoneApplicationCredential{}
	w.must(w.client.Get(w.t.Context(), key(robot), o))
	return o
}

// orderIs changes the order's status.
func orderIs(change func(*v1alpha1.KeystoneApplicationCredentialStatus)) func(*world) {
	return func(w *world) {
		o := w.order()
		change(&o.Status)
		w.must(w.client.Status().Update(w.t.Context(), o))
	}
}

// revoked removes the credential in Keystone, as somebody would by hand.
func revoked(w *world) { w.keystone.With(func() { delete(w.keystone.Credentials, robotID) }) }

func credential(change func(*ordertest.FakeCredential)) func(*world) {
	return func(w *world) {
		w.keystone.With(func() {
			c := w.keystone.Credentials[robotID]
			change(&c)
			w.keystone.Credentials[robotID] = c
		})
	}
}

func expiringAt(d time.Duration) func(*world) {
	return func(w *world) {
		at := w.clock.Now().Add(d)
		credential(func(c *ordertest.FakeCredential) { c.ExpiresAt = at })(w)
	}
}

// korcUser is K-ORC's object of the KeystoneUser "workflow".
var korcUser = metav1.ObjectMeta{Namespace: ordertest.PlaneNamespace, Name: ordertest.Child(order.UserKind, "workflow", "user").Name}

// passwordSecret holds its password, which is of the third generation.
var passwordSecret = metav1.ObjectMeta{Namespace: ordertest.PlaneNamespace, Name: ordertest.Child(order.UserKind, "workflow", "password-v3").Name}

// statusNames has the KeystoneUser's status name another user, as whoever may write it could.
func statusNames(id string) func(*world) {
	return func(w *world) {
		user := &v1alpha1.KeystoneUser{}
		w.must(w.client.Get(w.t.Context(), key("workflow"), user))
		user.Status.UserID = id
		w.must(w.client.Status().Update(w.t.Context(), user))
	}
}

func TestDelivered(t *testing.T) {
	faulty := func(fault func(http.ResponseWriter, *http.Request) bool) func(*world) {
		return func(w *world) { w.keystone.With(func() { w.keystone.Fault = fault }) }
	}
	for name, c := range map[string]struct {
		given                func(*world)
		phase, determination string
		says                 string
	}{
		"it_works":                       {func(*world) {}, "Refused", "CredentialLive", "Read the Secret again"},
		"it_works_and_calls_are_refused": {reporting("mcpserver/keystone"), "Refused", "CredentialLive", ""},
		"it_was_revoked":                 {revoked, "Open", "HealingByRotation", "does not hold"},
		"it_has_expired":                 {expiringAt(-time.Second), "Open", "HealingByRotation", "within a minute"},
		"it_has_expired_in_a_grace_period": {both(expiringAt(-time.Second), orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) {
			s.PreviousCredentialDeleteAt = &metav1.Time{Time: time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)}
		})), "Open", "HealingByRotation", "2026-03-01T18:00:00Z"},
		"it_was_revoked_in_a_grace_period": {both(revoked, orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) {
			s.PreviousCredentialDeleteAt = &metav1.Time{Time: time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)}
		})), "Open", "HealingByRotation", "within a minute"},
		"the_role_is_missing": {func(w *world) { w.keystone.Grant("p-1", "u-1", "r-member", false) }, "Refused", "NotUpdatable", "no role"},
		"the_role_is_missing_and_the_status_names_another_user": {both(func(w *world) { w.keystone.Grant("p-1", "u-1", "r-member", false) }, statusNames("u-admin")), "Refused", "NotUpdatable", "no role"},
		"it_was_revoked_and_the_status_names_nobody":            {both(revoked, statusNames("")), "Open", "HealingByRotation", ""},
		"korc_has_no_user":         {both(revoked, deleting(&orcv1alpha1.User{ObjectMeta: korcUser})), "Refused", "NotUpdatable", "not there"},
		"the_user_is_disabled":     {func(w *world) { w.keystone.With(func() { w.keystone.Users["u-1"].Disabled = true }) }, "Refused", "NotUpdatable", "disabled"},
		"the_user_is_gone":         {func(w *world) { w.keystone.With(func() { delete(w.keystone.Users, "u-1") }); revoked(w) }, "Refused", "NotUpdatable", "does not hold its user"},
		"another_secret":           {credential(func(c *ordertest.FakeCredential) { c.Secret = "x" }), "Refused", "NotUpdatable", "generation"},
		"the_document_is_edited":   {func(w *world) { w.changes(delivery, order.CloudsKey, "clouds: {}") }, "Refused", "NotUpdatable", "changed the delivered Secret"},
		"another_key_is_edited":    {func(w *world) { w.changes(delivery, "id", "x"); revoked(w) }, "Refused", "NotUpdatable", "changed the delivered Secret"},
		"a_rotation_is_on_its_way": {both(revoked, orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) { s.SecretName = "" })), "Refused", "NotUpdatable", "does not carry the current credential"},
		"the_order_is_refused": {both(revoked, orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) {
			s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionCredentialReady, Status: "False", Reason: v1alpha1.ReasonNoRoleOnProject, LastTransitionTime: metav1.Now()}}
		})), "Refused", "NotUpdatable", "NoRoleOnProject"},
		"the_consent_is_withdrawn": {both(revoked, func(w *world) {
			cp := &v1alpha1.ControlPlane{}
			w.must(w.client.Get(w.t.Context(), types.NamespacedName{Namespace: ordertest.PlaneNamespace, Name: ordertest.PlaneName}, cp))
			cp.Spec.NamespaceAssignments = nil
			w.must(w.client.Update(w.t.Context(), cp))
		}), "Refused", "NotUpdatable", "consent"},
		"keystone_is_down":      {both(revoked, func(w *world) { w.keystone.Down(true) }), "Refused", "Unverified", "EndpointUnreachable"},
		"a_proxy_says_404":      {faulty(ordertest.Proxied(http.StatusNotFound)), "Refused", "Unverified", ""},
		"a_proxy_says_401":      {faulty(ordertest.Proxied(http.StatusUnauthorized)), "Refused", "Unverified", ""},
		"keystone_forbids":      {faulty(ordertest.Refused(http.StatusForbidden, "no")), "Refused", "Unverified", ""},
		"keystone_is_silent":    {faulty(ordertest.Silent), "Refused", "Unverified", ""},
		"the_connection_breaks": {faulty(func(w http.ResponseWriter, _ *http.Request) bool { ordertest.Reset(w); return true }), "Refused", "Unverified", ""},
		"the_name_is_unknown":   {adminAt("http://no-such-host.invalid:5000/v3"), "Refused", "Unverified", ""},
		"the_certificate_is_nobodys": {func(w *world) {
			server := httptest.NewTLSServer(w.keystone)
			w.t.Cleanup(server.Close)
			adminAt(server.URL + "/v3")(w)
			revoked(w)
		}, "Refused", "Unverified", "TLSVerificationFailed"},
		"our_clock_is_ten_minutes_ahead":  {both(expiringAt(5*time.Minute), skewed(-10*time.Minute)), "Refused", "CredentialLive", ""},
		"our_clock_is_ten_minutes_behind": {both(expiringAt(5*time.Minute), skewed(10*time.Minute)), "Open", "HealingByRotation", ""},
		"a_wrong_secret_on_a_clock_ahead": {both(both(expiringAt(-5*time.Minute), credential(func(c *ordertest.FakeCredential) { c.Secret = "x" })), skewed(-10*time.Minute)), "Refused", "NotUpdatable", "generation"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDelivery(t)
			c.given(w)
			w.files("r", session, "mcpserver/keystone")
			status := w.pass("r")
			w.wants(status, c.phase, c.determination, c.says)
			if verdict.AsksHuman(status.Determination) {
				t.Error("a human is asked for what an order would overwrite")
			}
			if want := c.phase == agents.PhaseOpen; want != (w.order().Annotations[order.RotateAnnotation] == robotID) {
				t.Errorf("the order's annotations are %v", w.order().Annotations)
			}
			w.keeps(status, robotSecret)
			if w.asked.Load() != 0 {
				t.Error("a provider of the catalog was asked")
			}
		})
	}
}

// skewed sets Keystone's clock apart from ours.
func skewed(d time.Duration) func(*world) {
	return func(w *world) {
		w.keystone.With(func() { w.keystone.Now = func() time.Time { return w.clock.Now().Add(d) } })
	}
}

// adminAt sends the operator's logins somewhere else.
func adminAt(url string) func(*world) {
	return func(w *world) {
		cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ordertest.PlaneNamespace, Name: ordertest.PlaneName}}
		secret := &corev1.Secret{}
		w.must(w.client.Get(w.t.Context(), types.NamespacedName{Namespace: cp.Namespace, Name: order.AdminCloudName(cp)}, secret))
		document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: url, Password: &clouds.PasswordAuth{Username: "admin", UserDomainName: "Default", Password: ordertest.AdminPassword}})
		w.must(err)
		secret.Data[order.CloudsKey] = document
		w.must(w.client.Update(w.t.Context(), secret))
	}
}

// The login goes where the ControlPlane says, whatever the Secret says: its writer could collect it.
func TestDelivered_is_asked_of_the_control_planes_keystone(t *testing.T) {
	w := newDelivery(t)
	adminAt("http://127.0.0.1:1/v3")(w)
	w.files("r", session, "mcpserver/keystone")
	w.wants(w.pass("r"), "Refused", "Unverified")
	if asked := w.keystone.Asked(); len(asked) > 0 {
		t.Errorf("the Secret's address was asked: %v", asked)
	}
}

// Whoever may write a Secret may write its owner. The order has to be that one and to deliver that Secret.
func TestDelivered_by_nobody(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"no_owner":                 func(s *corev1.Secret) { s.OwnerReferences = nil },
		"an_order_of_another_uid":  func(s *corev1.Secret) { s.OwnerReferences[0].UID = "x" },
		"an_order_that_is_no_more": func(s *corev1.Secret) { s.OwnerReferences[0].Name = "x" },
		"another_kind":             func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "KeystoneProject" },
		"no_controller":            func(s *corev1.Secret) { s.OwnerReferences[0].Controller = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newDelivery(t)
			secret := w.secret(delivery)
			change(secret)
			w.must(w.client.Update(t.Context(), secret))
			revoked(w)
			w.files("r", session, "mcpserver/keystone")
			w.wants(w.pass("r"), "Refused", "Unverified")
			if len(w.order().Annotations) > 0 {
				t.Error("the order was asked to rotate")
			}
		})
	}
}

func TestHealing(t *testing.T) {
	w := newDelivery(t)
	revoked(w)
	w.files("r", session, "mcpserver/keystone")
	// The first attempt at the order fails, after the request was opened: the next pass asks again.
	w.fail = func(call string) error {
		if strings.HasPrefix(call, "patch *v1alpha1.KeystoneApplicationCredential") {
			return errAPI
		}
		return nil
	}
	if _, err := w.try("r"); err == nil {
		t.Fatal("it does not come back")
	}
	w.fail = nil
	w.wants(w.status("r"), "Open", "HealingByRotation")
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	if got := w.order().Annotations[order.RotateAnnotation]; got != robotID {
		t.Fatalf("the order is asked to rotate %q", got)
	}
	// Another session waits for the same.
	w.files("s", "s2", "mcpserver/keystone")
	w.wants(w.pass("s"), "Collapsed", "Collapsed")

	// Somebody who edits the Secret meanwhile has not rotated anything. The order writes it again.
	was := string(w.secret(delivery).Data[order.CloudsKey])
	w.changes(delivery, order.CloudsKey, "clouds: {}")
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	w.changes(delivery, order.CloudsKey, was)

	orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) { s.CredentialID, s.SecretName = "ac-2", "" })(w)
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	w.changes(delivery, order.CloudsKey, "clouds: {}")
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	w.holds("ac-2")
	orderIs(func(s *v1alpha1.KeystoneApplicationCredentialStatus) { s.SecretName = delivery })(w)
	status := w.pass("r")
	w.wants(status, "Fulfilled", "HealingByRotation")
	w.wants(w.pass("s"), "Fulfilled", "HealingByRotation")
	if got := w.order().Annotations[order.RotateAnnotation]; got != robotID {
		t.Errorf("the order is asked to rotate %q, which works", got)
	}
}

func TestHealing_that_takes_too_long(t *testing.T) {
	w := newDelivery(t)
	revoked(w)
	w.files("r", session, "mcpserver/keystone")
	w.pass("r")
	w.clock.SetTime(w.clock.Now().Add(credupdate.AskWindow))
	status := w.pass("r")
	w.wants(status, "Expired", "HealingByRotation")
	if strings.Contains(status.Reason, "card") || !strings.Contains(status.Reason, "conditions") {
		t.Errorf("the reason is %s", status.Reason)
	}
}

const (
	userDelivery = "workflow-credentials"
	userPassword = "a-password-that-nobody-may-see"
)

// newPasswordDelivery is a world in which the agent's credential "keystone" is the password that the order
// "workflow" delivers, and works.
func newPasswordDelivery(t *testing.T) *world {
	t.Helper()
	w := newDelivery(t)
	w.keystone.With(func() { w.keystone.Users["u-1"].Password = userPassword })
	userIs(func(s *v1alpha1.KeystoneUserStatus) {
		s.PasswordGeneration, s.SecretName, s.SecretKeys = 3, userDelivery, []string{order.CloudsKey, "password"}
	})(w)
	w.must(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: passwordSecret, Data: map[string][]byte{"password": []byte(userPassword)}}))
	w.holdsPassword(userPassword)
	bot := &agents.AgentIdentity{}
	w.must(w.client.Get(t.Context(), key("bot"), bot))
	for i := range bot.Spec.Credentials {
		if bot.Spec.Credentials[i].Name == "keystone" {
			bot.Spec.Credentials[i].Static.SecretRef = agents.SecretKeyReference{Name: userDelivery, Key: "password"}
		}
	}
	w.must(w.client.Update(t.Context(), bot))
	return w
}

// holdsPassword writes the delivered Secret and its source, as the order does.
func (w *world) holdsPassword(password string) {
	w.t.Helper()
	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: w.keystone.URL, Password: &clouds.PasswordAuth{Username: "workflow", UserDomainName: "Default", Password: password}})
	w.must(err)
	source := ordertest.Child(order.UserKind, "workflow", order.SourceChild)
	delivered := &corev1.Secret{ObjectMeta: named(userDelivery), Data: map[string][]byte{order.CloudsKey: document, "password": []byte(password)}}
	delivered.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KeystoneUser", Name: "workflow", UID: "workflow-uid", Controller: ptr.To(true)}}
	for _, secret := range []*corev1.Secret{delivered, {ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name}, Data: map[string][]byte{order.CloudsKey: document}}} {
		w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), secret.DeepCopy())))
		w.must(w.client.Create(w.t.Context(), secret))
	}
}

func (w *world) user() *v1alpha1.KeystoneUser {
	w.t.Helper()
	user := &v1alpha1.KeystoneUser{}
	w.must(w.client.Get(w.t.Context(), key("workflow"), user))
	return user
}

// userIs changes the status of the KeystoneUser.
func userIs(change func(*v1alpha1.KeystoneUserStatus)) func(*world) {
	return func(w *world) {
		user := w.user()
		change(&user.Status)
		w.must(w.client.Status().Update(w.t.Context(), user))
	}
}

// keystoneUser changes the user in Keystone.
func keystoneUser(change func(*ordertest.FakeUser)) func(*world) {
	return func(w *world) { w.keystone.With(func() { change(w.keystone.Users["u-1"]) }) }
}

// korcIs changes K-ORC's object of the user.
func korcIs(change func(*orcv1alpha1.User)) func(*world) {
	return func(w *world) {
		managed := &orcv1alpha1.User{}
		w.must(w.client.Get(w.t.Context(), types.NamespacedName{Namespace: korcUser.Namespace, Name: korcUser.Name}, managed))
		change(managed)
		w.must(w.client.Update(w.t.Context(), managed))
	}
}

func TestDelivered_password(t *testing.T) {
	changed := keystoneUser(func(u *ordertest.FakeUser) { u.Password = "by hand" })
	expiringIn := func(d time.Duration) func(*world) {
		return func(w *world) {
			at := w.clock.Now().Add(d)
			keystoneUser(func(u *ordertest.FakeUser) { u.PasswordExpiresAt = at })(w)
		}
	}
	for name, c := range map[string]struct {
		given                func(*world)
		phase, determination string
		says                 string
	}{
		"it_works":                               {func(*world) {}, "Refused", "CredentialLive", ""},
		"it_works_and_calls_are_refused":         {reporting("mcpserver/keystone"), "Refused", "CredentialLive", ""},
		"it_was_changed_by_hand":                 {changed, "Open", "HealingByRotation", "does not take the password"},
		"it_has_expired":                         {expiringIn(-time.Second), "Open", "HealingByRotation", "has expired"},
		"it_expires_soon":                        {expiringIn(time.Minute), "Refused", "CredentialLive", ""},
		"it_has_expired_on_keystones_clock_only": {both(expiringIn(5*time.Minute), skewed(10*time.Minute)), "Open", "HealingByRotation", "has expired"},
		"it_has_expired_on_our_clock_only":       {both(expiringIn(-5*time.Minute), skewed(-10*time.Minute)), "Refused", "CredentialLive", ""},
		"the_user_is_disabled":                   {both(changed, keystoneUser(func(u *ordertest.FakeUser) { u.Disabled = true })), "Refused", "NotUpdatable", "disabled"},
		"the_user_is_gone":                       {func(w *world) { w.keystone.With(func() { delete(w.keystone.Users, "u-1") }) }, "Refused", "NotUpdatable", "does not hold its user"},
		"the_status_names_another_user":          {both(keystoneUser(func(u *ordertest.FakeUser) { u.Disabled = true }), statusNames("u-admin")), "Refused", "NotUpdatable", "disabled"},
		"korc_has_no_user":                       {both(changed, deleting(&orcv1alpha1.User{ObjectMeta: korcUser})), "Refused", "NotUpdatable", "no user"},
		"it_is_edited":                           {both(changed, func(w *world) { w.changes(userDelivery, "password", "x") }), "Refused", "NotUpdatable", "changed the delivered Secret"},
		"the_next_one_is_being_set": {both(changed, korcIs(func(u *orcv1alpha1.User) {
			u.Spec.Resource.PasswordRef = ptr.To(orcv1alpha1.KubernetesNameRef(ordertest.Child(order.UserKind, "workflow", "password-v4").Name))
		})), "Refused", "NotUpdatable", "under way"},
		"the_next_one_is_set_and_not_delivered": {both(changed, func(w *world) {
			w.must(w.client.Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: korcUser.Namespace, Name: ordertest.Child(order.UserKind, "workflow", "password-v4").Name}, Data: map[string][]byte{"password": []byte("next")}}))
			korcIs(func(u *orcv1alpha1.User) {
				next := ordertest.Child(order.UserKind, "workflow", "password-v4").Name
				u.Spec.Resource.PasswordRef, u.Status.Resource.AppliedPasswordRef = ptr.To(orcv1alpha1.KubernetesNameRef(next)), next
			})(w)
		}), "Refused", "NotUpdatable", "under way"},
		"its_secret_is_lost": {both(changed, deleting(&corev1.Secret{ObjectMeta: passwordSecret})), "Refused", "NotUpdatable", "under way"},
		"the_order_is_refused": {both(changed, userIs(func(s *v1alpha1.KeystoneUserStatus) {
			s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUserReady, Status: "False", Reason: v1alpha1.ReasonServiceAccountCollision, LastTransitionTime: metav1.Now()}}
		})), "Refused", "NotUpdatable", "ServiceAccountCollision"},
		"keystone_is_down": {both(changed, func(w *world) { w.keystone.Down(true) }), "Refused", "Unverified", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPasswordDelivery(t)
			c.given(w)
			w.files("r", session, "mcpserver/keystone")
			status := w.pass("r")
			w.wants(status, c.phase, c.determination, c.says)
			asked := ""
			if c.phase == agents.PhaseOpen {
				asked = keystoneuser.DeadPassword(3, w.clock.Now())
			}
			if got := w.user().Annotations[order.RotateAnnotation]; got != asked {
				t.Errorf("the order is asked to replace %q, want %q", got, asked)
			}
			w.keeps(status, userPassword)
		})
	}
}

func TestHealing_a_password(t *testing.T) {
	w := newPasswordDelivery(t)
	keystoneUser(func(u *ordertest.FakeUser) { u.Password = "by hand" })(w)
	// An earlier claim about the same generation was wrong then; it must not swallow this one.
	user := w.user()
	user.Annotations = map[string]string{order.RotateAnnotation: keystoneuser.DeadPassword(3, w.clock.Now().Add(-time.Hour))}
	w.must(w.client.Update(t.Context(), user))
	w.files("r", session, "mcpserver/keystone")
	w.fail = func(call string) error {
		if strings.HasPrefix(call, "patch *v1alpha1.KeystoneUser") {
			return errAPI
		}
		return nil
	}
	if _, err := w.try("r"); err == nil {
		t.Fatal("it does not come back")
	}
	w.fail = nil
	asked := keystoneuser.DeadPassword(3, w.clock.Now())
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	if got := w.user().Annotations[order.RotateAnnotation]; got != asked {
		t.Fatalf("the order is asked to replace %q, want %q", got, asked)
	}
	w.changes(userDelivery, "password", "x") // an edit is no rotation
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	w.changes(userDelivery, "password", userPassword)
	// The order is asked once, also when its status is ahead of its Secret.
	userIs(func(s *v1alpha1.KeystoneUserStatus) { s.PasswordGeneration, s.SecretName = 4, "" })(w)
	w.wants(w.pass("r"), "Open", "HealingByRotation")
	if got := w.user().Annotations[order.RotateAnnotation]; got != asked {
		t.Fatalf("the order is asked to replace %q as well", got)
	}
	w.holdsPassword("the next one")
	userIs(func(s *v1alpha1.KeystoneUserStatus) { s.SecretName = userDelivery })(w)
	w.wants(w.pass("r"), "Fulfilled", "HealingByRotation")
}
