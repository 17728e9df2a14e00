package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "agentprimitives.authzed.com", Version: "v1alpha1"}

	// SchemeBuilder collects the kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&CredentialUpdateRequest{}, &CredentialUpdateRequestList{},
		&AgentSession{}, &AgentSessionList{},
		&AgentClass{}, &AgentClassList{},
		&AgentIdentity{}, &AgentIdentityList{},
		&UserIdentity{}, &UserIdentityList{},
		&SessionUserIdentity{}, &SessionUserIdentityList{},
		&MCPServer{}, &MCPServerList{},
		&SpiceboxToolkit{}, &SpiceboxToolkitList{},
		&SidecarToolbox{}, &SidecarToolboxList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
