package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPServerAuth is how a tool server is logged in to.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MCPServerAuth struct {
	// credential is the credential's name, before a class's remap. Empty: the server asks for none.
	// +optional
	Credential string `json:"credential,omitempty"`
	// provider is the provider's id in the catalog.
	// +optional
	Provider string `json:"provider,omitempty"`
	// header is the header that carries the credential, Authorization unless set.
	// +optional
	Header string `json:"header,omitempty"`
	// valuePrefix stands before the credential in the header: "Bearer " when header is not set either.
	// +optional
	ValuePrefix string `json:"valuePrefix,omitempty"`
}

// MCPServerSpec is the part of a tool server that tells its credential.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MCPServerSpec struct {
	// auth is how the server is logged in to.
	// +optional
	Auth MCPServerAuth `json:"auth,omitempty,omitzero"`
}

// MCPServer is a server of tools.
//
// +kubebuilder:object:root=true
type MCPServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec MCPServerSpec `json:"spec,omitempty,omitzero"`
}

// MCPServerList is a list of MCPServer.
//
// +kubebuilder:object:root=true
type MCPServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPServer `json:"items"`
}

// ToolkitVariable is an environment variable that a toolkit's programs read.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ToolkitVariable struct {
	// name of the variable.
	Name string `json:"name"`
	// sensitive variables hold a credential.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
	// credential is the credential's name, before a class's remap.
	// +optional
	Credential string `json:"credential,omitempty"`
	// provider is the provider's id in the catalog.
	// +optional
	Provider string `json:"provider,omitempty"`
}

// ToolkitEnvironment is the environment of a toolkit's programs.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ToolkitEnvironment struct {
	// allowed variables.
	// +optional
	Allowed []ToolkitVariable `json:"allowed,omitempty"`
}

// SpiceboxToolkitSpec is the part of a toolkit that tells its credentials.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SpiceboxToolkitSpec struct {
	// env is the environment of its programs.
	// +optional
	Env ToolkitEnvironment `json:"env,omitempty,omitzero"`
}

// SpiceboxToolkit is a set of programs that an agent runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type SpiceboxToolkit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec SpiceboxToolkitSpec `json:"spec,omitempty,omitzero"`
}

// SpiceboxToolkitList is a list of SpiceboxToolkit.
//
// +kubebuilder:object:root=true
type SpiceboxToolkitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SpiceboxToolkit `json:"items"`
}

// SidecarUpstreamAuth is how a toolbox logs in to what it stands before.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SidecarUpstreamAuth struct {
	// provider is the provider's id in the catalog; "none" needs no credential.
	// +optional
	Provider string `json:"provider,omitempty"`
	// envVar is the variable that carries the credential.
	// +optional
	EnvVar string `json:"envVar,omitempty"`
}

// SidecarToolboxSpec is the part of a toolbox that tells its credential.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SidecarToolboxSpec struct {
	// upstreamAuth is how the toolbox logs in. Its credential is named after the toolbox, "<name>-creds".
	// +optional
	UpstreamAuth SidecarUpstreamAuth `json:"upstreamAuth,omitempty,omitzero"`
}

// SidecarToolbox is a set of tools that runs beside an agent.
//
// +kubebuilder:object:root=true
type SidecarToolbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec SidecarToolboxSpec `json:"spec,omitempty,omitzero"`
}

// SidecarToolboxList is a list of SidecarToolbox.
//
// +kubebuilder:object:root=true
type SidecarToolboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SidecarToolbox `json:"items"`
}
