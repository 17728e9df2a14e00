package publish

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func sample() *v1alpha1.CredentialUpdateRequest {
	return &v1alpha1.CredentialUpdateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "cur-1", UID: "4e2b3a60-5a5f-4a4e-8f0c-0d9be1f1a001", CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.CredentialUpdateRequestSpec{
			SessionRef: v1alpha1.ObjectReference{Namespace: "tenant-a", Name: "session-1"}, Origin: "mcpserver/github", ToolName: "github_create_issue",
			RequestedBy: "user:alice", Why: "The call answered 401.",
		},
		Status: v1alpha1.CredentialUpdateRequestStatus{
			Phase: v1alpha1.PhaseOpen, Determination: v1alpha1.DeterminationRejectedVerified, Reason: "GitHub answered 401.",
			ResolvedCredential: &v1alpha1.ResolvedCredential{IdentityKind: "AgentIdentity", Namespace: "tenant-a", Name: "bot", Credential: "git-token", ProviderID: "github-pat"},
		},
	}
}

// TestCard_has_words_for_every_determination_that_asks holds the words against the rule.
func TestCard_has_words_for_every_determination_that_asks(t *testing.T) {
	for determination := range verified {
		if !verdict.AsksHuman(determination) {
			t.Errorf("%s asks nobody", determination)
		}
	}
	for _, determination := range []string{v1alpha1.DeterminationRejectedVerified, v1alpha1.DeterminationRejectedRefreshDead, v1alpha1.DeterminationRejectedUnverified} {
		if verified[determination] == "" {
			t.Errorf("%s has no words", determination)
		}
	}
}

func TestCard_says(t *testing.T) {
	static := sample()
	static.Status.CredentialSecretKey = "token"
	open := openCard(static, "GitHub", "https://cards.example.com/link?token=x")
	text := fmt.Sprintf("%+v", open)
	for _, part := range []string{"refused the credential", "GitHub answered 401.", "git-token", "AgentIdentity tenant-a/bot", "every session", "github_create_issue", "mcpserver/github",
		"tenant-a/session-1", "user:alice", "2030-01-01 12:30 UTC", "The call answered 401."} {
		if !strings.Contains(text, part) {
			t.Errorf("the card does not say %q: %s", part, text)
		}
	}
	personal := sample()
	personal.Status.ResolvedCredential.IdentityKind = "SessionUserIdentity"
	if text := fmt.Sprintf("%+v", openCard(personal, "", "")); strings.Contains(text, "every session") || !strings.Contains(text, "github-pat") {
		t.Errorf("the card of a person's credential is %s", text)
	}
	if open.Invitation == openCard(sample(), "", "").Invitation {
		t.Errorf("an OAuth token can be entered: %s", open.Invitation)
	}
	for phase, word := range map[string]string{
		v1alpha1.PhaseFulfilled: "has changed", v1alpha1.PhaseExpired: "over", v1alpha1.PhaseRefused: "refused", "": "session has ended", "Novel": "is Novel now",
	} {
		closed := closedCard(sample(), phase, "GitHub")
		if !strings.Contains(closed.Outcome, word) || closed.Link != "" || closed.AgentSays != "" {
			t.Errorf("of a request that is %q it is %+v", phase, closed)
		}
		if (phase == "") != (closed.Reason == "") {
			t.Errorf("of a request that is %q the reason is %q", phase, closed.Reason)
		}
	}
}

// evil are texts that would be something else than text to Slack, to a terminal or to a reader.
var evil = []string{
	"<!channel> <!here> <!everyone>", "<@U012345> @here @channel @everyone", "<!subteam^S012345>", "<#C012345>",
	"<https://evil.example.com|Enter it here>", "https://evil.example.com/login", "*bold* _it_ `code` ```block``` > quote", "[a link](https://evil.example.com)",
	"one\n\n*Approved by the platform*\ntwo", "\u202etnemyap\u202c \u200b\u2066", "\x1b[31mred\x1b[0m", "&lt;!channel&gt;", ":rotating_light:", `","type":"broadcast","range":"channel`,
	strings.Repeat("very long ", 500),
}

// TestSlack_takes_no_markup_from_outside puts such a text wherever one can come from.
func TestSlack_takes_no_markup_from_outside(t *testing.T) {
	for _, text := range evil {
		request := sample()
		request.Spec.Why, request.Spec.Origin, request.Spec.ToolName, request.Spec.RequestedBy = text, text, text, text
		request.Spec.SessionRef.Name, request.Status.Reason = text, text
		request.Status.ResolvedCredential.Credential, request.Status.ResolvedCredential.Name, request.Status.ResolvedCredential.ProviderID = text, text, text
		const link = "https://cards.example.com/link?token=x"
		for _, card := range []Card{openCard(request, text, link), closedCard(request, "Phase "+text, text)} {
			if notification := slackNotification(card); strings.ContainsAny(notification, "<>") {
				t.Errorf("the notification is %q", notification)
			}
			raw, err := json.Marshal(slackBlocks(card, true))
			if err != nil {
				t.Fatal(err)
			}
			var blocks any
			if err := json.Unmarshal(raw, &blocks); err != nil {
				t.Fatal(err)
			}
			walk(blocks, func(element map[string]any) {
				kind, typed := element["type"].(string)
				if !typed && len(element) == 1 && element["bold"] == true {
					return // the style of one of our own words
				}
				if !slices.Contains([]string{"header", "plain_text", "rich_text", "rich_text_section", "rich_text_list", "rich_text_quote", "text", "link"}, kind) {
					t.Errorf("%.40q made an element of type %q", text, kind)
				}
				if kind == "link" && element["url"] != link {
					t.Errorf("%.40q made a link to %q", text, element["url"])
				}
				if kind == "plain_text" && element["emoji"] == true {
					t.Error("plain text may hold emoji")
				}
				if shown, ok := element["text"].(string); ok && kind == "text" && (strings.Contains(shown, "://") || strings.ContainsAny(shown, "@\u202e\u2066\u200b\x1b") || len([]rune(shown)) > reasonLimit*2) {
					t.Errorf("%.40q is shown as %q", text, shown)
				}
			})
		}
	}
}

func walk(node any, visit func(map[string]any)) {
	switch n := node.(type) {
	case map[string]any:
		visit(n)
		for _, child := range n {
			walk(child, visit)
		}
	case []any:
		for _, child := range n {
			walk(child, visit)
		}
	}
}

// TestSlack_sets_the_agents_words_apart finds them in the quotation, attributed right before, and nowhere else.
func TestSlack_sets_the_agents_words_apart(t *testing.T) {
	request := sample()
	words := []string{"Words of the agent.", "The tool it names.", "Whom it says it works for."}
	request.Spec.Why, request.Spec.ToolName, request.Spec.RequestedBy = words[0], words[1], words[2]
	show := func(card Card) string {
		t.Helper()
		raw, err := json.Marshal(slackBlocks(card, false))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	raw := show(openCard(request, "GitHub", "https://cards.example.com"))
	before, after, _ := strings.Cut(raw, `"rich_text_quote"`)
	for _, word := range words {
		if strings.Count(raw, word) != 1 || !strings.Contains(after, word) || !strings.Contains(before, "nobody has checked") {
			t.Errorf("%q is not set apart: %s", word, raw)
		}
	}
	closed := show(closedCard(request, v1alpha1.PhaseExpired, "GitHub"))
	for _, word := range words {
		if strings.Contains(closed, word) {
			t.Errorf("a closed card quotes %q: %s", word, closed)
		}
	}
	request.Spec.Why, request.Spec.ToolName, request.Spec.RequestedBy = " \u200b\n", " ", "\u202e"
	if raw = show(openCard(request, "GitHub", "https://cards.example.com")); strings.Contains(raw, "Written by the agent") {
		t.Errorf("an agent without words is quoted: %s", raw)
	}
}
