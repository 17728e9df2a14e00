package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeystoneMode says who runs the Keystone of a ControlPlane.
// +kubebuilder:validation:Enum=Managed;External
type KeystoneMode string

const (
	// KeystoneManaged is a Keystone inside the management cluster, reached through its Service.
	KeystoneManaged KeystoneMode = "Managed"
	// KeystoneExternal is a Keystone that is reached at the URL of spec.services.keystone.external.
	KeystoneExternal KeystoneMode = "External"
)

// EndpointType is the interface of a Keystone catalog endpoint.
// +kubebuilder:validation:Enum=public;internal;admin
type EndpointType string

// Endpoint interfaces of the Keystone catalog.
const (
	EndpointPublic   EndpointType = "public"
	EndpointInternal EndpointType = "internal"
	EndpointAdmin    EndpointType = "admin"
)

// SecretReference names a Secret in the ControlPlane's namespace.
type SecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretKeyReference names one key of a Secret in the ControlPlane's namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=keystone-admin
	// +optional
	Name string `json:"name,omitempty"`

	// key within the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=password
	// +optional
	Key string `json:"key,omitempty"`
}

// SecretStoreReference names the External Secrets store that backups are pushed to.
type SecretStoreReference struct {
	// name of the store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// kind of the store: a SecretStore in the ControlPlane's namespace, or a ClusterSecretStore.
	// +kubebuilder:validation:Enum=SecretStore;ClusterSecretStore
	// +kubebuilder:default=SecretStore
	// +optional
	Kind string `json:"kind,omitempty"`
}

// ExternalKeystone says where a Keystone is that this cluster does not run.
type ExternalKeystone struct {
	// authURL is the identity endpoint, with the version, such as https://keystone.example.com/v3.
	// Consumers on every cluster get this URL.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	// +required
	AuthURL string `json:"authURL"`

	// endpointType is the catalog interface the operator and K-ORC use.
	// +kubebuilder:default=public
	// +optional
	EndpointType EndpointType `json:"endpointType,omitempty"`

	// caBundleSecretRef names a Secret whose key ca.crt (PEM) verifies Keystone's certificate, in place
	// of the system's roots.
	// +optional
	CABundleSecretRef *SecretReference `json:"caBundleSecretRef,omitempty"`
}

// GatewaySpec names the gateway a managed Keystone is published through.
type GatewaySpec struct {
	// hostname that the gateway serves Keystone on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Hostname string `json:"hostname"`
}

// ClusterReference names a registered target cluster.
type ClusterReference struct {
	// name of the cluster's registration Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// KeystoneServiceSpec says where Keystone is and how consumers reach it.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'External' ? has(self.external) : !has(self.external)",message="services.keystone.external is required in mode External and not allowed in mode Managed"
type KeystoneServiceSpec struct {
	// mode says who runs Keystone: Managed (a Service in this cluster) or External (a URL).
	// +kubebuilder:default=Managed
	// +optional
	Mode KeystoneMode `json:"mode,omitempty"`

	// external says where Keystone is in mode External.
	// +optional
	External *ExternalKeystone `json:"external,omitempty"`

	// namespace of a managed Keystone's Service <controlplane>-keystone. Empty means the
	// ControlPlane's own namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// targetClusterRef names the registered cluster a managed Keystone runs on. Absent means the
	// management cluster.
	// +optional
	TargetClusterRef *ClusterReference `json:"targetClusterRef,omitempty"`

	// publicEndpoint is the URL that consumers on other clusters than a managed Keystone's use,
	// such as https://keystone.example.com/v3.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	// +optional
	PublicEndpoint string `json:"publicEndpoint,omitempty"`

	// gateway publishes a managed Keystone. It is used when publicEndpoint is empty.
	// +optional
	Gateway *GatewaySpec `json:"gateway,omitempty"`

	// caBundleSecretRef names a Secret whose key ca.crt (PEM) verifies the certificate of a managed
	// Keystone, in place of the system's roots. In mode External the bundle belongs to
	// external.caBundleSecretRef.
	// +optional
	CABundleSecretRef *SecretReference `json:"caBundleSecretRef,omitempty"`
}

// ServicesSpec holds the services of a ControlPlane. Only the identity service is read.
type ServicesSpec struct {
	// keystone is the identity service.
	// +optional
	Keystone KeystoneServiceSpec `json:"keystone,omitempty,omitzero"`
}

// AdminCredentialSpec says how the operator gets into Keystone.
type AdminCredentialSpec struct {
	// passwordSecretRef names the key that holds the admin password. Whoever runs Keystone
	// supplies the Secret; the operator only reads it.
	// +kubebuilder:default={}
	// +optional
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef,omitempty,omitzero"`

	// userName of the administrator.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^,]+$`
	// +kubebuilder:default=admin
	// +optional
	UserName string `json:"userName,omitempty"`

	// projectName the administrator's sessions are scoped to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[^,]+$`
	// +kubebuilder:default=admin
	// +optional
	ProjectName string `json:"projectName,omitempty"`

	// domainName of the administrator and of the project, and the domain that orders create their
	// users and projects in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[^,]+$`
	// +kubebuilder:default=Default
	// +optional
	DomainName string `json:"domainName,omitempty"`
}

// KORCSpec holds what K-ORC needs to work for this ControlPlane.
type KORCSpec struct {
	// adminCredential says how the operator and K-ORC get into Keystone.
	// +kubebuilder:default={}
	// +optional
	AdminCredential AdminCredentialSpec `json:"adminCredential,omitempty,omitzero"`
}

// NamespaceAssignment is a ControlPlane's consent to one namespace on one cluster. Only an entry
// of this list consents; the ControlPlane's own namespace is not assigned by itself.
type NamespaceAssignment struct {
	// namespace that may place orders.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Namespace string `json:"namespace"`

	// targetClusterRef names the registered cluster the namespace is on. Absent means the
	// management cluster. An entry for one cluster says nothing about a namespace of the same
	// name on another.
	// +optional
	TargetClusterRef *ClusterReference `json:"targetClusterRef,omitempty"`

	// allowedRoles are the Keystone roles that a KeystoneRoleAssignment in the namespace may
	// order, by their case-sensitive names. Absent admits no role. Roles that Keystone implies
	// are not considered: member brings reader along.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[^,]+$`
	// +listType=atomic
	// +optional
	AllowedRoles []string `json:"allowedRoles,omitempty"`

	// allowCatalogEntries admits orders of catalog entries. No kind of this release reads it.
	// +optional
	AllowCatalogEntries bool `json:"allowCatalogEntries,omitempty"`
}

// ControlPlaneSpec is the identity plane that orders name: where Keystone is, who may order, how
// the operator gets in.
type ControlPlaneSpec struct {
	// region that delivered documents name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:default=RegionOne
	// +optional
	Region string `json:"region,omitempty"`

	// secretStoreRef names the External Secrets store that backups are pushed to. Absent means
	// the SecretStore openbao-tenant-store in the ControlPlane's namespace.
	// +optional
	SecretStoreRef *SecretStoreReference `json:"secretStoreRef,omitempty"`

	// services of the control plane.
	// +kubebuilder:default:={"keystone":{"mode":"Managed"}}
	// +optional
	Services ServicesSpec `json:"services,omitempty,omitzero"`

	// korc holds what K-ORC needs to work for this ControlPlane.
	// +kubebuilder:default={}
	// +optional
	KORC KORCSpec `json:"korc,omitempty,omitzero"`

	// namespaceAssignments are the namespaces that may place orders. Removing an entry freezes
	// the orders of that namespace; it revokes nothing.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.__namespace__ == a.__namespace__ && (has(b.targetClusterRef) ? b.targetClusterRef.name : '') == (has(a.targetClusterRef) ? a.targetClusterRef.name : '')))",message="namespaceAssignments must not name the same namespace on the same cluster twice"
	// +listType=atomic
	// +optional
	NamespaceAssignments []NamespaceAssignment `json:"namespaceAssignments,omitempty"`
}

// NamespaceAssignmentStatus mirrors one entry of spec.namespaceAssignments.
type NamespaceAssignmentStatus struct {
	// namespace of the entry.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// targetCluster of the entry, empty for the management cluster.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TargetCluster string `json:"targetCluster,omitempty"`

	// clusterReachable tells whether the cluster answered.
	// +optional
	ClusterReachable bool `json:"clusterReachable"`

	// namespaceExists tells whether the namespace exists and is not being deleted.
	// +optional
	NamespaceExists bool `json:"namespaceExists"`

	// reason is Assigned, TargetClusterUnavailable, ClusterUnreachable, NamespaceNotFound or
	// NamespaceTerminating.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ControlPlaneStatus is what the operator knows of the identity plane.
//
// +kubebuilder:validation:XValidation:rule="self.observedGeneration < 0 || (has(self.conditions) && self.conditions.exists(c, c.type == 'Ready'))",message="status.observedGeneration comes together with the condition Ready"
type ControlPlaneStatus struct {
	// conditions are AdminCredentialReady, DependenciesReady, SecretStoreReady, KeystoneReachable
	// and the aggregate Ready.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation the controller last reconciled, -1 before its
	// first pass.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// authURL is the identity endpoint the operator and K-ORC use.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	AuthURL string `json:"authURL,omitempty"`

	// adminUserID is the Keystone id of the administrator, once K-ORC imported it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	AdminUserID string `json:"adminUserID,omitempty"`

	// domainID is the Keystone id of the domain that orders create in, once K-ORC imported it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DomainID string `json:"domainID,omitempty"`

	// namespaceAssignments mirrors spec.namespaceAssignments with what each entry meets.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	NamespaceAssignments []NamespaceAssignmentStatus `json:"namespaceAssignments,omitempty"`
}

// ControlPlane is the identity plane that orders name. It deploys no Keystone: it says where one
// is, how the operator gets in, which store keeps backups, and which namespaces may order what.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cplane,categories=c5c3
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="AdminCredential",type=string,JSONPath=`.status.conditions[?(@.type=='AdminCredentialReady')].reason`
// +kubebuilder:printcolumn:name="AuthURL",type=string,JSONPath=`.status.authURL`
// +kubebuilder:printcolumn:name="Region",type=string,priority=1,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 bytes; it is part of the names of the ControlPlane's children"
type ControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is where Keystone is, who may order, and how the operator gets in.
	// +kubebuilder:default={}
	// +optional
	Spec ControlPlaneSpec `json:"spec,omitempty,omitzero"`

	// status is what the operator found.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// ControlPlaneList is a list of ControlPlanes.
// +kubebuilder:object:root=true
type ControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlane `json:"items"`
}

// GetConditions returns a pointer to the conditions in status.
func (c *ControlPlane) GetConditions() *[]metav1.Condition { return &c.Status.Conditions }

// Assignment returns the entry that consents to orders from a namespace on a cluster, or nil. The
// management cluster's name is empty.
func (c *ControlPlane) Assignment(namespace, cluster string) *NamespaceAssignment {
	for i := range c.Spec.NamespaceAssignments {
		entry := &c.Spec.NamespaceAssignments[i]
		target := ""
		if entry.TargetClusterRef != nil {
			target = entry.TargetClusterRef.Name
		}
		if entry.Namespace == namespace && target == cluster {
			return entry
		}
	}
	return nil
}
