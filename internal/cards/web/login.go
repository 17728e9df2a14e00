package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
)

func (p *page) newLogin() (*login.Login, error) {
	return login.New(login.Config{
		BaseURL: p.BaseURL, Key: p.Key, Client: p.Client, Clock: p.Clock, OIDC: p.OIDC, Tokens: p.Tokens, Fail: p.loginFailed, Log: p.Log,
	})
}

// loginView is what somebody sees who is not logged in.
type loginView struct {
	login.Options
	// ProviderURL leads to the OpenID Connect provider, and TokenURL takes a token.
	ProviderURL, TokenURL string
	// Link is the link's token.
	Link string
	// Problem is why nobody is logged in, if somebody tried.
	Problem string
}

// Audience is one that a token can be for.
func (v loginView) Audience() string { return strings.Join(v.Audiences[:min(1, len(v.Audiences))], "") }

func (p *page) showLogin(w http.ResponseWriter, r *http.Request, status int, token, problem string) {
	p.render(w, r, status, "login", "Sign in to answer", loginView{
		Options: p.login.Options(), Link: token, Problem: problem,
		ProviderURL: p.base.Path + login.ProviderPath + "?" + url.Values{link.Parameter: {token}}.Encode(), TokenURL: p.base.Path + login.TokenPath,
	})
}

// loginFailed says why nobody was logged in, beside the ways to try again when the request says for which link.
func (p *page) loginFailed(w http.ResponseWriter, r *http.Request, failed *login.Error) {
	p.Log.Info("audit", "audit", true, "action", "login", "outcome", "Refused", "status", failed.Status, "reason", failed.Error(), "address", p.address(r).String())
	token := r.FormValue(link.Parameter)
	switch {
	case errors.Is(failed, link.ErrExpired):
		p.say(w, r, expired)
	case errors.Is(failed, link.ErrForged):
		p.say(w, r, forged)
	case token == "":
		p.say(w, r, notice{failed.Status, "You are not signed in", []string{failed.Message}})
	default:
		p.showLogin(w, r, failed.Status, token, failed.Message)
	}
}
