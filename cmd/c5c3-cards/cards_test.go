package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
)

const (
	namespace = answertest.Namespace
	audience  = "c5c3-cards"
	newValue  = "a-new-value-of-this-test"
)

// TestCards runs the process with the rights of config/cards and nothing more, and goes all the way: an open
// request, its card, the link, the login, the answer, the end.
func TestCards(t *testing.T) {
	var logged syncBuffer
	ctrl.SetLogger(logr.Discard())
	kubeConfig := dependenciestest.StartAPIServer(t, "../..")
	if _, err := envtest.InstallCRDs(kubeConfig, envtest.CRDInstallOptions{Paths: []string{"../../config/crd/agentprimitives"}, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, kubeConfig)
	w.grant()

	events := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e, err := cehttp.NewEventFromHTTPRequest(r)
		if err != nil {
			t.Errorf("a CloudEvent: %v", err)
			return
		}
		var data struct{ Link string }
		if err := e.DataAs(&data); err != nil {
			t.Errorf("its data: %v", err)
		}
		events <- e.Type() + " " + data.Link
	}))
	t.Cleanup(receiver.Close)

	page, probes, metrics := freeAddress(t), freeAddress(t), freeAddress(t)
	certificate, key := selfSigned(t)
	configuration := write(t, "config.yaml", fmt.Sprintf("externalURL: https://%s\nlogin: {kubernetes: {audiences: [%s]}}\nwebhook: {url: %q}\nevent: true\n", page, audience, receiver.URL))
	o, err := parse([]string{
		"--config=" + configuration, "--link-key-file=" + linkKey(t), "--egress-allow=127.0.0.1", "--page-bind-address=" + page,
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes, "--tls-cert-file=" + certificate, "--tls-key-file=" + key,
		"--leader-elect", "--leader-election-namespace=" + dependenciestest.OperatorNamespace, "--log-level=DEBUG",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctrl.SetLogger(o.Logger(io.MultiWriter(t.Output(), &logged)))
	mgr, err := newManager(w.asCards(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the process ended: %v", err)
		}
	})
	w.eventually("/readyz says ok", func() error { return get("http://" + probes + "/readyz") })

	open := answertest.NewOpen(time.Now())
	if err := open.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	request := open.Request
	link, ok := strings.CutPrefix(<-events, "io.c5c3.credentialupdaterequest.asked ")
	if !ok || !strings.HasPrefix(link, "https://"+page+"/link?") {
		t.Fatalf("the card has the link %q", link)
	}
	w.eventually("the delivery is recorded", func() error {
		w.read(request)
		if !meta.IsStatusConditionTrue(request.Status.Conditions, agents.ConditionCardDelivered) || !strings.Contains(request.Status.InteractionRef, "event:") {
			return fmt.Errorf("the status is %+v", request.Status)
		}
		return nil
	})

	w.answer(link, page)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(open.Secret), open.Secret); err != nil || string(open.Secret.Data[answertest.Key]) != newValue || string(open.Secret.Data["other"]) != "left-alone" {
		t.Errorf("the Secret holds %q, %v", open.Secret.Data, err)
	}

	// A person's own credential, of which the identity is gone.
	personal := answertest.NewOpen(time.Now()).Request
	personal.Name, personal.UID, personal.CreationTimestamp = "cur-2", "", metav1.Time{}
	status := personal.Status
	w.create(personal)
	w.status(personal, func(s *agents.CredentialUpdateRequestStatus) {
		*s = status
		s.ResolvedCredential.IdentityKind, s.ResolvedCredential.Name = agents.KindSessionUserIdentity, answertest.Session
	})
	w.visit(strings.TrimPrefix(<-events, "io.c5c3.credentialupdaterequest.asked "), nil, http.StatusConflict, "no such credential")

	w.status(request, func(s *agents.CredentialUpdateRequestStatus) {
		s.Phase, s.Reason = agents.PhaseFulfilled, "The credential was replaced."
	})
	if e := <-events; e != "io.c5c3.credentialupdaterequest.settled " {
		t.Errorf("the end is %q", e)
	}
	w.eventually("the messages are counted", func() error {
		return contains("http://"+metrics+"/metrics", `c5c3_card_messages_total{action="close",channel="Webhook",outcome="delivered"} 1`)
	})
	if strings.Contains(logged.String(), newValue) || strings.Contains(logged.String(), strings.TrimPrefix(link, "https://"+page+"/link?token=")) {
		t.Error("the log holds the value or the link")
	}
	w.eventually("every right is used that config/cards grants", func() error {
		for granted := range w.granted {
			if _, used := w.used.Load(granted); !used {
				return errors.New(granted + " is not")
			}
		}
		return nil
	})
	if strings.Contains(logged.String(), "forbidden") {
		t.Error("config/cards grants too little; the log says what was forbidden")
	}
}

func TestCards_does_not_start_on_half_a_configuration(t *testing.T) {
	good, key := write(t, "config.yaml", "event: true\n"), linkKey(t)
	for name, c := range map[string]struct {
		arguments []string
		wrong     string
	}{
		"without_a_configuration": {[]string{"--config=/nowhere/config.yaml", "--link-key-file=" + key}, "configuration"},
		"with_a_typing_error":     {[]string{"--config=" + write(t, "config.yaml", "evnt: true\n"), "--link-key-file=" + key}, "unknown field"},
		"without_a_key":           {[]string{"--config=" + good, "--link-key-file=/nowhere/key"}, "link key"},
		"with_a_short_key":        {[]string{"--config=" + good, "--link-key-file=" + write(t, "key", "c2hvcnQ=")}, "at least 32"},
		"with_a_wrong_provider":   {[]string{"--config=" + good, "--link-key-file=" + key, "--provider-catalog=" + filepath.Dir(write(t, "wiki.yaml", "id: other\n"))}, "provider"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(c.arguments, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := newManager(&rest.Config{Host: "https://127.0.0.1:1"}, o); err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("it is answered with %v", err)
			}
		})
	}
}

// world is an API server with what a request needs.
type world struct {
	*testing.T
	client.Client
	config  *rest.Config
	browser *http.Client
	// granted are the rights of config/cards, and used those that were used, as "VERB RESOURCE.GROUP".
	granted map[string]bool
	used    sync.Map
}

func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, agents.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, Client: kube, config: config, granted: map[string]bool{},
		browser: &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, //nolint:gosec // its certificate is this test's
	}
	for _, name := range []string{namespace, dependenciestest.OperatorNamespace} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return w
}

func (w *world) create(object client.Object) {
	w.Helper()
	if err := w.Create(w.Context(), object); err != nil {
		w.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// grant creates the roles and bindings of config/cards, opens the namespace's Secrets to it, and gives alice the right
// to answer.
func (w *world) grant() {
	w.Helper()
	files, err := filepath.Glob("../../config/cards/*role*.yaml")
	if err != nil || len(files) != 6 {
		w.Fatalf("the roles of config/cards: %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yamlutil.Unmarshal(content, &object.Object); err != nil {
			w.Fatal(err)
		}
		w.create(object)
		if object.GetName() == "c5c3-cards-answerer" {
			continue // that one is for people
		}
		role := &rbacv1.Role{} // a ClusterRole has its rules in the same place, and a binding has none
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			w.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					w.granted[verb+" "+resource+"."+rule.APIGroups[0]] = true
				}
			}
		}
	}
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c5c3-cards-secrets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "c5c3-cards-secrets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: dependenciestest.OperatorNamespace, Name: "c5c3-cards"}},
	})
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alice"}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "answerers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "c5c3-cards-answerer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "alice"}},
	})
}

// asCards is the ServiceAccount, whose requests are written down.
func (w *world) asCards() *rest.Config {
	cards := rest.CopyConfig(w.config)
	cards.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			w.used.Store(right(r), true)
			if r.URL.Query().Get("sendInitialEvents") != "" { // a watch in place of a list, where the API server can do that
				w.used.Store(strings.Replace(right(r), "watch ", "list ", 1), true)
			}
			return next.RoundTrip(r)
		})
	})
	cards.Impersonate.UserName = "system:serviceaccount:" + dependenciestest.OperatorNamespace + ":c5c3-cards"
	return cards
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// right is what a request to the API server needs. Of one that is about no resource it is nonsense that nobody grants.
func right(r *http.Request) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if path[0] == "apis" && len(path) > 1 {
		group, path = path[1], path[1:]
	}
	path = path[min(2, len(path)):] // the version
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	if len(path) == 0 {
		return ""
	}
	resource, named := path[0], len(path) > 1
	if len(path) > 2 {
		resource += "/" + path[2]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	switch {
	case verb != "":
	case named:
		verb = "get"
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	default:
		verb = "list"
	}
	return verb + " " + resource + "." + group
}

func (w *world) read(request *agents.CredentialUpdateRequest) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		w.Fatal(err)
	}
}

func (w *world) status(request *agents.CredentialUpdateRequest, change func(*agents.CredentialUpdateRequestStatus)) {
	w.Helper()
	original := request.DeepCopy()
	change(&request.Status)
	if err := w.Status().Patch(w.Context(), request, client.MergeFrom(original)); err != nil {
		w.Fatal(err)
	}
}

// answer follows the link as alice's browser does, logs in with a token, and enters the new value.
func (w *world) answer(link, page string) {
	w.Helper()
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	alice := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alice"}}
	if err := w.SubResource("token").Create(w.Context(), alice, review); err != nil {
		w.Fatal(err)
	}
	at, err := url.Parse(link)
	if err != nil {
		w.Fatal(err)
	}
	token := at.Query()["token"]
	w.visit(link, nil, http.StatusOK, "Sign in")
	w.visit("https://"+page+"/login/token", url.Values{"token": token, "bearer": {review.Status.Token}}, http.StatusOK, "needs a new credential")
	w.visit("https://"+page+"/link", url.Values{"token": token, "new-value": {newValue}}, http.StatusOK, "stored")
}

// visit gets an address, or posts a form to it.
func (w *world) visit(address string, form url.Values, status int, want string) {
	w.Helper()
	ask := func() (*http.Response, error) { return w.browser.Get(address) }
	if form != nil {
		ask = func() (*http.Response, error) { return w.browser.PostForm(address, form) }
	}
	response, err := ask()
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status || !strings.Contains(string(body), want) || strings.Contains(string(body), newValue) {
		w.Fatalf("%s: HTTP %d, %v, want %d and %q: %s", address, response.StatusCode, err, status, want, body)
	}
}

func (w *world) eventually(what string, holds func() error) {
	w.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("after two minutes it does not hold that %s: %v", what, err)
		}
	}
}

func get(address string) error { return contains(address, "") }

func contains(address, text string) error {
	response, err := http.Get(address) //nolint:gosec // an address of this test
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("HTTP %d", response.StatusCode)
	case !strings.Contains(string(body), text):
		return errors.New("it does not say " + text)
	}
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// selfSigned writes a certificate of the page's own and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}
