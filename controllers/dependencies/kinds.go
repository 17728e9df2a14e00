// Package dependencies knows which kinds of K-ORC, of External Secrets Operator (ESO) and of agents the
// management cluster serves, now and later.
//
// The operator starts without them, says what is missing, and begins to watch a kind when it
// appears. A kind that goes away again takes nothing down: its informer is removed, reads of it fail
// at once with a NoKindMatchError instead of waiting for an informer that never syncs, and the watch
// starts anew when the kind is back.
package dependencies

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	agentsv1alpha1 "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// Kind is a kind that another project brings.
type Kind struct {
	schema.GroupVersionKind
	// Project says in words what to install to have the kind served.
	Project string
	// Optional kinds are used when they are there, and not missed when they are not.
	Optional bool
}

// The projects, with the first version that serves the kinds below.
const (
	korcProject   = "K-ORC (openstack-resource-controller) v2.6.0 or newer"
	esoProject    = "External Secrets Operator v0.16.0 or newer"
	agentsProject = "the kinds of agentprimitives.authzed.com (config/crd/agentprimitives)"
)

// Kinds are what the operator reads and writes of other projects. ESO serves the stores in v1 and
// PushSecret in v1alpha1; RoleAssignment is on K-ORC's main branch only, and without it the operator
// assigns roles itself.
var Kinds = []Kind{
	{orcv1alpha1.SchemeGroupVersion.WithKind("Domain"), korcProject, false},
	{orcv1alpha1.SchemeGroupVersion.WithKind("User"), korcProject, false},
	{orcv1alpha1.SchemeGroupVersion.WithKind("Project"), korcProject, false},
	{orcv1alpha1.SchemeGroupVersion.WithKind("Role"), korcProject, false},
	{orcv1alpha1.SchemeGroupVersion.WithKind("ApplicationCredential"), korcProject, false},
	{orcv1alpha1.SchemeGroupVersion.WithKind("RoleAssignment"), korcProject, true},
	{externalsecrets.PushSecretGroupVersion.WithKind(externalsecrets.PushSecretKind), esoProject, false},
	{externalsecrets.StoreGroupVersion.WithKind(externalsecrets.SecretStoreKind), esoProject, false},
	{externalsecrets.StoreGroupVersion.WithKind(externalsecrets.ClusterSecretStoreKind), esoProject, false},
	// Of its group's kinds the only one that is watched: the others are read live, when a request names them.
	{agentsv1alpha1.GroupVersion.WithKind("CredentialUpdateRequest"), agentsProject, true},
}

// lookup returns the entry of a kind, nil for one that is none of another project's.
func lookup(gvk schema.GroupVersionKind) *Kind {
	for i := range Kinds {
		if Kinds[i].GroupVersionKind == gvk {
			return &Kinds[i]
		}
	}
	return nil
}

// groupVersions are the API versions of Kinds, each once.
func groupVersions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, kind := range Kinds {
		if version := kind.GroupVersion(); !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return versions
}

// Describe says in words which kinds are missing and what brings them. It is empty when none is.
func Describe(missing []Kind) string {
	var sentences []string
	for len(missing) > 0 {
		first := missing[0]
		var names []string
		missing = slices.DeleteFunc(slices.Clone(missing), func(kind Kind) bool {
			same := kind.GroupVersion() == first.GroupVersion()
			if same {
				names = append(names, kind.Kind)
			}
			return same
		})
		sentences = append(sentences, fmt.Sprintf("the API server does not serve %s (%s): install %s",
			strings.Join(names, ", "), first.GroupVersion(), first.Project))
	}
	return strings.Join(sentences, "; ")
}
