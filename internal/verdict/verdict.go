package verdict

import (
	"strings"
	"time"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// Probe is what the provider said of a credential. Every value that is not among these counts as
// ProbeIndeterminate: a newer writer must not make an older reader open a card.
type Probe string

// Outcomes of a probe.
const (
	// ProbeValid: the provider accepted the credential.
	ProbeValid Probe = "valid"
	// ProbeRejected: the provider's authentication refused it (401).
	ProbeRejected Probe = "rejected"
	// ProbeForbidden: the provider knows the credential and refuses the request (403). It proves nothing:
	// a working credential without a scope gets it too, and an agent can provoke it.
	ProbeForbidden Probe = "forbidden"
	// ProbeIndeterminate: no answer, or one that tells nothing (5xx, a rate limit, a time-out, TLS, DNS).
	ProbeIndeterminate Probe = "indeterminate"
	// ProbeUnsupported: the provider offers no way to ask.
	ProbeUnsupported Probe = "unsupported"
)

// Refresh is what became of the attempt to refresh a credential.
type Refresh string

// Outcomes of a refresh.
const (
	// RefreshNotAttempted: the type has nothing to refresh, or its Secret no refresh token.
	RefreshNotAttempted Refresh = ""
	// RefreshDone: the Secret holds a new token.
	RefreshDone Refresh = "done"
	// RefreshDead: the provider answered invalid_grant (RFC 6749 §5.2), which is final.
	RefreshDead Refresh = "dead"
	// RefreshFailed: anything else. It proves nothing.
	RefreshFailed Refresh = "failed"
)

// State is what Keystone, the order and the Secret say of a credential that an order delivers. Every
// value that is not among these counts as StateUnknown.
type State string

// States of a delivered credential.
const (
	// StateUnknown: Keystone gave no verdict (5xx, a time-out, TLS, DNS). Never taken for dead.
	StateUnknown State = "unknown"
	// StateLive: Keystone accepts it.
	StateLive State = "live"
	// StateGone: Keystone does not hold it any more.
	StateGone State = "gone"
	// StateExpired: Keystone holds it, and on Keystone's clock it has expired.
	StateExpired State = "expired"
	// StatePasswordRefused: it is a password, Keystone refuses it, and its user is there and enabled.
	StatePasswordRefused State = "password refused"
	// StateRoleMissing: its user has no role on its project any more.
	StateRoleMissing State = "role missing"
	// StateUserDisabled: its user is disabled.
	StateUserDisabled State = "user disabled"
	// StateEdited: the Secret does not hold what the order delivered.
	StateEdited State = "edited"
	// StateRefusedUnexplained: Keystone refuses it and none of the causes above holds.
	StateRefusedUnexplained State = "refused"
	// StateFrozen: the ControlPlane's consent is withdrawn, so nothing about the order is changed.
	StateFrozen State = "frozen"
	// StateNotReady: the order itself is refused or fails.
	StateNotReady State = "not ready"
	// StateDeleting: the order is being deleted.
	StateDeleting State = "deleting"
)

// Delivery is a credential whose Secret an order delivers.
type Delivery struct {
	// Order names it for a reader, as "KeystoneApplicationCredential tenant-a/workflow-appcred".
	Order string
	// State is what was found out.
	State State
	// Detail is the platform's word on the state, such as a condition's message. No secret, and no text of
	// the agent's.
	Detail string
	// RotatesAt is when a grace period lets the order rotate. Zero: at once.
	RotatesAt time.Time
}

// Evidence is all that was found out about a claim. Its texts are the platform's and hold no secret.
type Evidence struct {
	// Delivery is set when an order delivers the Secret.
	Delivery *Delivery
	// Type is the credential's type, as an identity spells it.
	Type string
	// IdentityKind is whose credential it is.
	IdentityKind string
	// Provider is the provider's title. Empty when the catalog does not have it.
	Provider string
	Refresh  Refresh
	Probe    Probe
	// ProbeDetail is what the provider answered, short, on one line.
	ProbeDetail string
	// Corroborated tells whether the session's own calls are being refused for this credential.
	Corroborated bool
}

// Verdict is what a claim deserves.
type Verdict struct {
	// Phase is Open or Refused.
	Phase string
	// Determination is one of CredentialUpdateRequest's.
	Determination string
	// Reason says it to the agent, and on the card. Never empty.
	Reason string
}

// Minted tells whether a credential's value is made anew for each use, so that nobody can enter one.
func Minted(credentialType string) bool {
	return credentialType == v1alpha1.CredentialFederated || credentialType == v1alpha1.CredentialGitHubApp
}

// Refreshable tells whether a credential is renewed with a refresh token.
func Refreshable(credentialType string) bool { return credentialType == v1alpha1.CredentialOAuth }

// AsksHuman tells whether a determination has a human asked. A card server publishes cards for these,
// and for nothing else: a list of what is allowed, so that a new determination shows no card by itself.
func AsksHuman(determination string) bool {
	switch determination {
	case v1alpha1.DeterminationRejectedVerified, v1alpha1.DeterminationRejectedRefreshDead, v1alpha1.DeterminationRejectedUnverified:
		return true
	default:
		return false
	}
}

// rule is a row of the package's table.
type rule struct {
	holds func(Evidence) bool
	// asks says that the row is about the provider's word, for which the provider has to be asked.
	asks          bool
	phase         string
	determination string
	// reason holds {provider}, {detail} and {type}.
	reason string
}

// rules are rows 2 to 10 of the package's table, in its order. The last one always holds.
var rules = []rule{
	{
		holds: func(e Evidence) bool {
			return e.Type != v1alpha1.CredentialStatic && !Refreshable(e.Type) && !Minted(e.Type)
		},
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationNotUpdatable,
		reason: "The credential's type {type} is not known, so nobody can be asked for a new value. Its identity has to be corrected; asking again will not help.",
	},
	{
		holds: func(e Evidence) bool { return Minted(e.Type) },
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationNotUpdatable,
		reason: "A credential of type {type} is made anew for each use: there is no value to enter. Whoever runs the platform has to look at its set-up; asking again will not help.",
	},
	{
		holds: func(e Evidence) bool { return e.Refresh == RefreshDone },
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationSelfHealed,
		reason: "{provider} refreshed the credential. Retry the call.",
	},
	{
		holds: func(e Evidence) bool {
			return Refreshable(e.Type) && e.IdentityKind == v1alpha1.KindAgentIdentity
		},
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationNotUpdatable,
		reason: "The credential is the agent's own OAuth token and could not be refreshed. No value can be entered for it: whoever runs the platform has to authorize it anew. Asking again will not help.",
	},
	{
		holds: func(e Evidence) bool { return e.Refresh == RefreshDead },
		phase: v1alpha1.PhaseOpen, determination: v1alpha1.DeterminationRejectedRefreshDead,
		reason: "{provider} refused to refresh the credential: it has to be authorized anew.",
	},
	{
		holds: func(e Evidence) bool { return e.Probe == ProbeRejected }, asks: true,
		phase: v1alpha1.PhaseOpen, determination: v1alpha1.DeterminationRejectedVerified,
		reason: "{provider} refused the credential{detail}.",
	},
	{
		holds: func(e Evidence) bool { return e.Probe == ProbeValid }, asks: true,
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationCredentialLive,
		reason: "{provider} accepts the credential, so a new one would change nothing. The refusal is about what it may do: report which resource was refused.",
	},
	{
		holds: func(e Evidence) bool { return e.Corroborated }, asks: true,
		phase: v1alpha1.PhaseOpen, determination: v1alpha1.DeterminationRejectedUnverified,
		reason: "{provider} did not say whether it accepts the credential{detail}, and this session's calls with it are being refused.",
	},
	{
		holds: func(Evidence) bool { return true }, asks: true,
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationUnverified,
		reason: "{provider} did not say whether it accepts the credential{detail}, and nothing else speaks against it. Retry the call; ask again if it is refused.",
	},
}

// ProbeDecides tells whether the verdict depends on what the provider says. Where it does not, the
// provider is not asked. Probe, ProbeDetail and Corroborated are not looked at.
func ProbeDecides(e Evidence) bool {
	e.Probe, e.Corroborated = "", false
	return e.Delivery == nil && e.rule().asks
}

// Determine decides. It never returns a phase other than Open and Refused.
func Determine(e Evidence) Verdict {
	if e.Delivery != nil {
		return e.Delivery.verdict()
	}
	r := e.rule()
	provider := e.Provider
	if provider == "" {
		provider = "The provider"
	}
	return Verdict{r.phase, r.determination, strings.NewReplacer(
		"{provider}", provider, "{detail}", inBrackets(e.ProbeDetail), "{type}", quoted(e.Type),
	).Replace(r.reason)}
}

func (e Evidence) rule() rule {
	for _, r := range rules[:len(rules)-1] {
		if r.holds(e) {
			return r
		}
	}
	return rules[len(rules)-1]
}

// deliveries is row 1 of the package's table. Only what a new credential cures heals: a missing role, a
// disabled user or an edited Secret would make the next credential as useless as this one.
var deliveries = map[State]rule{
	StateGone: {
		phase: v1alpha1.PhaseOpen, determination: v1alpha1.DeterminationHealingByRotation,
		reason: "Keystone does not hold the credential any more. {order} delivers a new one {when}: read the Secret again then. Nobody needs to be asked.",
	},
	StateExpired: {
		phase: v1alpha1.PhaseOpen, determination: v1alpha1.DeterminationHealingByRotation,
		reason: "The credential has expired in Keystone. {order} delivers a new one {when}: read the Secret again then. Nobody needs to be asked.",
	},
	StatePasswordRefused: {
		phase: v1alpha1.PhaseOpen, determination: v1alpha1.DeterminationHealingByRotation,
		reason: "Keystone does not take the password any more. {order} sets a new one and delivers it {when}: read the Secret again then. Nobody needs to be asked.",
	},
	StateLive: {
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationCredentialLive,
		reason: "Keystone accepts the credential that {order} delivers, so a new one would change nothing. Read the Secret again: an older copy is refused once its grace period is over. If this is the current one, report which resource was refused.",
	},
	StateUnknown: {
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationUnverified,
		reason: "Keystone did not say whether it accepts the credential that {order} delivers{detail}. Retry the call; ask again if it is refused.",
	},
	StateRoleMissing:        notUpdatable("its user has no role on its project any more{detail}. Order the role again with a KeystoneRoleAssignment, or have it assigned in Keystone."),
	StateUserDisabled:       notUpdatable("its user is disabled in Keystone{detail}. Whoever runs Keystone can enable it."),
	StateEdited:             notUpdatable("somebody changed the delivered Secret{detail}. The operator writes it again: read it anew in a minute and retry."),
	StateRefusedUnexplained: notUpdatable("Keystone refuses it though it is there and has not expired, and its user and role are in order{detail}. Whoever runs the platform has to look at the order; raising its generation makes a new credential."),
	StateFrozen:             notUpdatable("the ControlPlane's consent to its namespace is withdrawn, which freezes the order{detail}. Whoever runs the ControlPlane can assign the namespace again."),
	StateNotReady:           notUpdatable("the order is not in order itself{detail}. Its conditions say what to do."),
	StateDeleting:           notUpdatable("the order is being deleted{detail}. Order a new one if it is still needed."),
}

func notUpdatable(why string) rule {
	return rule{
		phase: v1alpha1.PhaseRefused, determination: v1alpha1.DeterminationNotUpdatable,
		reason: "The credential that {order} delivers cannot be replaced: " + why,
	}
}

func (d Delivery) verdict() Verdict {
	r, known := deliveries[d.State]
	if !known {
		r = deliveries[StateUnknown]
	}
	when := "within a minute or two"
	if !d.RotatesAt.IsZero() {
		when = "when its grace period ends, at " + d.RotatesAt.UTC().Format(time.RFC3339)
	}
	return Verdict{r.phase, r.determination, strings.NewReplacer("{order}", d.Order, "{detail}", inBrackets(d.Detail), "{when}", when).Replace(r.reason)}
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func quoted(text string) string { return `"` + text + `"` }
