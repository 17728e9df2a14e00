package verdict

import (
	"slices"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// Budget is how many asks about one credential a session may have spent before the next is refused.
const Budget = 2

// Ask is a CredentialUpdateRequest as another one sees it.
type Ask struct {
	// Name of the request. All asks that are compared are of one namespace.
	Name string
	// Session that asked.
	Session v1alpha1.ObjectReference
	// Credential that was resolved; nil when none was.
	Credential *v1alpha1.ResolvedCredential
	// Backing is where the credential's value is; the zero value when that is not known.
	Backing Backing
	// Phase and Determination are the request's.
	Phase         string
	Determination string
	// Follows tells whether the request waits for another one.
	Follows bool
}

// Backing is what makes two asks be about one credential: who owns it, since that decides who is asked,
// and where its value is. Names of identities do not serve: a SessionUserIdentity is named after its
// session, so two sessions of a person would never meet.
type Backing struct {
	IdentityKind string
	// Namespace, Name and Key are the Secret's; Key is empty when the whole Secret is the credential.
	Namespace, Name, Key string
	// Subject and Credential stand for the Secret when every session of a person has a copy of its own:
	// the person, and the credential's name.
	Subject, Credential string
}

// Exhausted tells whether a session has spent its budget on a credential. Asks of peers, which do not
// hold the ask itself, count when they are the same session's about the same credential, and something
// was decided: also those that wait, since two sessions could otherwise wait for each other in turn for
// ever. What a machine healed does not count: nobody was bothered, and a long session would use up its
// asks without ever having made one.
func Exhausted(session v1alpha1.ObjectReference, credential v1alpha1.ResolvedCredential, peers []Ask) bool {
	spent := 0
	for _, peer := range peers {
		if peer.Session == session && peer.Credential != nil && sameCredential(*peer.Credential, credential) && peer.spent() {
			spent++
		}
	}
	return spent >= Budget
}

func (a Ask) spent() bool {
	if a.Phase == "" || a.Phase == v1alpha1.PhasePending {
		return false
	}
	return a.Determination != v1alpha1.DeterminationSelfHealed && a.Determination != v1alpha1.DeterminationHealingByRotation
}

// sameCredential leaves the provider out: two tools may know one token under two providers.
func sameCredential(a, b v1alpha1.ResolvedCredential) bool {
	a.ProviderID, b.ProviderID = "", ""
	return a == b
}

// Canonical is the name of the request that an ask about a credential waits for, and false when it has to
// be determined itself. Only an Open request that waits for no other can be waited for, so that no two
// ever wait for each other. Of several it is the first by name, whatever the order they are listed in.
func Canonical(backing Backing, peers []Ask) (string, bool) {
	if backing == (Backing{}) {
		return "", false
	}
	var names []string
	for _, peer := range peers {
		if peer.Phase == v1alpha1.PhaseOpen && !peer.Follows && peer.Backing == backing {
			names = append(names, peer.Name)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return slices.Min(names), true
}
