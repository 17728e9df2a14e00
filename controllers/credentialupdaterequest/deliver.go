package credentialupdaterequest

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// delivered is a Secret that an order delivers.
type delivered struct {
	verdict.Delivery
	// dead is what the order is to replace, when that heals; nil else.
	dead *dead
}

// deliveredOrder is the order that a Secret's controller reference names, nil when there is none. The
// reference alone proves little, since whoever may write the Secret may write it: the order has to be the
// one of that UID, and its Secret has to have this name.
func (r *reconciler) deliveredOrder(ctx context.Context, secret *corev1.Secret) (order.Object, string, error) {
	owner := metav1.GetControllerOf(secret)
	if owner == nil {
		return nil, "", nil
	}
	var placed order.Object
	for _, kind := range []order.Kind{order.ApplicationCredentialKind, order.UserKind} {
		if gvk := kind.GroupVersionKind(); owner.APIVersion == gvk.GroupVersion().String() && owner.Kind == gvk.Kind {
			placed = kind.New()
		}
	}
	if placed == nil || secret.Name != order.DeliveredName(owner.Name) {
		return nil, "", nil
	}
	found, err := r.get(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: owner.Name}, placed)
	if err != nil || !found || placed.GetUID() != owner.UID {
		return nil, "", err
	}
	return placed, owner.Kind + " " + secret.Namespace + "/" + owner.Name, nil
}

// deliveredBy judges a Secret that an order delivers; nil for every other Secret. Consent comes first:
// nothing of a ControlPlane is read or asked for a namespace that it does not consent to.
func (r *reconciler) deliveredBy(ctx context.Context, secret *corev1.Secret) (*delivered, error) {
	placed, name, err := r.deliveredOrder(ctx, secret)
	if err != nil || placed == nil {
		return nil, err
	}
	d := &delivered{Delivery: verdict.Delivery{Order: name}}
	cp := &v1alpha1.ControlPlane{}
	ref := placed.GetControlPlaneRef()
	found, err := r.get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, cp)
	switch {
	case err != nil:
		return nil, err
	case !placed.GetDeletionTimestamp().IsZero():
		d.State = verdict.StateDeleting
		return d, nil
	case !found:
		d.State, d.Detail = verdict.StateNotReady, "its ControlPlane does not exist"
		return d, nil
	case cp.Assignment(placed.GetNamespace(), "") == nil:
		d.State = verdict.StateFrozen
		return d, nil
	}
	j := &judgement{reconciler: r, order: placed, plane: cp, secret: secret, delivered: d}
	return d, j.judge(ctx)
}

// judgement finds out what is wrong with a delivered credential.
type judgement struct {
	*reconciler
	*delivered
	order  order.Object
	plane  *v1alpha1.ControlPlane
	secret *corev1.Secret
}

func (j *judgement) is(state verdict.State, detail string) error {
	j.State, j.Detail = state, detail
	return nil
}

func (j *judgement) judge(ctx context.Context) error {
	kind, name, keys := order.UserKind, "", []string(nil)
	switch o := j.order.(type) {
	case *v1alpha1.KeystoneApplicationCredential:
		kind, name, keys = order.ApplicationCredentialKind, o.Status.SecretName, o.Status.SecretKeys
	case *v1alpha1.KeystoneUser:
		name, keys = o.Status.SecretName, o.Status.SecretKeys
	}
	if name != j.secret.Name {
		return j.is(verdict.StateNotReady, "its Secret does not carry the current credential yet"+j.ready())
	}
	cloud, sound, err := j.source(ctx, kind, keys)
	switch {
	case err != nil:
		return err
	case cloud == nil:
		return j.is(verdict.StateNotReady, "its source is not there"+j.ready())
	case !sound:
		return j.is(verdict.StateEdited, "")
	}
	admin, ca, err := order.AdminCloud(ctx, j.live, j.plane)
	switch {
	case apierrors.IsNotFound(err):
		return j.is(verdict.StateUnknown, "the operator has no access to Keystone at present")
	case err != nil:
		return err
	}
	// Where Keystone is, and whom to trust there, comes from the ControlPlane: whoever edits the Secret
	// could send the login, with the credential in it, anywhere.
	login := admin
	login.Password, login.ApplicationCredential = cloud.Password, cloud.ApplicationCredential
	_, err = j.keystone.Login(ctx, login, ca)
	class := keystone.Classify(err)
	switch class {
	case keystone.OK:
		return j.is(verdict.StateLive, "")
	case keystone.NotFound, keystone.AuthenticationFailed:
	default:
		return j.is(verdict.StateUnknown, string(class))
	}
	session, err := j.keystone.Admin(ctx, order.AdminKey(j.plane), admin, ca)
	if err != nil {
		return j.is(verdict.StateUnknown, string(keystone.Classify(err)))
	}
	if o, ok := j.order.(*v1alpha1.KeystoneApplicationCredential); ok {
		return j.deadCredential(ctx, session, o, cloud.ApplicationCredential.ID)
	}
	return j.deadPassword(ctx, session, j.order.(*v1alpha1.KeystoneUser), cloud.Password.Password)
}

// source is what the order delivered, from its own copy beside the ControlPlane, and whether the Secret
// still carries it. The cloud is nil when there is no copy.
func (j *judgement) source(ctx context.Context, kind order.Kind, keys []string) (cloud *clouds.Cloud, sound bool, err error) {
	key := order.KeyOf("", j.order)
	copied := &corev1.Secret{}
	found, err := j.get(ctx, types.NamespacedName{Namespace: j.plane.Namespace, Name: kind.Prefix(key) + order.SourceChild}, copied)
	if err != nil || !found {
		return nil, false, err
	}
	document := copied.Data[order.CloudsKey]
	parsed, err := clouds.Parse(document)
	if err != nil {
		return nil, false, nil //nolint:nilerr // as good as none; the order writes it again
	}
	one := parsed[order.CloudName]
	values := [][]byte{document}
	switch {
	case one.ApplicationCredential != nil:
		values = append(values, []byte(one.ApplicationCredential.ID), []byte(one.ApplicationCredential.Secret))
	case one.Password != nil:
		values = append(values, []byte(one.Password.Password))
	default:
		return nil, false, nil
	}
	edited := slices.ContainsFunc(keys, func(key string) bool {
		value, there := j.secret.Data[key]
		return !there || !slices.ContainsFunc(values, func(v []byte) bool { return bytes.Equal(v, value) })
	})
	return &one, !edited, nil
}

// deadCredential tells apart why Keystone refuses an application credential. A 401 has many causes, and only
// what a new credential cures is dead; the list of the user's credentials, not the 404 of a login alone,
// says that one is gone.
func (j *judgement) deadCredential(ctx context.Context, session *keystone.Session, o *v1alpha1.KeystoneApplicationCredential, id string) error {
	managed, err := j.korcUser(ctx, o.Spec.UserRef.Name)
	if err != nil {
		return err
	}
	if managed == nil {
		return j.is(verdict.StateNotReady, "the user of the KeystoneUser that it names is not there")
	}
	userID := *managed.Status.ID
	if user, err := j.usable(ctx, session, userID); err != nil || user == nil {
		return err
	}
	listed, err := session.ApplicationCredentials(ctx, userID)
	if err != nil {
		return j.is(verdict.StateUnknown, string(keystone.Classify(err)))
	}
	at := slices.IndexFunc(listed, func(c keystone.ApplicationCredential) bool { return c.ID == id })
	if at < 0 {
		return j.replace(o, id, verdict.StateGone)
	}
	if j.ended(session, listed[at].ExpiresAt) {
		return j.replace(o, id, verdict.StateExpired)
	}
	roles, err := session.RoleAssignments(ctx, userID, listed[at].ProjectID)
	switch {
	case err != nil:
		return j.is(verdict.StateUnknown, string(keystone.Classify(err)))
	case len(roles) == 0:
		return j.is(verdict.StateRoleMissing, "")
	}
	return j.is(verdict.StateRefusedUnexplained, "")
}

// ended tells whether a time is over, on Keystone's clock since Keystone ends things by it: ours may be
// minutes off.
func (j *judgement) ended(session *keystone.Session, at *time.Time) bool {
	return at != nil && !j.clock.Now().Add(session.Skew()).Before(*at)
}

// korcUser is K-ORC's User of a KeystoneUser beside the order, nil while there is none with an id.
func (j *judgement) korcUser(ctx context.Context, name string) (*orcv1alpha1.User, error) {
	user, err := order.KORCUser(ctx, j.live, j.plane.Namespace, order.Key{Namespace: j.order.GetNamespace(), Name: name})
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	case user.Status.ID == nil:
		return nil, nil
	}
	return user, nil
}

// usable reads a user, and is nil for one that is gone or disabled.
func (j *judgement) usable(ctx context.Context, session *keystone.Session, userID string) (*keystone.User, error) {
	user, err := session.User(ctx, userID)
	switch {
	case keystone.IsGone(err):
		return nil, j.is(verdict.StateNotReady, "Keystone does not hold its user any more"+j.ready())
	case err != nil:
		return nil, j.is(verdict.StateUnknown, string(keystone.Classify(err)))
	case !user.Enabled:
		return nil, j.is(verdict.StateUserDisabled, "")
	}
	return user, nil
}

// refusals are reasons of an order's first condition under which it makes no new credential or password.
var refusals = []string{
	v1alpha1.ReasonNoRoleOnProject, v1alpha1.ReasonUserNotFound, v1alpha1.ReasonProjectNotFound, v1alpha1.ReasonControlPlaneMismatch,
	v1alpha1.ReasonServiceAccountCollision, v1alpha1.ReasonServiceAccountsFailed,
}

// refused tells whether a condition of the order is one of these, and says so.
func (j *judgement) refused(kind string) bool {
	condition := meta.FindStatusCondition(*j.order.GetConditions(), kind)
	if condition == nil || !slices.Contains(refusals, condition.Reason) {
		return false
	}
	j.State, j.Detail = verdict.StateNotReady, kind+" is "+string(condition.Status)+": "+condition.Reason
	return true
}

const underWay = "a rotation is under way"

func (j *judgement) replace(o *v1alpha1.KeystoneApplicationCredential, id string, state verdict.State) error {
	switch {
	case j.refused(v1alpha1.ConditionCredentialReady):
		return nil
	case o.Status.CredentialID != id:
		return j.is(verdict.StateNotReady, underWay)
	}
	if held := o.Status.PreviousCredentialDeleteAt; state == verdict.StateExpired && held != nil {
		// Keystone still counts an expired one, so the order waits; one that is gone it replaces at once.
		j.RotatesAt = held.Time
	}
	j.delivered.dead = &dead{order: o, name: id}
	return j.is(state, "")
}

// deadPassword tells apart why Keystone refuses a password. Its login asks for no project, so a missing role
// is no reason, and what is left is cured by a new password: this one was changed, or has expired. A locked
// account looks the same; see docs/decisions/0007.
func (j *judgement) deadPassword(ctx context.Context, session *keystone.Session, o *v1alpha1.KeystoneUser, password string) error {
	managed, err := j.korcUser(ctx, o.Name)
	if err != nil {
		return err
	}
	if managed == nil {
		return j.is(verdict.StateNotReady, "Keystone has no user for it yet"+j.ready())
	}
	user, err := j.usable(ctx, session, *managed.Status.ID)
	if err != nil || user == nil || j.refused(v1alpha1.ConditionUserReady) {
		return err
	}
	generation, name := keystoneuser.PasswordInUse(order.KeyOf("", o), managed)
	secret := &corev1.Secret{}
	if generation > 0 {
		if _, err := j.get(ctx, types.NamespacedName{Namespace: managed.Namespace, Name: name}, secret); err != nil {
			return err
		}
	}
	if generation == 0 || string(secret.Data[keystoneuser.PasswordKey]) != password {
		return j.is(verdict.StateNotReady, underWay+j.ready())
	}
	j.delivered.dead = &dead{order: o, name: strconv.FormatInt(generation, 10)}
	if j.ended(session, user.PasswordExpiresAt) {
		return j.is(verdict.StateExpired, "")
	}
	return j.is(verdict.StatePasswordRefused, "")
}

// ready says in brackets' words why an order is not Ready. The reason only: a message can quote Keystone.
func (j *judgement) ready() string {
	condition := meta.FindStatusCondition(*j.order.GetConditions(), v1alpha1.ConditionReady)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return ""
	}
	return "; Ready is " + string(condition.Status) + ": " + condition.Reason
}
