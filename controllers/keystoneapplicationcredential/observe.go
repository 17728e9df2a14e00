package keystoneapplicationcredential

import (
	"context"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/korc"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

const (
	credentialPrefix = "credential-v"
	secretPrefix     = "secret-v"
	// secretKey is the key that K-ORC reads an application credential's secret from.
	secretKey = "value"
)

// child is a K-ORC ApplicationCredential of the order with what K-ORC says of it.
type child struct {
	object *orcv1alpha1.ApplicationCredential
	state  order.ChildState
}

func credentialChild(generation int64) string {
	return credentialPrefix + strconv.FormatInt(generation, 10)
}

func secretChild(generation int64) string { return secretPrefix + strconv.FormatInt(generation, 10) }

// generationOf reads the generation from a child's name. Only the form that the operator writes
// counts: a positive number without sign or leading zero.
func generationOf(name, prefix string) (int64, bool) {
	digits, found := strings.CutPrefix(name, prefix)
	if !found {
		return 0, false
	}
	generation, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || generation < 1 || strconv.FormatInt(generation, 10) != digits {
		return 0, false
	}
	return generation, true
}

// MintedGeneration tells which generation of which order a K-ORC ApplicationCredential is. It is not ok for
// one that the operator did not make.
func MintedGeneration(object *orcv1alpha1.ApplicationCredential) (key order.Key, generation int64, ok bool) {
	key, ok = order.ApplicationCredentialKind.KeyFromLabels(object.Labels)
	if !ok {
		return key, 0, false
	}
	generation, ok = generationOf(object.Name, order.ApplicationCredentialKind.Prefix(key)+credentialPrefix)
	return key, generation, ok
}

// observe reads what the decision rests on. It looks at the cache first. Only when the decision
// would do or ask something does it look again, live: a converged order costs no request, and
// nothing is minted, deleted or called lost on a stale reading.
func (s *state) observe(ctx context.Context) *order.Outcome {
	if err := s.read(ctx, false); err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	s.asked.audit = s.AuditDue()
	if steady(rotation.Decide(s.input)) && !s.asked.audit {
		return nil
	}
	if outcome := s.RequireFresh(ctx, v1alpha1.ReasonCredentialError); outcome != nil {
		return outcome
	}
	if err := s.read(ctx, true); err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	return nil
}

// steady tells whether a plan neither asks nor does anything.
func steady(plan rotation.Plan) bool {
	return !plan.AskLive && len(plan.Ask) == 0 && len(plan.Prove) == 0 && plan.Verify == 0 &&
		len(plan.Mark) == 0 && len(plan.Delete) == 0 && plan.Mint == nil && plan.Switch == nil &&
		!plan.ClearPrevious && len(plan.Forget) == 0 && len(plan.Refuted) == 0 && plan.Wait == nil
}

// read fills the input of the decision.
func (s *state) read(ctx context.Context, live bool) error {
	children, secrets := s.CachedChildren, s.CachedChildren
	if live {
		children, secrets = s.Children, s.Children
	}
	credentials, err := children(ctx, &orcv1alpha1.ApplicationCredentialList{})
	if err != nil {
		return err
	}
	values, err := secrets(ctx, &corev1.SecretList{})
	if err != nil {
		return err
	}
	delivered, _, err := s.DeliveredSecret(ctx)
	if err != nil {
		return err
	}
	storeReady, _, err := order.StoreReady(ctx, s.Management, s.ControlPlane)
	if err != nil {
		return err
	}
	interval, grace := s.order.Spec.Rotation.Resolved()
	s.children = map[int64]child{}
	s.input = rotation.Input{
		Now:         s.Now,
		KeystoneNow: s.Now.Add(s.keystoneSkew()),
		Spec:        rotation.Spec{Generation: s.order.DeclaredCredentialGeneration(), Interval: interval, GracePeriod: grace},
		Status:      statusOf(s.order),
		Secrets:     map[int64]bool{},
		Keystone:    map[int64]rotation.Existence{},
		Logins:      map[int64]rotation.Login{},
		StoreReady:  storeReady,
		RotateID:    s.order.Annotations[order.RotateAnnotation],
	}
	for _, object := range values {
		if generation, ok := generationOf(object.GetName(), s.Child(secretPrefix)); ok {
			s.input.Secrets[generation] = len(object.(*corev1.Secret).Data[secretKey]) > 0
		}
	}
	if delivered != nil {
		s.input.DeliveredID = string(delivered.Data[keyCredentialID])
	}
	for _, object := range credentials {
		if generation, ok := generationOf(object.GetName(), s.Child(credentialPrefix)); ok {
			s.addChild(ctx, generation, object.(*orcv1alpha1.ApplicationCredential), live)
		}
	}
	return nil
}

// addChild reads K-ORC's word on one generation, and clears what K-ORC latched for transport's sake.
func (s *state) addChild(ctx context.Context, generation int64, object *orcv1alpha1.ApplicationCredential, settle bool) {
	progress, reason, message := korc.State(object.GetConditions(), object.GetGeneration())
	said := order.ChildState{Progress: progress, Reason: reason, Message: message, Transport: korc.IsTransport(message)}
	if settle && object.DeletionTimestamp.IsZero() {
		said = s.Settle(ctx, object)
	}
	s.children[generation] = child{object: object, state: said}

	observed := rotation.Child{
		Generation: generation,
		State:      map[korc.Progress]rotation.ChildState{korc.Pending: rotation.Pending, korc.Available: rotation.Available, korc.Terminal: rotation.Terminal}[said.Progress],
		Deleting:   !object.DeletionTimestamp.IsZero(),
		Message:    said.Message,
		Conflict:   korc.IsConflict(said.Message),
	}
	if object.Status.ID != nil {
		observed.ID = *object.Status.ID
	}
	if resource := object.Spec.Resource; resource != nil && resource.ExpiresAt != nil {
		observed.ExpiresAt = &resource.ExpiresAt.Time
	}
	s.input.Children = append(s.input.Children, observed)
}

// statusOf reads the part of the status that rotation reads and writes.
func statusOf(o *v1alpha1.KeystoneApplicationCredential) rotation.Status {
	status := rotation.Status{
		ID:           o.Status.CredentialID,
		Generation:   o.Status.CredentialGeneration,
		ExpiresAt:    timeOf(o.Status.CredentialExpiresAt),
		LastRotation: timeOf(o.Status.LastRotation),
	}
	if o.Status.PreviousCredentialDeleteAt != nil {
		status.Previous = &rotation.Previous{
			ID:         o.Status.PreviousCredentialID,
			Generation: o.Status.PreviousCredentialGeneration,
			DeleteAt:   o.Status.PreviousCredentialDeleteAt.Time,
		}
	}
	return status
}

// setStatus writes it back.
func setStatus(o *v1alpha1.KeystoneApplicationCredential, status rotation.Status) {
	o.Status.CredentialID = status.ID
	o.Status.CredentialGeneration = status.Generation
	o.Status.CredentialExpiresAt = metaTime(status.ExpiresAt)
	o.Status.LastRotation = metaTime(status.LastRotation)
	o.Status.PreviousCredentialID, o.Status.PreviousCredentialGeneration, o.Status.PreviousCredentialDeleteAt = "", 0, nil
	if previous := status.Previous; previous != nil {
		o.Status.PreviousCredentialID = previous.ID
		o.Status.PreviousCredentialGeneration = previous.Generation
		o.Status.PreviousCredentialDeleteAt = metaTime(&previous.DeleteAt)
	}
}

func timeOf(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

func metaTime(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return &metav1.Time{Time: *t}
}
