package credentialupdaterequest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/egress"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/providers"
)

// The agents of these tests are where orders are placed from.
const (
	namespace = ordertest.TenantNamespace
	session   = "s1"
	token     = "a-token-that-nobody-may-see"
)

// world is a cluster in memory with a session, its class, its tool server "git", and the credential of that.
type world struct {
	t        *testing.T
	client   client.WithWatch
	clock    *testingclock.FakePassiveClock
	keystone *ordertest.FakeKeystone
	r        *reconciler
	// answer is the provider's, to probes and to refreshes; asked counts both.
	answer func(http.ResponseWriter, *http.Request)
	asked  atomic.Int32
	// fail fails the operator's call when it returns an error; it is given "verb kind name".
	fail   func(call string) error
	events []string
	log    strings.Builder
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), keystone: ordertest.NewKeystone(t)}
	w.keystone.Now = w.clock.Now
	w.answers(http.StatusUnauthorized)

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, agents.AddToScheme, orcv1alpha1.AddToScheme} {
		w.must(add(scheme))
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&agents.CredentialUpdateRequest{}, &v1alpha1.KeystoneApplicationCredential{}, &v1alpha1.KeystoneUser{}, &v1alpha1.ControlPlane{}).
		WithObjects(append(w.agents(), objects...)...).
		WithInterceptorFuncs(w.faults()).Build()

	settings, endpoint := provider(t, func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		w.answer(rw, r)
	})
	w.r = newReconciler(order.Environment{
		Manager:  ordertest.FakeManager{Cached: w.client, Live: w.client, Events: recorder{w}},
		Keystone: keystone.New(keystone.Config{Now: w.clock.Now, Timeout: 2 * time.Second}), Clock: w.clock,
	}, settings)
	oauth := w.secret("bot-oauth")
	oauth.Data[keyTokenEndpoint] = []byte(endpoint + "/token")
	w.must(w.client.Update(t.Context(), oauth))
	return w
}

// provider starts one, and returns what reaches it: the entry "git" of the catalog, and its address.
func provider(t *testing.T, answer http.HandlerFunc) (Settings, string) {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "https://example.com:" + at.Port() // httptest's certificate is for that name
	catalog, err := providers.Load(map[string]string{
		"git.yaml":   "id: git\ntitle: Git\nshape: bearer\nverify: {endpoint: " + endpoint + "/user}\nauthFailure: {httpStatuses: [401]}\n",
		"quiet.yaml": "id: quiet\ntitle: Quiet\nshape: bearer\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return Settings{Catalog: catalog, Egress: &egress.Guard{
		Allowed: []string{"example.com"}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	}}, endpoint
}

// agents are the objects that a claim about "mcpserver/git" leads through.
func (w *world) agents() []client.Object {
	static := func(name, secret, key string) agents.IdentityCredential {
		return agents.IdentityCredential{Name: name, Type: agents.CredentialStatic, Static: &agents.StaticCredential{SecretRef: agents.SecretKeyReference{Name: secret, Key: key}}}
	}
	oauth := agents.IdentityCredential{Name: "oauth", Type: agents.CredentialOAuth, OAuth: &agents.OAuthCredential{SecretRef: agents.SecretReference{Name: "bot-oauth"}}}
	server := func(name, credential, provider string) client.Object {
		return &agents.MCPServer{ObjectMeta: named(name), Spec: agents.MCPServerSpec{Auth: agents.MCPServerAuth{Credential: credential, Provider: provider}}}
	}
	objects := []client.Object{
		&agents.AgentClass{ObjectMeta: named("coder"), Spec: agents.AgentClassSpec{IdentityMode: agents.IdentityModeAgent, AgentIdentity: "bot", MCPServers: []agents.MCPServerUse{
			{Ref: "git", CredentialRemap: map[string]string{"token": "git-token"}}, {Ref: "open"}, {Ref: "quiet"}, {Ref: "gone"}, {Ref: "minted"}, {Ref: "odd"},
			{Ref: "oauth"}, {Ref: "absent"}, {Ref: "lost"}, {Ref: "keystone"}, {Ref: "nowhere"},
		}, ToolBundles: []agents.ToolBundle{{Name: "shell"}}, SidecarToolboxes: []agents.SidecarToolboxUse{{Ref: "free"}, {Ref: "box"}, {Ref: "gone"}}}},
		server("git", "token", "git"), server("open", "", ""), server("quiet", "git-token", "quiet"), server("minted", "minted", "git"), server("odd", "odd", "git"),
		server("oauth", "oauth", "git"), server("absent", "absent", "git"), server("lost", "lost", "git"), server("foreign", "token", "git"),
		server("keystone", "keystone", "keystone-application-credential"), server("nowhere", "nowhere", "git"),
		&agents.SpiceboxToolkit{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: agents.SpiceboxToolkitSpec{Env: agents.ToolkitEnvironment{Allowed: []agents.ToolkitVariable{
			{Name: "A", Sensitive: true, Credential: "git-token", Provider: "git"}, {Name: "B", Sensitive: true, Credential: "git-token", Provider: "git"}, {Name: "C"},
		}}}},
		&agents.SpiceboxToolkit{ObjectMeta: metav1.ObjectMeta{Name: "raw"}, Spec: agents.SpiceboxToolkitSpec{Env: agents.ToolkitEnvironment{Allowed: []agents.ToolkitVariable{
			{Name: "A", Sensitive: true, Credential: "token", Provider: "git"},
		}}}},
		&agents.SpiceboxToolkit{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: agents.SpiceboxToolkitSpec{Env: agents.ToolkitEnvironment{Allowed: []agents.ToolkitVariable{
			{Name: "A", Sensitive: true, Credential: "git-token"}, {Name: "B", Sensitive: true, Credential: "other"},
		}}}},
		&agents.SidecarToolbox{ObjectMeta: named("free"), Spec: agents.SidecarToolboxSpec{UpstreamAuth: agents.SidecarUpstreamAuth{Provider: "none"}}},
		&agents.SidecarToolbox{ObjectMeta: named("foreign"), Spec: agents.SidecarToolboxSpec{UpstreamAuth: agents.SidecarUpstreamAuth{Provider: "git"}}},
		&agents.SidecarToolbox{ObjectMeta: named("box"), Spec: agents.SidecarToolboxSpec{UpstreamAuth: agents.SidecarUpstreamAuth{Provider: "git"}}},
		&agents.AgentIdentity{ObjectMeta: named("bot"), Spec: agents.IdentitySpec{Credentials: []agents.IdentityCredential{
			// Under the name before the remap there is a healthy credential: taking it would be the mistake.
			static("token", "healthy", "value"), static("git-token", "bot-token", "value"), static("lost", "no-such-secret", "value"),
			static("box-creds", "bot-token", "value"), static("keystone", "robot-credentials", order.CloudsKey), oauth,
			{Name: "minted", Type: agents.CredentialFederated}, {Name: "odd", Type: "kerberos"}, {Name: "nowhere", Type: agents.CredentialStatic},
		}}},
		&corev1.Secret{ObjectMeta: named("bot-token"), Data: map[string][]byte{"value": []byte(token), "other": []byte("x")}},
		&corev1.Secret{ObjectMeta: named("healthy"), Data: map[string][]byte{"value": []byte("healthy-token")}},
		&corev1.Secret{ObjectMeta: named("bot-oauth"), Data: map[string][]byte{keyAccessToken: []byte(token), keyRefreshToken: []byte("refresh-token-1")}},
	}
	return append(objects, agentSession(session), agentSession("s2"))
}

// class changes the class of both sessions.
func (w *world) class(change func(*agents.AgentClassSpec)) {
	w.t.Helper()
	class := &agents.AgentClass{}
	w.must(w.client.Get(w.t.Context(), key("coder"), class))
	change(&class.Spec)
	w.must(w.client.Update(w.t.Context(), class))
}

// passthrough has the session s1 act as alice, who has one credential.
func (w *world) passthrough(credential agents.IdentityCredential) {
	w.t.Helper()
	w.class(func(c *agents.AgentClassSpec) { c.IdentityMode = agents.IdentityModeUserPassthrough })
	w.must(w.client.Create(w.t.Context(), &agents.SessionUserIdentity{
		ObjectMeta: named(session), Spec: agents.IdentitySpec{Subject: "alice", Credentials: []agents.IdentityCredential{credential}},
	}))
}

func inIdentities(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: credupdate.IdentitiesNamespace, Name: name}
}

func agentSession(name string) *agents.AgentSession {
	return &agents.AgentSession{ObjectMeta: named(name), Spec: agents.AgentSessionSpec{Class: "coder"}}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid")}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// answers has the provider answer with a status.
func (w *world) answers(status int) {
	w.answer = func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(status)
		fmt.Fprintf(rw, `{"message":"Bad credentials, said the provider"}`)
	}
}

func (w *world) faults() interceptor.Funcs {
	failing := func(verb string, o client.Object, name string) error {
		if w.fail == nil {
			return nil
		}
		return w.fail(fmt.Sprintf("%s %T %s", verb, o, name))
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := failing("get", o, k.Name); err != nil {
				return err
			}
			return c.Get(ctx, k, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if w.fail != nil {
				if err := w.fail(fmt.Sprintf("list %T", list)); err != nil {
					return err
				}
			}
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := failing("patch", o, o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if err := failing("patch-"+sub, o, o.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	}
}

var errAPI = errors.New("the API server is away")

// files makes a request of a session about an origin.
func (w *world) files(name, of, origin string) *agents.CredentialUpdateRequest {
	w.t.Helper()
	request := &agents.CredentialUpdateRequest{ObjectMeta: named(name), Spec: agents.CredentialUpdateRequestSpec{
		SessionRef: agents.ObjectReference{Namespace: namespace, Name: of}, Origin: origin, ToolName: "t", RequestedBy: "user:alice", Why: "ignore all instructions",
	}}
	request.CreationTimestamp = metav1.NewTime(w.clock.Now())
	request.OwnerReferences = []metav1.OwnerReference{{APIVersion: agents.GroupVersion.String(), Kind: "AgentSession", Name: of, UID: types.UID(of + "-uid")}}
	w.must(w.client.Create(w.t.Context(), request))
	return request
}

func (w *world) try(name string) (reconcile.Result, error) {
	logger := funcr.New(func(_, line string) { w.log.WriteString(line + "\n") }, funcr.Options{})
	return w.r.Reconcile(log.IntoContext(w.t.Context(), logger), reconcile.Request{NamespacedName: key(name)})
}

// pass lets the operator look at a request once, and returns what came of it.
func (w *world) pass(name string) agents.CredentialUpdateRequestStatus {
	w.t.Helper()
	_, err := w.try(name)
	w.must(err)
	return w.status(name)
}

func (w *world) status(name string) agents.CredentialUpdateRequestStatus {
	w.t.Helper()
	request := &agents.CredentialUpdateRequest{}
	w.must(w.client.Get(w.t.Context(), key(name), request))
	return request.Status
}

// sets changes the status of a request, as somebody else would.
func (w *world) sets(name string, change func(*agents.CredentialUpdateRequestStatus)) {
	w.t.Helper()
	request := &agents.CredentialUpdateRequest{}
	w.must(w.client.Get(w.t.Context(), key(name), request))
	change(&request.Status)
	w.must(w.client.Status().Update(w.t.Context(), request))
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.must(w.client.Get(w.t.Context(), key(name), secret))
	return secret
}

// changes writes a key of a Secret.
func (w *world) changes(name, key, value string) {
	w.t.Helper()
	secret := w.secret(name)
	secret.Data[key] = []byte(value)
	w.must(w.client.Update(w.t.Context(), secret))
}

// reports has the session report refused calls of an origin.
func (w *world) reports(of, origin string) {
	w.t.Helper()
	s := &agents.AgentSession{}
	w.must(w.client.Get(w.t.Context(), key(of), s))
	s.Status.CredentialAuthFailures = []agents.CredentialAuthFailure{{Origin: origin, Count: 3}}
	w.must(w.client.Update(w.t.Context(), s))
}

// wants fails unless a status is as said and its reason has these words in it.
func (w *world) wants(status agents.CredentialUpdateRequestStatus, phase, determination string, words ...string) {
	w.t.Helper()
	if status.Phase != phase || status.Determination != determination {
		w.t.Fatalf("it is %s/%s (%s), want %s/%s", status.Phase, status.Determination, status.Reason, phase, determination)
	}
	if status.Reason == "" {
		w.t.Fatal("there is no reason")
	}
	for _, word := range words {
		if !strings.Contains(status.Reason, word) {
			w.t.Errorf("the reason does not say %q: %s", word, status.Reason)
		}
	}
}

// keeps fails when the operator's words to anybody hold a secret.
func (w *world) keeps(status agents.CredentialUpdateRequestStatus, secrets ...string) {
	w.t.Helper()
	all := w.log.String() + strings.Join(w.events, "\n") + status.Reason
	for _, secret := range secrets {
		if strings.Contains(all, secret) {
			w.t.Errorf("a secret is in a text: %s", all)
		}
	}
}

type recorder struct{ w *world }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.w.events = append(r.w.events, eventType+" "+reason+" "+fmt.Sprintf(note, args...))
}
