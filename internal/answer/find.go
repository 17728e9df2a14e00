package answer

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	orders "github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// target is where an answer goes.
type target struct {
	question *Question
	location credupdate.Location
	secret   *corev1.Secret
}

// find reads a request and what it leads to. The checks stand in this order because each explains more than
// the next one would: a request that is settled says so, and not that its Secret has changed.
func (d *Desk) find(ctx context.Context, key types.NamespacedName, uid types.UID) (target, error) {
	var t target
	request := &v1alpha1.CredentialUpdateRequest{}
	err := d.Client.Get(ctx, key, request)
	switch {
	case apierrors.IsNotFound(err), err == nil && uid != "" && request.UID != uid, err == nil && !request.DeletionTimestamp.IsZero():
		return t, refuse(NotFound, "The request %s does not exist any more. Requests go with the session that made them.", key)
	case err != nil:
		return t, fmt.Errorf("reading CredentialUpdateRequest %s: %w", key, err)
	}
	t.question = &Question{Request: request, Expires: credupdate.Expires(request)}
	if request.Status.ResolvedCredential != nil {
		t.question.Provider, _ = d.Catalog.Provider(request.Status.ResolvedCredential.ProviderID)
	}
	if refusal := d.open(t.question); refusal != nil {
		return t, refusal
	}
	if t.location, err = recorded(request); err != nil {
		return t, err
	}
	if err := d.confirm(ctx, &t); err != nil {
		return t, err
	}
	t.secret = secretOf(t.location.Secret)
	if err := d.Client.Get(ctx, t.location.Secret, t.secret); apierrors.IsNotFound(err) {
		return t, t.secretMissing()
	} else if err != nil {
		return t, fmt.Errorf("reading Secret %s: %w", t.location.Secret, err)
	}
	return t, t.writable()
}

// open refuses a request that waits for no answer.
func (d *Desk) open(q *Question) *Refusal {
	status := q.Request.Status
	switch {
	case status.Phase == v1alpha1.PhaseFulfilled:
		return refuse(Settled, "The request is settled: the credential has been changed since it was made. There is nothing left to do.")
	case status.Phase == v1alpha1.PhaseExpired:
		return refuse(Settled, "The request has expired: the credential was not changed in time. The agent can ask again.")
	case status.Phase == v1alpha1.PhaseRefused:
		return refuse(Settled, "The request was refused: nobody is asked for a value.")
	case status.Phase == v1alpha1.PhaseCollapsed && status.CollapsedInto != nil:
		return refuse(Elsewhere, "The request waits for request %q about the same credential. Answer that one.", status.CollapsedInto.Name)
	case status.Phase == "" || status.Phase == v1alpha1.PhasePending || status.Phase == v1alpha1.PhaseCollapsed:
		return refuse(Undetermined, "The operator has not determined the request yet. Try again in a moment.")
	case status.Phase != v1alpha1.PhaseOpen:
		return refuse(Settled, "The request is in phase %q and does not wait for a value.", status.Phase)
	case !verdict.AsksHuman(status.Determination):
		return refuse(AsksNobody, "The request asks nobody (%s): the credential is being replaced without a person.", status.Determination)
	case !d.Clock.Now().Before(q.Expires):
		return refuse(Expired, "The request's time is over. The agent can ask again.")
	}
	return nil
}

// recorded is where the request says that the credential is. The Secret of a value that can be entered is
// always beside its request, so one elsewhere is nobody's but a forged status's.
func recorded(request *v1alpha1.CredentialUpdateRequest) (credupdate.Location, error) {
	status := request.Status
	switch {
	case status.CredentialSecretRef == nil || status.ResolvedCredential == nil:
		return credupdate.Location{}, refuse(Undetermined, "The request does not say which Secret holds the credential.")
	case status.CredentialSecretKey == "":
		return credupdate.Location{}, refuse(NotEnterable, "The credential is an OAuth token, which is no single value: it has to be authorized anew, where it was authorized before.")
	case status.CredentialSecretRef.Namespace != request.Namespace:
		return credupdate.Location{}, refuse(Moved, "The request names a Secret in another namespace than its own.")
	}
	return credupdate.Location{
		Secret: types.NamespacedName{Namespace: status.CredentialSecretRef.Namespace, Name: status.CredentialSecretRef.Name}, Key: status.CredentialSecretKey,
	}, nil
}

// confirm looks the location up again, where the operator found it: in the identity, which may have been
// changed since. A value that is written where nobody looks would settle the request and help nobody.
func (d *Desk) confirm(ctx context.Context, t *target) error {
	resolved := *t.question.Request.Status.ResolvedCredential
	gone := refuse(Moved, "The %s %q has no such credential any more.", resolved.IdentityKind, resolved.Name)
	if resolved.Namespace != t.question.Request.Namespace {
		return gone
	}
	var identity client.Object
	var spec *v1alpha1.IdentitySpec
	switch resolved.IdentityKind {
	case v1alpha1.KindAgentIdentity:
		agent := &v1alpha1.AgentIdentity{}
		identity, spec = agent, &agent.Spec
	case v1alpha1.KindSessionUserIdentity:
		person := &v1alpha1.SessionUserIdentity{}
		identity, spec = person, &person.Spec
	default: // a list of what is allowed, as for the determination
		return refuse(NotEnterable, "A credential of a %q cannot be entered.", resolved.IdentityKind)
	}
	key := types.NamespacedName{Namespace: resolved.Namespace, Name: resolved.Name}
	if err := d.Client.Get(ctx, key, identity); apierrors.IsNotFound(err) {
		return gone
	} else if err != nil {
		return fmt.Errorf("reading %s %s: %w", resolved.IdentityKind, key, err)
	}
	at := slices.IndexFunc(spec.Credentials, func(c v1alpha1.IdentityCredential) bool { return c.Name == resolved.Credential })
	if at < 0 {
		return gone
	}
	if spec.Credentials[at].Type != v1alpha1.CredentialStatic {
		return refuse(NotEnterable, "The credential is of type %q, which has no value to enter.", spec.Credentials[at].Type)
	}
	if credupdate.Locate(resolved.IdentityKind, resolved.Namespace, resolved.Name, spec.Credentials[at]) != t.location {
		return refuse(Moved, "The %s %q keeps the credential in another Secret than when the request was opened. The agent can ask again.", resolved.IdentityKind, resolved.Name)
	}
	t.question.Subject = spec.Subject
	return nil
}

// writable refuses a Secret that must not be written, and one that has changed since the request opened: the
// request is about to be fulfilled by that change, and a second value would undo the first.
func (t target) writable() error {
	secret, key := t.secret, t.location.Key
	if delivered(secret) {
		return refuse(Delivered, "The operator delivers Secret %s itself and would write over the value. Rotate the order instead.", t.location.Secret)
	}
	if owner := metav1.GetControllerOf(secret); owner != nil {
		t.question.Keeper = owner.Kind + " " + secret.Namespace + "/" + owner.Name
	}
	switch _, there := secret.Data[key]; {
	case !there:
		return refuse(SecretMissing, "Secret %s has no key %q. Whoever runs the platform has to add it.", t.location.Secret, key)
	case secret.Immutable != nil && *secret.Immutable:
		return refuse(Immutable, "Secret %s is immutable. Whoever runs the platform has to replace it.", t.location.Secret)
	case credupdate.Changed(secret.Data, key, t.question.Request.Status.CredentialSecretObservedHash):
		return refuse(AlreadyChanged, "The credential has been changed already. The request settles by itself in a few seconds.")
	}
	return nil
}

// delivered tells whether the operator writes a Secret: by the label of all that it writes, or by an order
// that controls it. Whether that order exists is not looked up, as a determination does: a wrong reference
// keeps a value out, and the garbage collector deletes a Secret with one.
func delivered(secret *corev1.Secret) bool {
	if secret.Labels[order.ManagedByLabel] == order.ManagedByValue {
		return true
	}
	owner := metav1.GetControllerOf(secret)
	if owner == nil {
		return false
	}
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && group.Group == orders.GroupVersion.Group
}
