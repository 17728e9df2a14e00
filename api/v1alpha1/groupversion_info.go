package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "c5c3.io", Version: "v1alpha1"}

	// SchemeBuilder collects the kinds. It is apimachinery's builder and not
	// controller-runtime's, so that importing the API does not import a controller framework.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ControlPlane{}, &ControlPlaneList{},
		&KeystoneUser{}, &KeystoneUserList{},
		&KeystoneProject{}, &KeystoneProjectList{},
		&KeystoneRoleAssignment{}, &KeystoneRoleAssignmentList{},
		&KeystoneApplicationCredential{}, &KeystoneApplicationCredentialList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
