// SPDX-License-Identifier: Apache-2.0

package externalsecrets

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is ESO's API group.
const Group = "external-secrets.io"

// PushSecretGroupVersion serves PushSecret, in ESO 0.16 and 1.x alike.
var PushSecretGroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// StoreGroupVersion serves SecretStore and ClusterSecretStore. ESO serves it since 0.16.
var StoreGroupVersion = schema.GroupVersion{Group: Group, Version: "v1"}

// The kinds of store that a PushSecretStoreRef may name.
const (
	SecretStoreKind        = "SecretStore"
	ClusterSecretStoreKind = "ClusterSecretStore"
)

// PushSecretKind is the kind of a PushSecret.
const PushSecretKind = "PushSecret"

// Deletion policies of a PushSecret.
const (
	// DeletionPolicyDelete removes what was pushed when the PushSecret is deleted.
	DeletionPolicyDelete PushSecretDeletionPolicy = "Delete"
	// DeletionPolicyNone leaves it, and is what ESO takes by default.
	DeletionPolicyNone PushSecretDeletionPolicy = "None"
)

// UpdatePolicyReplace overwrites what the store holds; ESO's default.
const UpdatePolicyReplace PushSecretUpdatePolicy = "Replace"

// ReadyCondition is the type of the one condition of a PushSecret and of a store.
const ReadyCondition = "Ready"

// AddToScheme registers the kinds of this package. The two versions of one group cannot share a
// scheme builder of controller-runtime, which knows one version only.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(PushSecretGroupVersion, &PushSecret{}, &PushSecretList{})
	metav1.AddToGroupVersion(scheme, PushSecretGroupVersion)
	scheme.AddKnownTypes(StoreGroupVersion, &SecretStore{}, &SecretStoreList{}, &ClusterSecretStore{}, &ClusterSecretStoreList{})
	metav1.AddToGroupVersion(scheme, StoreGroupVersion)
	return nil
}

// PushSecretDeletionPolicy says what becomes of the pushed secret when its PushSecret goes.
type PushSecretDeletionPolicy string

// PushSecretUpdatePolicy says what a push does to a secret that the store already holds.
type PushSecretUpdatePolicy string

// PushSecret copies a Secret of its namespace to a secret store.
//
// +kubebuilder:object:root=true
type PushSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PushSecretSpec   `json:"spec,omitempty"`
	Status PushSecretStatus `json:"status,omitzero"`
}

// PushSecretList is a list of PushSecrets.
//
// +kubebuilder:object:root=true
type PushSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PushSecret `json:"items"`
}

// PushSecretSpec says what is pushed where.
type PushSecretSpec struct {
	// RefreshInterval is how often ESO pushes again without being asked. Nil takes ESO's 1h.
	RefreshInterval *metav1.Duration `json:"refreshInterval,omitempty"`
	// SecretStoreRefs names the stores to push to.
	SecretStoreRefs []PushSecretStoreRef `json:"secretStoreRefs"`
	// UpdatePolicy; empty takes ESO's Replace.
	UpdatePolicy PushSecretUpdatePolicy `json:"updatePolicy,omitempty"`
	// DeletionPolicy; empty takes ESO's None.
	DeletionPolicy PushSecretDeletionPolicy `json:"deletionPolicy,omitempty"`
	// Selector picks the Secret.
	Selector PushSecretSelector `json:"selector"`
	// Data says which keys go where.
	Data []PushSecretData `json:"data,omitempty"`
}

// PushSecretStoreRef names a store.
type PushSecretStoreRef struct {
	Name string `json:"name,omitempty"`
	// Kind is SecretStore (ESO's default) or ClusterSecretStore.
	Kind string `json:"kind,omitempty"`
}

// PushSecretSelector picks the source of a push.
type PushSecretSelector struct {
	Secret *PushSecretSecret `json:"secret,omitempty"`
}

// PushSecretSecret names a Secret in the PushSecret's namespace.
type PushSecretSecret struct {
	Name string `json:"name,omitempty"`
}

// PushSecretData is one entry of what is pushed.
type PushSecretData struct {
	Match PushSecretMatch `json:"match"`
	// ConversionStrategy is None (ESO's default) or ReverseUnicode.
	ConversionStrategy string `json:"conversionStrategy,omitempty"`
}

// PushSecretMatch pairs a key of the Secret with a place in the store.
type PushSecretMatch struct {
	// SecretKey is the key to push. Empty pushes the whole Secret.
	SecretKey string `json:"secretKey,omitempty"`
	// RemoteRef is the place.
	RemoteRef PushSecretRemoteRef `json:"remoteRef"`
}

// PushSecretRemoteRef is a place in a store.
type PushSecretRemoteRef struct {
	// RemoteKey is the path of the secret in the store.
	RemoteKey string `json:"remoteKey"`
	// Property is the key within the secret. Empty means the secret as a whole.
	Property string `json:"property,omitempty"`
}

// PushSecretStatus is what ESO says of its pushes.
type PushSecretStatus struct {
	// RefreshTime is when ESO last pushed.
	//
	// +nullable
	RefreshTime metav1.Time `json:"refreshTime,omitzero"`
	// SyncedResourceVersion is the version of the PushSecret (see ResourceVersion) of the last push
	// that succeeded. It is not metadata.resourceVersion.
	SyncedResourceVersion string `json:"syncedResourceVersion,omitempty"`
	// SyncedPushSecrets lists what ESO pushed, by store and place.
	SyncedPushSecrets map[string]map[string]PushSecretData `json:"syncedPushSecrets,omitempty"`
	// Conditions holds at most the condition Ready.
	Conditions []StatusCondition `json:"conditions,omitempty"`
}

// StatusCondition is ESO's condition, of PushSecrets and stores alike. Unlike metav1.Condition it
// has no observedGeneration.
type StatusCondition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitzero"`
}

// SecretStore is a store that serves one namespace. Its spec is not read.
//
// +kubebuilder:object:root=true
type SecretStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status SecretStoreStatus `json:"status,omitzero"`
}

// SecretStoreList is a list of SecretStores.
//
// +kubebuilder:object:root=true
type SecretStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SecretStore `json:"items"`
}

// ClusterSecretStore is a store that serves all namespaces. Its spec is not read.
//
// +kubebuilder:object:root=true
type ClusterSecretStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status SecretStoreStatus `json:"status,omitzero"`
}

// ClusterSecretStoreList is a list of ClusterSecretStores.
//
// +kubebuilder:object:root=true
type ClusterSecretStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSecretStore `json:"items"`
}

// SecretStoreStatus is what ESO says of a store.
type SecretStoreStatus struct {
	// Conditions holds at most the condition Ready.
	Conditions []StatusCondition `json:"conditions,omitempty"`
	// Capabilities is ReadOnly, WriteOnly or ReadWrite, and empty before ESO looked.
	Capabilities string `json:"capabilities,omitempty"`
}
