package controlplane

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// TestControlPlane runs the registered controller against a real kube-apiserver with K-ORC's own CRDs.
// The controller runs with the operator's own roles, K-ORC is played by the test, and Keystone answers
// logins.
func TestControlPlane(t *testing.T) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(t.Output(), nil)))
	config := dependenciestest.StartAPIServer(t, "../..")
	dependenciestest.InstallKORC(t, config)
	dependenciestest.InstallESO(t, config)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, orcv1alpha1.AddToScheme, externalsecrets.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	startOperator(t, dependenciestest.AsOperator(t, config, "../.."), scheme)

	for name, test := range map[string]func(*plane){
		"gets_in_and_writes_nothing_more":                getsIn,
		"names_the_Secret_and_key_that_are_missing":      namesWhatIsMissing,
		"refuses_a_Secret_that_is_not_its_own":           refusesForeign,
		"a_blip_does_not_stop_the_house":                 survivesABlip,
		"a_wrong_password_is_told_and_corrected_at_once": correctsPassword,
		"the_cloud_outlives_the_password_Secret":         outlivesThePassword,
		"a_CA_bundle_that_nobody_names_is_removed":       removesTheBundle,
		"a_CA_bundle_is_all_that_is_trusted":             trustsItsBundleAlone,
		"K-ORC_giving_up_is_told":                        tellsKORC,
		"a_latched_transport_failure_is_cleared":         clearsLatch,
		"mirrors_its_namespaces":                         mirrors,
		"holds_its_deletion_for_its_orders":              holdsDeletion,
		"abandons_its_orders_when_told":                  abandons,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newPlane(t, kube))
		})
	}
}

func getsIn(p *plane) {
	p.ready()
	cp := p.read()
	if cp.Status.DomainID != "domain-id" || cp.Status.AdminUserID != "admin-id" || cp.Status.AuthURL != p.keystone.URL+"/v3" || cp.Status.ObservedGeneration != cp.Generation {
		p.Errorf("status: %+v", cp.Status)
	}
	secret := p.cloud()
	parsed, err := clouds.Parse(secret.Data[order.CloudsKey])
	cloud := parsed[order.CloudName]
	if err != nil || cloud.Password == nil || cloud.Password.Password != password || cloud.Password.ProjectName != "admin" || cloud.EndpointType != "public" {
		p.Errorf("the cloud is %+v, %v", cloud, err)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != cp.UID || secret.Labels[nameLabel] != cp.Name || secret.Labels[order.ManagedByLabel] != order.ManagedByValue {
		p.Errorf("nobody can tell whose it is: %+v", secret.ObjectMeta)
	}

	logins := p.keystone.count()
	versions := p.versions()
	p.touch() // wakes it
	p.poke()
	if now := p.versions(); now != versions {
		p.Errorf("a steady pass wrote: %s, then %s", versions, now)
	}
	if now := p.keystone.count(); now != logins {
		p.Errorf("a steady pass logged in %d times", now-logins)
	}
}

func namesWhatIsMissing(p *plane) {
	p.recreate(func() { p.delete(p.passwordSecret()) })
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForAdminPassword, p.namespace+"/keystone-admin", `"password"`)
	p.condition(v1alpha1.ConditionKeystoneReachable, metav1.ConditionUnknown, v1alpha1.ReasonWaitingForAdminCredential)
	p.create(&corev1.Secret{ObjectMeta: p.meta("keystone-admin"), StringData: map[string]string{"other": "x"}})
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForAdminPassword, `has no key "password"`)

	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.Services.Keystone.External.CABundleSecretRef = &v1alpha1.SecretReference{Name: "keystone-ca"}
	})
	p.edit("keystone-admin", func(secret *corev1.Secret) { secret.Data["password"] = []byte(password + "\n") })
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForCABundle, p.namespace+"/keystone-ca")
	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.Services.Keystone.External.CABundleSecretRef = nil
	})
	p.ready()
}

func refusesForeign(p *plane) {
	foreign := &corev1.Secret{ObjectMeta: p.meta("cp-admin-password-cloud"), StringData: map[string]string{"precious": "yes"}}
	p.recreate(func() { p.create(foreign) })
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneError, "refusing to adopt pre-existing Secret", "cp-admin-password-cloud")
	if secret := p.cloud(); string(secret.Data["precious"]) != "yes" || len(secret.Data) != 1 {
		p.Error("somebody's Secret was written to")
	}
	p.delete(foreign)
	p.ready()

	// With a foreign Secret back in its place, a deletion leaves that alone.
	p.edit("cp-admin-password-cloud", func(secret *corev1.Secret) { secret.Labels = nil })
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneError, "refusing to adopt")
	p.delete(p.read())
	p.eventually("the ControlPlane is gone", p.gone)
	p.cloud()
}

func survivesABlip(p *plane) {
	p.ready()
	p.keystone.answers(http.StatusServiceUnavailable)
	// A new password makes it log in.
	p.setPassword("new")
	p.condition(v1alpha1.ConditionKeystoneReachable, metav1.ConditionFalse, v1alpha1.ReasonEndpointUnreachable, p.keystone.URL)
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionTrue, v1alpha1.ReasonAdminCredentialAccepted)
	p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotAllReady, "KeystoneReachable: EndpointUnreachable")
	p.keystone.answers(0)
	p.keystone.accept("new")
	p.ready()
	p.condition(v1alpha1.ConditionKeystoneReachable, metav1.ConditionTrue, v1alpha1.ReasonKeystoneAnswers)
}

func correctsPassword(p *plane) {
	p.ready()
	p.setPassword("wrong")
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonAuthenticationFailed, "correct the password in the Secret")
	p.condition(v1alpha1.ConditionKeystoneReachable, metav1.ConditionTrue, v1alpha1.ReasonKeystoneAnswers)
	p.setPassword(password)
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionTrue, v1alpha1.ReasonAdminCredentialAccepted)
}

func outlivesThePassword(p *plane) {
	p.ready()
	p.delete(p.passwordSecret())
	p.touch()
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionTrue, v1alpha1.ReasonAdminCredentialAccepted, "does not exist", p.namespace+"/keystone-admin")
	p.delete(p.cloud())
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForAdminPassword)
}

func removesTheBundle(p *plane) {
	p.create(&corev1.Secret{ObjectMeta: p.meta("keystone-ca"), Data: map[string][]byte{order.CABundleKey: p.keystone.bundle()}})
	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.Services.Keystone.External.CABundleSecretRef = &v1alpha1.SecretReference{Name: "keystone-ca"}
	})
	p.eventually("the cloud carries the bundle", func() error { return p.hasBundle(true) })
	p.ready()
	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.Services.Keystone.External.CABundleSecretRef = nil
	})
	p.eventually("the cloud carries it no more", func() error { return p.hasBundle(false) })
}

func tellsKORC(p *plane) {
	p.gaveUp = "found more than one matching OpenStack resource during import"
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonAdminImportFailed, "found more than one", "cp-domain-default")
	p.condition(v1alpha1.ConditionKeystoneReachable, metav1.ConditionTrue, v1alpha1.ReasonKeystoneAnswers)
}

func clearsLatch(p *plane) {
	p.gaveUp = "Get http://keystone: read tcp 10.0.0.1:1->10.0.0.2:5000: read: connection reset by peer"
	p.eventually("the condition is cleared", func() error {
		domain := &orcv1alpha1.Domain{}
		if err := p.kube.Get(p.Context(), p.key("cp-domain-default"), domain); err != nil {
			return err
		}
		if domain.Annotations[korc.UnlatchedAtAnnotation] == "" {
			return fmt.Errorf("conditions are %+v", domain.Status.Conditions)
		}
		return nil
	})
	p.gaveUp = ""
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionTrue, v1alpha1.ReasonAdminCredentialAccepted)
}

func mirrors(p *plane) {
	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{
			{Namespace: p.namespace},
			{Namespace: "nowhere"},
			{Namespace: p.namespace, TargetClusterRef: &v1alpha1.ClusterReference{Name: "edge"}},
		}
	})
	want := []v1alpha1.NamespaceAssignmentStatus{
		{Namespace: p.namespace, ClusterReachable: true, NamespaceExists: true, Reason: v1alpha1.ReasonAssigned},
		{Namespace: "nowhere", ClusterReachable: true, Reason: v1alpha1.ReasonNamespaceNotFound},
		{Namespace: p.namespace, TargetCluster: "edge", Reason: v1alpha1.ReasonTargetClusterUnavailable},
	}
	p.eventually("status mirrors the assignments", func() error {
		if got := p.read().Status.NamespaceAssignments; fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("it holds %+v", got)
		}
		return nil
	})
}

func holdsDeletion(p *plane) {
	p.ready()
	for i := range 12 {
		p.create(&v1alpha1.KeystoneProject{ObjectMeta: p.meta(fmt.Sprintf("project-%02d", i)), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp"}}})
	}
	p.create(&v1alpha1.KeystoneUser{ObjectMeta: p.meta("robot"), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp"}}})
	p.delete(p.read())
	p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonReferencedByOrders,
		"13 orders", "KeystoneUser "+p.namespace+"/robot", "KeystoneProject "+p.namespace+"/project-00", "3 more", AbandonAnnotation)

	// It goes on serving: its orders need it to be revoked.
	p.setPassword("new")
	p.keystone.accept("new")
	p.eventually("the cloud follows the password", func() error {
		parsed, err := clouds.Parse(p.cloud().Data[order.CloudsKey])
		if err == nil && parsed[order.CloudName].Password.Password != "new" {
			err = errors.New("it does not")
		}
		return err
	})

	p.must(p.kube.DeleteAllOf(p.Context(), &v1alpha1.KeystoneProject{}, client.InNamespace(p.namespace)))
	p.must(p.kube.DeleteAllOf(p.Context(), &v1alpha1.KeystoneUser{}, client.InNamespace(p.namespace)))
	at := time.Now()
	p.eventually("the ControlPlane is gone", p.gone)
	if took := time.Since(at); took > 9*time.Second {
		p.Errorf("it went after %s: that was a timer, not the event", took)
	}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: p.meta("cp-admin-password-cloud")},
		&orcv1alpha1.User{ObjectMeta: p.meta("cp-user-admin")},
		&orcv1alpha1.Domain{ObjectMeta: p.meta("cp-domain-default")},
	} {
		if err := p.kube.Get(p.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			p.Errorf("%T %s is left: %v", object, object.GetName(), err)
		}
	}
}

func abandons(p *plane) {
	p.ready()
	p.create(&v1alpha1.KeystoneProject{ObjectMeta: p.meta("project"), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: v1alpha1.ControlPlaneRefSpec{Name: "cp"}}})
	p.delete(p.read())
	p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonReferencedByOrders, "1 orders")
	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Annotations = map[string]string{AbandonAnnotation: "true"}
	})
	p.eventually("the ControlPlane is gone", p.gone)
}

const password = "s3cret-of-the-test"

// plane is one ControlPlane cp in a namespace of its own, with a Keystone of its own.
type plane struct {
	*testing.T
	kube      client.Client
	namespace string
	keystone  *fakeKeystone
	// gaveUp has K-ORC end the import of the domain with this message.
	gaveUp string
}

func newPlane(t *testing.T, kube client.Client) *plane {
	t.Helper()
	p := &plane{T: t, kube: kube, keystone: newFakeKeystone(t)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plane-"}}
	p.create(namespace)
	p.namespace = namespace.Name
	p.create(&corev1.Secret{ObjectMeta: p.meta("keystone-admin"), StringData: map[string]string{"password": password}})
	store := &externalsecrets.SecretStore{ObjectMeta: p.meta(order.DefaultSecretStore)}
	p.create(store)
	store.Status.Conditions = []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue}}
	p.must(p.kube.Status().Update(t.Context(), store))
	p.create(p.controlPlane())
	return p
}

// recreate deletes the ControlPlane, does something, and creates it again. It waits until the operator
// holds it first: an API server may lose a finalizer that is added while it deletes, and what the
// operator wrote meanwhile is then left to the garbage collector, which does not run here.
func (p *plane) recreate(between func()) {
	p.Helper()
	p.ready()
	p.delete(p.read())
	p.eventually("the ControlPlane is gone", p.gone)
	between()
	p.create(p.controlPlane())
}

func (p *plane) controlPlane() *v1alpha1.ControlPlane {
	cp := &v1alpha1.ControlPlane{ObjectMeta: p.meta("cp")}
	cp.Spec.Services.Keystone.Mode = v1alpha1.KeystoneExternal
	cp.Spec.Services.Keystone.External = &v1alpha1.ExternalKeystone{AuthURL: p.keystone.URL + "/v3"}
	return cp
}

func (p *plane) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: p.namespace}
}

func (p *plane) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: p.namespace, Name: name}
}

func (p *plane) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *plane) create(object client.Object) { p.Helper(); p.must(p.kube.Create(p.Context(), object)) }
func (p *plane) delete(object client.Object) { p.Helper(); p.must(p.kube.Delete(p.Context(), object)) }

func (p *plane) read() *v1alpha1.ControlPlane {
	p.Helper()
	cp := &v1alpha1.ControlPlane{}
	p.must(p.kube.Get(p.Context(), p.key("cp"), cp))
	return cp
}

func (p *plane) gone() error {
	err := p.kube.Get(p.Context(), p.key("cp"), &v1alpha1.ControlPlane{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return errors.New("it is there")
}

func (p *plane) secret(name string) *corev1.Secret {
	p.Helper()
	secret := &corev1.Secret{}
	p.must(p.kube.Get(p.Context(), p.key(name), secret))
	return secret
}

func (p *plane) cloud() *corev1.Secret          { p.Helper(); return p.secret("cp-admin-password-cloud") }
func (p *plane) passwordSecret() *corev1.Secret { p.Helper(); return p.secret("keystone-admin") }

func (p *plane) hasBundle(want bool) error {
	cloud := &corev1.Secret{}
	if err := p.kube.Get(p.Context(), p.key("cp-admin-password-cloud"), cloud); err != nil {
		return err
	}
	if has := len(cloud.Data[order.CACertKey]) > 0; has != want {
		return fmt.Errorf("it has one: %v", has)
	}
	return nil
}

func (p *plane) setPassword(value string) {
	p.Helper()
	p.edit("keystone-admin", func(secret *corev1.Secret) { secret.Data["password"] = []byte(value) })
	p.poke()
}

// edit changes a Secret, whatever the operator writes to it meanwhile.
func (p *plane) edit(name string, change func(*corev1.Secret)) {
	p.Helper()
	secret := p.secret(name)
	before := secret.DeepCopy()
	change(secret)
	p.must(p.kube.Patch(p.Context(), secret, client.MergeFrom(before)))
}

// change changes the ControlPlane, whatever else the operator writes to it meanwhile.
func (p *plane) change(change func(*v1alpha1.ControlPlane)) {
	p.Helper()
	cp := p.read()
	before := cp.DeepCopy()
	change(cp)
	p.must(p.kube.Patch(p.Context(), cp, client.MergeFrom(before)))
}

// touch changes an annotation of the ControlPlane.
func (p *plane) touch() {
	p.Helper()
	p.change(func(cp *v1alpha1.ControlPlane) {
		metav1.SetMetaDataAnnotation(&cp.ObjectMeta, "test/touched", time.Now().String())
	})
}

// poke has the ControlPlane reconciled, and returns when a pass that began afterwards has ended: a
// child that is edited is repaired.
func (p *plane) poke() {
	p.Helper()
	cloud := &corev1.Secret{}
	if err := p.kube.Get(p.Context(), p.key("cp-admin-password-cloud"), cloud); err != nil {
		return
	}
	p.edit(cloud.Name, func(secret *corev1.Secret) { secret.Data[order.CloudsKey] = []byte("edited") })
	p.eventually("an edited cloud is repaired", func() error {
		if err := p.kube.Get(p.Context(), client.ObjectKeyFromObject(cloud), cloud); err != nil {
			return err
		}
		if string(cloud.Data[order.CloudsKey]) == "edited" {
			return errors.New("it is not")
		}
		return nil
	})
}

// versions are the versions of what a steady pass could write, the cloud left out: poke edits it.
func (p *plane) versions() string {
	p.Helper()
	domain, user := &orcv1alpha1.Domain{}, &orcv1alpha1.User{}
	p.must(p.kube.Get(p.Context(), p.key("cp-domain-default"), domain))
	p.must(p.kube.Get(p.Context(), p.key("cp-user-admin"), user))
	cp := p.read()
	return fmt.Sprintf("%s %s %+v", domain.ResourceVersion, user.ResourceVersion, cp.Status)
}

func (p *plane) ready() {
	p.Helper()
	p.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllReady)
}

func (p *plane) condition(kind string, status metav1.ConditionStatus, reason string, parts ...string) {
	p.Helper()
	p.eventually(fmt.Sprintf("%s is %s/%s", kind, status, reason), func() error {
		cp := &v1alpha1.ControlPlane{}
		if err := p.kube.Get(p.Context(), p.key("cp"), cp); err != nil {
			return err
		}
		conditions := cp.Status.Conditions
		got := meta.FindStatusCondition(conditions, kind)
		if got == nil || got.Status != status || got.Reason != reason {
			return fmt.Errorf("the conditions are %+v", conditions)
		}
		for _, part := range parts {
			if !strings.Contains(got.Message, part) {
				return fmt.Errorf("its message is %q", got.Message)
			}
		}
		if strings.Contains(fmt.Sprint(conditions), password) {
			p.Fatal("a condition holds the password")
		}
		return nil
	})
}

// eventually plays K-ORC until something holds, and fails when it does not within two minutes.
func (p *plane) eventually(what string, holds func() error) {
	p.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		p.playKORC()
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("after two minutes it does not hold that %s: %v", what, err)
		}
	}
}

// playKORC finds what is to be imported, or gives up on the domain.
func (p *plane) playKORC() {
	p.Helper()
	domain := &orcv1alpha1.Domain{}
	if p.kube.Get(p.Context(), p.key("cp-domain-default"), domain) == nil && len(domain.Status.Conditions) < 2 {
		p.conclude(&domain.Status.Conditions, domain.Generation, p.gaveUp)
		if p.gaveUp == "" {
			domain.Status.ID = new("domain-id")
			domain.Status.Resource = &orcv1alpha1.DomainResourceStatus{Name: "Default"}
		}
		p.mayConflict(p.kube.Status().Update(p.Context(), domain))
	}
	user := &orcv1alpha1.User{}
	if p.kube.Get(p.Context(), p.key("cp-user-admin"), user) == nil && len(user.Status.Conditions) < 2 {
		p.conclude(&user.Status.Conditions, user.Generation, "")
		user.Status.ID = new("admin-id")
		p.mayConflict(p.kube.Status().Update(p.Context(), user))
	}
}

func (p *plane) conclude(conditions *[]metav1.Condition, generation int64, gaveUp string) {
	available, reason, message := metav1.ConditionTrue, orcv1alpha1.ConditionReasonSuccess, "OpenStack resource is available"
	if gaveUp != "" {
		available, reason, message = metav1.ConditionFalse, orcv1alpha1.ConditionReasonInvalidConfiguration, gaveUp
	}
	for kind, status := range map[string]metav1.ConditionStatus{orcv1alpha1.ConditionAvailable: available, orcv1alpha1.ConditionProgressing: metav1.ConditionFalse} {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
	}
}

func (p *plane) mayConflict(err error) {
	p.Helper()
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		p.Fatal(err)
	}
}

// fakeKeystone answers logins.
type fakeKeystone struct {
	*httptest.Server

	mu       sync.Mutex
	password string
	status   int
	logins   int
}

func newFakeKeystone(t *testing.T) *fakeKeystone {
	t.Helper()
	k := &fakeKeystone{password: password}
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

// answers has Keystone answer with a status instead of doing anything; 0 has it work again.
func (k *fakeKeystone) answers(status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status = status
}

// accept changes the administrator's password.
func (k *fakeKeystone) accept(password string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.password = password
}

func (k *fakeKeystone) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.logins
}

// bundle is a certificate that means nothing here: this Keystone speaks plain HTTP.
func (k *fakeKeystone) bundle() []byte {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func (k *fakeKeystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logins++
	if k.status != 0 {
		w.WriteHeader(k.status)
		return
	}
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	user := &body.Auth.Identity.Password.User
	if json.NewDecoder(r.Body).Decode(&body) != nil || user.Name != "admin" || user.Password != k.password {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 401, "message": "The request you have made requires authentication."}})
		return
	}
	now := time.Now().UTC()
	w.Header().Set("X-Subject-Token", "token")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
		"issued_at": now.Format(time.RFC3339), "expires_at": now.Add(time.Hour).Format(time.RFC3339), "user": map[string]any{"id": "admin-id"},
		"catalog": []any{map[string]any{"type": "identity", "endpoints": []any{map[string]any{"interface": "public", "region": "RegionOne", "url": k.URL}}}},
	}})
}

// startOperator runs a manager with nothing but this controller, as the command would make it.
func startOperator(t *testing.T, config *rest.Config, scheme *runtime.Scheme) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	asker, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	mgr, err := mcmanager.New(config, nil, manager.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: command.Controllers(),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{order.ManagedByLabel: order.ManagedByValue})},
		}},
	})
	must(err)
	tracker := dependencies.NewTracker(asker, mgr.GetLogger())
	must(tracker.Refresh(t.Context()))
	must(tracker.Run(mgr.GetLocalManager()))
	for _, kind := range order.Kinds {
		must(order.IndexControlPlanes(t.Context(), mgr, kind))
	}
	env := order.Environment{
		Manager: mgr, Keystone: keystone.New(keystone.Config{Timeout: 5 * time.Second}),
		Clock: clock.RealClock{}, Late: tracker, AuditInterval: time.Hour,
	}
	must(Setup(t.Context(), env, tracker, controller.TypedOptions[mcreconcile.Request]{MaxConcurrentReconciles: 4}))

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
}
