package verdict_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

func TestExhausted(t *testing.T) {
	session := v1alpha1.ObjectReference{Namespace: "agents", Name: "s1"}
	credential := v1alpha1.ResolvedCredential{IdentityKind: "AgentIdentity", Namespace: "agents", Name: "bot", Credential: "github", ProviderID: "github-pat"}
	ask := func(change func(*verdict.Ask)) verdict.Ask {
		about := credential
		a := verdict.Ask{Session: session, Credential: &about, Phase: "Expired", Determination: "RejectedVerified"}
		change(&a)
		return a
	}
	one := ask(func(*verdict.Ask) {})
	for name, test := range map[string]struct {
		second verdict.Ask
		want   bool
	}{
		"a second one that expired":            {ask(func(*verdict.Ask) {}), true},
		"one that is open":                     {ask(func(a *verdict.Ask) { a.Phase = "Open" }), true},
		"one that waits for another session's": {ask(func(a *verdict.Ask) { a.Phase, a.Determination = "Collapsed", "Collapsed" }), true},
		"one of a phase from a newer version":  {ask(func(a *verdict.Ask) { a.Phase = "Escalated" }), true},
		"one that was refused":                 {ask(func(a *verdict.Ask) { a.Phase, a.Determination = "Refused", "CredentialLive" }), true},
		"one under another provider":           {ask(func(a *verdict.Ask) { a.Credential.ProviderID = "bearer-api" }), true},
		"one that is pending":                  {ask(func(a *verdict.Ask) { a.Phase, a.Determination = "Pending", "" }), false},
		"one that nobody has looked at":        {ask(func(a *verdict.Ask) { a.Phase, a.Determination = "", "" }), false},
		"one that a refresh healed":            {ask(func(a *verdict.Ask) { a.Phase, a.Determination = "Refused", "SelfHealed" }), false},
		"one that a rotation healed":           {ask(func(a *verdict.Ask) { a.Phase, a.Determination = "Fulfilled", "HealingByRotation" }), false},
		"one that led to no credential":        {ask(func(a *verdict.Ask) { a.Credential = nil }), false},
		"one of another session":               {ask(func(a *verdict.Ask) { a.Session.Name = "s2" }), false},
		"one of another namespace's session":   {ask(func(a *verdict.Ask) { a.Session.Namespace = "others" }), false},
		"one about another credential":         {ask(func(a *verdict.Ask) { a.Credential.Credential = "slack" }), false},
		"one about another identity's":         {ask(func(a *verdict.Ask) { a.Credential.Name = "bot2" }), false},
		"one about the person's of that name":  {ask(func(a *verdict.Ask) { a.Credential.IdentityKind = "SessionUserIdentity" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict.Exhausted(session, credential, []verdict.Ask{one, test.second}); got != test.want {
				t.Errorf("after one that expired and this it is %t", got)
			}
		})
	}
	if verdict.Exhausted(session, credential, []verdict.Ask{one}) || verdict.Exhausted(session, credential, nil) {
		t.Error("one ask or none exhausts the budget")
	}
}

func TestCanonical(t *testing.T) {
	secret := verdict.Backing{IdentityKind: "AgentIdentity", Namespace: "agents", Name: "bot-token", Key: "github"}
	open := verdict.Ask{Name: "b", Phase: "Open", Backing: secret}
	for name, test := range map[string]struct {
		change func(*verdict.Ask)
		want   bool
	}{
		"an open one":                      {func(*verdict.Ask) {}, true},
		"one that follows":                 {func(a *verdict.Ask) { a.Follows = true }, false},
		"one that is collapsed":            {func(a *verdict.Ask) { a.Phase = "Collapsed" }, false},
		"one that is settled":              {func(a *verdict.Ask) { a.Phase = "Fulfilled" }, false},
		"one that is pending":              {func(a *verdict.Ask) { a.Phase = "Pending" }, false},
		"one of a phase that is not known": {func(a *verdict.Ask) { a.Phase = "Escalated" }, false},
		"one about another key":            {func(a *verdict.Ask) { a.Backing.Key = "slack" }, false},
		"one about the whole Secret":       {func(a *verdict.Ask) { a.Backing.Key = "" }, false},
		"one whose owner is a person":      {func(a *verdict.Ask) { a.Backing.IdentityKind = "UserIdentity" }, false},
		"one that nothing is known of":     {func(a *verdict.Ask) { a.Backing = verdict.Backing{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			peer := open
			test.change(&peer)
			if _, got := verdict.Canonical(secret, []verdict.Ask{peer}); got != test.want {
				t.Errorf("it is waited for: %t", got)
			}
		})
	}
	if _, got := verdict.Canonical(verdict.Backing{}, []verdict.Ask{{Name: "a", Phase: "Open"}}); got {
		t.Error("two asks about nothing known are about one credential")
	}
}

// Whatever the API server lists first, everybody waits for the same request, and nobody whom others wait
// for waits himself.
func TestCanonical_does_not_depend_on_the_order_of_a_list(t *testing.T) {
	secret := verdict.Backing{IdentityKind: "UserIdentity", Subject: "alice", Credential: "github"}
	rapid.Check(t, func(t *rapid.T) {
		asks := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) verdict.Ask {
			return verdict.Ask{
				Name:    rapid.StringMatching(`cur-[a-d][0-9]`).Draw(t, "name"),
				Phase:   rapid.SampledFrom([]string{"", "Open", "Collapsed", "Refused"}).Draw(t, "phase"),
				Follows: rapid.Bool().Draw(t, "follows"), Backing: secret,
			}
		}), func(a verdict.Ask) string { return a.Name }).Draw(t, "asks")
		name, found := verdict.Canonical(secret, asks)
		again, foundAgain := verdict.Canonical(secret, rapid.Permutation(asks).Draw(t, "another order"))
		if name != again || found != foundAgain {
			t.Fatalf("it is %q, and in another order %q", name, again)
		}
		for _, ask := range asks {
			waitable := ask.Phase == v1alpha1.PhaseOpen && !ask.Follows
			if ask.Name == name && !waitable || waitable && (!found || ask.Name < name) {
				t.Fatalf("%q was chosen, and %+v is there", name, ask)
			}
		}
	})
}
