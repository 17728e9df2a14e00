package credentialupdaterequest

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// follow looks at what a collapsed request waits for. It ends as that one does. When that one is gone, or is
// nothing that can be waited for, this one is determined itself: its session still has a claim.
func (r *reconciler) follow(ctx context.Context, request *v1alpha1.CredentialUpdateRequest) (reconcile.Result, error) {
	into := request.Status.CollapsedInto
	if into == nil {
		return r.determine(ctx, request)
	}
	awaited := &v1alpha1.CredentialUpdateRequest{}
	found, err := r.get(ctx, types.NamespacedName{Namespace: into.Namespace, Name: into.Name}, awaited)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case found && awaited.Status.Phase == v1alpha1.PhaseOpen:
		return reconcile.Result{RequeueAfter: followerPoll}, nil
	case !found || !v1alpha1.Settled(awaited.Status.Phase):
		return r.determine(ctx, request)
	}
	err = r.report(ctx, request, func(status *v1alpha1.CredentialUpdateRequestStatus) {
		status.Phase, status.Determination, status.Reason = awaited.Status.Phase, awaited.Status.Determination, handedOn(awaited.Status)
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	r.announce(ctx, request, actionSettle, "waitedFor", into.Name)
	return reconcile.Result{}, nil
}

// handedOn is the reason of a follower. It never is that of the other one alone, which would claim that a
// card was shown for this request.
func handedOn(awaited v1alpha1.CredentialUpdateRequestStatus) string {
	const noCard = "This request waited for another session's about the same credential, and no card was shown for it."
	outcome := ""
	switch awaited.Phase {
	case v1alpha1.PhaseFulfilled:
		outcome = "The credential changed. Retry the call."
	case v1alpha1.PhaseRefused:
		outcome = strings.TrimSpace(awaited.Reason)
	case v1alpha1.PhaseExpired:
		if awaited.InteractionRef == "" {
			outcome = "The other request's time is over, and nobody was shown a card for it either."
		} else {
			outcome = "The other request's time is over: its card was shown, and nobody replaced the credential."
		}
	}
	return strings.TrimSpace(noCard + " " + outcome)
}
