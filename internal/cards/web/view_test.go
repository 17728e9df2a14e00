package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

func TestView_says_what_each_determination_found(t *testing.T) {
	for _, determination := range []string{agents.DeterminationRejectedVerified, agents.DeterminationRejectedRefreshDead, agents.DeterminationRejectedUnverified} {
		if !verdict.AsksHuman(determination) || verified[determination] == "" {
			t.Errorf("it does not for %s", determination)
		}
	}
	if len(verified) != 3 {
		t.Errorf("it does for %v", verified)
	}
}

func TestView_keeps_words_from_outside_in_their_place(t *testing.T) {
	w := newWorld(t)
	p := w.enters()
	evil := "</blockquote></section><script>alert(1)</script>\n\n\u202eThe platform says\u200b: enter your password\x1b[31m at <a href=https://evil.example.com>here</a>"
	request := w.Request.DeepCopy()
	request.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "evil"}
	request.Spec.Why, request.Spec.ToolName, request.Spec.RequestedBy = evil, evil, evil
	status := request.Status
	w.must(admin.Create(t.Context(), request))
	request.Status = status
	request.Status.Reason = evil
	w.must(admin.Status().Update(t.Context(), request))
	question, err := (&answer.Desk{Client: admin, Catalog: w.provider.Catalog, Prober: w.provider.Prober, Clock: w.clock}).Question(t.Context(), client.ObjectKeyFromObject(request), "")
	w.must(err)
	site := &page{Config: Config{Client: admin, Clock: w.clock}}
	view := site.view(t.Context(), target{Request: client.ObjectKeyFromObject(request)}, question)
	var html strings.Builder
	w.must(pages.ExecuteTemplate(&html, "request", frame{Content: view}))
	p.body = html.String()
	p.misses("<script>", "\u202e", "\u200b", "\x1b", "<a href=https://evil")
	p.reads("&lt;/blockquote&gt;&lt;/section&gt;")
	_, after, _ := strings.Cut(p.body, `<section class="agent"`)
	words, rest, _ := strings.Cut(after, "</section>")
	if !strings.Contains(words, "Written by the agent, not by the platform") || !strings.Contains(words, "The platform says") || strings.Contains(rest, "The platform says") {
		t.Errorf("the agent's words are not apart:\n%s", after)
	}
	// The tool, the subject and the words; and in all of the page the reason besides, which may quote a provider.
	if inside, all := strings.Count(words, "The platform says"), strings.Count(p.body, "The platform says"); inside != 3 || all != 4 {
		t.Errorf("what the agent's side wrote is %d times in its place, of %d in all:\n%s", inside, all, p.body)
	}
}

func TestView_says_whom_a_new_value_reaches(t *testing.T) {
	w := newWorld(t)
	class := func(name, mode, identity string) client.Object {
		return &agents.AgentClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: agents.AgentClassSpec{IdentityMode: mode, AgentIdentity: identity}}
	}
	session := func(name, class, identity string) client.Object {
		return &agents.AgentSession{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: agents.AgentSessionSpec{Class: class, AgentIdentity: identity}}
	}
	for _, object := range []client.Object{
		class("triage", "agent", answertest.Identity), class("build", "", answertest.Identity), class("asks", "ask", "another"), class("people", "userPassthrough", answertest.Identity),
		session("by-its-class", "triage", ""), session("by-itself", "asks", answertest.Identity), session("as-another", "triage", "another"), session("as-a-person", "people", ""), session("of-no-class", "gone", ""),
	} {
		w.must(admin.Create(t.Context(), object))
	}
	p := w.enters()
	p.opens(http.StatusOK, w.link(w.clock.Now()))
	p.reads("Every session that acts as this agent, not only the one that asks. Running now: 2. Classes that start more: build, triage.")
	decided := &agents.AgentSession{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "by-itself"}}
	w.must(admin.Get(t.Context(), client.ObjectKeyFromObject(decided), decided))
	decided.Status.EffectiveIdentityMode = agents.IdentityModeUserPassthrough
	w.must(admin.Status().Update(t.Context(), decided))
	p.opens(http.StatusOK, w.link(w.clock.Now()))
	p.reads("Running now: 1.")

	site := &page{Config: Config{Client: unlisted{admin}}}
	if got := site.affected(t.Context(), w.Request); got != "Every session that acts as this agent, not only the one that asks." {
		t.Errorf("when that cannot be found out it says %q", got)
	}
	w.Request.Status.ResolvedCredential.IdentityKind = agents.KindSessionUserIdentity
	if got := site.affected(t.Context(), w.Request); !strings.HasPrefix(got, "This session only") {
		t.Errorf("of a person's credential it says %q", got)
	}
}

// unlisted lists nothing.
type unlisted struct{ client.Client }

func (unlisted) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("injected")
}

func TestView_warns(t *testing.T) {
	t.Run("of_a_Secret_that_something_else_keeps", func(t *testing.T) {
		w := newWorld(t)
		yes := true
		before := w.Secret.DeepCopy()
		w.Secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "git", UID: "1", Controller: &yes}}
		w.must(admin.Patch(t.Context(), w.Secret, client.MergeFrom(before)))
		p := w.enters()
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		p.reads("ExternalSecret " + w.namespace + "/git keeps this Secret")
	})

	t.Run("of_a_credential_that_is_somebodys_own", func(t *testing.T) {
		w := newWorld(t)
		person := &agents.SessionUserIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: answertest.Session}}
		person.Spec = *w.Identity.Spec.DeepCopy()
		person.Spec.Subject = "user:bob"
		w.must(admin.Create(t.Context(), person))
		copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: answertest.Session + "-passthrough-creds"}, Data: map[string][]byte{"git-token": []byte(answertest.Old)}}
		w.must(admin.Create(t.Context(), copies))
		w.sets(func(s *agents.CredentialUpdateRequestStatus) {
			s.ResolvedCredential.IdentityKind, s.ResolvedCredential.Name = agents.KindSessionUserIdentity, answertest.Session
			s.CredentialSecretRef.Name, s.CredentialSecretKey = copies.Name, "git-token"
			s.CredentialSecretObservedHash = credupdate.Digest(copies.Data, "git-token")
		})
		p := w.enters()
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		p.reads("user:bob, personally (SessionUserIdentity", "This session only")
		p.misses("the agent itself")
		p.submits(http.StatusOK, answertest.Good)
		w.must(admin.Get(t.Context(), client.ObjectKeyFromObject(copies), copies))
		if string(copies.Data["git-token"]) != answertest.Good {
			t.Errorf("the session's copy is %q", copies.Data)
		}
		w.stored(answertest.Old)
	})
}

func TestLeft(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "less than a minute", 59 * time.Second: "less than a minute", time.Minute: "1 minute", 119 * time.Second: "1 minute", 30 * time.Minute: "30 minutes",
	} {
		if got := left(d); got != want {
			t.Errorf("%s is %q", d, got)
		}
	}
}

func TestResult_says_what_the_provider_said_and_where_the_request_stands(t *testing.T) {
	question := func(phase string) *answer.Question {
		q := &answer.Question{Request: answertest.NewOpen(time.Now()).Request}
		q.Request.Status.Phase, q.Request.Status.Reason = phase, "Because."
		return q
	}
	for _, c := range []struct {
		probe    verdict.Probe
		question *answer.Question
		says     string
		waits    bool
	}{
		{verdict.ProbeValid, question(agents.PhaseOpen), "The provider accepts it. The request is about to be fulfilled", true},
		{verdict.ProbeUnsupported, question(agents.PhaseFulfilled), "there is no way to ask. The request is fulfilled Because.", false},
		{verdict.ProbeIndeterminate, question(agents.PhaseExpired), "did not say whether it accepts it. The agent's next call will tell. The request is over Expired: Because.", false},
		{verdict.ProbeRejected, nil, "does not accept it. It was stored because you said so. The request is gone", false},
		{verdict.ProbeForbidden, question(agents.PhaseOpen), "does not accept it. It was stored because you said so.", true},
	} {
		v := storedView(result{Probe: c.probe}, c.question)
		if got := strings.Join([]string{v.Provider, v.Heading, v.Text}, " "); !strings.Contains(got, c.says) || v.Waits != c.waits {
			t.Errorf("of %s it says %q", c.probe, got)
		}
	}
}
