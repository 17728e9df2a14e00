package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds of identities, as CredentialUpdateRequest's status.resolvedCredential.identityKind spells them.
const (
	KindAgentIdentity       = "AgentIdentity"
	KindUserIdentity        = "UserIdentity"
	KindSessionUserIdentity = "SessionUserIdentity"
)

// Types of credentials, by how their value comes about.
const (
	// CredentialStatic is a value that somebody enters.
	CredentialStatic = "static"
	// CredentialOAuth is a token that is refreshed.
	CredentialOAuth = "oauth"
	// CredentialFederated is a token that is exchanged for another identity's, each time anew.
	CredentialFederated = "federated"
	// CredentialGitHubApp is a token that is minted with an app's key, each time anew.
	CredentialGitHubApp = "githubApp"
)

// SecretKeyReference names a key of a Secret.
type SecretKeyReference struct {
	// name is the Secret's name.
	Name string `json:"name"`
	// key is the key in it.
	Key string `json:"key"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// name is the Secret's name.
	Name string `json:"name"`
}

// StaticCredential is a value that somebody enters.
//
// +kubebuilder:pruning:PreserveUnknownFields
type StaticCredential struct {
	// secretRef is where the value is.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// OAuthCredential is a token that is refreshed.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OAuthCredential struct {
	// secretRef is the Secret that is the credential, whole.
	SecretRef SecretReference `json:"secretRef"`
}

// FederatedCredential is a token that is exchanged for another identity's.
//
// +kubebuilder:pruning:PreserveUnknownFields
type FederatedCredential struct {
	// idpSecretRef is the Secret of the identity at the identity provider.
	// +optional
	IDPSecretRef *SecretReference `json:"idpSecretRef,omitempty"`
}

// GitHubAppCredential is a token that is minted with an app's key.
//
// +kubebuilder:pruning:PreserveUnknownFields
type GitHubAppCredential struct {
	// secretRef is the Secret with the app's key.
	SecretRef SecretReference `json:"secretRef"`
}

// IdentityCredential is one credential of an identity. The block that its type names says where it is.
//
// +kubebuilder:pruning:PreserveUnknownFields
type IdentityCredential struct {
	// name is the credential's name within the identity.
	Name string `json:"name"`
	// type is static, oauth, federated or githubApp.
	Type string `json:"type"`
	// static is set for type static.
	// +optional
	Static *StaticCredential `json:"static,omitempty"`
	// oauth is set for type oauth.
	// +optional
	OAuth *OAuthCredential `json:"oauth,omitempty"`
	// federated is set for type federated.
	// +optional
	Federated *FederatedCredential `json:"federated,omitempty"`
	// githubApp is set for type githubApp.
	// +optional
	GitHubApp *GitHubAppCredential `json:"githubApp,omitempty"`
}

// IdentitySpec is whose credentials they are.
//
// +kubebuilder:pruning:PreserveUnknownFields
type IdentitySpec struct {
	// subject is the person. Absent on an AgentIdentity.
	// +optional
	Subject string `json:"subject,omitempty"`
	// credentials of the identity.
	// +optional
	Credentials []IdentityCredential `json:"credentials,omitempty"`
}

// AgentIdentity is the credentials of an agent itself. Their Secrets are in its namespace.
//
// +kubebuilder:object:root=true
type AgentIdentity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec IdentitySpec `json:"spec,omitempty,omitzero"`
}

// AgentIdentityList is a list of AgentIdentity.
//
// +kubebuilder:object:root=true
type AgentIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentIdentity `json:"items"`
}

// UserIdentity is the credentials of a person. Its name is a digest of the subject.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type UserIdentity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec IdentitySpec `json:"spec,omitempty,omitzero"`
}

// UserIdentityList is a list of UserIdentity.
//
// +kubebuilder:object:root=true
type UserIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UserIdentity `json:"items"`
}

// SessionUserIdentity is what a session may use of a UserIdentity. It has the session's name.
//
// +kubebuilder:object:root=true
type SessionUserIdentity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec IdentitySpec `json:"spec,omitempty,omitzero"`
}

// SessionUserIdentityList is a list of SessionUserIdentity.
//
// +kubebuilder:object:root=true
type SessionUserIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SessionUserIdentity `json:"items"`
}
