package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
	"github.com/c5c3/c5c3-operator/internal/untrusted"
)

var (
	//go:embed templates
	files embed.FS
	pages = template.Must(template.New("").Funcs(template.FuncMap{
		"linkField":    func() string { return link.Parameter },
		"valueField":   func() string { return valueField },
		"confirmField": func() string { return confirmField },
		"bearerField":  func() string { return login.BearerField },
		"verb":         func() string { return Verb },
	}).ParseFS(files, "templates/*.html"))
	style = func() template.CSS {
		text, err := files.ReadFile("templates/style.css")
		if err != nil {
			panic(err) // it is embedded
		}
		return template.CSS(strings.TrimSpace(string(text))) //nolint:gosec // the page's own
	}()
	// The page loads nothing, and its one style is known by its digest.
	contentSecurityPolicy = func() string {
		digest := sha256.Sum256([]byte(style))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	}()
)

// notice is a page that says one thing. No notice tells of a request or a person.
type notice struct {
	status int
	title  string
	Text   []string
}

var (
	nothingHere = notice{http.StatusNotFound, "There is nothing here", []string{
		"This page answers requests for new credentials. Open it by the link of a card."}}
	forged = notice{http.StatusBadRequest, "This link is not valid", []string{
		"It was changed or cut on its way, or is from before the key of links was replaced.", "Open it again from the card. If that does not help, the agent can ask again."}}
	expired = notice{http.StatusGone, "This link has expired", []string{
		"Links are good for as long as their request waits. Nothing can be answered any more; the agent can ask again."}}
	foreign = notice{http.StatusForbidden, "This form was submitted by another site", []string{
		"Nothing was stored. If you came here from a card, open its link and enter the value there. If another site sent you here, it tried to act in your name."}}
	tooFast = notice{http.StatusTooManyRequests, "Too many requests", []string{
		"Nothing was stored. Wait a minute, and try again."}}
	unreadable = notice{http.StatusBadRequest, "The form cannot be read", []string{
		"Nothing was stored. It is too long, or not what the page sent."}}
	failed = notice{http.StatusInternalServerError, "Something does not work", []string{
		"It is not your fault, and says nothing about your rights. Whoever runs the platform finds the cause in the log.",
		"Open the link again in a moment. If you have submitted a value, it then says whether the credential has changed."}}
)

func (p *page) say(w http.ResponseWriter, r *http.Request, n notice) {
	if n.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	p.render(w, r, n.status, "notice", n.title, n)
}

// frame is what every page has.
type frame struct {
	Title string
	Style template.CSS
	// Person is who is signed in; empty when nobody is.
	Person string
	// Logout is where somebody signs out, to come back to the link with the token Link.
	Logout, Link string
	Content      any
}

func (p *page) render(w http.ResponseWriter, r *http.Request, status int, name, title string, content any) {
	f := frame{Title: title, Style: style, Content: content, Logout: p.base.Path + login.LogoutPath}
	if person, in := p.login.Visitor(r); in {
		f.Person, f.Link = untrusted.Line(person.Username, lineLimit), r.FormValue(link.Parameter)
	}
	var html bytes.Buffer
	if err := pages.ExecuteTemplate(&html, name, f); err != nil {
		p.Log.Error(err, "a page cannot be written", "page", name)
		http.Error(w, "The page cannot be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(html.Bytes())
}
