package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeystoneRoleAssignmentSpec is the role that is ordered, for whom, and where.
type KeystoneRoleAssignmentSpec struct {
	// controlPlaneRef names the ControlPlane the order is placed with. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controlPlaneRef.name is immutable; delete and re-create the KeystoneRoleAssignment to move it to another ControlPlane"
	// +kubebuilder:validation:XValidation:rule="(has(self.__namespace__) ? self.__namespace__ : '') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : '')",message="controlPlaneRef.namespace is immutable; delete and re-create the KeystoneRoleAssignment to move it to another ControlPlane"
	// +required
	ControlPlaneRef ControlPlaneRefSpec `json:"controlPlaneRef"`

	// userRef names the KeystoneUser in the order's namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="userRef is immutable; delete and re-create the KeystoneRoleAssignment to bind another user"
	// +required
	UserRef OrderRef `json:"userRef"`

	// projectRef names the KeystoneProject in the order's namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="projectRef is immutable; delete and re-create the KeystoneRoleAssignment to bind another project"
	// +required
	ProjectRef OrderRef `json:"projectRef"`

	// role is the name of the Keystone role, matched case-sensitively against allowedRoles of the
	// namespace's assignment. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^,]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="role is immutable; delete and re-create the KeystoneRoleAssignment to assign another role"
	// +required
	Role string `json:"role"`
}

// KeystoneRoleAssignmentStatus is what became of the order.
//
// +kubebuilder:validation:XValidation:rule="self.observedGeneration < 0 || (has(self.conditions) && self.conditions.exists(c, c.type == 'Ready'))",message="status.observedGeneration comes together with the condition Ready"
type KeystoneRoleAssignmentStatus struct {
	// conditions are AssignmentReady and the aggregate Ready.
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

	// roleID is the Keystone role id, once assigned.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	RoleID string `json:"roleID,omitempty"`

	// userID is the Keystone id of the referenced user, once assigned.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	UserID string `json:"userID,omitempty"`

	// projectID is the Keystone id of the referenced project, once assigned.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ProjectID string `json:"projectID,omitempty"`
}

// KeystoneRoleAssignment orders one Keystone role for the user of a KeystoneUser on the project of
// a KeystoneProject, both ordered from the same namespace. No Secret is delivered.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=krole,categories=c5c3
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="ControlPlane",type=string,JSONPath=`.spec.controlPlaneRef.name`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userRef.name`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectRef.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 bytes; it is carried as a label value on the order's children"
type KeystoneRoleAssignment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is ordered.
	// +required
	Spec KeystoneRoleAssignmentSpec `json:"spec"`

	// status is what was delivered.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status KeystoneRoleAssignmentStatus `json:"status,omitempty,omitzero"`
}

// KeystoneRoleAssignmentList is a list of KeystoneRoleAssignments.
// +kubebuilder:object:root=true
type KeystoneRoleAssignmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeystoneRoleAssignment `json:"items"`
}

var _ Order = &KeystoneRoleAssignment{}

// GetControlPlaneRef returns the reference with an empty namespace resolved to the order's own.
func (o *KeystoneRoleAssignment) GetControlPlaneRef() ControlPlaneRefSpec {
	return resolveControlPlaneRef(o.Spec.ControlPlaneRef, o.Namespace)
}

// GetConditions returns a pointer to the conditions in status.
func (o *KeystoneRoleAssignment) GetConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GetObservedGeneration returns the generation the status describes.
func (o *KeystoneRoleAssignment) GetObservedGeneration() int64 { return o.Status.ObservedGeneration }

// SetObservedGeneration records the generation the status describes.
func (o *KeystoneRoleAssignment) SetObservedGeneration(generation int64) {
	o.Status.ObservedGeneration = generation
}
