package web

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/providers"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// Limits of texts from outside, in runes.
const (
	lineLimit   = 200
	reasonLimit = 600
	wordsLimit  = 280
)

// verified is what each determination that has a person asked says of the platform's own finding.
var verified = map[string]string{
	v1alpha1.DeterminationRejectedVerified:    "The platform presented the stored credential to the provider itself, and the provider refused it.",
	v1alpha1.DeterminationRejectedRefreshDead: "The platform tried to renew the credential itself, and the provider will never do so again: it has to be authorized anew.",
	v1alpha1.DeterminationRejectedUnverified: "The platform could not confirm it with the provider. Calls of the session's runner with the credential are being refused. " +
		"See whether the credential still works before you replace it.",
}

// fact is a named line.
type fact struct{ Name, Value string }

// requestView is what a person is shown of a request. Texts from outside are on one line each, and none can hide or
// reorder what stands around it.
type requestView struct {
	// Verified and Reason are the platform's words; Reason may quote the provider.
	Verified, Reason string
	Facts            []fact
	// Claims are what the agent's side says about its call, and Agent its own words. Nobody has checked them.
	Claims []fact
	Agent  string
	// Keeper may write over a new value.
	Keeper string
	// Provider tells where a new value comes from.
	Provider providers.Provider
	// Expires and Left are when the request's time is over.
	Expires time.Time
	Left    string
	// Problem is why nothing was stored, or why there is no form.
	Problem string
	// Form is whether a value can be entered; Confirm, whether one can be stored against its provider's word.
	Form, Confirm bool
	Link          string
}

func (p *page) view(ctx context.Context, t target, q *answer.Question) *requestView {
	request := q.Request
	v := &requestView{
		Verified: verified[request.Status.Determination], Reason: untrusted.Line(request.Status.Reason, reasonLimit),
		Agent: untrusted.Line(request.Spec.Why, wordsLimit), Keeper: untrusted.Line(q.Keeper, lineLimit),
		Provider: q.Provider, Expires: q.Expires.UTC(), Left: left(q.Expires.Sub(p.Clock.Now())), Link: t.link,
	}
	add := func(name, value string) {
		if value = untrusted.Line(value, lineLimit); value != "" {
			v.Facts = append(v.Facts, fact{name, value})
		}
	}
	if c := request.Status.ResolvedCredential; c != nil {
		add("Credential", c.Credential)
		add("Belongs to", owner(q, c))
		provider := q.Provider.Title
		if provider == "" {
			provider = c.ProviderID
		}
		add("Provider", provider)
	}
	add("Origin", request.Spec.Origin)
	add("Session", request.Spec.SessionRef.Namespace+"/"+request.Spec.SessionRef.Name)
	if affected := untrusted.Line(p.affected(ctx, request), reasonLimit); affected != "" {
		v.Facts = append(v.Facts, fact{"A new value reaches", affected})
	}
	if ref := request.Status.CredentialSecretRef; ref != nil && request.Status.CredentialSecretKey != "" {
		add("It is written to", fmt.Sprintf("key %q of Secret %s/%s, and to nothing else", request.Status.CredentialSecretKey, ref.Namespace, ref.Name))
	}
	add("Request", t.Request.String())
	for _, claim := range []fact{{"Tool", request.Spec.ToolName}, {"Working for", request.Spec.RequestedBy}} {
		if claim.Value = untrusted.Line(claim.Value, lineLimit); claim.Value != "" {
			v.Claims = append(v.Claims, claim)
		}
	}
	return v
}

// owner says whose the credential is, for nobody is to enter their own where the agent's belongs, or the other way
// round.
func owner(q *answer.Question, c *v1alpha1.ResolvedCredential) string {
	if c.IdentityKind == v1alpha1.KindAgentIdentity {
		return "the agent itself (" + c.IdentityKind + " " + c.Namespace + "/" + c.Name + "), and to no person"
	}
	person := q.Subject
	if person == "" {
		person = "a person"
	}
	return person + ", personally (" + c.IdentityKind + " " + c.Namespace + "/" + c.Name + ")"
}

// left is a time in words, rounded down: nobody is promised a minute that there is not.
func left(d time.Duration) string {
	switch minutes := int(math.Floor(d.Minutes())); {
	case minutes < 1:
		return "less than a minute"
	case minutes == 1:
		return "1 minute"
	default:
		return fmt.Sprintf("%d minutes", minutes)
	}
}

// resultView is what came of an answer.
type resultView struct {
	// Provider is what the provider says of the value.
	Provider string
	// Heading and Text are where the request stands.
	Heading, Text string
	// Waits is whether looking again can tell more.
	Waits bool
}

// storedView puts together what was said at the time and where the request stands now. There is no question when the
// request is gone.
func storedView(said result, q *answer.Question) resultView {
	provider := "The provider"
	if q != nil && q.Provider.Title != "" {
		provider = q.Provider.Title
	}
	v := resultView{Provider: map[verdict.Probe]string{
		verdict.ProbeValid:         provider + " accepts it.",
		verdict.ProbeIndeterminate: provider + " did not say whether it accepts it. The agent's next call will tell.",
		verdict.ProbeUnsupported:   "Whether " + provider + " accepts it will show in the agent's next call: there is no way to ask.",
	}[said.Probe]}
	if v.Provider == "" {
		v.Provider = provider + " does not accept it. It was stored because you said so."
	}
	switch {
	case q == nil:
		v.Heading, v.Text = "The request is gone", "The agent's session has ended, and the request with it. The value stays."
	case q.Request.Status.Phase == v1alpha1.PhaseOpen:
		v.Heading, v.Text, v.Waits = "The request is about to be fulfilled", "The operator sees the new value in a few seconds, and the agent goes on.", true
	case q.Request.Status.Phase == v1alpha1.PhaseFulfilled:
		v.Heading, v.Text = "The request is fulfilled", untrusted.Line(q.Request.Status.Reason, reasonLimit)
	default:
		v.Heading, v.Text = "The request is over", untrusted.Line(q.Request.Status.Phase+": "+q.Request.Status.Reason, reasonLimit)
	}
	return v
}
