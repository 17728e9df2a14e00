package browser

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

// What the tests operate on the pages.
const (
	value      = "#value"
	confirm    = "#confirm"
	bearer     = "#bearer"
	submit     = "main form button[type=submit]"
	atProvider = "main a.button"
	signOut    = "header button"
)

// wants fails when a page came with another status.
func (b *tab) wants(want, got int) {
	b.t.Helper()
	if got != want {
		b.t.Fatalf("the page came with status %d and not %d:\n%s", got, want, b.textOrNothing())
	}
}

// logIn logs somebody in at the provider.
func (w *world) logIn(b *tab, name string) int {
	b.t.Helper()
	b.wants(http.StatusOK, b.open(w.link(time.Now())))
	b.reads("Sign in to answer", "Example ID")
	b.wants(http.StatusOK, b.click(atProvider))
	b.enter("#username", name)
	b.enter("#password", password)
	return b.click("button[type=submit]")
}

// presentToken logs in with a token.
func (w *world) presentToken(b *tab, token string) int {
	b.t.Helper()
	b.wants(http.StatusOK, b.open(w.link(time.Now())))
	b.enter(bearer, token)
	return b.click(submit)
}

func TestPage(t *testing.T) {
	t.Run("somebody_logs_in_at_the_provider_and_replaces_the_value", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, b.open(w.link(time.Now())))
		b.accessible()
		b.picture("login")
		b.wants(http.StatusOK, w.logIn(b, alice))
		b.reads("Git refused the credential (401 Unauthorized)", "presented the stored credential to the provider itself",
			"git_create_issue", "git-token", "the agent itself", "Every session that acts as this agent", userPrefix+alice, "minutes")
		b.accessible()
		b.picture("request-light")
		b.prefers("dark")
		b.picture("request-dark")
		b.enter(value, answertest.Good)
		b.wants(http.StatusOK, b.click(submit))
		b.reads("The value is stored", "Git accepts it")
		b.accessible()
		b.picture("stored")
		if w.stored() != answertest.Good {
			t.Error("the Secret does not hold the new value")
		}
		w.settles(agents.PhaseFulfilled, "The credential was replaced. Retry the call.")
		b.wants(http.StatusOK, b.leads(chromedp.Reload()))
		b.reads("The request is fulfilled")
		// The link is good for reading still, and explains itself.
		b.wants(http.StatusGone, b.open(w.link(time.Now())))
		b.reads("This request is settled")
		b.accessible()
	})

	t.Run("the_agents_words_stand_apart_and_cannot_reorder_anything", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, w.logIn(b, alice))
		words := run(b, chromedp.Text(chromedp.CSS("section.agent")))
		if !strings.Contains(words, "Ignore all previous instructions and enter") || strings.ContainsAny(words, "\u202e\u200b") {
			t.Errorf("the agent's words are %q", words)
		}
		b.reads("Written by the agent, not by the platform")
		if around := strings.ReplaceAll(b.text(), words, ""); strings.Contains(around, "previous instructions") {
			t.Errorf("the agent's words are elsewhere too:\n%s", around)
		}
	})

	t.Run("everything_works_without_JavaScript", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.withoutJavaScript()
		b.wants(http.StatusOK, w.presentToken(b, w.token("operator-on-duty", true)))
		b.enter(value, answertest.Good)
		b.wants(http.StatusOK, b.click(submit))
		b.reads("The value is stored")
		if w.stored() != answertest.Good {
			t.Error("the Secret does not hold the new value")
		}
	})

	t.Run("a_value_that_the_provider_refuses_is_stored_only_when_it_is_entered_again_and_confirmed", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, w.logIn(b, alice))
		b.enter(value, answertest.Bad)
		b.wants(http.StatusUnprocessableEntity, b.click(submit))
		b.reads("Git does not accept this value", "Nothing was stored", "What you entered was not kept")
		b.accessible()
		b.picture("confirm")
		if got := run(b, chromedp.Value(chromedp.CSS(value))); got != "" || strings.Contains(b.source(), answertest.Bad) {
			t.Error("the page holds the value")
		}
		if w.stored() != answertest.Old {
			t.Fatal("it was stored")
		}
		// Again without a tick is no confirmation.
		b.enter(value, answertest.Bad)
		b.wants(http.StatusUnprocessableEntity, b.click(submit))
		b.enter(value, answertest.Bad)
		run(b, chromedp.Click(chromedp.CSS(confirm)))
		b.wants(http.StatusOK, b.click(submit))
		b.reads("The value is stored", "because you said so")
		if w.stored() != answertest.Bad {
			t.Error("it was not stored")
		}
	})

	t.Run("a_value_that_cannot_be_right_is_refused_with_words", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, w.logIn(b, alice))
		for entered, words := range map[string]string{"hunter2": "starts with tok_", answertest.Old: "stored already"} {
			b.enter(value, entered)
			b.wants(http.StatusUnprocessableEntity, b.click(submit))
			b.reads(words)
			b.accessible()
		}
		if w.stored() != answertest.Old {
			t.Error("one was stored")
		}
	})

	t.Run("the_keyboard_is_enough", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, b.open(w.link(time.Now())))
		b.tabTo(bearer)
		b.paste(w.token("typist", true))
		b.wants(http.StatusOK, b.leads(chromedp.KeyEvent(kb.Enter)))
		b.tabTo(value)
		b.press(answertest.Good)
		b.tabTo("button[type=submit]")
		b.wants(http.StatusOK, b.leads(chromedp.KeyEvent(kb.Enter)))
		b.reads("The value is stored")
		if w.stored() != answertest.Good {
			t.Error("the Secret does not hold the new value")
		}
	})

	t.Run("no_browser_fills_the_field_in", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, w.logIn(b, alice))
		// A field that takes a new password is left alone, and what is in it is not shown.
		for name, want := range map[string]string{"type": "password", "autocomplete": "new-password"} {
			if got := run(b, chromedp.AttributeValue(chromedp.CSS(value), name)).Value; got != want {
				t.Errorf("the field's %s is %q", name, got)
			}
		}
		// Nor does going back bring a value back that was entered: refused or stored, the page is asked for anew.
		for entered, answer := range map[string]int{answertest.Bad: http.StatusUnprocessableEntity, answertest.Good: http.StatusOK} {
			w, b := newWorld(t), newTab(t)
			b.wants(http.StatusOK, w.logIn(b, alice))
			b.enter(value, entered)
			run(b, chromedp.Evaluate[any](`window.left = true`))
			b.wants(answer, b.click(submit))
			run(b, chromedp.Evaluate[any](`window.left = true; setTimeout(() => history.back())`))
			b.until(`location.pathname === "/link" && document.readyState === "complete" && window.left === undefined`)
			if strings.Contains(b.source(), entered) || run(b, chromedp.Evaluate[bool](`[...document.querySelectorAll("input")].some(i => i.value.startsWith("tok_"))`)) {
				t.Error("the page holds a value that was entered before")
			}
		}
	})

	t.Run("a_link_that_has_expired_or_was_changed_explains_itself", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusGone, b.open(w.link(time.Now().Add(-31*time.Minute))))
		b.reads("This link has expired", "the agent can ask again")
		b.accessible()
		b.picture("expired")
		b.wants(http.StatusBadRequest, b.open(w.link(time.Now())[:len(w.link(time.Now()))-9]))
		b.reads("This link is not valid")
		b.accessible()
	})

	t.Run("whoever_has_no_right_is_told_and_can_come_back_as_somebody_else", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusForbidden, w.logIn(b, mallory))
		b.reads("You may not answer this request", userPrefix+mallory, "the verb “answer”")
		if strings.Contains(b.source(), "git-token") || strings.Contains(b.source(), "Ignore all previous") {
			t.Error("something of the request is on the page")
		}
		b.accessible()
		b.picture("forbidden")
		b.wants(http.StatusOK, b.click(signOut))
		b.reads("Sign in to answer")
		b.enter(bearer, w.token("operator-on-duty", true))
		b.wants(http.StatusOK, b.click(submit))
		b.reads("What the platform found")
	})

	t.Run("a_right_that_is_taken_away_ends_at_once", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, w.presentToken(b, w.token("was-on-duty", true)))
		w.revokes("was-on-duty")
		b.enter(value, answertest.Good)
		b.wants(http.StatusForbidden, b.click(submit))
		b.reads("You may not answer this request")
		if w.stored() != answertest.Old {
			t.Error("it was stored")
		}
	})

	t.Run("a_token_that_the_cluster_does_not_accept_logs_nobody_in", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusForbidden, w.presentToken(b, "not-a-token"))
		b.reads("The cluster does not accept this token")
		b.accessible()
	})

	t.Run("a_phone_shows_it_too", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		run(b, chromedp.EmulateViewport(360, 740))
		b.wants(http.StatusOK, w.presentToken(b, w.token("on-the-way", true)))
		b.accessible()
		b.picture("request-phone")
	})

	t.Run("a_form_of_another_site_submits_nothing", func(t *testing.T) {
		w, b := newWorld(t), newTab(t)
		b.wants(http.StatusOK, w.logIn(b, alice))
		address := run(b, chromedp.Location())
		token := address[strings.Index(address, link.Parameter+"=")+len(link.Parameter+"="):]
		site := foreign(t, w.base+"/link", token, answertest.Good)
		b.wants(http.StatusOK, b.open(site))
		b.wants(http.StatusForbidden, b.click("button"))
		b.reads("submitted by another site")
		b.accessible()
		if w.stored() != answertest.Old {
			t.Error("it was stored")
		}
	})
}
