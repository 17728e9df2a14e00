// Package korcapi is the part of K-ORC's RoleAssignment that the operator uses. No release of K-ORC has
// the kind up to v2.6.0; its main branch does, in the group that the released types are in.
//
// Typed fields of our own, rather than unstructured objects, put the kind into the same cache and
// through the same code as K-ORC's other kinds. When a release brings the type, registering both
// panics at the first test, and this package goes.
//
// +kubebuilder:object:generate=true
package korcapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"
)

// Kind is the name of the kind.
const Kind = "RoleAssignment"

// GroupVersionKind is the kind's full name.
var GroupVersionKind = orcv1alpha1.SchemeGroupVersion.WithKind(Kind)

// AddToScheme registers the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(orcv1alpha1.SchemeGroupVersion, &RoleAssignment{}, &RoleAssignmentList{})
	return nil
}

// RoleAssignment gives a user a role on a project.
//
// +kubebuilder:object:root=true
type RoleAssignment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RoleAssignmentSpec   `json:"spec"`
	Status RoleAssignmentStatus `json:"status,omitempty,omitzero"`
}

// RoleAssignmentSpec says what to assign and how to get into Keystone.
type RoleAssignmentSpec struct {
	// Resource is what to assign. It is immutable.
	Resource *RoleAssignmentResourceSpec `json:"resource,omitempty"`
	// ManagementPolicy is managed for what K-ORC assigns and unassigns.
	ManagementPolicy orcv1alpha1.ManagementPolicy `json:"managementPolicy,omitempty"`
	// ManagedOptions can keep K-ORC from unassigning when the object is deleted.
	ManagedOptions *orcv1alpha1.ManagedOptions `json:"managedOptions,omitempty"`
	// CloudCredentialsRef names the cloud that K-ORC logs in with.
	CloudCredentialsRef orcv1alpha1.CloudCredentialsReference `json:"cloudCredentialsRef"`
}

// RoleAssignmentResourceSpec names K-ORC's objects, all in the same namespace.
type RoleAssignmentResourceSpec struct {
	RoleRef    orcv1alpha1.KubernetesNameRef  `json:"roleRef"`
	UserRef    *orcv1alpha1.KubernetesNameRef `json:"userRef,omitempty"`
	ProjectRef *orcv1alpha1.KubernetesNameRef `json:"projectRef,omitempty"`
}

// RoleAssignmentStatus is what K-ORC did. There is no id: Keystone gives an assignment none.
type RoleAssignmentStatus struct {
	// Conditions are Available and Progressing.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Resource holds the ids of what was assigned.
	Resource *RoleAssignmentResourceStatus `json:"resource,omitempty"`
}

// RoleAssignmentResourceStatus are Keystone's ids.
type RoleAssignmentResourceStatus struct {
	RoleID    string `json:"roleID,omitempty"`
	UserID    string `json:"userID,omitempty"`
	ProjectID string `json:"projectID,omitempty"`
}

// RoleAssignmentList is a list of RoleAssignments.
//
// +kubebuilder:object:root=true
type RoleAssignmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RoleAssignment `json:"items"`
}

// GetConditions implements orcv1alpha1.ObjectWithConditions.
func (a *RoleAssignment) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions, which is how a latched one is cleared.
func (a *RoleAssignment) SetConditions(conditions []metav1.Condition) {
	a.Status.Conditions = conditions
}
