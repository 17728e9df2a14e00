package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
)

// TestToken has tokens reviewed by a real API server, as somebody who may do that and nothing else.
func TestToken(t *testing.T) {
	log.SetLogger(logr.Discard())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	config := dependenciestest.StartAPIServer(t, "../../..")
	admin, err := client.New(config, client.Options{Scheme: scheme})
	must(err)
	must(admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "page"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
	}}))
	must(admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "page"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "page"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "page"}},
	}))
	alice := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"}}
	must(admin.Create(t.Context(), alice))
	token := func(audiences ...string) string {
		t.Helper()
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: new(int64(600))}}
		must(admin.SubResource("token").Create(t.Context(), alice, request))
		return request.Status.Token
	}
	asPage := rest.CopyConfig(config)
	asPage.Impersonate.UserName = "page"
	page, err := client.New(asPage, client.Options{Scheme: scheme})
	must(err)
	at := func(t *testing.T, audiences ...string) *world {
		t.Helper()
		return newWorld(t, nil, &Tokens{Audiences: audiences}, func(c *Config) { c.Client = page })
	}
	const who = `system:serviceaccount:default:alice ["system:serviceaccounts" "system:serviceaccounts:default" "system:authenticated"] via Kubernetes token`
	accepts := func(w *world, bearer string) *http.Client {
		w.Helper()
		browser := w.browser()
		if status, shown := w.present(browser, bearer); status != http.StatusOK || shown != who {
			w.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
		}
		return browser
	}
	refuses := func(w *world, bearer string) {
		w.Helper()
		browser := w.browser()
		if status, shown := w.present(browser, bearer); status != http.StatusForbidden || shown != "The cluster does not accept this token." {
			w.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
		}
		w.out(browser)
	}

	t.Run("the_API_servers_own_logs_its_owner_in", func(t *testing.T) {
		w := at(t)
		bearer := token()
		browser := accepts(w, "  "+bearer+"\n")
		for _, cookie := range w.cookies(browser) {
			if strings.Contains(cookie.Value, bearer) {
				t.Error("a cookie holds the token")
			}
		}
		if strings.Contains(w.log.String(), bearer) || !strings.Contains(w.log.String(), `"user"="system:serviceaccount:default:alice"`) {
			t.Errorf("the log says %s", w.log.String())
		}
		refuses(w, token("cards"))
	})
	t.Run("one_for_another_audience_is_refused", func(t *testing.T) {
		w := at(t, "cards", "more-cards")
		accepts(w, token("cards"))
		accepts(w, token("vault", "more-cards"))
		refuses(w, token("vault"))
		refuses(w, token())
	})
	t.Run("what_is_no_token_is_refused", func(t *testing.T) {
		w := at(t)
		for _, text := range []string{"", " ", "token", token() + "x", "Bearer " + token(), strings.Repeat("x", maxBearer+1)} {
			refuses(w, text)
		}
	})
	t.Run("a_session_ends_with_its_token", func(t *testing.T) {
		w := at(t)
		browser := accepts(w, token())
		w.clock.SetTime(w.clock.Now().Add(9 * time.Minute))
		w.in(browser, who)
		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		w.out(browser)
		refuses(w, token()[:0])
	})
	t.Run("one_that_has_expired_by_our_clock_is_refused", func(t *testing.T) {
		w := at(t)
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		refuses(w, token())
	})
	t.Run("of_somebody_who_is_gone_is_refused", func(t *testing.T) {
		w := at(t)
		bearer := token()
		must(admin.Delete(t.Context(), alice))
		refuses(w, bearer)
	})
	t.Run("an_error_is_no_refusal", func(t *testing.T) {
		nobody := rest.CopyConfig(config)
		nobody.Impersonate.UserName = "nobody"
		forbidden, err := client.New(nobody, client.Options{Scheme: scheme})
		must(err)
		w := newWorld(t, nil, &Tokens{}, func(c *Config) { c.Client = forbidden })
		if status, shown := w.present(w.browser(), "a-token-of-this-test"); status != http.StatusServiceUnavailable || !strings.Contains(shown, "says nothing about the token") || w.failed.Err == nil {
			t.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
		}
	})
}

func (w *world) present(browser *http.Client, bearer string) (int, string) {
	w.Helper()
	return w.post(browser, TokenPath, url.Values{link.Parameter: {w.link()}, BearerField: {bearer}})
}

// faultyReviewer is an API server that answers a TokenReview as a test has it.
type faultyReviewer struct {
	client.Writer
	asked  int
	status authenticationv1.TokenReviewStatus
	err    error
}

func (f *faultyReviewer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	f.asked++
	object.(*authenticationv1.TokenReview).Status = f.status
	return f.err
}

// TestToken_trusts_no_answer_that_says_too_little has answers that a kube-apiserver gives with a webhook for an
// authenticator, and none.
func TestToken_trusts_no_answer_that_says_too_little(t *testing.T) {
	const bearer = "a-secret-of-this-test"
	alice := authenticationv1.UserInfo{Username: "alice"}
	for name, c := range map[string]struct {
		reviewer  faultyReviewer
		audiences []string
		want      int
	}{
		"accepted":                     {faultyReviewer{status: authenticationv1.TokenReviewStatus{Authenticated: true, User: alice}}, nil, http.StatusOK},
		"for_an_audience":              {faultyReviewer{status: authenticationv1.TokenReviewStatus{Authenticated: true, User: alice, Audiences: []string{"cards"}}}, []string{"cards"}, http.StatusOK},
		"without_the_audience":         {faultyReviewer{status: authenticationv1.TokenReviewStatus{Authenticated: true, User: alice}}, []string{"cards"}, http.StatusForbidden},
		"for_another_audience":         {faultyReviewer{status: authenticationv1.TokenReviewStatus{Authenticated: true, User: alice, Audiences: []string{"other"}}}, []string{"cards"}, http.StatusForbidden},
		"a_user_that_is_not_said_true": {faultyReviewer{status: authenticationv1.TokenReviewStatus{User: alice}}, nil, http.StatusForbidden},
		"without_a_name":               {faultyReviewer{status: authenticationv1.TokenReviewStatus{Authenticated: true}}, nil, http.StatusForbidden},
		"refused_with_the_token":       {faultyReviewer{status: authenticationv1.TokenReviewStatus{Error: "unknown token " + bearer}}, nil, http.StatusForbidden},
		"an_error_with_the_token":      {faultyReviewer{err: errors.New("cannot decode " + bearer)}, nil, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, &Tokens{Audiences: c.audiences}, func(config *Config) { config.Client = &c.reviewer })
			browser := w.browser()
			status, shown := w.present(browser, bearer)
			if status != c.want || strings.Contains(shown, bearer) || strings.Contains(w.log.String(), bearer) {
				t.Errorf("HTTP %d, %s", status, shown)
			}
			if w.failed != nil && strings.Contains(w.failed.Error(), bearer) {
				t.Errorf("the error is %v", w.failed)
			}
			if c.want != http.StatusOK {
				w.out(browser)
			}
		})
	}
}

func TestToken_asks_nothing_without_a_valid_link(t *testing.T) {
	reviewer := &faultyReviewer{status: authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "alice"}}}
	w := newWorld(t, nil, &Tokens{}, func(c *Config) { c.Client = reviewer })
	old := w.link()
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	for token, want := range map[string]int{"": http.StatusBadRequest, "x.y.z": http.StatusBadRequest, old: http.StatusGone} {
		if status, shown := w.post(w.browser(), TokenPath, url.Values{link.Parameter: {token}, BearerField: {"b"}}); status != want || !errors.Is(w.failed, map[int]error{http.StatusGone: link.ErrExpired, http.StatusBadRequest: link.ErrForged}[want]) {
			t.Errorf("HTTP %d, %s (%v)", status, shown, w.failed)
		}
	}
	// Nor is the token taken from an address, where it would end in logs.
	if status, _ := w.post(w.browser(), TokenPath+"?"+url.Values{link.Parameter: {w.link()}, BearerField: {"b"}}.Encode(), nil); status != http.StatusBadRequest {
		t.Errorf("HTTP %d", status)
	}
	if reviewer.asked != 0 {
		t.Error("the API server was asked")
	}
}
