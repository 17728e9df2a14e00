// Package v1alpha1 holds the kinds of group agentprimitives.authzed.com that the operator works with:
// CredentialUpdateRequest, by which an agent says that a credential stopped working, and the kinds that
// tell which credential that is.
//
// Another project owns the group. CredentialUpdateRequest is complete here; of the others only what a
// determination reads is declared, and their schemas keep every field that they do not know, so that an
// object of the other project passes through unchanged. A cluster that already serves these kinds keeps
// its own definitions: config/crd does not hold them, config/crd/agentprimitives does.
//
// +kubebuilder:object:generate=true
// +groupName=agentprimitives.authzed.com
package v1alpha1
