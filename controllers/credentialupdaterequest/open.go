package credentialupdaterequest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
)

// attend looks at an Open request: its credential has changed, or its time is over, or neither. The change
// is looked for first, so that a value that came in the last second counts.
func (r *reconciler) attend(ctx context.Context, request *v1alpha1.CredentialUpdateRequest) (reconcile.Result, error) {
	secret, changed, err := r.changed(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	healing := request.Status.Determination == v1alpha1.DeterminationHealingByRotation
	if changed && healing {
		if changed, err = r.rotated(ctx, secret); err != nil {
			return reconcile.Result{}, err
		}
		healing = changed // it is edited: the order writes it again, and was asked before
	}
	if changed {
		return reconcile.Result{}, r.settle(ctx, request, v1alpha1.PhaseFulfilled, fulfilled(request.Status, r.renewalOf(request, secret)))
	}
	left := credupdate.Expires(request).Sub(r.clock.Now())
	if left <= 0 {
		return reconcile.Result{}, r.settle(ctx, request, v1alpha1.PhaseExpired, expired(request.Status))
	}
	if healing && secret != nil {
		if err := r.healAgain(ctx, request, secret); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: min(openPoll, max(left, time.Second))}, nil
}

// changed tells whether the credential is another one than when the request opened. A Secret or a value that is gone
// is no new credential.
func (r *reconciler) changed(ctx context.Context, request *v1alpha1.CredentialUpdateRequest) (*corev1.Secret, bool, error) {
	ref := request.Status.CredentialSecretRef
	if ref == nil {
		log.FromContext(ctx).Info("an open credential update request names no Secret", "namespace", request.Namespace, "name", request.Name)
		return nil, false, nil
	}
	secret := &corev1.Secret{}
	found, err := r.get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if err != nil {
		return nil, false, err
	}
	if !found {
		log.FromContext(ctx).Info("the Secret that an open credential update request waits for is gone",
			"namespace", request.Namespace, "name", request.Name, "secret", ref.Namespace+"/"+ref.Name)
		return nil, false, nil
	}
	return secret, credupdate.Changed(secret.Data, request.Status.CredentialSecretKey, request.Status.CredentialSecretObservedHash), nil
}

// settle ends a request. The determination stays: it says why the request was opened.
func (r *reconciler) settle(ctx context.Context, request *v1alpha1.CredentialUpdateRequest, phase, reason string) error {
	err := r.report(ctx, request, func(status *v1alpha1.CredentialUpdateRequestStatus) {
		status.Phase, status.Reason = phase, reason
	})
	if err != nil {
		return err
	}
	delete(r.refreshTokens, client.ObjectKeyFromObject(request))
	r.announce(ctx, request, actionSettle)
	return nil
}

// renewal is how an OAuth token was replaced. A platform refreshes tokens in the background too, and nobody must be said
// to have done that.
type renewal int

const (
	// renewalUnknown: a provider that replaces refresh tokens leaves the same traces either way; and the operator may
	// have started since.
	renewalUnknown renewal = iota
	// renewalRefreshed: the refresh token is still the same.
	renewalRefreshed
	// renewalAuthorized: there was no refresh token to refresh with.
	renewalAuthorized
)

// noteRefreshToken remembers an OAuth token's refresh token, as a digest, from when its request opened. In memory: the
// status has no place for it, and what is lost with it is half a sentence.
func (r *reconciler) noteRefreshToken(request *v1alpha1.CredentialUpdateRequest, secret *corev1.Secret) {
	if request.Status.CredentialSecretKey == "" {
		r.refreshTokens[client.ObjectKeyFromObject(request)] = refreshTokenOf(secret)
	}
}

// refreshTokenOf is the digest of a Secret's refresh token, empty when it has none.
func refreshTokenOf(secret *corev1.Secret) string {
	if len(secret.Data[keyRefreshToken]) == 0 {
		return ""
	}
	return credupdate.Digest(secret.Data, keyRefreshToken)
}

func (r *reconciler) renewalOf(request *v1alpha1.CredentialUpdateRequest, secret *corev1.Secret) renewal {
	before, known := r.refreshTokens[client.ObjectKeyFromObject(request)]
	switch {
	case request.Status.Determination == v1alpha1.DeterminationRejectedRefreshDead, known && before == "":
		return renewalAuthorized
	case known && before == refreshTokenOf(secret):
		return renewalRefreshed
	}
	return renewalUnknown
}

// fulfilled says who brought the new value, as far as that is known. A Secret that is one credential as a whole belongs
// to an OAuth token.
func fulfilled(status v1alpha1.CredentialUpdateRequestStatus, how renewal) string {
	oauth := status.CredentialSecretKey == ""
	switch {
	case status.Determination == v1alpha1.DeterminationHealingByRotation:
		return "The order rotated, and the Secret carries a new credential. Read it again and retry the call."
	case oauth && how == renewalAuthorized:
		return "The credential was authorized anew. Retry the call."
	case oauth && how == renewalRefreshed:
		return "The credential's token was refreshed in the background. Retry the call."
	case oauth:
		return "The credential's token and its refresh token changed: it was refreshed in the background, or authorized anew. Retry the call."
	case status.InteractionRef == "":
		return "The credential changed before anybody was shown a card. Retry the call."
	default:
		return "The credential was replaced. Retry the call."
	}
}

// expired blames nobody who was never asked.
func expired(status v1alpha1.CredentialUpdateRequestStatus) string {
	switch {
	case status.Determination == v1alpha1.DeterminationHealingByRotation:
		return "The order did not deliver a new credential in time. Its conditions say what is in the way."
	case status.InteractionRef == "":
		return "The time is over, and nobody was ever shown a card: there was nobody to ask, or no way to."
	default:
		return "The time is over. A card was shown, and nobody replaced the credential."
	}
}
