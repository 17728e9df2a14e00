package credentialupdaterequest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/refresh"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// Keys of an OAuth credential's Secret.
const (
	keyAccessToken   = credupdate.KeyAccessToken
	keyRefreshToken  = "refresh_token"
	keyExpiresAt     = "expires_at"
	keyTokenEndpoint = "token_endpoint"
	keyClientID      = "client_id"
	keyClientSecret  = "client_secret"

	// materialSuffix, after the Secret's name, is the Secret that may hold endpoint and client instead, if
	// it has the label. One without it is somebody else's.
	materialSuffix = "-refresh"
	materialLabel  = "agentprimitives.authzed.com/oauth-refresh-material"
)

// backingSecret reads the Secret that holds the value. One that is not there, or lacks the key, settles the claim: an
// answer creates nothing, so a card would be answered in vain, and trying again would probe for ever.
func (c *claim) backingSecret(ctx context.Context) (*decision, error) {
	if verdict.Minted(c.held.kind) || c.held.kind != v1alpha1.CredentialStatic && !verdict.Refreshable(c.held.kind) {
		return nil, nil // the type decides, and has no value
	}
	if c.held.secret.Name == "" {
		return refuse(v1alpha1.DeterminationNoCredential, "The %s %q does not say which Secret holds its credential %q.", c.resolved.IdentityKind, c.resolved.Name, c.resolved.Credential), nil
	}
	secret := &corev1.Secret{}
	found, err := c.get(ctx, c.held.secret, secret)
	if err != nil {
		return nil, err
	}
	if !found {
		return refuse(v1alpha1.DeterminationNoCredential,
			"Secret %s, which holds the credential, does not exist. Whoever runs the platform has to create it; asking again will not help before.", c.held.secret), nil
	}
	if _, there := secret.Data[c.held.key]; c.held.key != "" && !there {
		return refuse(v1alpha1.DeterminationNoCredential,
			"Secret %s has no key %q, under which the credential should be. Whoever runs the platform has to add it; asking again will not help before.", c.held.secret, c.held.key), nil
	}
	c.secret = secret
	return nil, nil
}

// delivery finds out whether an order delivers the Secret, and then what Keystone says.
func (c *claim) delivery(ctx context.Context) (*decision, error) {
	if c.secret == nil {
		return nil, nil
	}
	delivered, err := c.deliveredBy(ctx, c.secret)
	if err != nil || delivered == nil {
		return nil, err
	}
	c.delivered = delivered
	c.evidence.Delivery = &delivered.Delivery
	return nil, nil
}

// corroboration counts the session's own refused calls, when its provider's refusals can be told from other
// failures. The session's runner writes the report, so whether it could have known is judged here again.
func (c *claim) corroboration(context.Context) (*decision, error) {
	c.observed = slices.ContainsFunc(c.session.Status.CredentialAuthFailures, func(failure v1alpha1.CredentialAuthFailure) bool {
		return failure.Origin == c.request.Spec.Origin
	})
	c.evidence.Corroborated = c.observed && c.provider.AuthFailure != nil
	return nil, nil
}

// refresh renews a token that can be renewed.
func (c *claim) refresh(ctx context.Context) (*decision, error) {
	if c.evidence.Delivery != nil || !verdict.Refreshable(c.held.kind) || c.secret == nil || len(c.secret.Data[keyRefreshToken]) == 0 {
		return nil, nil
	}
	if ptr.Deref(c.secret.Immutable, false) {
		return nil, nil // what cannot be stored must not be redeemed: the next token would be lost, and this one used up
	}
	grant, err := c.grant(ctx)
	if err != nil {
		return nil, err
	}
	if grant.TokenEndpoint == "" {
		return nil, nil
	}
	tokens, err := c.redeemer.Redeem(ctx, grant)
	switch {
	case errors.Is(err, refresh.ErrDead):
		c.evidence.Refresh = verdict.RefreshDead
		return nil, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("refreshing the credential: %w", ctx.Err())
	case err != nil:
		c.evidence.Refresh, c.refreshError = verdict.RefreshFailed, err
		return nil, nil //nolint:nilerr // a refresh that fails is evidence, and proves nothing
	}
	if err := c.keep(ctx, tokens); err != nil {
		return nil, err
	}
	c.redeemer.Stored(grant)
	c.evidence.Refresh = verdict.RefreshDone
	return nil, nil
}

// grant is what to redeem, and where. Who may read the token need not be trusted with its redemption, so
// endpoint and client may stand in a sibling. One that cannot be read is an error: the Secret's own endpoint
// may be an old one.
func (c *claim) grant(ctx context.Context) (refresh.Grant, error) {
	material := c.secret.Data
	sibling := &corev1.Secret{}
	key := types.NamespacedName{Namespace: c.secret.Namespace, Name: c.secret.Name + materialSuffix}
	found, err := c.get(ctx, key, sibling)
	if err != nil {
		return refresh.Grant{}, err
	}
	// A sibling without the label is another credential's, whose client must not redeem this one's token. One
	// with it is the whole truth, also when it names no endpoint: the two are never mixed.
	if _, labelled := sibling.Labels[materialLabel]; found && labelled {
		material = sibling.Data
	}
	return refresh.Grant{
		TokenEndpoint: string(material[keyTokenEndpoint]), ClientID: string(material[keyClientID]), ClientSecret: string(material[keyClientSecret]),
		RefreshToken: string(c.secret.Data[keyRefreshToken]),
	}, nil
}

// keep writes redeemed tokens into their Secret, and only over the ones that were redeemed: whoever was
// faster has newer ones. The redeemer hands the tokens out again, however long this fails.
func (c *claim) keep(ctx context.Context, tokens refresh.Tokens) error {
	redeemed := string(c.secret.Data[keyRefreshToken])
	before := string(c.secret.Data[keyAccessToken])
	for range 2 {
		changed := c.secret.DeepCopy()
		changed.Data[keyAccessToken] = []byte(tokens.AccessToken)
		changed.Data[keyRefreshToken] = []byte(tokens.RefreshToken)
		delete(changed.Data, keyExpiresAt)
		if !tokens.ExpiresAt.IsZero() {
			changed.Data[keyExpiresAt] = []byte(tokens.ExpiresAt.UTC().Format(time.RFC3339))
		}
		err := c.client.Patch(ctx, changed, client.MergeFromWithOptions(c.secret, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			c.secret = changed
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("writing the refreshed token into Secret %s: %w", c.held.secret, err)
		}
		found, err := c.get(ctx, c.held.secret, c.secret)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("writing the refreshed token: Secret %s is gone", c.held.secret)
		}
		if string(c.secret.Data[keyAccessToken]) != before || string(c.secret.Data[keyRefreshToken]) != redeemed {
			return nil
		}
	}
	return fmt.Errorf("writing the refreshed token into Secret %s: it keeps changing", c.held.secret)
}

// probe asks the provider, unless its answer would change nothing.
func (c *claim) probe(ctx context.Context) (*decision, error) {
	if !verdict.ProbeDecides(c.evidence) {
		return nil, nil
	}
	value := c.secret.Data[c.held.key]
	if verdict.Refreshable(c.held.kind) {
		value = c.secret.Data[keyAccessToken]
	}
	token := c.need.token(value)
	if token == "" {
		c.evidence.Probe, c.evidence.ProbeDetail = verdict.ProbeIndeterminate, "there is no value"
		return nil, nil
	}
	outcome, detail := c.prober.Probe(ctx, c.provider, token)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("asking the provider: %w", ctx.Err())
	}
	if outcome != verdict.ProbeRejected {
		// A refusal is given to the agent as the platform's word, and the provider's words may be anybody's.
		detail, _, _ = strings.Cut(detail, ":")
	}
	c.evidence.Probe, c.evidence.ProbeDetail = outcome, detail
	return nil, nil
}

// asksOfPeers are the other requests of the namespace.
func (c *claim) asksOfPeers(ctx context.Context) (*decision, error) {
	list := &v1alpha1.CredentialUpdateRequestList{}
	if err := c.live.List(ctx, list, client.InNamespace(c.request.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the requests of namespace %s: %w", c.request.Namespace, err)
	}
	for i := range list.Items {
		peer := &list.Items[i]
		if peer.UID == c.request.UID {
			continue
		}
		backing, err := c.backingOf(ctx, peer)
		if err != nil {
			return nil, err
		}
		c.peers = append(c.peers, verdict.Ask{
			Name: peer.Name, Session: peer.Spec.SessionRef, Credential: peer.Status.ResolvedCredential, Backing: backing,
			Phase: peer.Status.Phase, Determination: peer.Status.Determination, Follows: peer.Status.CollapsedInto != nil,
		})
	}
	return nil, nil
}

// backingOf is what an open request is about, as far as it can be told from its status.
func (c *claim) backingOf(ctx context.Context, peer *v1alpha1.CredentialUpdateRequest) (verdict.Backing, error) {
	credential, secret := peer.Status.ResolvedCredential, peer.Status.CredentialSecretRef
	if peer.Status.Phase != v1alpha1.PhaseOpen || credential == nil || secret == nil {
		return verdict.Backing{}, nil
	}
	subject := ""
	if credential.IdentityKind == v1alpha1.KindSessionUserIdentity && peer.Status.CredentialSecretKey != "" {
		person := &v1alpha1.SessionUserIdentity{}
		if _, err := c.get(ctx, types.NamespacedName{Namespace: credential.Namespace, Name: credential.Name}, person); err != nil {
			return verdict.Backing{}, err
		}
		subject = person.Spec.Subject
	}
	return backing(credential.IdentityKind, held{
		secret: types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, key: peer.Status.CredentialSecretKey, subject: subject,
	}, credential.Credential), nil
}

// backing is what makes two asks one. Each session of a person has a Secret of its own with copies of the
// static credentials, so these are known by the person and the name.
func backing(identityKind string, h held, credential string) verdict.Backing {
	switch {
	case h.subject != "":
		return verdict.Backing{IdentityKind: identityKind, Subject: h.subject, Credential: credential}
	case h.secret.Name != "":
		return verdict.Backing{IdentityKind: identityKind, Namespace: h.secret.Namespace, Name: h.secret.Name, Key: h.key}
	default:
		return verdict.Backing{}
	}
}

func (c *claim) budget(context.Context) (*decision, error) {
	if !verdict.Exhausted(c.request.Spec.SessionRef, *c.resolved, c.peers) {
		return nil, nil
	}
	return refuse(v1alpha1.DeterminationBudgetExhausted,
		"The session has raised its maximum of %s requests about this credential.", strconv.Itoa(verdict.Budget)), nil
}

func (c *claim) collapse(context.Context) (*decision, error) {
	name, found := verdict.Canonical(backing(c.resolved.IdentityKind, c.held, c.resolved.Credential), c.peers)
	if !found {
		return nil, nil
	}
	return &decision{into: name, Verdict: verdict.Verdict{
		Phase: v1alpha1.PhaseCollapsed, Determination: v1alpha1.DeterminationCollapsed,
		Reason: fmt.Sprintf("Request %q is open about the same credential. This one waits for it and ends as it does.", name),
	}}, nil
}
