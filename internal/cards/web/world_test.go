package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
)

// world is an open request in a namespace of its own, the provider, and the page.
type world struct {
	t         testing.TB
	namespace string
	answertest.Open
	provider *answertest.Provider
	key      link.Key
	clock    *testingclock.FakePassiveClock
	server   *httptest.Server
	// before is called with what the page is about to create, and what it returns is what the page gets.
	before func(object client.Object) error
	// secrets are what must be in no log and no response.
	secrets []string

	mutex sync.Mutex
	log   bytes.Buffer
}

func newWorld(t testing.TB, changes ...func(*world, *Config)) *world {
	t.Helper()
	now := time.Now()
	w := &world{
		t: t, provider: answertest.NewProvider(t), clock: testingclock.NewFakePassiveClock(now),
		secrets: []string{answertest.Old, answertest.Good, answertest.Bad}, before: func(client.Object) error { return nil },
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-"}}
	w.must(admin.Create(t.Context(), namespace))
	w.namespace = namespace.Name
	w.Open = answertest.NewOpen(now).In(w.namespace)
	w.must(w.Create(t.Context(), admin))
	secret := make([]byte, link.MinKey)
	_, _ = rand.Read(secret)
	var err error
	w.key, err = link.NewKey(secret)
	w.must(err)
	w.server = httptest.NewUnstartedServer(nil)
	config := Config{
		BaseURL: "http://" + w.server.Listener.Addr().String(), Key: w.key, Client: w.client(), Catalog: w.provider.Catalog, Prober: w.provider.Prober,
		Tokens: &TokenLogin{}, Log: funcr.NewJSON(w.write, funcr.Options{}), Clock: w.clock,
	}
	for _, change := range changes {
		change(w, &config)
	}
	w.server.Config.Handler, err = New(config)
	w.must(err)
	w.server.Start()
	t.Cleanup(func() {
		w.server.Close()
		w.hides("the log", w.logged())
	})
	return w
}

// client is one of somebody who may do what Config.Client says, and nothing else.
func (w *world) client() client.Client {
	w.t.Helper()
	rights := func(group string, verb []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verb}
	}
	ours := agents.GroupVersion.Group
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "page-" + w.namespace}, Rules: []rbacv1.PolicyRule{
		rights(ours, []string{"get"}, "credentialupdaterequests", "agentidentities", "sessionuseridentities"),
		rights(ours, []string{"list"}, "agentsessions", "agentclasses"),
		rights("", []string{"get", "patch"}, "secrets"),
		rights("authentication.k8s.io", []string{"create"}, "tokenreviews"),
		rights("authorization.k8s.io", []string{"create"}, "subjectaccessreviews"),
	}}
	w.must(admin.Create(w.t.Context(), role))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
	}
	w.must(admin.Create(w.t.Context(), binding))
	config := rest.CopyConfig(apiServer)
	config.Impersonate.UserName = role.Name
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	w.must(err)
	w.until(role.Name, "create", "authorization.k8s.io", "subjectaccessreviews", true)
	return interceptor.NewClient(c, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if err := w.before(object); err != nil {
			return err
		}
		return c.Create(ctx, object, options...)
	}})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(line string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.log.WriteString(line + "\n")
}

func (w *world) logged() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.log.String()
}

// audited fails when no line of the audit log has all the words.
func (w *world) audited(words ...string) {
	w.t.Helper()
	for line := range strings.Lines(w.logged()) {
		if strings.Contains(line, `"audit":true`) && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return
		}
	}
	w.t.Errorf("no line of the audit log has all of %q:\n%s", words, w.logged())
}

// hides fails when a text has a value in it.
func (w *world) hides(what, text string) {
	w.t.Helper()
	for _, secret := range w.secrets {
		if strings.Contains(text, secret) {
			w.t.Errorf("%s holds a value:\n%s", what, text)
		}
	}
}

// until waits until the API server says that somebody may, or that they may not: roles come to its authorizer by a
// watch.
func (w *world) until(user, verb, group, resource string, may bool) {
	w.t.Helper()
	for {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:serviceaccounts:" + w.namespace},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb, Namespace: w.namespace, Name: answertest.Request}}}
		w.must(admin.Create(w.t.Context(), review))
		if review.Status.Allowed == may {
			return
		}
	}
}

// person is a browser, and the account of whoever sits before it.
type person struct {
	*world
	account string
	token   string
	browser *http.Client
	// last is the response that came last, and body its body.
	last *http.Response
	body string
}

// arrives is a person whom the cluster knows, with rules for them.
func (w *world) arrives(rules ...rbacv1.PolicyRule) *person {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "person-"}}
	w.must(admin.Create(w.t.Context(), account))
	p := w.stranger()
	p.account = "system:serviceaccount:" + w.namespace + ":" + account.Name
	if len(rules) > 0 {
		w.permits(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account.Name}, rules...)
	}
	request := &authenticationv1.TokenRequest{}
	w.must(admin.SubResource("token").Create(w.t.Context(), account, request))
	p.token = request.Status.Token
	w.secrets = append(w.secrets, p.token)
	return p
}

func (w *world) permits(who rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "answers-"}, Rules: rules}
	w.must(admin.Create(w.t.Context(), role))
	w.must(admin.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: role.Name}, Subjects: []rbacv1.Subject{who},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}))
}

// answers is the rule of whoever may answer this request.
func answers(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{agents.GroupVersion.Group}, Resources: []string{"credentialupdaterequests"}, ResourceNames: []string{answertest.Request}, Verbs: verbs,
	}
}

// enters is somebody who may answer, and has logged in.
func (w *world) enters() *person {
	w.t.Helper()
	p := w.arrives(answers(Verb))
	w.until(p.account, Verb, agents.GroupVersion.Group, "credentialupdaterequests", true)
	p.logsIn(http.StatusOK)
	return p
}

// stranger is a browser in which nobody is logged in.
func (w *world) stranger() *person {
	jar, err := cookiejar.New(nil)
	w.must(err)
	return &person{world: w, browser: &http.Client{Jar: jar}}
}

// session is the cookie of whoever has logged in.
func (p *person) session() *http.Cookie {
	p.t.Helper()
	at, err := url.Parse(p.server.URL)
	p.must(err)
	cookies := p.browser.Jar.Cookies(at)
	i := slices.IndexFunc(cookies, func(cookie *http.Cookie) bool { return cookie.Name == "c5c3-cards-session" })
	if i < 0 {
		p.t.Fatalf("there is no session in %v", cookies)
	}
	return cookies[i]
}

// link is a link to the request, good for half an hour from a time on.
func (w *world) link(at time.Time, changes ...func(*link.Claims)) string {
	w.t.Helper()
	c := link.Claims{
		Audience: w.server.URL, Request: types.NamespacedName{Namespace: w.namespace, Name: answertest.Request}, UID: w.Request.UID,
		IssuedAt: at, Expires: at.Add(30 * time.Minute),
	}
	if c.Audience == "" {
		c.Audience = "http://" + w.server.Listener.Addr().String()
	}
	for _, change := range changes {
		change(&c)
	}
	token, err := w.key.Sign(c)
	w.must(err)
	return token
}

// do sends a request and fails when the answer has another status, or holds a value.
func (p *person) do(status int, request *http.Request) {
	p.t.Helper()
	response, err := p.browser.Do(request)
	p.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	p.must(err)
	p.last, p.body = response, string(body)
	if _, below, styled := strings.Cut(p.body, "</style>"); styled {
		p.body = below
	}
	if response.StatusCode != status {
		p.t.Fatalf("%s %s is answered with %s and not %d:\n%s", request.Method, request.URL.Path, response.Status, status, p.body)
	}
	p.hides("the page", string(body))
	for name, values := range response.Header {
		p.hides("the header "+name, strings.Join(values, " "))
	}
	p.hides("the address", response.Request.URL.String())
}

func (p *person) request(method, path, body string) *http.Request {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.server.URL+path, strings.NewReader(body))
	p.must(err)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return request
}

func (p *person) opens(status int, token string) {
	p.t.Helper()
	p.do(status, p.request(http.MethodGet, link.Path+"?"+url.Values{link.Parameter: {token}}.Encode(), ""))
}

func (p *person) logsIn(status int) {
	p.t.Helper()
	p.do(status, p.request(http.MethodPost, login.TokenPath, url.Values{login.BearerField: {p.token}, link.Parameter: {p.link(p.clock.Now())}}.Encode()))
}

// submits enters a value; more fields stand beside it.
func (p *person) submits(status int, value string, more ...string) {
	p.t.Helper()
	p.do(status, p.form(value, more...))
}

func (p *person) form(value string, more ...string) *http.Request {
	p.t.Helper()
	form := url.Values{link.Parameter: {p.link(p.clock.Now())}, valueField: {value}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return p.request(http.MethodPost, link.Path, form.Encode())
}

// reads fails when a text is not on the page.
func (p *person) reads(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			p.t.Errorf("nobody reads %q on:\n%s", text, p.body)
		}
	}
}

// misses fails when a text is on the page.
func (p *person) misses(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			p.t.Errorf("%q stands on:\n%s", text, p.body)
		}
	}
}

// stored fails when the Secret holds another value, or anything but its other key has changed.
func (w *world) stored(want string) {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.must(admin.Get(context.Background(), client.ObjectKeyFromObject(w.Secret), secret))
	if got := string(secret.Data[answertest.Key]); got != want || string(secret.Data["other"]) != "left-alone" || len(secret.Data) != 2 {
		w.t.Errorf("the Secret holds %q", secret.Data)
	}
}

// sets changes the request's status, as the operator does.
func (w *world) sets(change func(*agents.CredentialUpdateRequestStatus)) {
	w.t.Helper()
	before := w.Request.DeepCopy()
	change(&w.Request.Status)
	w.must(admin.Status().Patch(w.t.Context(), w.Request, client.MergeFrom(before)))
}

// faulty fails what the page is about to create of a kind.
func faulty[T client.Object](object client.Object) error {
	if _, of := object.(T); of {
		return errors.New("injected")
	}
	return nil
}

// undecided answers SubjectAccessReviews as an API server does one of whose authorizers failed.
type undecided struct{ client.Client }

func (u undecided) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if review, of := object.(*authorizationv1.SubjectAccessReview); of {
		review.Status.EvaluationError = "injected"
		return nil
	}
	return u.Client.Create(ctx, object, options...)
}
