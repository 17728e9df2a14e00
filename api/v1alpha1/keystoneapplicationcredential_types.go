package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialRotationSpec is the schedule of an application credential.
//
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || !has(self.gracePeriod) || duration(self.interval) == duration('0s') || duration(self.gracePeriod) < duration(self.interval)",message="rotation.gracePeriod must be shorter than rotation.interval"
type CredentialRotationSpec struct {
	// interval is the time between two scheduled rotations. 0s turns the schedule off; any other
	// value is at least 1m. At most 87600h. While the schedule is on, every credential expires in
	// Keystone at its creation plus the interval plus the grace period.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1m')",message="rotation.interval is 0s or at least 1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('87600h')",message="rotation.interval is at most 87600h"
	// +kubebuilder:default="720h"
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// gracePeriod is how long the superseded credential stays in Keystone after the delivered
	// Secret switched. Not negative, and shorter than a non-zero interval.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="rotation.gracePeriod is not negative"
	// +kubebuilder:default="24h"
	// +optional
	GracePeriod *Duration `json:"gracePeriod,omitempty"`
}

// KeystoneApplicationCredentialSpec is the application credential that is ordered.
type KeystoneApplicationCredentialSpec struct {
	// controlPlaneRef names the ControlPlane the order is placed with. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controlPlaneRef.name is immutable; delete and re-create the KeystoneApplicationCredential to move it to another ControlPlane"
	// +kubebuilder:validation:XValidation:rule="(has(self.__namespace__) ? self.__namespace__ : '') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : '')",message="controlPlaneRef.namespace is immutable; delete and re-create the KeystoneApplicationCredential to move it to another ControlPlane"
	// +required
	ControlPlaneRef ControlPlaneRefSpec `json:"controlPlaneRef"`

	// userRef names the KeystoneUser in the order's namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="userRef is immutable; delete and re-create the KeystoneApplicationCredential to bind another user"
	// +required
	UserRef OrderRef `json:"userRef"`

	// projectRef names the KeystoneProject in the order's namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="projectRef is immutable; delete and re-create the KeystoneApplicationCredential to bind another project"
	// +required
	ProjectRef OrderRef `json:"projectRef"`

	// credentialGeneration is the lowest credential generation the order must hold. Raising it
	// above status.credentialGeneration rotates at once. It may only increase.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="credentialGeneration may only increase"
	// +kubebuilder:default=1
	// +optional
	CredentialGeneration int64 `json:"credentialGeneration,omitempty"`

	// rotation is the schedule.
	// +kubebuilder:default={}
	// +optional
	Rotation CredentialRotationSpec `json:"rotation,omitempty,omitzero"`
}

// KeystoneApplicationCredentialStatus is what became of the order.
//
// +kubebuilder:validation:XValidation:rule="self.observedGeneration < 0 || (has(self.conditions) && self.conditions.exists(c, c.type == 'Ready'))",message="status.observedGeneration comes together with the condition Ready"
type KeystoneApplicationCredentialStatus struct {
	// conditions are CredentialReady, DeliveryReady and the aggregate Ready.
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

	// credentialID is the Keystone id of the credential the delivered Secret carries.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	CredentialID string `json:"credentialID,omitempty"`

	// credentialGeneration is the generation of that credential.
	// +optional
	CredentialGeneration int64 `json:"credentialGeneration,omitempty"`

	// credentialExpiresAt is when that credential expires in Keystone. Absent for one created with
	// the schedule off.
	// +optional
	CredentialExpiresAt *metav1.Time `json:"credentialExpiresAt,omitempty"`

	// lastRotation is when that credential became the delivered one.
	// +optional
	LastRotation *metav1.Time `json:"lastRotation,omitempty"`

	// nextRotation is when the schedule rotates next. Absent with the schedule off.
	// +optional
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`

	// previousCredentialID is the Keystone id of the superseded credential, during its grace
	// period only.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	PreviousCredentialID string `json:"previousCredentialID,omitempty"`

	// previousCredentialGeneration is its generation, during its grace period only.
	// +optional
	PreviousCredentialGeneration int64 `json:"previousCredentialGeneration,omitempty"`

	// previousCredentialDeleteAt is when it is deleted, during its grace period only.
	// +optional
	PreviousCredentialDeleteAt *metav1.Time `json:"previousCredentialDeleteAt,omitempty"`

	// secretName is the delivered Secret, once it carries the current credential.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// secretKeys are the keys of the delivered Secret, once it carries the current credential.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	SecretKeys []string `json:"secretKeys,omitempty"`
}

// KeystoneApplicationCredential orders one Keystone application credential for a KeystoneUser on a
// KeystoneProject, both ordered from the same namespace. The operator creates it through K-ORC as
// the ordered user, backs it up, and writes its id and secret into the Secret
// <metadata.name>-credentials beside the order. On a schedule it creates a successor, switches the
// Secret to it, and deletes the superseded credential after a grace period.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kappcred,categories=c5c3
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="ControlPlane",type=string,JSONPath=`.spec.controlPlaneRef.name`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userRef.name`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectRef.name`
// +kubebuilder:printcolumn:name="Generation",type=integer,JSONPath=`.status.credentialGeneration`
// +kubebuilder:printcolumn:name="NextRotation",type=string,JSONPath=`.status.nextRotation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 bytes; it is carried as a label value on the order's children"
type KeystoneApplicationCredential struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is ordered.
	// +required
	Spec KeystoneApplicationCredentialSpec `json:"spec"`

	// status is what was delivered.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status KeystoneApplicationCredentialStatus `json:"status,omitempty,omitzero"`
}

// KeystoneApplicationCredentialList is a list of KeystoneApplicationCredentials.
// +kubebuilder:object:root=true
type KeystoneApplicationCredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeystoneApplicationCredential `json:"items"`
}

var _ Order = &KeystoneApplicationCredential{}

// GetControlPlaneRef returns the reference with an empty namespace resolved to the order's own.
func (o *KeystoneApplicationCredential) GetControlPlaneRef() ControlPlaneRefSpec {
	return resolveControlPlaneRef(o.Spec.ControlPlaneRef, o.Namespace)
}

// GetConditions returns a pointer to the conditions in status.
func (o *KeystoneApplicationCredential) GetConditions() *[]metav1.Condition {
	return &o.Status.Conditions
}

// GetObservedGeneration returns the generation the status describes.
func (o *KeystoneApplicationCredential) GetObservedGeneration() int64 {
	return o.Status.ObservedGeneration
}

// SetObservedGeneration records the generation the status describes.
func (o *KeystoneApplicationCredential) SetObservedGeneration(generation int64) {
	o.Status.ObservedGeneration = generation
}

// DeclaredCredentialGeneration returns spec.credentialGeneration with its default.
func (o *KeystoneApplicationCredential) DeclaredCredentialGeneration() int64 {
	return atLeastOne(o.Spec.CredentialGeneration)
}
