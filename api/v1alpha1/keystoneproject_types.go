package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeystoneProjectSpec is the project that is ordered.
type KeystoneProjectSpec struct {
	// controlPlaneRef names the ControlPlane the order is placed with. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controlPlaneRef.name is immutable; delete and re-create the KeystoneProject to move it to another ControlPlane"
	// +kubebuilder:validation:XValidation:rule="(has(self.__namespace__) ? self.__namespace__ : '') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : '')",message="controlPlaneRef.namespace is immutable; delete and re-create the KeystoneProject to move it to another ControlPlane"
	// +required
	ControlPlaneRef ControlPlaneRefSpec `json:"controlPlaneRef"`

	// projectName is the name in Keystone. Empty means metadata.name. The effective name is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^,]+$`
	// +optional
	ProjectName string `json:"projectName,omitempty"`
}

// KeystoneProjectStatus is what became of the order.
//
// +kubebuilder:validation:XValidation:rule="self.observedGeneration < 0 || (has(self.conditions) && self.conditions.exists(c, c.type == 'Ready'))",message="status.observedGeneration comes together with the condition Ready"
type KeystoneProjectStatus struct {
	// conditions are ProjectReady and the aggregate Ready.
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

	// projectID is the Keystone id of the project.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ProjectID string `json:"projectID,omitempty"`

	// projectName is the name of the project in Keystone.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ProjectName string `json:"projectName,omitempty"`

	// domainName is the name of the domain the project is in.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DomainName string `json:"domainName,omitempty"`
}

// KeystoneProject orders a project in the Keystone of a ControlPlane. No Secret is delivered.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kproject,categories=c5c3
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="ControlPlane",type=string,JSONPath=`.spec.controlPlaneRef.name`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.status.projectName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 bytes; it is carried as a label value on the order's children"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.projectName) ? self.spec.projectName : self.metadata.name) == (has(oldSelf.spec.projectName) ? oldSelf.spec.projectName : oldSelf.metadata.name)",message="projectName is immutable; delete and re-create the KeystoneProject to rename its project"
type KeystoneProject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is ordered.
	// +required
	Spec KeystoneProjectSpec `json:"spec"`

	// status is what was delivered.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status KeystoneProjectStatus `json:"status,omitempty,omitzero"`
}

// KeystoneProjectList is a list of KeystoneProjects.
// +kubebuilder:object:root=true
type KeystoneProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeystoneProject `json:"items"`
}

var _ Order = &KeystoneProject{}

// GetControlPlaneRef returns the reference with an empty namespace resolved to the order's own.
func (o *KeystoneProject) GetControlPlaneRef() ControlPlaneRefSpec {
	return resolveControlPlaneRef(o.Spec.ControlPlaneRef, o.Namespace)
}

// GetConditions returns a pointer to the conditions in status.
func (o *KeystoneProject) GetConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GetObservedGeneration returns the generation the status describes.
func (o *KeystoneProject) GetObservedGeneration() int64 { return o.Status.ObservedGeneration }

// SetObservedGeneration records the generation the status describes.
func (o *KeystoneProject) SetObservedGeneration(generation int64) {
	o.Status.ObservedGeneration = generation
}

// EffectiveProjectName returns the name in Keystone: spec.projectName, or metadata.name when that is empty.
func (o *KeystoneProject) EffectiveProjectName() string {
	if o.Spec.ProjectName != "" {
		return o.Spec.ProjectName
	}
	return o.Name
}
