package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PasswordRotationSpec is the schedule of a user's password.
type PasswordRotationSpec struct {
	// interval is the time between two scheduled password rotations. 0s turns the schedule off;
	// any other value is at least 1m. At most 87600h. A password has no overlap: consumers that
	// still hold the old one fail until they read the Secret again.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1m')",message="rotation.interval is 0s or at least 1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('87600h')",message="rotation.interval is at most 87600h"
	// +kubebuilder:default="0s"
	// +optional
	Interval *Duration `json:"interval,omitempty"`
}

// KeystoneUserSpec is the user that is ordered.
type KeystoneUserSpec struct {
	// controlPlaneRef names the ControlPlane the order is placed with. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controlPlaneRef.name is immutable; delete and re-create the KeystoneUser to move it to another ControlPlane"
	// +kubebuilder:validation:XValidation:rule="(has(self.__namespace__) ? self.__namespace__ : '') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : '')",message="controlPlaneRef.namespace is immutable; delete and re-create the KeystoneUser to move it to another ControlPlane"
	// +required
	ControlPlaneRef ControlPlaneRefSpec `json:"controlPlaneRef"`

	// userName is the name in Keystone. Empty means metadata.name. The effective name is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^,]+$`
	// +optional
	UserName string `json:"userName,omitempty"`

	// passwordGeneration is the lowest password generation the order must hold. Raising it above
	// status.passwordGeneration rotates the password at once. It may only increase.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="passwordGeneration may only increase"
	// +kubebuilder:default=1
	// +optional
	PasswordGeneration int64 `json:"passwordGeneration,omitempty"`

	// rotation is the schedule of the password. It is off unless an interval is given.
	// +kubebuilder:default={}
	// +optional
	Rotation PasswordRotationSpec `json:"rotation,omitempty,omitzero"`
}

// KeystoneUserStatus is what became of the order.
//
// +kubebuilder:validation:XValidation:rule="self.observedGeneration < 0 || (has(self.conditions) && self.conditions.exists(c, c.type == 'Ready'))",message="status.observedGeneration comes together with the condition Ready"
type KeystoneUserStatus struct {
	// conditions are UserReady, DeliveryReady and the aggregate Ready.
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

	// userID is the Keystone id of the user.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	UserID string `json:"userID,omitempty"`

	// passwordGeneration is the generation of the password that Keystone holds.
	// +optional
	PasswordGeneration int64 `json:"passwordGeneration,omitempty"`

	// lastPasswordRotation is when Keystone was last given a new password.
	// +optional
	LastPasswordRotation *metav1.Time `json:"lastPasswordRotation,omitempty"`

	// nextRotation is when the schedule rotates the password next. Absent with the schedule off.
	// +optional
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`

	// secretName is the delivered Secret, once it carries the current password.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// secretKeys are the keys of the delivered Secret, once it carries the current password.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	SecretKeys []string `json:"secretKeys,omitempty"`
}

// KeystoneUser orders a user in the Keystone of a ControlPlane. The operator creates it through
// K-ORC with a generated password, backs the password up, and writes it into the Secret
// <metadata.name>-credentials beside the order.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kuser,categories=c5c3
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="ControlPlane",type=string,JSONPath=`.spec.controlPlaneRef.name`
// +kubebuilder:printcolumn:name="Generation",type=integer,JSONPath=`.status.passwordGeneration`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 bytes; it is carried as a label value on the order's children"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.userName) ? self.spec.userName : self.metadata.name) == (has(oldSelf.spec.userName) ? oldSelf.spec.userName : oldSelf.metadata.name)",message="userName is immutable; delete and re-create the KeystoneUser to rename its user"
type KeystoneUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is ordered.
	// +required
	Spec KeystoneUserSpec `json:"spec"`

	// status is what was delivered.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status KeystoneUserStatus `json:"status,omitempty,omitzero"`
}

// KeystoneUserList is a list of KeystoneUsers.
// +kubebuilder:object:root=true
type KeystoneUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeystoneUser `json:"items"`
}

var _ Order = &KeystoneUser{}

// GetControlPlaneRef returns the reference with an empty namespace resolved to the order's own.
func (o *KeystoneUser) GetControlPlaneRef() ControlPlaneRefSpec {
	return resolveControlPlaneRef(o.Spec.ControlPlaneRef, o.Namespace)
}

// GetConditions returns a pointer to the conditions in status.
func (o *KeystoneUser) GetConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GetObservedGeneration returns the generation the status describes.
func (o *KeystoneUser) GetObservedGeneration() int64 { return o.Status.ObservedGeneration }

// SetObservedGeneration records the generation the status describes.
func (o *KeystoneUser) SetObservedGeneration(generation int64) {
	o.Status.ObservedGeneration = generation
}

// EffectiveUserName returns the name in Keystone: spec.userName, or metadata.name when that is empty.
func (o *KeystoneUser) EffectiveUserName() string {
	if o.Spec.UserName != "" {
		return o.Spec.UserName
	}
	return o.Name
}

// DeclaredPasswordGeneration returns spec.passwordGeneration with its default.
func (o *KeystoneUser) DeclaredPasswordGeneration() int64 {
	return atLeastOne(o.Spec.PasswordGeneration)
}
