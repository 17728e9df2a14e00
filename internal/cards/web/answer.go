package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
)

// The fields of the form, beside link.Parameter. A name of its own: password managers know "password" and "token".
const (
	valueField   = "new-value"
	confirmField = "confirm"
)

// target is a request that somebody opened a link to.
type target struct {
	Request types.NamespacedName
	UID     types.UID
	// link is the link's token, and linkID what the audit log has of it.
	link, linkID string
	person       login.Person
}

// show answers GET of a link.
func (p *page) show(w http.ResponseWriter, r *http.Request) {
	t, ok := p.enter(w, r, r.URL.Query().Get(link.Parameter))
	if !ok {
		return
	}
	question, err := p.desk.Question(r.Context(), t.Request, t.UID)
	p.ask(w, r, t, question, err, false)
}

// submit answers POST of the form.
func (p *page) submit(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil { // a long one, or one of another encoding; the error could quote it
		p.say(w, r, unreadable)
		return
	}
	t, ok := p.enter(w, r, r.PostForm.Get(link.Parameter))
	if !ok {
		return
	}
	if !p.answers.allow(t.person.Username, p.Clock.Now()) {
		p.audit(r, t, "answer", "TooFast")
		p.say(w, r, tooFast)
		return
	}
	confirm := r.PostForm.Get(confirmField) != ""
	outcome, err := p.desk.Answer(r.Context(), t.Request, t.UID, answer.Submission{Value: r.PostForm.Get(valueField), Confirm: confirm})
	if err == nil {
		p.audit(r, t, "answer", "Stored", "provider", string(outcome.Probe), "confirmed", confirm)
		http.Redirect(w, r, p.resultURL(t, outcome), http.StatusSeeOther)
		return
	}
	reason := answer.ReasonOf(err)
	if reason == "" {
		p.fail(w, r, t, err)
		return
	}
	p.audit(r, t, "answer", string(reason))
	var question *answer.Question
	if reason.Again() {
		// What is asked is read anew for the form: it may have been settled in the meantime.
		var gone error
		if question, gone = p.desk.Question(r.Context(), t.Request, t.UID); gone != nil {
			err = gone
		}
	}
	p.ask(w, r, t, question, err, reason == answer.Unconfirmed)
}

// enter lets somebody in who has a valid link, is logged in, and may answer. Whether there is such a request is looked
// up after that alone: to everybody else one that is there and one that is not look the same.
func (p *page) enter(w http.ResponseWriter, r *http.Request, token string) (target, bool) {
	if token == "" { // typed by hand, or left over from somebody who signed out
		p.say(w, r, nothingHere)
		return target{}, false
	}
	claims, err := p.Key.Verify(token, p.BaseURL, p.Clock.Now())
	switch {
	case errors.Is(err, link.ErrExpired):
		p.say(w, r, expired)
		return target{}, false
	case err != nil:
		p.say(w, r, forged)
		return target{}, false
	}
	t := target{Request: claims.Request, UID: claims.UID, link: token, linkID: claims.ID}
	var in bool
	if t.person, in = p.login.Visitor(r); !in {
		status, problem := http.StatusOK, ""
		if r.Method == http.MethodPost {
			status, problem = http.StatusForbidden, "You are not signed in any more, and nothing was stored. Sign in, and enter the value again."
		}
		p.showLogin(w, r, status, token, problem)
		return t, false
	}
	return t, p.authorize(w, r, t)
}

// authorize has the API server say whether a person may answer, now. An error is no answer, and is not shown as one:
// the person may well have the right.
func (p *page) authorize(w http.ResponseWriter, r *http.Request, t target) bool {
	allowed, err := p.allowed(r.Context(), t)
	switch {
	case err != nil:
		p.fail(w, r, t, err)
		return false
	case !allowed:
		p.audit(r, t, "enter", "Denied")
		p.render(w, r, http.StatusForbidden, "denied", "You may not answer this request", t)
		return false
	}
	return true
}

func (p *page) allowed(ctx context.Context, t target) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(t.person.Extra))
	for key, value := range t.person.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: t.person.Username, UID: t.person.UID, Groups: t.person.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "credentialupdaterequests",
			Verb: Verb, Namespace: t.Request.Namespace, Name: t.Request.Name,
		},
	}}
	if err := p.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking the API server whether %q may answer %s: %w", t.person.Username, t.Request, err)
	}
	status := review.Status
	if !status.Allowed && !status.Denied && status.EvaluationError != "" {
		// Of several authorizers one could not say, and it may have been the one that allows.
		return false, fmt.Errorf("the API server cannot tell whether %q may answer %s: %s", t.person.Username, t.Request, status.EvaluationError)
	}
	return status.Allowed && !status.Denied, nil
}

// statuses are the HTTP statuses of requests that cannot be answered; every other reason is a conflict with what the
// cluster holds now.
var statuses = map[answer.Reason]int{
	answer.NotFound:    http.StatusNotFound,
	answer.Settled:     http.StatusGone,
	answer.Expired:     http.StatusGone,
	answer.Malformed:   http.StatusUnprocessableEntity,
	answer.Unchanged:   http.StatusUnprocessableEntity,
	answer.Unconfirmed: http.StatusUnprocessableEntity,
}

var titles = map[answer.Reason]string{
	answer.NotFound: "There is no such request",
	answer.Settled:  "This request is settled",
	answer.Expired:  "The time of this request is over",
}

// ask shows a request with its form, or why there is none. The error is what kept a value, or the request, from being
// answered; nil when nothing did. Confirm asks for a confirmation.
func (p *page) ask(w http.ResponseWriter, r *http.Request, t target, question *answer.Question, err error, confirm bool) {
	reason := answer.ReasonOf(err)
	if err != nil && reason == "" {
		p.fail(w, r, t, err)
		return
	}
	status, title := http.StatusOK, "An agent needs a new credential"
	if err != nil {
		if status = statuses[reason]; status == 0 {
			status = http.StatusConflict
		}
		if own := titles[reason]; own != "" {
			title = own
		}
	}
	if question == nil || titles[reason] != "" {
		// Over. Nobody has to judge an agent's words any more, so they are not shown.
		p.say(w, r, notice{status, title, []string{err.Error()}})
		return
	}
	view := p.view(r.Context(), t, question)
	view.Confirm = confirm
	view.Form = err == nil || reason.Again()
	if err != nil {
		view.Problem = err.Error()
	}
	if err != nil && view.Form {
		title = "Not stored: " + title
	}
	p.render(w, r, status, "request", title, view)
}

// fail says that something does not work, without saying what, which is for the log.
func (p *page) fail(w http.ResponseWriter, r *http.Request, t target, err error) {
	p.Log.Error(err, "a visitor could not be served", "method", r.Method, "request", t.Request.String(), "person", t.person.Username)
	if r.Method == http.MethodPost {
		p.audit(r, t, "answer", "Failed")
	}
	p.say(w, r, failed)
}

// audit writes down who did what, and what came of it.
func (p *page) audit(r *http.Request, t target, action, outcome string, more ...any) {
	p.Log.Info("audit", append([]any{
		"audit", true, "action", action, "outcome", outcome, "request", t.Request.String(), "requestUID", t.UID, "link", t.linkID,
		"person", t.person.Username, "personUID", t.person.UID, "groups", t.person.Groups, "address", p.address(r).String(),
	}, more...)...)
}
