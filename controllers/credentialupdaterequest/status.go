package credentialupdaterequest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

// noteLimit is below what the API server takes as an Event's note, in bytes, with runes of up to four.
const noteLimit = 250

// report writes what changed of a request's status. It is a merge patch of the difference and has no
// resourceVersion: a card server writes interactionRef and conditions at the same time, and a conflict would
// run the determination again, refresh included. Conditions are never touched.
func (r *reconciler) report(ctx context.Context, request *v1alpha1.CredentialUpdateRequest, change func(*v1alpha1.CredentialUpdateRequestStatus)) error {
	original := request.DeepCopy()
	change(&request.Status)
	request.Status.ObservedGeneration = request.Generation
	if equality.Semantic.DeepEqual(original.Status, request.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, request, client.MergeFrom(original)); err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", Kind, request.Namespace, request.Name, err)
	}
	return nil
}

// announce says what became of a request, in a log line and in an Event. The request goes with its session,
// and then these are all that is left of it.
func (r *reconciler) announce(ctx context.Context, request *v1alpha1.CredentialUpdateRequest, action string, details ...any) {
	status := request.Status
	fields := []any{
		"namespace", request.Namespace, "name", request.Name,
		"session", request.Spec.SessionRef.Namespace + "/" + request.Spec.SessionRef.Name, "requestedBy", untrusted.Line(request.Spec.RequestedBy, 256),
		"origin", untrusted.Line(request.Spec.Origin, 128), "phase", status.Phase, "determination", status.Determination, "reason", status.Reason,
	}
	if c := status.ResolvedCredential; c != nil {
		fields = append(fields, "identityKind", c.IdentityKind, "identity", c.Namespace+"/"+c.Name, "credential", c.Credential, "provider", c.ProviderID)
	}
	log.FromContext(ctx).Info("a credential update request is "+status.Phase, append(fields, details...)...)

	reason := status.Determination
	if action == actionSettle {
		reason = status.Phase
	}
	r.events.Eventf(request, nil, corev1.EventTypeNormal, reason, action, "%s", untrusted.Line(status.Reason, noteLimit))
}

// Actions of Events.
const (
	actionDetermine = "Determine"
	actionSettle    = "Settle"
)
