package credentialupdaterequest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	if changed {
		return reconcile.Result{}, r.settle(ctx, request, v1alpha1.PhaseFulfilled, fulfilled(request.Status))
	}
	left := credupdate.Expires(request).Sub(r.clock.Now())
	if left <= 0 {
		return reconcile.Result{}, r.settle(ctx, request, v1alpha1.PhaseExpired, expired(request.Status))
	}
	if request.Status.Determination == v1alpha1.DeterminationHealingByRotation && secret != nil {
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
	r.announce(ctx, request, actionSettle)
	return nil
}

// fulfilled says who brought the new value, as far as that is known. A Secret that is one credential as a
// whole belongs to an OAuth token, which a platform refreshes in the background too; only a token whose
// refresh was refused for good can have been authorized anew and nothing else.
func fulfilled(status v1alpha1.CredentialUpdateRequestStatus) string {
	oauth := status.CredentialSecretKey == ""
	switch {
	case status.Determination == v1alpha1.DeterminationHealingByRotation:
		return "The order rotated, and the Secret carries a new credential. Read it again and retry the call."
	case oauth && status.Determination == v1alpha1.DeterminationRejectedRefreshDead:
		return "The credential was authorized anew. Retry the call."
	case oauth:
		return "The credential's token changed: it was refreshed in the background, or authorized anew. Retry the call."
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
