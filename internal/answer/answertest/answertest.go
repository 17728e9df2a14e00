// Package answertest makes open requests, and a provider that is asked over HTTP, for tests of what answers
// them.
package answertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/providers"
)

// What the request of World is about. Old is the value that the Secret holds, and Good and Bad are two that
// look as they should, of which the provider accepts the one.
const (
	Namespace = "tenant-a"
	Request   = "cur-session-1-abcde"
	Session   = "session-1"
	Identity  = "bot"
	Secret    = "bot-token"
	Key       = "token"

	Old  = "tok_000000000000"
	Good = "tok_111111111111"
	Bad  = "tok_222222222222"
)

// RequestKey is the request's.
var RequestKey = types.NamespacedName{Namespace: Namespace, Name: Request}

// Open is a request that opened at a time and asks a person for a new value, and what it leads to.
type Open struct {
	Request  *v1alpha1.CredentialUpdateRequest
	Identity *v1alpha1.AgentIdentity
	Secret   *corev1.Secret
}

// NewOpen makes one.
func NewOpen(at time.Time) Open {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID(name + "-uid")}
	}
	o := Open{
		Secret: &corev1.Secret{ObjectMeta: meta(Secret), Data: map[string][]byte{Key: []byte(Old), "other": []byte("left-alone")}},
		Identity: &v1alpha1.AgentIdentity{ObjectMeta: meta(Identity), Spec: v1alpha1.IdentitySpec{Credentials: []v1alpha1.IdentityCredential{{
			Name: "git-token", Type: v1alpha1.CredentialStatic, Static: &v1alpha1.StaticCredential{SecretRef: v1alpha1.SecretKeyReference{Name: Secret, Key: Key}},
		}}}},
		Request: &v1alpha1.CredentialUpdateRequest{ObjectMeta: meta(Request), Spec: v1alpha1.CredentialUpdateRequestSpec{
			SessionRef: v1alpha1.ObjectReference{Namespace: Namespace, Name: Session},
			Origin:     "mcpserver/git", ToolName: "git_create_issue", RequestedBy: "user:alice", Why: "Please, I need \u202eit NOW\u200b.",
		}},
	}
	o.Request.CreationTimestamp = metav1.NewTime(at)
	o.Request.Status = v1alpha1.CredentialUpdateRequestStatus{
		Phase: v1alpha1.PhaseOpen, Determination: v1alpha1.DeterminationRejectedVerified, Reason: "Git refused the credential (401 Unauthorized).",
		ResolvedCredential: &v1alpha1.ResolvedCredential{
			IdentityKind: v1alpha1.KindAgentIdentity, Namespace: Namespace, Name: Identity, Credential: "git-token", ProviderID: "git",
		},
		CredentialSecretRef: &v1alpha1.ObjectReference{Namespace: Namespace, Name: Secret}, CredentialSecretKey: Key,
		CredentialSecretObservedHash: credupdate.Digest(o.Secret.Data, Key), OpenedAt: &metav1.Time{Time: at},
	}
	return o
}

// In moves it all into another namespace.
func (o Open) In(namespace string) Open {
	for _, object := range o.Objects() {
		object.SetNamespace(namespace)
	}
	o.Request.Spec.SessionRef.Namespace = namespace
	o.Request.Status.ResolvedCredential.Namespace = namespace
	o.Request.Status.CredentialSecretRef.Namespace = namespace
	return o
}

// Objects are all of them.
func (o Open) Objects() []client.Object { return []client.Object{o.Request, o.Identity, o.Secret} }

// Create creates them in an API server, which gives out UIDs and keeps the status apart.
func (o Open) Create(ctx context.Context, c client.Client) error {
	status := o.Request.Status
	for _, object := range o.Objects() {
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetCreationTimestamp(metav1.Time{})
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	o.Request.Status = status
	return c.Status().Update(ctx, o.Request)
}

// Provider is one that runs on this machine, and the catalog's entry "git".
type Provider struct {
	Catalog *providers.Catalog
	Prober  providers.Prober
	// Asked counts how often it was asked.
	Asked atomic.Int32
	// Answer replaces its answer, which is 200 to Good and 401 to every other token.
	Answer atomic.Pointer[http.HandlerFunc]
}

// NewProvider starts one.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Asked.Add(1)
		if answer := p.Answer.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		if strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") != Good {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message": "Bad credentials"}`)
		}
	}))
	t.Cleanup(server.Close)
	catalog, err := providers.Load(map[string]string{
		"git.yaml": "id: git\ntitle: Git\nshape: bearer\ninstructions: Create a token in your settings.\ndocsURL: https://git.example.com/docs\n" +
			"tokenShape: {pattern: 'tok_[0-9]{12}', description: starts with tok_}\nverify: {endpoint: " + server.URL + "/user}\nauthFailure: {httpStatuses: [401]}\n",
		"quiet.yaml": "id: quiet\ntitle: Quiet\nshape: bearer\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Catalog, p.Prober = catalog, providers.Prober{Transport: server.Client().Transport}
	return p
}

// Answers has the provider answer with a status and a message, whatever the token.
func (p *Provider) Answers(status int, message string) {
	p.Handle(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"message": %q}`, message)
	})
}

// Handle has a function answer.
func (p *Provider) Handle(answer http.HandlerFunc) { p.Answer.Store(&answer) }
