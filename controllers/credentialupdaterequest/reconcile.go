package credentialupdaterequest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/providers"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// Reconcile looks at one request once. An Open one never comes back to its determination: that would refresh
// and probe again, and show a second card.
func (r *reconciler) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	request := &v1alpha1.CredentialUpdateRequest{}
	found, err := r.get(ctx, key.NamespacedName, request)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !found, !request.DeletionTimestamp.IsZero():
		delete(r.refreshTokens, key.NamespacedName)
		return reconcile.Result{}, nil
	}
	switch request.Status.Phase {
	case "", v1alpha1.PhasePending:
		return r.determine(ctx, request)
	case v1alpha1.PhaseOpen:
		return r.attend(ctx, request)
	case v1alpha1.PhaseCollapsed:
		return r.follow(ctx, request)
	default: // settled, or of a newer version's phase, which counts as decided
		return reconcile.Result{}, nil
	}
}

// claim is a request under determination, and what was found out about it.
type claim struct {
	*reconciler
	request *v1alpha1.CredentialUpdateRequest
	session *v1alpha1.AgentSession
	class   *v1alpha1.AgentClass
	// need is the credential that the tool asks for, under the name that identities have for it.
	need requirement
	// resolved is whose it is; nil while that is not known.
	resolved *v1alpha1.ResolvedCredential
	// held is the credential as its identity describes it.
	held     held
	provider providers.Provider
	peers    []verdict.Ask
	// secret is the Secret that holds the value; nil for a type without one.
	secret    *corev1.Secret
	delivered *delivered
	evidence  verdict.Evidence
	// refreshError is why a refresh failed, without a secret and not for good; nil when it did not.
	refreshError error
	// observed tells whether the session reports refused calls, whether or not that counts.
	observed bool
}

// decision ends a determination.
type decision struct {
	verdict.Verdict
	// into is the request that this one waits for; empty unless it is collapsed.
	into string
}

func refuse(determination, reason string, args ...any) *decision {
	return &decision{Verdict: verdict.Verdict{Phase: v1alpha1.PhaseRefused, Determination: determination, Reason: fmt.Sprintf(reason, args...)}}
}

// steps are what is found out, in this order; the first that decides ends it. Ownership stands before
// everything, since nothing may be touched for a stranger. The budget stands before the collapse, or a
// session that has used it up would ride on others' cards. The collapse stands before all that leaves the
// cluster, or a follower's refresh would race whoever is entering a value.
var steps = []func(*claim, context.Context) (*decision, error){
	(*claim).ownership,
	(*claim).classOf,
	(*claim).origin,
	(*claim).identity,
	(*claim).asksOfPeers,
	(*claim).budget,
	(*claim).collapse,
	(*claim).backingSecret,
	(*claim).delivery,
	(*claim).corroboration,
	(*claim).refresh,
	(*claim).probe,
	(*claim).verdict,
}

func (r *reconciler) determine(ctx context.Context, request *v1alpha1.CredentialUpdateRequest) (reconcile.Result, error) {
	c := &claim{reconciler: r, request: request}
	for _, step := range steps {
		decided, err := step(c, ctx)
		if err != nil {
			// Nothing is refused because the API server failed: it is asked again.
			return reconcile.Result{}, err
		}
		if decided != nil {
			return c.record(ctx, decided)
		}
	}
	return reconcile.Result{}, fmt.Errorf("no step decided on %s %s/%s", Kind, request.Namespace, request.Name)
}

func (c *claim) verdict(context.Context) (*decision, error) {
	return &decision{Verdict: verdict.Determine(c.evidence)}, nil
}

// record writes a decision, all of it in one patch.
func (c *claim) record(ctx context.Context, decided *decision) (reconcile.Result, error) {
	err := c.report(ctx, c.request, func(status *v1alpha1.CredentialUpdateRequestStatus) {
		status.Phase, status.Determination, status.Reason = decided.Phase, decided.Determination, decided.Reason
		status.ResolvedCredential = c.resolved
		status.CollapsedInto = nil
		switch {
		case decided.into != "":
			status.CollapsedInto = &v1alpha1.ObjectReference{Namespace: c.request.Namespace, Name: decided.into}
		case decided.Phase == v1alpha1.PhaseOpen:
			status.CredentialSecretRef = &v1alpha1.ObjectReference{Namespace: c.secret.Namespace, Name: c.secret.Name}
			status.CredentialSecretKey = c.held.key
			// Of the very copy that was judged: a value that came in meanwhile is a change.
			status.CredentialSecretObservedHash = credupdate.Digest(c.secret.Data, c.held.key)
			if status.OpenedAt == nil {
				status.OpenedAt = &metav1.Time{Time: c.clock.Now()}
			}
		}
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	c.announce(ctx, c.request, actionDetermine, c.found()...)
	switch decided.Phase {
	case v1alpha1.PhaseOpen:
		c.noteRefreshToken(c.request, c.secret)
		if decided.Determination == v1alpha1.DeterminationHealingByRotation {
			// After the status, so that a crash in between leaves a request that will ask again.
			if err := c.heal(ctx, c.request, *c.delivered.dead); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{RequeueAfter: openPoll}, nil
	case v1alpha1.PhaseCollapsed:
		return reconcile.Result{RequeueAfter: followerPoll}, nil
	}
	return reconcile.Result{}, nil
}

// found is what was found out, for the log.
func (c *claim) found() []any {
	fields := []any{
		"refresh", c.evidence.Refresh, "probe", c.evidence.Probe, "answer", c.evidence.ProbeDetail,
		"callsRefused", c.observed, "corroborated", c.evidence.Corroborated,
	}
	if c.refreshError != nil {
		fields = append(fields, "refreshError", c.refreshError.Error())
	}
	if c.delivered != nil {
		fields = append(fields, "order", c.delivered.Order, "state", c.delivered.State)
	}
	return fields
}

// get reads an object live and tells whether it is there. A name that no object can have is of none.
func (r *reconciler) get(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	if !objectName(key.Name) || key.Namespace != "" && !objectName(key.Namespace) {
		return false, nil
	}
	err := r.live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", object, key, err)
	}
	return true, nil
}
