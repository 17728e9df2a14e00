package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phases of a CredentialUpdateRequest. A phase that is not among them counts as decided: a newer
// version wrote it, and an older one must not decide again.
const (
	// PhasePending is a request that nobody has determined yet, as is the empty phase.
	PhasePending = "Pending"
	// PhaseOpen is a request that waits for its credential to change.
	PhaseOpen = "Open"
	// PhaseCollapsed is a request that waits for another request on the same credential.
	PhaseCollapsed = "Collapsed"
	// PhaseFulfilled is a request whose credential changed. Terminal.
	PhaseFulfilled = "Fulfilled"
	// PhaseRefused is a request that nobody is asked about. Terminal.
	PhaseRefused = "Refused"
	// PhaseExpired is a request whose credential did not change in time. Terminal.
	PhaseExpired = "Expired"
)

// Determinations of a CredentialUpdateRequest: why it was opened or refused.
const (
	// DeterminationRejectedVerified: the provider itself refused the credential.
	DeterminationRejectedVerified = "RejectedVerified"
	// DeterminationRejectedRefreshDead: the provider refused the refresh token for good.
	DeterminationRejectedRefreshDead = "RejectedRefreshDead"
	// DeterminationRejectedUnverified: the provider gave no verdict, and the session's calls fail.
	DeterminationRejectedUnverified = "RejectedUnverified"
	// DeterminationHealingByRotation: the credential is dead, an order delivered it, and the order
	// rotates. No human is asked.
	DeterminationHealingByRotation = "HealingByRotation"
	// DeterminationCredentialLive: the provider accepts the credential.
	DeterminationCredentialLive = "CredentialLive"
	// DeterminationUnverified: neither the provider nor the session's own calls speak against it.
	DeterminationUnverified = "Unverified"
	// DeterminationNotUpdatable: nobody can enter a new value for this credential.
	DeterminationNotUpdatable = "NotUpdatable"
	// DeterminationSelfHealed: the credential was refreshed.
	DeterminationSelfHealed = "SelfHealed"
	// DeterminationNoCredential: the request leads to no credential.
	DeterminationNoCredential = "NoCredential"
	// DeterminationAmbiguousCredential: the request leads to more than one credential.
	DeterminationAmbiguousCredential = "AmbiguousCredential"
	// DeterminationBudgetExhausted: the session has asked about this credential often enough.
	DeterminationBudgetExhausted = "BudgetExhausted"
	// DeterminationCollapsed: another request asks about the same credential already.
	DeterminationCollapsed = "Collapsed"
)

const (
	// ConditionCardDelivered tells whether somebody was shown the card of an Open request.
	ConditionCardDelivered = "CardDelivered"
	// ReasonPublished: the card was published.
	ReasonPublished = "Published"
	// ReasonNoRecipient: there is nobody to show the card to.
	ReasonNoRecipient = "NoRecipient"
	// ReasonExternalURLUnconfigured: the card's link would lead nowhere.
	ReasonExternalURLUnconfigured = "ExternalURLUnconfigured"
)

// Settled tells whether a phase is terminal: nothing changes it any more. A phase that is not known,
// the empty one among them, is not terminal.
func Settled(phase string) bool {
	return phase == PhaseFulfilled || phase == PhaseRefused || phase == PhaseExpired
}

// ObjectReference names an object in a namespace.
type ObjectReference struct {
	// name is the object's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// namespace is the object's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
}

// CredentialUpdateRequestSpec is what an agent claims. It names the tool that failed and nothing else:
// an agent that could name an identity could point at a credential that it never used.
type CredentialUpdateRequestSpec struct {
	// sessionRef is the AgentSession that waits for this request. The request also has a controller
	// reference to it, by UID, so that it lives exactly as long: asks are counted by listing.
	// +required
	SessionRef ObjectReference `json:"sessionRef"`

	// origin is where the failing tool comes from, such as "mcpserver/github". The operator finds the
	// credential by it, and by nothing else of the request. What is not of this shape is stored and
	// refused with a reason, so that the agent is told.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Origin string `json:"origin"`

	// toolName is the name by which the language model knows the failing tool, for the card and for
	// audit. Nothing is looked up by it.
	// +kubebuilder:validation:MaxLength=512
	// +required
	ToolName string `json:"toolName"`

	// why is the agent's own explanation. Untrusted: it is the only text of the agent's that reaches
	// a card, and stands there apart from what the platform says.
	// +kubebuilder:validation:MaxLength=280
	// +optional
	Why string `json:"why,omitempty"`

	// requestedBy is the canonical subject of the author of the turn.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	RequestedBy string `json:"requestedBy"`
}

// ResolvedCredential is the credential that an origin leads to.
type ResolvedCredential struct {
	// identityKind is AgentIdentity, UserIdentity or SessionUserIdentity. The last is a session's view of
	// a UserIdentity: both belong to a person, an AgentIdentity to the agent.
	// +required
	IdentityKind string `json:"identityKind"`

	// namespace is the identity's namespace; empty for a kind without one.
	// +required
	Namespace string `json:"namespace"`

	// name is the identity's name.
	// +required
	Name string `json:"name"`

	// credential is the credential's name within the identity.
	// +required
	Credential string `json:"credential"`

	// providerID is the provider's id in the catalog, so that a card has its title at hand.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
}

// CredentialUpdateRequestStatus is what was observed and decided.
type CredentialUpdateRequestStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Pending, Open, Collapsed, Fulfilled, Refused or Expired. The last three are terminal.
	// +optional
	Phase string `json:"phase,omitempty"`

	// determination is why the request was opened or refused.
	// +optional
	Determination string `json:"determination,omitempty"`

	// reason says the determination in words, to the agent and on the card. The platform is its author
	// in every case.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Reason string `json:"reason,omitempty"`

	// resolvedCredential is what the origin leads to. Absent when it leads nowhere.
	// +optional
	ResolvedCredential *ResolvedCredential `json:"resolvedCredential,omitempty"`

	// credentialSecretRef is the Secret that holds the credential, recorded when the request opens.
	// +optional
	CredentialSecretRef *ObjectReference `json:"credentialSecretRef,omitempty"`

	// credentialSecretKey is the key of that Secret that holds the credential. Empty when the whole
	// Secret is the credential, as with OAuth: the emptiness tells the two apart. Changes of other keys
	// are no changes of this credential.
	// +optional
	CredentialSecretKey string `json:"credentialSecretKey,omitempty"`

	// credentialSecretObservedHash is a SHA-256 digest of the credential's data at the moment the
	// request opened. Another digest later fulfils the request; an edit of metadata does not.
	// +optional
	CredentialSecretObservedHash string `json:"credentialSecretObservedHash,omitempty"`

	// openedAt is when the request opened, written once. The time to answer counts from here and not
	// from the creation: a determination can take minutes, and a human who was never asked must not
	// be said to have let it pass. Absent on requests from before the field; these count from creation.
	// +optional
	OpenedAt *metav1.Time `json:"openedAt,omitempty"`

	// collapsedInto is the request whose card this one waits for. Absent on every request that has a
	// card of its own.
	// +optional
	CollapsedInto *ObjectReference `json:"collapsedInto,omitempty"`

	// interactionRef is the published card's reference, set only when one was published.
	// +optional
	InteractionRef string `json:"interactionRef,omitempty"`

	// conditions holds CardDelivered.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CredentialUpdateRequest is an agent's claim that a credential stopped working. It is a request and
// never a decision: the operator checks the claim by itself, heals what a machine can heal, and only
// then has a human asked.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=credupdate
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Determination",type=string,JSONPath=`.status.determination`
// +kubebuilder:printcolumn:name="Origin",type=string,JSONPath=`.spec.origin`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CredentialUpdateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the agent claims. Immutable: another claim is another request.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable; create another CredentialUpdateRequest for another claim"
	// +required
	Spec CredentialUpdateRequestSpec `json:"spec"`

	// status is what was observed and decided.
	// +optional
	Status CredentialUpdateRequestStatus `json:"status,omitempty,omitzero"`
}

// CredentialUpdateRequestList is a list of CredentialUpdateRequest.
//
// +kubebuilder:object:root=true
type CredentialUpdateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CredentialUpdateRequest `json:"items"`
}
