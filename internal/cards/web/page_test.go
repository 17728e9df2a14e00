package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

const (
	signIn = "Sign in to answer"
	asked  = "What the platform found"
	denied = "You may not answer this request"
)

// ofTheRequest are texts that only somebody with the right may read.
var ofTheRequest = []string{"Git refused", "git-token", "git_create_issue", "Please, I need", asked, "user:alice"}

func TestAnswer(t *testing.T) {
	t.Run("a_value_that_the_provider_accepts_is_stored_once_and_the_page_says_so_to_whoever_entered_it", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		p.reads(asked, "presented the stored credential to the provider itself", "Git refused the credential (401 Unauthorized).",
			"git_create_issue", "mcpserver/git", "git-token", "user:alice", "the agent itself", "starts with tok_", "29 minutes", p.account,
			"key &#34;token&#34; of Secret "+w.namespace+"/bot-token, and to nothing else")
		p.submits(http.StatusOK, " "+answertest.Good+"\n")
		w.stored(answertest.Good)
		p.reads("The value is stored", "Git accepts it.", "about to be fulfilled")
		w.audited(`"action":"answer"`, `"outcome":"Stored"`, `"provider":"valid"`, `"confirmed":false`, p.account, w.namespace+"/"+answertest.Request, `"address":"127.0.0.1"`, "system:serviceaccounts:"+w.namespace)
		address := p.last.Request.URL
		if p.last.Request.Method != http.MethodGet || address.Path != resultPath {
			t.Errorf("it ends at %s %s, where a reload would submit again", p.last.Request.Method, address)
		}
		w.sets(func(s *agents.CredentialUpdateRequestStatus) {
			s.Phase, s.Reason = agents.PhaseFulfilled, "The credential was replaced.\u202e Retry the call."
		})
		asks := w.provider.Asked.Load()
		p.do(http.StatusOK, p.request(http.MethodGet, resultPath+"?"+address.RawQuery, ""))
		p.reads("The request is fulfilled", "The credential was replaced. Retry the call.")
		if w.provider.Asked.Load() != asks {
			t.Error("a reload asks the provider")
		}
		// It says so to nobody else, nor after an hour, nor when it was touched.
		other := w.arrives(answers(Verb))
		other.logsIn(http.StatusGone)
		other.do(http.StatusNotFound, other.request(http.MethodGet, resultPath+"?"+address.RawQuery, ""))
		stranger := w.stranger()
		stranger.do(http.StatusNotFound, stranger.request(http.MethodGet, resultPath+"?"+address.RawQuery, ""))
		for _, forged := range []string{"", ".", "a", "e30.", address.Query().Get(resultParameter)[1:], address.Query().Get(resultParameter) + "A"} {
			p.do(http.StatusNotFound, p.request(http.MethodGet, resultPath+"?"+url.Values{resultParameter: {forged}}.Encode(), ""))
		}
		w.must(admin.Delete(t.Context(), w.Request))
		p.do(http.StatusOK, p.request(http.MethodGet, resultPath+"?"+address.RawQuery, ""))
		p.reads("The request is gone")
	})

	t.Run("one_that_the_provider_refuses_is_stored_only_when_it_is_confirmed", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		p.misses(`name="confirm"`)
		for range 2 { // a second time is no confirmation
			p.submits(http.StatusUnprocessableEntity, answertest.Bad)
			p.reads("Not stored:", "Git does not accept this value (401 Unauthorized: Bad credentials)", "What you entered was not kept", `name="confirm"`, `aria-invalid="true"`)
			w.stored(answertest.Old)
		}
		w.audited(`"outcome":"Unconfirmed"`, p.account)
		p.submits(http.StatusOK, answertest.Bad, confirmField, "yes")
		p.reads("The value is stored", "Git does not accept it. It was stored because you said so.")
		w.stored(answertest.Bad)
		w.audited(`"outcome":"Stored"`, `"confirmed":true`, `"provider":"rejected"`)
	})

	t.Run("one_that_the_provider_says_nothing_about_is_stored", func(t *testing.T) {
		w := newWorld(t)
		w.provider.Answers(http.StatusBadGateway, "")
		p := w.enters()
		p.submits(http.StatusOK, answertest.Bad)
		p.reads("Git did not say whether it accepts it")
		w.stored(answertest.Bad)
	})

	for name, value := range map[string]string{
		"empty": "", "of_another_shape": "hunter2", "that_is_stored_already": answertest.Old, "too_long": "tok_" + strings.Repeat("1", 64<<10),
		"with_something_invisible_in_it": "tok_11111111\u200b1111", "of_two_lines": "tok_111111\n111111",
	} {
		t.Run("one_"+name+"_is_refused_without_asking_the_provider", func(t *testing.T) {
			w := newWorld(t)
			p := w.enters()
			p.submits(http.StatusUnprocessableEntity, value)
			p.reads("Not stored:", `role="alert"`)
			w.stored(answertest.Old)
			if w.provider.Asked.Load() != 0 {
				t.Error("the provider was asked")
			}
		})
	}

	t.Run("a_form_that_is_longer_than_any_value_is_not_read", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		p.submits(http.StatusBadRequest, strings.Repeat("%", maxBody/3+1))
		p.reads("The form cannot be read")
	})

	t.Run("nothing_that_stands_in_an_address_is_an_answer", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		w.secrets = nil // the visitor wrote it there
		query := url.Values{link.Parameter: {w.link(w.clock.Now())}, valueField: {answertest.Good}, confirmField: {"yes"}}.Encode()
		p.do(http.StatusOK, p.request(http.MethodGet, link.Path+"?"+query, ""))
		p.do(http.StatusNotFound, p.request(http.MethodPost, link.Path+"?"+query, ""))
		p.do(http.StatusUnprocessableEntity, p.request(http.MethodPost, link.Path+"?"+query, url.Values{link.Parameter: {w.link(w.clock.Now())}}.Encode()))
		w.stored(answertest.Old)
	})
}

// TestGates has what keeps somebody from seeing or answering a request. Each is tried with both, and with a value that
// would be stored.
func TestGates(t *testing.T) {
	for name, c := range map[string]struct {
		// given is whoever stands before the gate, and the link that they have.
		given        func(w *world) (*person, string)
		view, submit int
		reads        string
	}{
		"nobody_who_is_not_logged_in": {func(w *world) (*person, string) { return w.stranger(), w.link(w.clock.Now()) }, http.StatusOK, http.StatusForbidden, signIn},
		"nobody_whose_session_is_over": {func(w *world) (*person, string) {
			p := w.enters()
			w.clock.SetTime(w.clock.Now().Add(31 * time.Minute))
			return p, w.link(w.clock.Now())
		}, http.StatusOK, http.StatusForbidden, signIn},
		"nobody_with_a_session_of_their_own_making": {func(w *world) (*person, string) {
			p := w.stranger()
			at, _ := url.Parse(w.server.URL)
			p.browser.Jar.SetCookies(at, []*http.Cookie{{Name: "c5c3-cards-session", Value: w.link(w.clock.Now())}})
			return p, w.link(w.clock.Now())
		}, http.StatusOK, http.StatusForbidden, signIn},
		"nobody_without_a_right": {func(w *world) (*person, string) {
			p := w.arrives()
			p.logsIn(http.StatusForbidden)
			return p, w.link(w.clock.Now())
		}, http.StatusForbidden, http.StatusForbidden, denied},
		"nobody_with_every_other_right_to_requests": {func(w *world) (*person, string) {
			p := w.arrives(answers("get", "list", "watch", "create", "update", "patch", "delete"))
			w.until(p.account, "get", agents.GroupVersion.Group, "credentialupdaterequests", true)
			p.logsIn(http.StatusForbidden)
			return p, w.link(w.clock.Now())
		}, http.StatusForbidden, http.StatusForbidden, denied},
		"nobody_whose_right_was_taken_away": {func(w *world) (*person, string) {
			p := w.enters()
			w.must(admin.DeleteAllOf(w.t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(w.namespace)))
			w.until(p.account, Verb, agents.GroupVersion.Group, "credentialupdaterequests", false)
			return p, w.link(w.clock.Now())
		}, http.StatusForbidden, http.StatusForbidden, denied},
		"nobody_with_a_right_to_another_request": {func(w *world) (*person, string) {
			rule := answers(Verb)
			rule.ResourceNames = []string{"cur-session-2-abcde"}
			p := w.arrives(rule)
			p.logsIn(http.StatusForbidden)
			return p, w.link(w.clock.Now())
		}, http.StatusForbidden, http.StatusForbidden, denied},
		"nobody_without_a_right_learns_whether_there_is_a_request": {func(w *world) (*person, string) {
			p := w.arrives()
			p.logsIn(http.StatusForbidden)
			w.must(admin.Delete(w.t.Context(), w.Request))
			return p, w.link(w.clock.Now())
		}, http.StatusForbidden, http.StatusForbidden, denied},
		"an_expired_link": {func(w *world) (*person, string) {
			return w.enters(), w.link(w.clock.Now().Add(-30 * time.Minute))
		}, http.StatusGone, http.StatusGone, "This link has expired"},
		"a_link_of_another_page": {func(w *world) (*person, string) {
			return w.enters(), w.link(w.clock.Now(), func(c *link.Claims) { c.Audience = "https://cards.example.com" })
		}, http.StatusBadRequest, http.StatusBadRequest, "This link is not valid"},
		"a_cut_link": {func(w *world) (*person, string) {
			token := w.link(w.clock.Now())
			return w.enters(), token[:len(token)-3]
		}, http.StatusBadRequest, http.StatusBadRequest, "This link is not valid"},
		"no_link": {func(w *world) (*person, string) { return w.enters(), "" }, http.StatusNotFound, http.StatusNotFound, "There is nothing here"},
		"a_link_to_an_earlier_request_of_the_name": {func(w *world) (*person, string) {
			return w.enters(), w.link(w.clock.Now(), func(c *link.Claims) { c.UID = "earlier" })
		}, http.StatusNotFound, http.StatusNotFound, "There is no such request"},
		"a_session_for_a_link": {func(w *world) (*person, string) {
			p := w.enters()
			return p, p.session().Value
		}, http.StatusBadRequest, http.StatusBadRequest, "This link is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p, token := c.given(w)
			p.opens(c.view, token)
			p.reads(c.reads)
			p.misses(ofTheRequest...)
			p.submits(c.submit, answertest.Good, link.Parameter, token)
			p.reads(c.reads)
			p.misses(ofTheRequest...)
			w.stored(answertest.Old)
			if w.provider.Asked.Load() != 0 {
				t.Error("the provider was asked about the value")
			}
		})
	}

	t.Run("whoever_is_denied_reads_what_they_lack_and_stands_in_the_audit_log", func(t *testing.T) {
		w := newWorld(t)
		p := w.arrives()
		p.logsIn(http.StatusForbidden)
		p.reads("the verb “answer”", p.account, answertest.Request)
		w.audited(`"outcome":"Denied"`, p.account)
	})

	t.Run("a_right_by_way_of_a_group_counts", func(t *testing.T) {
		w := newWorld(t)
		p := w.arrives()
		w.permits(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + w.namespace}, answers(Verb))
		w.until(p.account, Verb, agents.GroupVersion.Group, "credentialupdaterequests", true)
		p.logsIn(http.StatusOK)
		p.submits(http.StatusOK, answertest.Good)
		w.stored(answertest.Good)
	})

	t.Run("the_API_server_is_asked_about_all_that_it_knows_of_a_person", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		var spec authorizationv1.SubjectAccessReviewSpec
		w.before = func(object client.Object) error {
			if review, of := object.(*authorizationv1.SubjectAccessReview); of {
				spec = review.Spec
			}
			return nil
		}
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		if spec.User != p.account || spec.UID == "" || len(spec.Groups) < 3 || len(spec.Extra) == 0 {
			t.Errorf("it is asked about %+v", spec)
		}
	})

	t.Run("a_form_of_another_site_does_nothing", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		for name, headers := range map[string]map[string]string{
			"cross-site":              {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example.com"},
			"same-site":               {"Sec-Fetch-Site": "same-site", "Origin": "https://evil.example.com"},
			"an older browser":        {"Sec-Fetch-Site": "", "Origin": "https://evil.example.com"},
			"without an origin":       {"Sec-Fetch-Site": "", "Origin": "null"},
			"another port's":          {"Sec-Fetch-Site": "", "Origin": "http://127.0.0.1:1"},
			"a sandboxed frame":       {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
			"an origin that is alike": {"Sec-Fetch-Site": "", "Origin": w.server.URL + ".evil.example.com"},
		} {
			request := p.form(answertest.Good)
			for header, value := range headers {
				request.Header.Set(header, value)
			}
			if headers["Sec-Fetch-Site"] == "" {
				request.Header.Del("Sec-Fetch-Site")
			}
			p.do(http.StatusForbidden, request)
			p.reads("submitted by another site")
			if w.stored(answertest.Old); t.Failed() {
				t.Fatal(name)
			}
		}
		// Neither does it log anybody in or out.
		for _, path := range []string{"/login/token", "/logout"} {
			request := p.request(http.MethodPost, path, url.Values{link.Parameter: {w.link(w.clock.Now())}}.Encode())
			request.Header.Set("Sec-Fetch-Site", "cross-site")
			p.do(http.StatusForbidden, request)
			p.reads("submitted by another site")
		}
		p.opens(http.StatusOK, w.link(w.clock.Now()))
		p.reads(asked)
	})

	t.Run("somebody_logs_out_and_is_nobody", func(t *testing.T) {
		w := newWorld(t)
		p := w.enters()
		p.do(http.StatusOK, p.request(http.MethodPost, "/logout", url.Values{link.Parameter: {w.link(w.clock.Now())}}.Encode()))
		p.reads(signIn)
		p.submits(http.StatusForbidden, answertest.Good)
		w.stored(answertest.Old)
	})
}

func TestRequest_that_cannot_be_answered_explains_itself(t *testing.T) {
	phase := func(phase, determination string) func(*world) {
		return func(w *world) {
			w.sets(func(s *agents.CredentialUpdateRequestStatus) { s.Phase, s.Determination = phase, determination })
		}
	}
	secret := func(change func(*corev1.Secret)) func(*world) {
		return func(w *world) {
			before := w.Secret.DeepCopy()
			change(w.Secret)
			w.must(admin.Patch(w.t.Context(), w.Secret, client.MergeFrom(before)))
		}
	}
	rejected := agents.DeterminationRejectedVerified
	for name, c := range map[string]struct {
		given  func(*world)
		status int
		reads  string
		// open is whether what is asked is shown still, without a form.
		open bool
	}{
		"fulfilled":         {phase(agents.PhaseFulfilled, rejected), http.StatusGone, "the credential has been changed", false},
		"expired":           {phase(agents.PhaseExpired, rejected), http.StatusGone, "was not changed in time", false},
		"refused":           {phase(agents.PhaseRefused, agents.DeterminationCredentialLive), http.StatusGone, "was refused", false},
		"of_a_later_phase":  {phase("Archived", rejected), http.StatusGone, "does not wait for a value", false},
		"not_determined":    {phase("", ""), http.StatusConflict, "has not determined the request yet", true},
		"healing":           {phase(agents.PhaseOpen, agents.DeterminationHealingByRotation), http.StatusConflict, "asks nobody", true},
		"over_by_the_clock": {func(w *world) { w.clock.SetTime(w.clock.Now().Add(29*time.Minute + 59*time.Second)) }, http.StatusOK, "less than a minute", true},
		"over": {func(w *world) {
			w.sets(func(s *agents.CredentialUpdateRequestStatus) { s.OpenedAt.Time = s.OpenedAt.Add(-time.Hour) })
		}, http.StatusGone, "time is over", false},
		"gone":                   {func(w *world) { w.must(admin.Delete(w.t.Context(), w.Request)) }, http.StatusNotFound, "does not exist any more", false},
		"about_an_OAuth_token":   {func(w *world) { w.sets(func(s *agents.CredentialUpdateRequestStatus) { s.CredentialSecretKey = "" }) }, http.StatusConflict, "has to be authorized anew", true},
		"about_a_delivered_one":  {secret(func(s *corev1.Secret) { s.Labels = map[string]string{"app.kubernetes.io/managed-by": "c5c3-operator"} }), http.StatusConflict, "delivers Secret", true},
		"about_a_missing_Secret": {func(w *world) { w.must(admin.Delete(w.t.Context(), w.Secret)) }, http.StatusConflict, "has to create it", true},
		"about_another_identity": {func(w *world) { w.must(admin.Delete(w.t.Context(), w.Identity)) }, http.StatusConflict, "no such credential any more", true},
		"answered_by_somebody":   {secret(func(s *corev1.Secret) { s.Data[answertest.Key] = []byte("tok_333333333333") }), http.StatusConflict, "has been changed already", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.enters()
			c.given(w)
			before := &corev1.Secret{}
			err := admin.Get(t.Context(), client.ObjectKeyFromObject(w.Secret), before)
			if name == "over_by_the_clock" {
				p = w.enters()
			}
			p.opens(c.status, w.link(w.clock.Now()))
			p.reads(c.reads)
			if form := strings.Contains(p.body, `id="value"`); form != (c.status == http.StatusOK) {
				t.Errorf("there is a form: %t", form)
			}
			if shown := strings.Contains(p.body, asked); shown != c.open {
				t.Errorf("what is asked is shown: %t", shown)
			}
			if c.status == http.StatusOK {
				return
			}
			p.submits(c.status, answertest.Good)
			p.reads(c.reads)
			after := &corev1.Secret{}
			if got := admin.Get(t.Context(), client.ObjectKeyFromObject(w.Secret), after); fmt.Sprint(got) != fmt.Sprint(err) || after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the Secret was %v, and is %v", before, after)
			}
		})
	}
}

func TestFaults_are_no_verdict_on_anybody(t *testing.T) {
	for name, c := range map[string]struct {
		before func(client.Object) error
		status int
		reads  string
	}{
		"the_API_server_does_not_say_who_somebody_is":   {faulty[*authenticationv1.TokenReview], http.StatusServiceUnavailable, "says nothing about the token"},
		"the_API_server_does_not_say_what_somebody_may": {faulty[*authorizationv1.SubjectAccessReview], http.StatusInternalServerError, "says nothing about your rights"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.enters()
			w.before = c.before
			if c.status == http.StatusServiceUnavailable {
				p = p.stranger()
				p.token = w.secrets[len(w.secrets)-1]
				p.logsIn(c.status)
				p.reads(c.reads)
				return
			}
			p.opens(c.status, w.link(w.clock.Now()))
			p.reads(c.reads)
			p.misses(ofTheRequest...)
			p.submits(c.status, answertest.Good)
			p.reads(c.reads)
			w.stored(answertest.Old)
			w.audited(`"outcome":"Failed"`, p.account)
		})
	}

	t.Run("an_authorizer_that_cannot_say_is_no_denial", func(t *testing.T) {
		// A fake answer, since no authorizer of the API server can be made to fail.
		w := newWorld(t, func(w *world, c *Config) { c.Client = undecided{c.Client} })
		p := w.arrives(answers(Verb))
		p.logsIn(http.StatusInternalServerError)
		p.submits(http.StatusInternalServerError, answertest.Good)
		p.reads("says nothing about your rights")
		w.stored(answertest.Old)
	})
}
