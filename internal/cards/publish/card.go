package publish

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

// Limits of texts on a card, in runes. What came from outside fits on a screen, whatever its author wants.
const (
	lineLimit   = 200
	reasonLimit = 600
	wordsLimit  = 280
)

// Card is what people are shown of a request. All of its texts are on one line each, without characters that
// hide or reorder others; a channel still has to keep its own markup out of them.
type Card struct {
	Request types.NamespacedName
	UID     types.UID
	// Title says what this is about, in words of the platform's alone.
	Title string
	// Verified says what the platform found out by itself.
	Verified string
	// Reason is the determination's reason. The platform wrote it, but may quote a provider in it.
	Reason string
	// Facts are what is known about the credential, in the order in which they are shown.
	Facts []Fact
	// AgentFacts and AgentSays are what the agent's side wrote, which nobody has checked: what it says about its call,
	// and its own words, empty when there are none. They are always attributed and set apart.
	AgentFacts []Fact
	AgentSays  string
	// Link leads to the page on which the request is answered; empty on a card of a request that is over.
	Link string
	// Invitation is what the link says: not every credential can be entered there.
	Invitation string
	// Created is when the request was made: its card cannot be older.
	Created time.Time
	// Expires is when the time for an answer is over; zero on a card of a request that is over.
	Expires time.Time
	// Phase is the request's phase, and empty when the request is gone.
	Phase string
	// Outcome says in words how a request ended; empty while it is open.
	Outcome string
}

// Fact is a named line of a card.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// verified is what each determination that has a person asked means to one.
var verified = map[string]string{
	v1alpha1.DeterminationRejectedVerified:    "The platform asked the provider, and the provider refused the credential.",
	v1alpha1.DeterminationRejectedRefreshDead: "The platform tried to renew the credential, and the provider will not: it has to be authorized anew.",
	v1alpha1.DeterminationRejectedUnverified:  "The provider gave the platform no word on it; the session's own calls with it are refused.",
}

// outcomes are how a request ends, as people are told. None of them says what a person did or left undone: the
// request's own reason says what the platform knows about that.
var outcomes = map[string]string{
	v1alpha1.PhaseFulfilled: "The credential has changed. Nothing is left to do.",
	v1alpha1.PhaseExpired:   "The time for an answer is over. The link changes nothing any more.",
	v1alpha1.PhaseRefused:   "The platform has refused the request. The link changes nothing any more.",
	"":                      "The agent's session has ended, and the request with it. The link changes nothing any more.",
}

// openCard is the card of a request that waits for an answer. The provider's title is empty when the catalog
// has none.
func openCard(request *v1alpha1.CredentialUpdateRequest, provider, link string) Card {
	status, expires := request.Status, credupdate.Expires(request)
	invitation := "Look at it and enter a new value"
	if status.CredentialSecretKey == "" {
		// An OAuth token is no single value: the page says where to authorize it.
		invitation = "Look at it"
	}
	return Card{
		Request:    types.NamespacedName{Namespace: request.Namespace, Name: request.Name},
		UID:        request.UID,
		Title:      "An agent needs a new credential",
		Verified:   verified[status.Determination],
		Reason:     untrusted.Line(status.Reason, reasonLimit),
		Facts:      facts(request, provider, expires),
		AgentFacts: agentFacts(request),
		AgentSays:  untrusted.Line(request.Spec.Why, wordsLimit),
		Link:       link, Invitation: invitation,
		Created: request.CreationTimestamp.Time,
		Expires: expires,
		Phase:   status.Phase,
	}
}

func facts(request *v1alpha1.CredentialUpdateRequest, provider string, expires time.Time) []Fact {
	var list []Fact
	add := adder(&list)
	if c := request.Status.ResolvedCredential; c != nil {
		identity := c.Name
		if c.Namespace != "" {
			identity = c.Namespace + "/" + c.Name
		}
		add("Credential", c.Credential)
		add("Identity", c.IdentityKind+" "+identity)
		if provider == "" {
			provider = c.ProviderID
		}
		add("Provider", provider)
		if c.IdentityKind == "AgentIdentity" {
			add("Affects", "every session that works with this identity, not only the one that asks")
		}
	}
	add("Origin", request.Spec.Origin)
	add("Session", request.Spec.SessionRef.Namespace+"/"+request.Spec.SessionRef.Name)
	add("Request", request.Namespace+"/"+request.Name)
	if !expires.IsZero() {
		add("Answer until", expires.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return list
}

// agentFacts are what the request says and the determination does not look at. The origin and the session are no part
// of it: without them there is no credential to ask for.
func agentFacts(request *v1alpha1.CredentialUpdateRequest) []Fact {
	var list []Fact
	add := adder(&list)
	add("Tool", request.Spec.ToolName)
	add("Working for", request.Spec.RequestedBy)
	return list
}

func adder(list *[]Fact) func(name, value string) {
	return func(name, value string) {
		if value = untrusted.Line(value, lineLimit); value != "" {
			*list = append(*list, Fact{Name: name, Value: value})
		}
	}
}

// closedCard is what a card becomes when its request is over. It has no link, and none of the agent's words:
// nobody has to judge them any more. A request that is gone has an empty phase.
func closedCard(request *v1alpha1.CredentialUpdateRequest, phase, provider string) Card {
	outcome, known := outcomes[phase]
	if !known {
		// A newer version's phase. It is over as far as this version can tell.
		outcome = fmt.Sprintf("The request is %s now.", untrusted.Line(phase, lineLimit))
	}
	card := Card{
		Request: types.NamespacedName{Namespace: request.Namespace, Name: request.Name},
		UID:     request.UID,
		Title:   "An agent needed a new credential",
		Facts:   facts(request, provider, time.Time{}),
		Created: request.CreationTimestamp.Time,
		Phase:   phase,
		Outcome: outcome,
	}
	if phase != "" { // the reason of a request that is gone is that of when it was open
		card.Reason = untrusted.Line(request.Status.Reason, reasonLimit)
	}
	return card
}
