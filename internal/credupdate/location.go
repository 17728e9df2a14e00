package credupdate

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

const (
	// IdentitiesNamespace holds the Secrets of persons' credentials.
	IdentitiesNamespace = "agentprimitives-identities"
	// PassthroughSuffix, after a session's name, is the Secret with its copies of a person's static ones.
	PassthroughSuffix = "-passthrough-creds"
)

// Location is where the value of a credential is kept.
type Location struct {
	// Secret is the Secret; its name is empty when the credential's type has no value, or its identity does
	// not say where it is.
	Secret types.NamespacedName
	// Key is the key in it; empty when the Secret as a whole is the credential.
	Key string
}

// Locate says where the value of a credential is. The identity is of identityKind, and is in namespace, as
// is the session that acts as it. A SessionUserIdentity has the name of its session.
func Locate(identityKind, namespace, name string, credential v1alpha1.IdentityCredential) Location {
	persons := identityKind == v1alpha1.KindSessionUserIdentity
	in := func(namespace, secret, key string) Location {
		return Location{Secret: types.NamespacedName{Namespace: namespace, Name: secret}, Key: key}
	}
	switch {
	case credential.Type == v1alpha1.CredentialStatic && persons:
		return in(namespace, name+PassthroughSuffix, credential.Name)
	case credential.Type == v1alpha1.CredentialStatic && credential.Static != nil:
		return in(namespace, credential.Static.SecretRef.Name, credential.Static.SecretRef.Key)
	case credential.Type == v1alpha1.CredentialOAuth && credential.OAuth != nil && persons:
		return in(IdentitiesNamespace, credential.OAuth.SecretRef.Name, "")
	case credential.Type == v1alpha1.CredentialOAuth && credential.OAuth != nil:
		return in(namespace, credential.OAuth.SecretRef.Name, "")
	}
	return Location{}
}
