package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// every calls visit with each combination of what can be found out about a credential that no order
// delivers, unknown values included.
func every(visit func(verdict.Evidence)) {
	for _, credentialType := range []string{"static", "oauth", "federated", "githubApp", "", "kerberos"} {
		for _, kind := range []string{"AgentIdentity", "UserIdentity", "SessionUserIdentity"} {
			for _, refresh := range []verdict.Refresh{"", "done", "dead", "failed", "from a newer version"} {
				for _, probe := range []verdict.Probe{"", "valid", "rejected", "forbidden", "indeterminate", "unsupported", "from a newer version"} {
					for _, corroborated := range []bool{false, true} {
						visit(verdict.Evidence{
							Type: credentialType, IdentityKind: kind, Provider: "GitHub", Refresh: refresh, Probe: probe, Corroborated: corroborated,
						})
					}
				}
			}
		}
	}
}

// expected says the same as the package's table in another way: what each determination needs.
func expected(e verdict.Evidence) string {
	static, oauth := e.Type == "static", e.Type == "oauth"
	agents := e.IdentityKind == "AgentIdentity"
	told := e.Probe == "valid" || e.Probe == "rejected"
	asked := (static || oauth && !agents) && e.Refresh != "done" && e.Refresh != "dead"
	needs := map[string]bool{
		"NotUpdatable":        !static && !oauth || oauth && agents && e.Refresh != "done",
		"SelfHealed":          (static || oauth) && e.Refresh == "done",
		"RejectedRefreshDead": (static || oauth && !agents) && e.Refresh == "dead",
		"RejectedVerified":    asked && e.Probe == "rejected",
		"CredentialLive":      asked && e.Probe == "valid",
		"RejectedUnverified":  asked && !told && e.Corroborated,
		"Unverified":          asked && !told && !e.Corroborated,
	}
	var holding []string
	for determination, holds := range needs {
		if holds {
			holding = append(holding, determination)
		}
	}
	return strings.Join(holding, "+")
}

func TestDetermine_every_combination(t *testing.T) {
	combinations := 0
	every(func(e verdict.Evidence) {
		combinations++
		got := verdict.Determine(e)
		if want := expected(e); got.Determination != want {
			t.Errorf("%+v is %s, want %s", e, got.Determination, want)
		}
		wantPhase := v1alpha1.PhaseRefused
		if strings.HasPrefix(got.Determination, "Rejected") {
			wantPhase = v1alpha1.PhaseOpen
		}
		if got.Phase != wantPhase {
			t.Errorf("%s opens as %s, want %s", got.Determination, got.Phase, wantPhase)
		}
		if got.Reason == "" || strings.ContainsAny(got.Reason, "{}") {
			t.Errorf("%+v has the reason %q", e, got.Reason)
		}
	})
	if combinations != 6*3*5*7*2 {
		t.Errorf("%d combinations were looked at", combinations)
	}
}

// The provider is asked exactly when its answer can change the verdict. Asking it in vain is egress for
// nothing; not asking it would take its silence for an answer.
func TestProbeDecides_agrees_with_the_verdict(t *testing.T) {
	every(func(e verdict.Evidence) {
		answers := map[verdict.Verdict]bool{}
		for _, probe := range []verdict.Probe{"valid", "rejected"} {
			e.Probe = probe
			answers[verdict.Determine(e)] = true
		}
		if got, want := verdict.ProbeDecides(e), len(answers) > 1; got != want {
			t.Errorf("ProbeDecides is %t, and the answer changes the verdict of %+v: %t", got, e, want)
		}
	})
}

func TestAsksHuman_for_three_determinations_only(t *testing.T) {
	want := []string{"RejectedVerified", "RejectedRefreshDead", "RejectedUnverified"}
	for _, determination := range []string{
		"RejectedVerified", "RejectedRefreshDead", "RejectedUnverified", "HealingByRotation", "CredentialLive", "Unverified", "NotUpdatable",
		"SelfHealed", "NoCredential", "AmbiguousCredential", "BudgetExhausted", "Collapsed", "", "FromANewerVersion",
	} {
		if got := verdict.AsksHuman(determination); got != slices.Contains(want, determination) {
			t.Errorf("AsksHuman(%q) is %t", determination, got)
		}
	}
}

func TestDetermine_a_delivered_credential(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("elsewhere", 3600))
	for _, test := range []struct {
		state         verdict.State
		phase         string
		determination string
		says          []string
	}{
		{verdict.StateGone, "Open", "HealingByRotation", []string{"does not hold", "within a minute"}},
		{verdict.StateExpired, "Open", "HealingByRotation", []string{"expired"}},
		{verdict.StatePasswordRefused, "Open", "HealingByRotation", []string{"does not take the password", "within a minute"}},
		{verdict.StateLive, "Refused", "CredentialLive", []string{"accepts", "Read the Secret again"}},
		{verdict.StateUnknown, "Refused", "Unverified", []string{"did not say", "Retry"}},
		{verdict.State(""), "Refused", "Unverified", []string{"did not say"}},
		{verdict.State("from a newer version"), "Refused", "Unverified", []string{"did not say"}},
		{verdict.StateRoleMissing, "Refused", "NotUpdatable", []string{"no role", "KeystoneRoleAssignment"}},
		{verdict.StateUserDisabled, "Refused", "NotUpdatable", []string{"disabled", "enable"}},
		{verdict.StateEdited, "Refused", "NotUpdatable", []string{"changed the delivered Secret", "read it anew"}},
		{verdict.StateRefusedUnexplained, "Refused", "NotUpdatable", []string{"generation"}},
		{verdict.StateFrozen, "Refused", "NotUpdatable", []string{"consent", "assign the namespace"}},
		{verdict.StateNotReady, "Refused", "NotUpdatable", []string{"conditions"}},
		{verdict.StateDeleting, "Refused", "NotUpdatable", []string{"deleted"}},
	} {
		t.Run(fmt.Sprintf("%q", test.state), func(t *testing.T) {
			delivery := &verdict.Delivery{Order: "KeystoneApplicationCredential tenant-a/workflow", State: test.state}
			// What a provider or a session says changes nothing: no card for a Secret that an order writes.
			every(func(e verdict.Evidence) {
				e.Delivery = delivery
				got := verdict.Determine(e)
				if got.Phase != test.phase || got.Determination != test.determination {
					t.Fatalf("it is %s/%s, want %s/%s", got.Phase, got.Determination, test.phase, test.determination)
				}
				if verdict.AsksHuman(got.Determination) || verdict.ProbeDecides(e) {
					t.Fatalf("%s has somebody asked", got.Determination)
				}
				for _, part := range append(test.says, delivery.Order) {
					if !strings.Contains(got.Reason, part) {
						t.Fatalf("the reason does not say %q: %s", part, got.Reason)
					}
				}
			})
		})
	}

	got := verdict.Determine(verdict.Evidence{Delivery: &verdict.Delivery{Order: "it", State: verdict.StateExpired, RotatesAt: until}})
	if !strings.Contains(got.Reason, "at 2026-03-01T11:30:00Z") {
		t.Errorf("the reason does not say until when to wait: %s", got.Reason)
	}
}

func TestDetermine_says_what_the_provider_answered(t *testing.T) {
	got := verdict.Determine(verdict.Evidence{Type: "static", Provider: "GitHub", Probe: verdict.ProbeRejected, ProbeDetail: "401 Unauthorized: Bad credentials"})
	if want := "GitHub refused the credential (401 Unauthorized: Bad credentials)."; got.Reason != want {
		t.Errorf("the reason is %q, want %q", got.Reason, want)
	}
	// A text in braces of the provider's is a text, and no place to put another one in.
	got = verdict.Determine(verdict.Evidence{Type: "static", Provider: "{type}", Probe: verdict.ProbeRejected, ProbeDetail: "{provider}"})
	if want := "{type} refused the credential ({provider})."; got.Reason != want {
		t.Errorf("the reason is %q, want %q", got.Reason, want)
	}
}
