package order

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// Discriminators of the two children of a delivery.
const (
	SourceChild = "source"
	BackupChild = "backup"
)

// pushDigestAnnotation, after the kind's prefix, holds the digest of the document to push. Changing
// it is also what makes ESO push: it watches the PushSecret and not the Secret.
const pushDigestAnnotation = "push-hash"

// Delivery is a document on its way to the backup and from there into the Secret beside the order.
type Delivery struct {
	// BackupPath is the last part of the path in the store, such as credentials.
	BackupPath string
	// Source is everything that is backed up, clouds.yaml among it.
	Source map[string][]byte
	// Delivered are the keys of the Secret beside the order.
	Delivered map[string][]byte
}

// DeliveredName is the Secret beside the order of that name.
func DeliveredName(order string) string { return order + "-credentials" }

// DeliveredName is the Secret beside the order.
func (p *Pass) DeliveredName() string { return DeliveredName(p.Key.Name) }

// RemoteKey is the path of the backup in the store.
func (p *Pass) RemoteKey(d Delivery) string {
	return fmt.Sprintf("openstack/keystone/%s/%s/service-accounts/%s",
		p.ChildNamespace(), strings.TrimSuffix(p.Kind.Prefix(p.Key), "-"), d.BackupPath)
}

// Backup pushes the document to the store. Its outcome is nil once the store holds it.
func (p *Pass) Backup(ctx context.Context, d Delivery) *Outcome {
	annotation, digest := p.Kind.Annotation(pushDigestAnnotation), clouds.Digest(d.Source[CloudsKey])
	if outcome := p.guardBackup(ctx, d, annotation, digest); outcome != nil {
		return outcome
	}
	// The source goes first: ESO reads the PushSecret and then the Secret, so a push of the
	// stamped object carries this document or a later one.
	if err := p.ApplySecret(ctx, SourceChild, d.Source); err != nil {
		return Fail(v1alpha1.ReasonDeliveryError, err)
	}
	store := StoreRef(p.ControlPlane)
	child := p.ChildMeta(BackupChild)
	push := externalsecrets.Backup{
		Namespace: child.Namespace, Name: child.Name, Labels: child.Labels,
		Annotations:  map[string]string{annotation: digest},
		Store:        externalsecrets.PushSecretStoreRef{Name: store.Name, Kind: store.Kind},
		SourceSecret: p.Child(SourceChild),
		RemoteKey:    p.RemoteKey(d),
	}.PushSecret()
	switch err := p.Apply(ctx, push); {
	case isNotServed(err):
		return Wait(v1alpha1.ReasonBackupNotSynced, WaitShort,
			"the API server does not serve PushSecret (external-secrets.io/v1alpha1); install External Secrets Operator, nothing is delivered without a backup")
	case err != nil:
		return Fail(v1alpha1.ReasonDeliveryError, err)
	}
	if externalsecrets.Pushed(push, annotation, digest) {
		return nil
	}
	return p.backupNotSynced(ctx, push)
}

// guardBackup keeps a pass that works on a stale status from pushing an older document over a newer one.
func (p *Pass) guardBackup(ctx context.Context, d Delivery, annotation, digest string) *Outcome {
	source, push := &corev1.Secret{ObjectMeta: p.ChildMeta(SourceChild)}, &externalsecrets.PushSecret{ObjectMeta: p.ChildMeta(BackupChild)}
	sourceFound, err := p.Read(ctx, source)
	if err != nil {
		return Fail(v1alpha1.ReasonDeliveryError, err)
	}
	pushFound, err := p.Read(ctx, push)
	if err != nil && !isNotServed(err) {
		return Fail(v1alpha1.ReasonDeliveryError, err)
	}
	if sourceFound && pushFound && carries(source, d.Source) && push.Annotations[annotation] == digest {
		return nil
	}
	return p.RequireFresh(ctx, v1alpha1.ReasonDeliveryError)
}

// backupPending is all that is wrong with a backup that is merely under way.
const backupPending = "External Secrets Operator has not reported the push yet"

func (p *Pass) backupNotSynced(ctx context.Context, push *externalsecrets.PushSecret) *Outcome {
	ready, why, err := StoreReady(ctx, p.Management, p.ControlPlane)
	if err != nil {
		return Fail(v1alpha1.ReasonDeliveryError, err)
	}
	if ready {
		why = backupPending
		for _, condition := range push.Status.Conditions {
			if condition.Type == externalsecrets.ReadyCondition && condition.Status == corev1.ConditionFalse {
				why = "External Secrets Operator reports " + condition.Reason + ": " + condition.Message
			}
		}
	}
	was := meta.FindStatusCondition(*p.original.GetConditions(), v1alpha1.ConditionDeliveryReady)
	told := was != nil && was.Reason == v1alpha1.ReasonBackupNotSynced && !strings.Contains(was.Message, backupPending)
	if why != backupPending && !told {
		// The reason is that of every rotation's short wait, so the condition makes no such Event.
		p.Eventf(corev1.EventTypeWarning, EventBackupFailing, "Backup", "the current document cannot be backed up: %s", why)
	}
	return Wait(v1alpha1.ReasonBackupNotSynced, WaitShort,
		"the current document is not in the backup yet: %s (PushSecret %s/%s); the Secret beside the order keeps what it has", why, push.Namespace, push.Name)
}

// DeliveredSecret reads the Secret beside the order live, nil when there is none. foreign says in
// words for a condition that a Secret of the name is not the order's.
func (p *Pass) DeliveredSecret(ctx context.Context) (secret *corev1.Secret, foreign string, err error) {
	secret = &corev1.Secret{}
	key := types.NamespacedName{Namespace: p.Key.Namespace, Name: p.DeliveredName()}
	err = p.Reader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if !metav1.IsControlledBy(secret, p.Order) {
		return nil, fmt.Sprintf("a Secret %s exists that this order does not own; it is left untouched. Delete or rename it, or order under another name", key), nil
	}
	return secret, "", nil
}

// Deliver writes the Secret beside the order. Its outcome is nil once the Secret carries the
// document, as read back from the API server.
func (p *Pass) Deliver(ctx context.Context, d Delivery) *Outcome {
	current, foreign, err := p.DeliveredSecret(ctx)
	switch {
	case err != nil:
		return Fail(v1alpha1.ReasonDeliveryError, err)
	case foreign != "":
		return Wait(v1alpha1.ReasonDeliveryRefused, WaitRefused, "%s", foreign)
	case current != nil && carries(current, d.Delivered) && hasLabels(current, p.deliveredLabels()):
		return nil
	}
	if outcome := p.RequireFresh(ctx, v1alpha1.ReasonDeliveryError); outcome != nil {
		return outcome
	}
	written, err := p.applyDelivered(ctx, d)
	if err != nil {
		return Fail(v1alpha1.ReasonDeliveryError, err)
	}
	if !carries(written, d.Delivered) {
		return Wait(v1alpha1.ReasonDeliveryError, WaitShort,
			"Secret %s/%s was written but does not carry the current values; something on the cluster changes it on the way", written.Namespace, written.Name)
	}
	p.announceRepair(current)
	return nil
}

// announceRepair tells that the Secret had to be written although nothing new was to be delivered:
// what is new passes through the backup first, and DeliveryReady is not True then.
func (p *Pass) announceRepair(found *corev1.Secret) {
	if !meta.IsStatusConditionTrue(*p.original.GetConditions(), v1alpha1.ConditionDeliveryReady) {
		return
	}
	what := "changed"
	if found == nil {
		what = "deleted"
	}
	p.Eventf(corev1.EventTypeWarning, EventSecretRepaired, "Deliver", "somebody had %s Secret %s/%s; it is as it was again", what, p.Key.Namespace, p.DeliveredName())
}

// Carries tells whether the Secret beside the order carries the document already, as the API server
// has it.
func (p *Pass) Carries(ctx context.Context, d Delivery) (bool, error) {
	current, _, err := p.DeliveredSecret(ctx)
	return current != nil && carries(current, d.Delivered), err
}

func (p *Pass) applyDelivered(ctx context.Context, d Delivery) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: p.DeliveredName(), Namespace: p.Key.Namespace, Labels: p.deliveredLabels()},
		Type:       corev1.SecretTypeOpaque,
		Data:       d.Delivered,
	}
	owner := *metav1.NewControllerRef(p.Order, p.Kind.GroupVersionKind())
	// The order's finalizer already waits for the Secret to go. Blocking the owner as well would take the
	// right to update the finalizers of every order where the API server guards owner references.
	owner.BlockOwnerDeletion = nil
	secret.OwnerReferences = []metav1.OwnerReference{owner}
	fields, err := desiredFields(secret)
	if err != nil {
		return nil, fmt.Errorf("applying Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	applied := &unstructured.Unstructured{Object: fields}
	if err := p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), FieldManager, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("applying Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	written := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, written); err != nil {
		return nil, fmt.Errorf("reading back Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return written, nil
}

// deliveredLabels name the order. The cluster is left out: the Secret lives on the order's own.
func (p *Pass) deliveredLabels() map[string]string {
	return map[string]string{
		ManagedByLabel:          ManagedByValue,
		p.Kind.NameLabel():      p.Key.Name,
		p.Kind.NamespaceLabel(): p.Key.Namespace,
	}
}

// DeleteDelivered deletes the Secret beside the order, if the order controls it.
func (p *Pass) DeleteDelivered(ctx context.Context) error {
	secret, foreign, err := p.DeliveredSecret(ctx)
	if err != nil || foreign != "" || secret == nil {
		return err
	}
	uid := secret.UID
	err = p.Client.Delete(ctx, secret, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// SecretKeys are the keys of the delivered Secret, sorted as status reports them.
func (d Delivery) SecretKeys() []string { return slices.Sorted(maps.Keys(d.Delivered)) }

func carries(secret *corev1.Secret, data map[string][]byte) bool {
	for key, value := range data {
		if !bytes.Equal(secret.Data[key], value) {
			return false
		}
	}
	return true
}

func hasLabels(object client.Object, labels map[string]string) bool {
	for key, value := range labels {
		if object.GetLabels()[key] != value {
			return false
		}
	}
	return true
}
