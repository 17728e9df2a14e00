package crash

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// The schedule of the life. Faults and clocks that are apart move things by minutes; these are longer, so
// that no rotation comes twice.
const (
	interval = 24 * time.Hour
	grace    = time.Hour
)

// names of the four orders.
var names = map[string]string{
	order.UserKind.Name:                  "workflow",
	order.ProjectKind.Name:               "workflow-project",
	order.RoleAssignmentKind.Name:        "workflow-member",
	order.ApplicationCredentialKind.Name: "agent",
}

// life is the four orders of one service from their creation to their deletion, and the world around them.
type life struct {
	tb interface {
		Helper()
		Fatalf(format string, args ...any)
	}
	ctx context.Context

	raw      client.WithWatch // the API server
	recorded client.WithWatch // the same, noting every version
	people   client.Client    // what K-ORC, ESO and people see: the present
	history  *history
	keystone *ordertest.FakeKeystone
	korc     *ordertest.FakeKORC
	eso      *ordertest.FakeESO
	clock    *testingclock.FakePassiveClock
	events   *recorder

	plane, tenant string // namespaces
	interrupter   *interrupter
	operator      *operator
	stops         int
	// lag is how many versions of a kind the operator's cache does not have yet. synced is up to when it
	// has everything nevertheless.
	lag    func(schema.GroupVersionKind) int
	synced int
	// patience is how long the operator and K-ORC wait for Keystone, on the real clock.
	patience time.Duration
	// skew is how far Keystone's clock is ahead.
	skew time.Duration
	// due is when an order asked for its next pass.
	due map[string]time.Time
	// asleep: the world is at rest, and nobody would ever look again.
	asleep bool
	trace  []string
	// generation is the credential's before the teardown.
	generation int64
	// disturbance is what goes wrong, nil for nothing.
	disturbance *disturbance
	promises    promises
}

// newLife makes the world of a life: a ControlPlane that consents, its Keystone, and no order yet.
func newLife(t *testing.T, scheme *runtime.Scheme, cluster func() client.WithWatch, suffix string) *life {
	t.Helper()
	l := &life{
		tb: t, ctx: t.Context(), history: newHistory(scheme), keystone: ordertest.NewKeystone(t),
		clock:  testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		events: &recorder{}, plane: "openstack" + suffix, tenant: "tenant" + suffix,
		lag: func(schema.GroupVersionKind) int { return 0 }, patience: 10 * time.Second, due: map[string]time.Time{},
	}
	l.interrupter = &interrupter{how: undisturbed, note: func(what string) { l.note("%s", what) }}
	l.keystone.Now = func() time.Time { return l.clock.Now().Add(l.skew) }
	l.keystone.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		return l.interrupter.fault(w, r) || l.disturbance.answers(l, w, r)
	}
	l.keystone.Delivery = func(r *http.Request, status int) ordertest.Delivery {
		if delivery := l.interrupter.delivery(r, status); delivery != ordertest.Answered {
			return delivery
		}
		return l.disturbance.delivers(l, r)
	}
	l.raw = cluster()
	l.recorded = l.history.recorded(l.raw)
	l.people = view{Client: l.recorded, history: l.history, moment: func(schema.GroupVersionKind) int { return l.history.length }}
	l.korc = &ordertest.FakeKORC{
		Client: l.people, Namespace: l.plane, Now: l.clock.Now, Stuck: func(o client.Object) (string, string) { return l.disturbance.stuck(l, o) },
		HTTP: &http.Client{Timeout: l.patience, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	l.eso = &ordertest.FakeESO{Client: l.people, Namespace: l.plane, Now: l.clock.Now, Store: map[string]map[string][]byte{}}
	l.furnish()
	l.startOperator()
	return l
}

// furnish creates the ControlPlane and what belongs to it.
func (l *life) furnish() {
	l.tb.Helper()
	for _, namespace := range []string{l.plane, l.tenant} {
		l.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: l.plane, Name: "cp"}}
	cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{
		Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: l.keystone.URL + "/v3"},
	}
	cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: l.tenant, AllowedRoles: []string{"member"}}}
	l.create(cp)
	cp.Status.DomainID = "default"
	meta.SetStatusCondition(&cp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdminCredentialAccepted, Message: "as given",
	})
	l.must(l.people.Status().Update(l.ctx, cp))

	document, err := clouds.Render(order.CloudName, clouds.Cloud{AuthURL: l.keystone.URL + "/v3", Password: &clouds.PasswordAuth{
		Username: "admin", UserDomainName: "Default", Password: ordertest.AdminPassword,
	}})
	l.must(err)
	l.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.plane, Name: order.AdminCloudName(cp), Labels: map[string]string{order.ManagedByLabel: order.ManagedByValue}},
		Data:       map[string][]byte{order.CloudsKey: document},
	})
	l.create(&orcv1alpha1.Domain{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.plane, Name: order.DomainImportName(cp)},
		Spec: orcv1alpha1.DomainSpec{
			ManagementPolicy: orcv1alpha1.ManagementPolicyUnmanaged, CloudCredentialsRef: order.AdminCloudRef(cp),
			Import: &orcv1alpha1.DomainImport{Filter: &orcv1alpha1.DomainFilter{Name: ptr.To(orcv1alpha1.KeystoneName("Default"))}},
		},
	})
	l.openStore()
	_, err = l.korc.Play(l.ctx)
	l.must(err)
}

// openStore has ESO report a store that takes pushes.
func (l *life) openStore() {
	l.tb.Helper()
	store := &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Namespace: l.plane, Name: order.DefaultSecretStore}}
	l.create(store)
	store.Status.Conditions = []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: corev1.ConditionTrue}}
	l.must(l.people.Status().Update(l.ctx, store))
}

func (l *life) closeStore() {
	l.tb.Helper()
	l.must(l.people.Delete(l.ctx, &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Namespace: l.plane, Name: order.DefaultSecretStore}}))
}

func (l *life) create(object client.Object) {
	l.tb.Helper()
	l.must(l.people.Create(l.ctx, object))
}

func (l *life) must(err error) {
	l.tb.Helper()
	if err != nil {
		l.fail("%v", err)
	}
}

// fail ends the test with the last things that happened.
func (l *life) fail(format string, args ...any) {
	l.tb.Helper()
	l.tb.Fatalf("%s\n--- what went before, at %s:\n%s", fmt.Sprintf(format, args...), l.clock.Now().Format(time.DateTime),
		strings.Join(l.trace[max(0, len(l.trace)-80):], "\n"))
}

// note keeps what happened, for whoever reads of a broken promise.
func (l *life) note(format string, args ...any) {
	l.trace = append(l.trace, fmt.Sprintf(format, args...))
}

// key is the key of an order.
func (l *life) key(kind order.Kind) types.NamespacedName {
	return types.NamespacedName{Namespace: l.tenant, Name: names[kind.Name]}
}

// get reads an object as it is, and tells whether it is there.
func (l *life) get(key types.NamespacedName, object client.Object) bool {
	return l.people.Get(l.ctx, key, object) == nil
}

func (l *life) credential() *v1alpha1.KeystoneApplicationCredential {
	credential := &v1alpha1.KeystoneApplicationCredential{}
	l.get(l.key(order.ApplicationCredentialKind), credential)
	return credential
}

func (l *life) user() *v1alpha1.KeystoneUser {
	user := &v1alpha1.KeystoneUser{}
	l.get(l.key(order.UserKind), user)
	return user
}

// delivered is the Secret beside the credential order, nil when there is none.
func (l *life) delivered() *corev1.Secret {
	secret := &corev1.Secret{}
	if !l.get(types.NamespacedName{Namespace: l.tenant, Name: names[order.ApplicationCredentialKind.Name] + "-credentials"}, secret) {
		return nil
	}
	return secret
}

// prefix is what the names of an order's children begin with.
func (l *life) prefix(kind order.Kind) string {
	return kind.Prefix(order.Key{Namespace: l.tenant, Name: names[kind.Name]})
}

// round gives everybody a look: the operator at each order, K-ORC at its objects, ESO at its own. Time
// goes by a second while things happen. When nothing does it goes to whatever comes next: an order's own
// wish to be looked at, a poll of K-ORC's, or the end of a disturbance. That nobody asks for anything any
// more is asleep.
func (l *life) round() {
	l.tb.Helper()
	length, writes := l.history.length, l.interrupter.count()
	l.disturbance.turn(l)
	for _, kind := range order.Kinds {
		l.pass(kind, l.key(kind))
	}
	next := l.others()
	l.asleep = false
	if l.history.length != length || l.interrupter.count() != writes {
		l.advance(time.Second)
		return
	}
	if l.synced < l.history.length {
		l.synced = l.history.length // the cache catches up, and its events bring a pass
		return
	}
	for _, at := range l.due {
		next = earlier(next, at)
	}
	if at := l.disturbance.ends(); !at.IsZero() {
		next = earlier(next, at)
	}
	if next.IsZero() {
		l.asleep = true
		return
	}
	l.advance(max(time.Second, next.Sub(l.clock.Now())))
}

// others lets K-ORC and ESO have a look, and returns when they would look again by themselves.
func (l *life) others() time.Time {
	l.tb.Helper()
	korc, err := l.korc.Play(l.ctx)
	l.must(err)
	l.check()
	eso, err := l.eso.Play(l.ctx)
	l.must(err)
	return earlier(korc, eso)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (l *life) advance(d time.Duration) {
	now := l.clock.Now().Add(d)
	l.clock.SetTime(now)
	l.note("%s", now.Format(time.DateTime))
}

// maxRounds is far more than any phase takes, disturbed or not.
const maxRounds = 600

// until plays rounds until something holds.
func (l *life) until(what string, holds func() bool) {
	l.tb.Helper()
	for range maxRounds {
		if holds() {
			return
		}
		if l.asleep {
			l.fail("nobody would ever look again, and it does not hold that %s:\n%s", what, l.describe())
		}
		l.round()
	}
	l.fail("after %d rounds it does not hold that %s:\n%s", maxRounds, what, l.describe())
}

// describe lists the conditions of the orders.
func (l *life) describe() string {
	var lines []string
	for _, kind := range order.Kinds {
		object := kind.New()
		if !l.get(l.key(kind), object) {
			lines = append(lines, kind.Name+" is gone")
			continue
		}
		for _, c := range *object.GetConditions() {
			lines = append(lines, fmt.Sprintf("%s %s=%s/%s: %s", kind.Name, c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return strings.Join(lines, "\n")
}

// phase is a part of the life: something happens, and the orders bring it to an end.
type phase struct {
	name string
	// begin is what people do, or the clock; nil for nothing.
	begin func(*life)
	// done is what the phase comes to.
	what string
	done func(*life) bool
}

// The phases of a life.
const (
	phaseMint           = "mint"
	phaseRotation       = "scheduled rotation"
	phaseGrace          = "grace"
	phasePassword       = "password"
	phaseDeadPassword   = "dead password"
	phaseSecondRotation = "second rotation"
	phaseSecondGrace    = "second grace"
	phaseTeardown       = "teardown"
)

var phases = []phase{
	{phaseMint, (*life).order, "all orders are fulfilled", func(l *life) bool { return l.ready() && l.carries(1) }},
	{phaseRotation, (*life).untilRotation, "the Secret carries the next generation", func(l *life) bool { return l.carries(2) }},
	{phaseGrace, nil, "the superseded credential is gone", (*life).alone},
	{phasePassword, (*life).raisePassword, "the credential order has the new password", func(l *life) bool { return l.ready() && l.user().Status.PasswordGeneration == 2 }},
	{phaseDeadPassword, (*life).killPassword, "the user has a password that Keystone takes", func(l *life) bool { return l.ready() && l.user().Status.PasswordGeneration == 3 }},
	{phaseSecondRotation, (*life).raiseGeneration, "the Secret carries the raised generation", func(l *life) bool { return l.carries(l.credential().Spec.CredentialGeneration) }},
	{phaseSecondGrace, nil, "the superseded credential is gone", (*life).alone},
	{phaseTeardown, (*life).remove, "all orders are gone", (*life).gone},
}

// live plays the whole life. Before the teardown it lets everything come to rest, and returns what there
// is then.
func (l *life) live() (settled []string) {
	l.tb.Helper()
	for _, p := range phases {
		if p.name == phaseTeardown {
			l.until("everything is at rest", func() bool { return l.ready() && l.atRest() })
			settled, l.generation = l.snapshot(), l.credential().Status.CredentialGeneration
		}
		l.play(p)
	}
	l.requireNothingLeft()
	return settled
}

func (l *life) play(p phase) {
	l.tb.Helper()
	l.note("=== %s", p.name)
	if p.begin != nil {
		p.begin(l)
	}
	l.disturbance.begin(l, p.name)
	l.until(p.what, func() bool { return p.done(l) && l.disturbance.over() })
}

// order creates the four orders, as somebody does who applies one file.
func (l *life) order() {
	l.tb.Helper()
	plane := v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: l.plane}
	user := v1alpha1.OrderRef{Name: names[order.UserKind.Name]}
	project := v1alpha1.OrderRef{Name: names[order.ProjectKind.Name]}
	at := func(kind order.Kind) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: l.tenant, Name: names[kind.Name]}
	}
	l.create(&v1alpha1.KeystoneApplicationCredential{ObjectMeta: at(order.ApplicationCredentialKind), Spec: v1alpha1.KeystoneApplicationCredentialSpec{
		ControlPlaneRef: plane, UserRef: user, ProjectRef: project, CredentialGeneration: 1,
		Rotation: v1alpha1.CredentialRotationSpec{Interval: &metav1.Duration{Duration: interval}, GracePeriod: &metav1.Duration{Duration: grace}},
	}})
	l.create(&v1alpha1.KeystoneRoleAssignment{ObjectMeta: at(order.RoleAssignmentKind), Spec: v1alpha1.KeystoneRoleAssignmentSpec{
		ControlPlaneRef: plane, UserRef: user, ProjectRef: project, Role: "member",
	}})
	l.create(&v1alpha1.KeystoneUser{ObjectMeta: at(order.UserKind), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: plane, PasswordGeneration: 1}})
	l.create(&v1alpha1.KeystoneProject{ObjectMeta: at(order.ProjectKind), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: plane}})
}

// untilRotation lets the time until the scheduled rotation go by.
func (l *life) untilRotation() {
	l.tb.Helper()
	next := l.credential().Status.NextRotation
	if next == nil {
		l.fail("there is no next rotation")
	}
	l.advance(next.Sub(l.clock.Now()))
}

func (l *life) raisePassword() {
	l.tb.Helper()
	user := l.user()
	user.Spec.PasswordGeneration = 2
	l.must(l.people.Update(l.ctx, user))
}

// killPassword changes the password in Keystone by hand, and has somebody say so.
func (l *life) killPassword() {
	l.tb.Helper()
	l.keystone.With(func() {
		for _, user := range l.keystone.Users {
			if user.Name == names[order.UserKind.Name] {
				user.Password = "changed by hand"
			}
		}
	})
	user := l.user()
	user.Annotations = map[string]string{order.RotateAnnotation: keystoneuser.DeadPassword(user.Status.PasswordGeneration, l.clock.Now())}
	l.must(l.people.Update(l.ctx, user))
}

func (l *life) raiseGeneration() {
	l.tb.Helper()
	credential := l.credential()
	credential.Spec.CredentialGeneration = credential.Status.CredentialGeneration + 1
	l.must(l.people.Update(l.ctx, credential))
}

// remove deletes all orders at once, as somebody does who deletes the file.
func (l *life) remove() {
	l.tb.Helper()
	for _, kind := range order.Kinds {
		object := kind.New()
		if l.get(l.key(kind), object) {
			l.must(l.people.Delete(l.ctx, object))
		}
	}
}

// ready tells whether every order is fulfilled as it is specified by now.
func (l *life) ready() bool {
	return !slices.ContainsFunc(order.Kinds, func(kind order.Kind) bool {
		object := kind.New()
		if !l.get(l.key(kind), object) {
			return true
		}
		condition := meta.FindStatusCondition(*object.GetConditions(), v1alpha1.ConditionReady)
		return condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != object.GetGeneration()
	})
}

// carries tells whether the delivered Secret carries at least a generation, and the order says so.
func (l *life) carries(generation int64) bool {
	status, secret := l.credential().Status, l.delivered()
	return status.CredentialGeneration >= generation && status.SecretName != "" &&
		secret != nil && string(secret.Data["application_credential_id"]) == status.CredentialID
}

// alone tells whether the live credential is the only one.
func (l *life) alone() bool {
	status := l.credential().Status
	return l.ready() && status.PreviousCredentialDeleteAt == nil && len(l.held()) == 1
}

func (l *life) gone() bool {
	return !slices.ContainsFunc(order.Kinds, func(kind order.Kind) bool { return l.get(l.key(kind), kind.New()) })
}

// atRest tells whether a round changes nothing.
func (l *life) atRest() bool {
	l.tb.Helper()
	length, writes := l.history.length, l.interrupter.count()
	at := l.clock.Now()
	l.round()
	l.clock.SetTime(at) // the next rotation is far away and must not come
	l.asleep = false
	return l.history.length == length && l.interrupter.count() == writes && l.synced == l.history.length
}

// recorder keeps the Events.
type recorder struct{ events []string }

var _ events.EventRecorder = (*recorder)(nil)

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.events = append(r.events, eventType+" "+reason+" "+fmt.Sprintf(note, args...))
}
