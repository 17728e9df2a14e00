package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How a session acts in front of a tool: as itself or as the person it works for.
const (
	// IdentityModeAgent: the agent's own credentials.
	IdentityModeAgent = "agent"
	// IdentityModeUserPassthrough: those of the person who started the session.
	IdentityModeUserPassthrough = "userPassthrough"
	// IdentityModeAsk and IdentityModeDynamic are decided while the session runs, and then
	// AgentSession's status.effectiveIdentityMode says what was decided.
	IdentityModeAsk     = "ask"
	IdentityModeDynamic = "dynamic"
)

// StartedByAnnotation holds the canonical subject of who started an AgentSession, as "user:<id>".
const StartedByAnnotation = "agentprimitives.authzed.com/started-by-canonical-id"

// CredentialAuthFailure says that calls to a tool are being refused for their credential. Its presence
// is the only signal: it is removed when a call succeeds.
//
// +kubebuilder:pruning:PreserveUnknownFields
type CredentialAuthFailure struct {
	// origin is the tool's origin, as in a CredentialUpdateRequest.
	Origin string `json:"origin"`
	// count is how many calls were refused since the last one that was not.
	// +optional
	Count int64 `json:"count,omitempty"`
	// observedAt is when the last one was.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
}

// InputChannel is where a session talks with people.
//
// +kubebuilder:pruning:PreserveUnknownFields
type InputChannel struct {
	// kind is the channel's kind.
	// +optional
	Kind string `json:"kind,omitempty"`
}

// AgentSessionSpec is the part of a session that tells whose credentials it uses.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AgentSessionSpec struct {
	// class is the session's AgentClass, in its namespace.
	// +optional
	Class string `json:"class,omitempty"`
	// agentIdentity is the session's AgentIdentity, before that of its class.
	// +optional
	AgentIdentity string `json:"agentIdentity,omitempty"`
	// inputChannel is where the session talks with people. Absent when nobody listens.
	// +optional
	InputChannel *InputChannel `json:"inputChannel,omitempty"`
}

// AgentSessionStatus is what is known of a running session.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AgentSessionStatus struct {
	// phase is where the session is in its life.
	// +optional
	Phase string `json:"phase,omitempty"`
	// effectiveIdentityMode is what was decided when the class leaves the mode to the session.
	// +optional
	EffectiveIdentityMode string `json:"effectiveIdentityMode,omitempty"`
	// credentialAuthFailures are the tools whose calls are being refused. The session's runner writes
	// them, so they support a claim and never prove one.
	// +optional
	CredentialAuthFailures []CredentialAuthFailure `json:"credentialAuthFailures,omitempty"`
}

// AgentSession is a running agent.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type AgentSession struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec AgentSessionSpec `json:"spec,omitempty,omitzero"`
	// +optional
	Status AgentSessionStatus `json:"status,omitempty,omitzero"`
}

// AgentSessionList is a list of AgentSession.
//
// +kubebuilder:object:root=true
type AgentSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentSession `json:"items"`
}

// MCPServerUse is a tool server that agents of a class use.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MCPServerUse struct {
	// ref is the MCPServer's name.
	// +optional
	Ref string `json:"ref,omitempty"`
	// credentialRemap gives credentials of the server the names that the class's identities have for
	// them. Identities know only the new names.
	// +optional
	CredentialRemap map[string]string `json:"credentialRemap,omitempty"`
}

// ToolBundle is a set of toolkits' tools that agents of a class use. Which toolkits these are stands in kinds that are
// not read here.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ToolBundle struct {
	// name is the bundle's name in the class.
	// +optional
	Name string `json:"name,omitempty"`
	// credentialRemap gives credentials of its toolkits the names that the class's identities have for them.
	// +optional
	CredentialRemap map[string]string `json:"credentialRemap,omitempty"`
}

// SidecarToolboxUse is a toolbox that agents of a class use.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SidecarToolboxUse struct {
	// ref is the SidecarToolbox's name.
	// +optional
	Ref string `json:"ref,omitempty"`
}

// CredentialUpdateCapability lets agents of a class file CredentialUpdateRequests.
//
// +kubebuilder:pruning:PreserveUnknownFields
type CredentialUpdateCapability struct {
	// enabled is off unless it is said.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// AgentCapabilities is what agents of a class may do.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AgentCapabilities struct {
	// credential_update is the right to file CredentialUpdateRequests.
	// +optional
	CredentialUpdate *CredentialUpdateCapability `json:"credential_update,omitempty"`
}

// AgentClassSpec is the part of a class that tells which credentials its agents use.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AgentClassSpec struct {
	// identityMode is agent, userPassthrough, ask or dynamic.
	// +optional
	IdentityMode string `json:"identityMode,omitempty"`
	// agentIdentity is the AgentIdentity of sessions that name none.
	// +optional
	AgentIdentity string `json:"agentIdentity,omitempty"`
	// mcpServers are the tool servers of the class.
	// +optional
	MCPServers []MCPServerUse `json:"mcpServers,omitempty"`
	// toolBundles are the toolkits of the class.
	// +optional
	ToolBundles []ToolBundle `json:"toolBundles,omitempty"`
	// sidecarToolboxes are the toolboxes of the class.
	// +optional
	SidecarToolboxes []SidecarToolboxUse `json:"sidecarToolboxes,omitempty"`
	// capabilities is what the class's agents may do.
	// +optional
	Capabilities AgentCapabilities `json:"capabilities,omitempty,omitzero"`
}

// AgentClass is what sessions of one sort have in common.
//
// +kubebuilder:object:root=true
type AgentClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec AgentClassSpec `json:"spec,omitempty,omitzero"`
}

// AgentClassList is a list of AgentClass.
//
// +kubebuilder:object:root=true
type AgentClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentClass `json:"items"`
}
