// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
)

// More people of the tests.
const (
	answerer = "answerer" // the role answerer, and get and patch of the one Secret
	reader   = "reader"   // the role answerer without the Secret
)

// TestAnArgumentIsNoValue: whoever puts the value on the command line is told, and it is not repeated.
func TestAnArgumentIsNoValue(t *testing.T) {
	p, out, notes := testPlugin()
	if status := run(t.Context(), p, []string{"answer", "cur-1", answertest.Good}); status != exitWrongUse || strings.Contains(out.String()+notes.String(), answertest.Good) {
		t.Errorf("it ends with %d and says %s%s", status, out, notes)
	}
}

func TestRequestsThatWaitForAPersonComeFirst(t *testing.T) {
	p, out, _ := testPlugin()
	item := func(name, phase, determination string, age time.Duration) requestItem {
		request := answertest.NewOpen(now.Add(-age)).Request
		request.Name, request.Status.Phase, request.Status.Determination = name, phase, determination
		return p.requestItem(request)
	}
	waiting, healing := item("waiting", "Open", "RejectedVerified", 6*time.Minute), item("healing", "Open", "HealingByRotation", time.Minute)
	over := item("over", "Open", "RejectedVerified", 31*time.Minute)
	settled, fresh := item("settled", "Fulfilled", "RejectedVerified", time.Hour), item("new", "", "", time.Second)
	for _, c := range []struct {
		item  requestItem
		waits bool
	}{{waiting, true}, {healing, false}, {over, false}, {settled, false}, {fresh, false}} {
		if c.item.WaitsForPerson != c.waits || (c.item.ExpiresAt != nil) != (c.item.Phase == "Open") {
			t.Errorf("%s is %+v", c.item.Name, c.item)
		}
	}
	if waiting.Why != "Please, I need it NOW." {
		t.Errorf("the agent's words are shown as %q", waiting.Why)
	}
	p.table(p.requestRows([]requestItem{waiting, over, fresh}, true))
	want := `NAMESPACE   NAME      PHASE     DETERMINATION      ORIGIN          CREDENTIAL                       REQUESTED BY   AGE   EXPIRES
tenant-a    waiting   Open      RejectedVerified   mcpserver/git   git-token of AgentIdentity/bot   user:alice     6m    in 24m
tenant-a    over      Open      RejectedVerified   mcpserver/git   git-token of AgentIdentity/bot   user:alice     31m   now
tenant-a    new       Pending                      mcpserver/git   git-token of AgentIdentity/bot   user:alice     1s
`
	if out.String() != want {
		t.Errorf("they are listed as\n%s\nand not\n%s", out, want)
	}
}

func (c *testCluster) requestsWithoutTheKind(t *testing.T) {
	c.wants(t, "requests", exitFailed, "does not serve CredentialUpdateRequests")
	c.wants(t, "answer x", exitFailed, "does not serve CredentialUpdateRequests")
	c.completes(t, "answer|", ":4\n")
}

// installAgents makes the kinds, an open request about a Secret, and people.
func (c *testCluster) installAgents(config *rest.Config) {
	c.t.Helper()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../../config/crd/agentprimitives"}, ErrorIfPathMissing: true}); err != nil {
		c.t.Fatal(err)
	}
	fresh, err := client.New(config, client.Options{Scheme: c.kube.Scheme()})
	if err != nil {
		c.t.Fatal(err)
	}
	c.kube = fresh
	role := &rbacv1.ClusterRole{}
	text, err := os.ReadFile("../../config/agentprimitives/answerer_role.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, role); err != nil {
		c.t.Fatal(err)
	}
	c.create(role)
	c.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "the-secret"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{answertest.Secret}, Verbs: []string{"get", "patch"}}},
	})
	c.bind(answerer, "ClusterRole", role.Name)
	c.bind(reader, "ClusterRole", role.Name)
	c.bind(answerer, "Role", "the-secret")
	c.ask()
}

// ask makes the open request anew, and what it leads to.
func (c *testCluster) ask() {
	c.t.Helper()
	open := answertest.NewOpen(time.Now())
	for _, object := range open.Objects() {
		if err := client.IgnoreNotFound(c.kube.Delete(c.t.Context(), object.DeepCopyObject().(client.Object))); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := open.Create(c.t.Context(), c.kube); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testCluster) requests(t *testing.T) {
	healing := answertest.NewOpen(time.Now()).Request
	healing.Name, healing.UID, healing.CreationTimestamp = "cur-healing", "", metav1.Time{}
	healing.Status.Determination = agents.DeterminationHealingByRotation
	c.create(healing)
	c.wants(t, "requests", 0, "NAME ", "PHASE", "EXPIRES", answertest.Request, "Open", "RejectedVerified", "mcpserver/git", "git-token of AgentIdentity/bot", "in 29m", "!NAMESPACE", "!\u202e")
	c.wants(t, "requests -n tenant-b", 0, "There are no requests in namespace tenant-b", "!NAME ")
	c.wants(t, "requests --as "+reader, 0, answertest.Request)
	c.wants(t, "requests -A --as "+reader, exitFailed, "forbidden")
	c.wants(t, "requests --as stranger", exitFailed, "forbidden")
	c.wants(t, "requests -A", 0, "NAMESPACE", "tenant-a", answertest.Request)

	var list requestList
	if err := json.Unmarshal([]byte(c.wants(t, "requests -o json", 0)), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("it lists %+v, %v", list, err)
	}
	if first := list.Items[0]; first.Name != answertest.Request || first.Kind != requestKind || !first.WaitsForPerson || first.ExpiresAt == nil || first.Why != "Please, I need it NOW." ||
		first.Secret != "tenant-a/"+answertest.Secret || first.SecretKey != answertest.Key || first.Session != "tenant-a/"+answertest.Session {
		t.Errorf("the first is %+v", list.Items[0])
	}
	if list.Items[1].WaitsForPerson {
		t.Errorf("the second is %+v", list.Items[1])
	}
	var again requestList
	if err := yaml.Unmarshal([]byte(c.wants(t, "requests -o yaml", 0)), &again); err != nil || len(again.Items) != 2 || again.Items[0].Reason != list.Items[0].Reason {
		t.Errorf("as YAML it is %+v, %v", again, err)
	}
	c.completes(t, "answer|", answertest.Request+"\tmcpserver/git\n:4\n")
}

func (c *testCluster) stored() string {
	c.t.Helper()
	secret := &corev1.Secret{}
	if err := c.kube.Get(c.t.Context(), client.ObjectKey{Namespace: answertest.Namespace, Name: answertest.Secret}, secret); err != nil {
		c.t.Fatal(err)
	}
	return string(secret.Data[answertest.Key])
}

// catalogOf is a directory with a provider's entry.
func catalogOf(t *testing.T, provider *answertest.Provider) string {
	t.Helper()
	entry, _ := provider.Catalog.Provider("git")
	text, err := yaml.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "git.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return directory
}

func (c *testCluster) answer(t *testing.T) {
	provider := answertest.NewProvider(t)
	c.transport = provider.Prober.Transport
	t.Cleanup(func() { c.transport, c.input = nil, "" })
	line := "answer " + answertest.Request + " --provider-catalog " + catalogOf(t, provider)
	unchanged := func(what string) {
		t.Helper()
		if got := c.stored(); got != answertest.Old {
			t.Errorf("%s: it holds another value", what)
		}
	}

	c.input = answertest.Good + "\n"
	c.wants(t, line+" --as stranger", exitFailed, `you may not answer CredentialUpdateRequest tenant-a/`+answertest.Request, `verb "answer"`, "credentialupdaterequests.agentprimitives.authzed.com", "!New value")
	c.wants(t, line+" --as "+reader, exitFailed, "get and patch on the Secret", "forbidden")
	c.wants(t, "answer nobody", exitNo, "does not exist")
	c.wants(t, "answer cur-healing", exitNo, "asks nobody")
	unchanged("refused")
	if asked := provider.Asked.Load(); asked != 0 {
		t.Errorf("the provider was asked %d times about a value of nobody's", asked)
	}

	c.input = answertest.Bad
	c.wants(t, line+" --as "+answerer, exitNo, "Git does not accept this value", "Bad credentials", "--confirm", "RejectedVerified", "looks like    starts with tok_", "| Please, I need it NOW. |", "!\u202e")
	unchanged("rejected")
	var result submitted
	if err := json.Unmarshal([]byte(c.wants(t, line+" -o json --as "+answerer, exitNo)), &result); err != nil || result.Stored || result.Refused != answer.Unconfirmed || result.Probe != "rejected" || result.Message == "" {
		t.Errorf("it answers %+v, %v", result, err)
	}
	c.input = "nothing like it"
	c.wants(t, line+" --value-stdin --as "+answerer, exitNo, "no token has", "!nothing like it")
	c.input = ""
	c.wants(t, line+" --as "+answerer, exitNo, "is empty")
	c.input = strings.Repeat("x", answer.MaxValue+10)
	c.wants(t, line+" --as "+answerer, exitNo, "longer than")
	c.input = answertest.Old
	c.wants(t, line+" --as "+answerer, exitNo, "stored already")
	unchanged("refused")

	c.input = answertest.Bad
	c.wants(t, line+" --confirm --as "+answerer, 0, "Stored in Secret tenant-a/"+answertest.Secret, "does not accept it (401")
	if c.stored() != answertest.Bad {
		t.Error("it is not stored")
	}
	c.wants(t, line+" --as "+answerer, exitNo, "changed already")

	c.ask()
	c.input = answertest.Good + "\r\n"
	result = submitted{}
	if err := json.Unmarshal([]byte(c.wants(t, line+" -o json --as "+answerer, 0, "!New value")), &result); err != nil || !result.Stored || result.Probe != "valid" || result.SecretKey != answertest.Key {
		t.Errorf("it answers %+v, %v", result, err)
	}
	if c.stored() != answertest.Good {
		t.Error("it is not stored, or with the end of its line")
	}
	// A provider that cannot be asked keeps nobody from repairing.
	c.ask()
	provider.Handle(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	c.wants(t, line+" --as "+answerer, 0, "did not say whether it accepts it")
}
