// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// Values that must never be printed.
const (
	credentialSecret = "secret-of-the-credential"
	userPassword     = "password-of-the-user"
	issuedToken      = "token-that-keystone-issued"
	childSecret      = "secret-of-a-child"
)

// People of the tests. The administrator is the API server's own.
const (
	viewer = "viewer" // the role order_viewer in tenant-a
	editor = "editor" // the role order_editor in tenant-a, and its Secrets
)

// onATerminal are tests that need a terminal, from the file for the system that can make one.
var onATerminal = map[string]func(*testCluster, *testing.T){}

// TestAgainstAnAPIServer runs the commands, from their arguments to what they print, as people with and
// without rights.
func TestAgainstAnAPIServer(t *testing.T) {
	config := dependenciestest.StartAPIServer(t, "../..")
	dependenciestest.InstallKORC(t, config)
	dependenciestest.InstallESO(t, config)
	c := newTestCluster(t, config)
	c.furnish()

	t.Run("tree", c.tree)
	t.Run("why", c.why)
	t.Run("verify", c.verify)
	t.Run("rotate", c.rotate)
	t.Run("completion", c.completion)
	t.Run("requests_without_the_kind", c.requestsWithoutTheKind)
	c.installAgents(config)
	t.Run("requests", c.requests)
	t.Run("answer", c.answer)
	for name, test := range onATerminal {
		t.Run(name, func(t *testing.T) { test(c, t) })
	}

	for _, secret := range []string{
		credentialSecret, userPassword, issuedToken, childSecret, answertest.Old, answertest.Good, answertest.Bad,
	} {
		if strings.Contains(c.printed.String(), secret) {
			t.Errorf("%q was printed", secret)
		}
	}
	if c.printed.Len() < 5000 {
		t.Errorf("only %d bytes were printed: the search for secrets means little", c.printed.Len())
	}
}

type testCluster struct {
	kube       client.Client
	kubeconfig string
	keystone   *fakeKeystone
	// input is what a command reads, unless there is a terminal, and transport what it asks providers through.
	input     string
	terminal  *os.File
	transport http.RoundTripper
	// printed is all that any command printed.
	printed strings.Builder
	t       *testing.T
}

func newTestCluster(t *testing.T, config *rest.Config) *testCluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, agents.AddToScheme, orcv1alpha1.AddToScheme, externalsecrets.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "admin", Namespace: "tenant-a"}},
		CurrentContext: "test",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return &testCluster{kube: kube, kubeconfig: file, keystone: newFakeKeystone(t), t: t}
}

// run runs a command as the administrator, or as another with --as.
func (c *testCluster) run(line string) (status int, out, notes string) {
	p, outBuffer, notesBuffer := testPlugin()
	p.now, p.transport = time.Now, c.transport
	p.streams.In = strings.NewReader(c.input)
	if c.terminal != nil {
		p.streams.In = c.terminal
	}
	args := append(strings.Fields(line), "--kubeconfig", c.kubeconfig)
	status = run(context.Background(), p, args)
	out, notes = outBuffer.String(), notesBuffer.String()
	c.printed.WriteString(out + notes)
	return status, out, notes
}

// wants runs a command and expects an exit status, and words in what it prints; those that begin with an
// exclamation mark must not be there.
func (c *testCluster) wants(t *testing.T, line string, wanted int, words ...string) string {
	t.Helper()
	status, out, notes := c.run(line)
	if status != wanted {
		t.Errorf("%q ends with %d and not %d\n%s%s", line, status, wanted, out, notes)
	}
	for _, word := range words {
		forbidden, not := strings.CutPrefix(word, "!")
		if not && strings.Contains(out+notes, forbidden) || !not && !strings.Contains(out+notes, word) {
			t.Errorf("%q does not satisfy %q:\n%s%s", line, word, out, notes)
		}
	}
	return out
}

func (c *testCluster) create(o client.Object) {
	c.t.Helper()
	wanted := o.DeepCopyObject().(client.Object)
	o.SetFinalizers(nil)
	if err := c.kube.Create(c.t.Context(), o); err != nil {
		c.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
	switch o.(type) {
	case *corev1.Namespace, *corev1.Secret, *rbacv1.ClusterRole, *rbacv1.Role, *rbacv1.RoleBinding:
		return
	}
	wanted.SetResourceVersion(o.GetResourceVersion())
	wanted.SetUID(o.GetUID())
	if err := c.kube.Status().Update(c.t.Context(), wanted); err != nil {
		c.t.Fatalf("reporting on %T %s: %v", o, o.GetName(), err)
	}
}

// furnish makes a ControlPlane with the orders of a namespace, some of their children, and people.
func (c *testCluster) furnish() {
	for _, namespace := range []string{"openstack", "tenant-a", "tenant-b"} {
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	for file, who := range map[string]string{"order_viewer_role.yaml": viewer, "order_editor_role.yaml": editor} {
		role := &rbacv1.ClusterRole{}
		text, err := os.ReadFile(filepath.Join("../../config/rbac", file))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			c.t.Fatal(err)
		}
		c.create(role)
		c.bind(who, "ClusterRole", role.Name)
	}
	c.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "secrets"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	})
	c.bind(editor, "Role", "secrets")

	c.create(aPlane())
	user, project, role, credential := aUser(), aProject(), aRole(), aCredential()
	tomorrow := metav1.NewTime(time.Now().Add(24 * time.Hour))
	credential.Status.NextRotation, credential.Status.CredentialExpiresAt = &tomorrow, &tomorrow
	for _, o := range []order.Object{user, project, role, credential} {
		c.create(o)
	}
	c.deliver(user, clouds.Cloud{AuthURL: c.keystone.URL, Password: &clouds.PasswordAuth{
		Username: "workflow", UserDomainName: "Default", Password: userPassword,
	}})
	c.deliver(credential, c.keystone.cloud())
	c.children(credential)

	stuck := aUser(says("UserReady", "WaitingForAdminCredential", "ControlPlane openstack/gone: AdminCredentialReady is False: WaitingForAdminPassword"))
	stuck.Name = "stuck"
	stuck.Spec.ControlPlaneRef.Name = "gone"
	c.create(stuck)
	plane := aPlane(says("AdminCredentialReady", "WaitingForAdminPassword", "Secret openstack/keystone-admin does not exist"))
	plane.Name = "gone"
	c.create(plane)
	elsewhere := aProject(says("ProjectReady", "NamespaceNotAssigned", "the order is frozen"))
	elsewhere.Namespace = "tenant-b"
	c.create(elsewhere)
}

func (c *testCluster) bind(who, kind, role string) {
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: who + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}},
	})
}

// deliver writes the Secret beside an order.
func (c *testCluster) deliver(o order.Object, cloud clouds.Cloud) {
	c.t.Helper()
	document, err := clouds.Render(order.CloudName, cloud)
	if err != nil {
		c.t.Fatal(err)
	}
	c.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: order.DeliveredName(o.GetName()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind(kindOf(o).name))},
		},
		Data: map[string][]byte{order.CloudsKey: document},
	})
}

// children makes the children of a credential, and one that has its labels and not its name.
func (c *testCluster) children(o order.Object) {
	k, key := order.ApplicationCredentialKind, order.KeyOf("", o)
	child := func(discriminator string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "openstack", Name: k.Prefix(key) + discriminator, Labels: k.Labels(key)}
	}
	id := "c1"
	credential := &orcv1alpha1.ApplicationCredential{ObjectMeta: child("credential-v1")}
	credential.Spec = orcv1alpha1.ApplicationCredentialSpec{
		ManagementPolicy:    orcv1alpha1.ManagementPolicyManaged,
		CloudCredentialsRef: orcv1alpha1.CloudCredentialsReference{SecretName: "mint-cloud", CloudName: "c5c3"},
		Resource:            &orcv1alpha1.ApplicationCredentialResourceSpec{UserRef: "user", SecretRef: "secret"},
	}
	credential.Status.ID = &id
	credential.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "Success", ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
	c.create(credential)
	push := &externalsecrets.PushSecret{ObjectMeta: child("backup")}
	push.Status.Conditions = []externalsecrets.StatusCondition{{Type: "Ready", Status: "True", Reason: "Synced"}}
	c.create(push)
	for _, meta := range []metav1.ObjectMeta{child("secret-v1"), {Namespace: "openstack", Name: "labelled-by-somebody", Labels: k.Labels(key)}} {
		c.create(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": []byte(childSecret)}})
	}
}

func (c *testCluster) tree(t *testing.T) {
	prefix := order.ApplicationCredentialKind.Prefix(order.KeyOf("", aCredential()))
	c.wants(t, "tree kappcred/workflow-appcred", 0,
		"KeystoneApplicationCredential/workflow-appcred", "ControlPlane/cp (namespace openstack)", "KeystoneUser/workflow", "KeystoneProject/workflow-project",
		"KeystoneRoleAssignment/workflow-member", "role member", "Secret/workflow-appcred-credentials", "id c1", "id u1", "next rotation",
		"ApplicationCredential/"+prefix+"credential-v1", "PushSecret/"+prefix+"backup", "Secret/"+prefix+"secret-v1",
		"!labelled-by-somebody", "!not readable", "!does not exist")
	// Children, ControlPlane and Secret may not be read with the role that comes with the operator.
	c.wants(t, "tree kappcred workflow-appcred --as "+viewer, 0,
		"KeystoneUser/workflow", "KeystoneRoleAssignment/workflow-member", "id c1",
		"(not readable by you: controlplanes.c5c3.io)", "Secret/workflow-appcred-credentials",
		"(not readable by you: applicationcredentials.openstack.k-orc.cloud, pushsecrets.external-secrets.io, secrets)", "!"+prefix)
	c.wants(t, "tree kuser/stuck", 0, "WaitingForAdminCredential", "Secret/stuck-credentials", "does not exist")
	c.wants(t, "tree krole/workflow-member", 0, "KeystoneUser/workflow", "KeystoneProject/workflow-project", "!Secret/")
	c.wants(t, "tree kproject/workflow-project -n tenant-b", 0, "NamespaceNotAssigned")
	c.wants(t, "tree kuser/nobody", exitFailed, `"nobody" not found`)
	c.wants(t, "tree kuser/workflow --as stranger", exitFailed, "forbidden")

	c.wants(t, "tree cplane/cp -n openstack", 0,
		"Namespace/tenant-a", "roles [member]", "KeystoneUser/workflow", "KeystoneApplicationCredential/workflow-appcred",
		"Namespace/tenant-b", "not assigned: its orders are frozen", "KeystoneProject/workflow-project", "!KeystoneUser/stuck", "!not readable")

	var root node
	if err := json.Unmarshal([]byte(c.wants(t, "tree kappcred/workflow-appcred -o json --as "+viewer, 0)), &root); err != nil {
		t.Fatal(err)
	}
	children := root.Nodes[len(root.Nodes)-1]
	if root.Kind != "KeystoneApplicationCredential" || root.KeystoneID != "c1" || root.NextRotation == nil || len(root.Conditions) != 3 ||
		children.Kind != namespaceKind || children.Name != "openstack" || len(children.NotReadable) != 3 {
		t.Errorf("the tree is %+v", root)
	}
	var again node
	if err := yaml.Unmarshal([]byte(c.wants(t, "tree kappcred/workflow-appcred -o yaml", 0)), &again); err != nil || again.Name != root.Name {
		t.Errorf("as YAML it is %+v, %v", again, err)
	}

	// Who may read the ControlPlane and orders of one namespace sees these, and learns of the others.
	plane := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "planes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"c5c3.io"}, Resources: []string{"controlplanes"}, Verbs: []string{"get"}}},
	}
	c.create(plane)
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "planes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "planes"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: editor}},
	})
	c.eventually("the editor may read ControlPlanes", func() bool {
		status, _, _ := c.run("tree cplane/cp -n openstack --as " + editor)
		return status == 0
	})
	c.wants(t, "tree cplane/cp -n openstack --as "+editor, 0,
		"KeystoneApplicationCredential/workflow-appcred", "you may not list orders in all namespaces", "!tenant-b")
}

func (c *testCluster) why(t *testing.T) {
	c.wants(t, "why kappcred/workflow-appcred", 0, "is Ready")
	c.wants(t, "why kuser/stuck", exitNo,
		"KeystoneUser tenant-a/stuck is not Ready", "ControlPlane openstack/gone: AdminCredentialReady is False",
		"Secret openstack/keystone-admin does not exist", "What to do: Create the Secret", "!not readable")
	c.wants(t, "why kuser/stuck --as "+viewer, exitNo,
		"WaitingForAdminCredential", "AdminCredentialReady is False: WaitingForAdminPassword",
		"(not readable by you: ControlPlane openstack/gone: forbidden)", "Ask whoever runs the ControlPlane")
	c.wants(t, "why cplane/gone -n openstack", exitNo, "WaitingForAdminPassword")
	c.wants(t, "why", exitNo, "KeystoneUser/stuck", "!workflow-appcred", "!tenant-b")
	c.wants(t, "why kappcred", 0, "are Ready (1)")
	c.wants(t, "why -n default", 0, "There are no orders")
	c.wants(t, "why -A", exitNo, "KeystoneUser/stuck", "ControlPlane/gone", "tenant-b", "NamespaceNotAssigned")
	c.wants(t, "why --as "+viewer, exitNo, "KeystoneUser/stuck", "(not readable by you: controlplanes.c5c3.io)")
	c.wants(t, "why -A --as "+viewer, exitFailed, "forbidden")
	c.wants(t, "why kuser/nobody", exitFailed, "not found")

	var e explanation
	if err := json.Unmarshal([]byte(c.wants(t, "why kuser/stuck -o json", exitNo)), &e); err != nil {
		t.Fatal(err)
	}
	if e.Ready || e.Name != "stuck" || len(e.Because) != 2 || e.cause().Reason != "WaitingForAdminPassword" || e.Advice == "" {
		t.Errorf("the explanation is %+v", e)
	}
	var all explanations
	if err := yaml.Unmarshal([]byte(c.wants(t, "why -A -o yaml", exitNo)), &all); err != nil {
		t.Fatal(err)
	}
	if all.Total != 8 || len(all.Items) != 3 {
		t.Errorf("of %d there are %d not Ready", all.Total, len(all.Items))
	}
	if err := json.Unmarshal([]byte(c.wants(t, "why kappcred -o json", 0)), &all); err != nil || all.Items == nil || len(all.Items) != 0 {
		t.Errorf("nothing to explain is %+v, %v", all, err)
	}
}

func (c *testCluster) verify(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.keystone.Certificate().Raw})
	if err := os.WriteFile(bundle, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := " --cacert " + bundle
	c.wants(t, "verify workflow-appcred"+trusted, 0,
		"accepts application credential c1", "workflow-appcred-credential-v1", "2030-01-01T00:00:00Z", "p1", "member, reader", "!status names another")
	c.wants(t, "verify kappcred workflow-appcred --as "+editor+trusted, 0, "accepts")
	c.wants(t, "verify kuser/workflow"+trusted, 0, "accepts the password", "u1")
	c.wants(t, "verify workflow-appcred --as "+viewer+trusted, exitFailed, "secrets", "forbidden")
	c.wants(t, "verify kuser/stuck", exitNo, "has delivered nothing")
	c.wants(t, "verify workflow-appcred", exitUnanswered, "TLSVerificationFailed", "--cacert")
	c.wants(t, "verify workflow-appcred --auth-url http://cp-keystone.openstack.svc:5000/v3", exitUnanswered, "no usable answer", "--auth-url")
	c.wants(t, "verify workflow-appcred --auth-url ftp://nowhere", exitFailed, "not an http or https address")
	c.wants(t, "verify workflow-appcred --cacert "+bundle+".missing", exitFailed, "reading the CA bundle")

	var v verification
	if err := json.Unmarshal([]byte(c.wants(t, "verify workflow-appcred -o json"+trusted, 0)), &v); err != nil {
		t.Fatal(err)
	}
	if !v.Accepted || v.Answer != "OK" || v.CredentialID != "c1" || v.ProjectID != "p1" || v.CredentialExpiresAt == nil || !slices.Equal(v.Roles, []string{"member", "reader"}) {
		t.Errorf("the verification is %+v", v)
	}

	// A policy that lets nobody read credentials does not make one refused.
	c.keystone.listing = http.StatusForbidden
	c.wants(t, "verify workflow-appcred"+trusted, 0, "accepts", "did not tell when the credential expires")
	c.keystone.listing = 0
	for status, words := range map[int][]string{
		http.StatusNotFound:     {"NotFound", "gone from Keystone"},
		http.StatusUnauthorized: {"AuthenticationFailed", "no role on the project"},
	} {
		c.keystone.login = status
		c.wants(t, "verify workflow-appcred"+trusted, exitNo, append(words, "refuses application credential c1")...)
		c.wants(t, "verify workflow-appcred -o json"+trusted, exitNo, `"accepted": false`)
	}
	// Status tells which of the causes of a 401 it is, where it can.
	c.keystone.login = http.StatusUnauthorized
	credential := aCredential()
	expiry := metav1.NewTime(time.Now().Add(time.Hour))
	for _, at := range []metav1.Time{metav1.NewTime(time.Now().Add(-time.Hour)), expiry} {
		c.report(credential, func() { credential.Status.CredentialExpiresAt = &at })
		word := "by status it expired 60m ago"
		if at == expiry {
			word = "!by status"
		}
		c.wants(t, "verify workflow-appcred"+trusted, exitNo, word)
	}
	c.keystone.login = http.StatusServiceUnavailable
	c.wants(t, "verify workflow-appcred"+trusted, exitUnanswered, "no usable answer")
	c.keystone.login = 0

	// A Secret of the name that is somebody else's is not logged in with.
	foreign := aUser()
	foreign.Name = "foreign"
	c.create(foreign)
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "foreign-credentials"}})
	c.wants(t, "verify kuser/foreign", exitNo, "is not its own")
}

func (c *testCluster) rotate(t *testing.T) {
	credential := &v1alpha1.KeystoneApplicationCredential{}
	read := func() {
		t.Helper()
		if err := c.kube.Get(t.Context(), client.ObjectKey{Namespace: "tenant-a", Name: "workflow-appcred"}, credential); err != nil {
			t.Fatal(err)
		}
	}
	asksFor := func(want int64) {
		t.Helper()
		if read(); credential.Spec.CredentialGeneration != want {
			t.Errorf("spec asks for generation %d and not %d", credential.Spec.CredentialGeneration, want)
		}
	}
	for _, dryRun := range []string{"--dry-run", "--dry-run=client", "--dry-run=server"} {
		c.wants(t, "rotate kappcred/workflow-appcred "+dryRun, 0, "generation 2 is asked for", "dry run")
		asksFor(1)
	}
	c.wants(t, "rotate kappcred/workflow-appcred --as "+viewer, exitFailed, "forbidden")
	c.wants(t, "rotate kappcred/workflow-appcred --dry-run=server --as "+viewer, exitFailed, "forbidden")
	asksFor(1)

	// The test plays the operator, which sees the change, switches, and delivers.
	waited := make(chan string)
	go func() {
		status, out, notes := c.run("rotate kappcred/workflow-appcred --wait --as " + editor)
		waited <- fmt.Sprintf("%d %s%s", status, out, notes)
	}()
	c.eventually("the rotation is asked for", func() bool { read(); return credential.Spec.CredentialGeneration == 2 })
	c.report(credential, func() {
		credential.Status.CredentialGeneration, credential.Status.CredentialID = 2, "c2"
		credential.Status.PreviousCredentialGeneration, credential.Status.PreviousCredentialID = 1, "c1"
		credential.Status.PreviousCredentialDeleteAt = &metav1.Time{Time: time.Now().Add(time.Hour)}
		credential.Status.SecretName = ""
	})
	c.report(credential, func() {
		credential.Status.SecretName = "workflow-appcred-credentials"
		credential.Status.ObservedGeneration = credential.Generation
		for i := range credential.Status.Conditions {
			credential.Status.Conditions[i].ObservedGeneration = credential.Generation
		}
	})
	if said := <-waited; !strings.HasPrefix(said, "0 ") || !strings.Contains(said, "carries generation 2; generation 1 is accepted until it is deleted in") {
		t.Errorf("the wait ends with %s", said)
	}
	if fields := credential.GetManagedFields(); !slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "kubectl-c5c3" }) {
		t.Errorf("nobody knows who asked: %+v", fields)
	}

	c.wants(t, "rotate kappcred/workflow-appcred", exitNo, "grace period", "in 59m")
	asksFor(2)
	var answer rotationAnswer
	if err := json.Unmarshal([]byte(c.wants(t, "rotate kappcred/workflow-appcred -o json", exitNo)), &answer); err != nil || answer.Until == nil || answer.Refused == "" {
		t.Errorf("the refusal is %+v, %v", answer, err)
	}
	c.report(credential, func() {
		credential.Status.PreviousCredentialDeleteAt, credential.Status.PreviousCredentialID, credential.Status.PreviousCredentialGeneration = nil, "", 0
	})

	c.wants(t, "rotate kappcred/workflow-appcred --wait --timeout 1s", exitUnanswered, "generation 3 was not delivered within 1s")
	asksFor(3)
	c.wants(t, "rotate kappcred/workflow-appcred", 0, "generation 3 was asked for already")
	asksFor(3)

	if err := json.Unmarshal([]byte(c.wants(t, "rotate kuser workflow -o json", 0)), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Field != "passwordGeneration" || answer.From != 1 || answer.To != 2 || answer.Delivered {
		t.Errorf("the answer is %+v", answer)
	}
	frozen := aCredential(says("CredentialReady", "NamespaceNotAssigned", "the entry is gone"))
	frozen.Namespace = "tenant-b"
	c.create(frozen)
	c.wants(t, "rotate kappcred/workflow-appcred -n tenant-b", exitNo, "frozen", "the entry is gone")
	c.wants(t, "rotate kappcred/nobody", exitFailed, "not found")
}

// report writes the status as the operator does.
func (c *testCluster) report(credential *v1alpha1.KeystoneApplicationCredential, change func()) {
	c.t.Helper()
	if err := c.kube.Get(c.t.Context(), client.ObjectKeyFromObject(credential), credential); err != nil {
		c.t.Fatal(err)
	}
	change()
	if err := c.kube.Status().Update(c.t.Context(), credential); err != nil {
		c.t.Fatal(err)
	}
}

// completes expects what the shell is offered for a line, whose words | parts.
func (c *testCluster) completes(t *testing.T, line, want string) {
	t.Helper()
	// The flags that run appends would be what is completed, so the file comes by the environment.
	t.Setenv("KUBECONFIG", c.kubeconfig)
	p, out, _ := testPlugin()
	p.now = time.Now
	if status := run(t.Context(), p, append([]string{"__complete"}, strings.Split(line, "|")...)); status != 0 || out.String() != want {
		t.Errorf("completing %q ends with %d and offers\n%s", line, status, out)
	}
	c.printed.WriteString(out.String())
}

func (c *testCluster) completion(t *testing.T) {
	for line, want := range map[string]string{
		"tree|kuser/":                        "kuser/foreign\nkuser/stuck\nkuser/workflow\n:4\n",
		"tree|keystoneuser|":                 "foreign\nstuck\nworkflow\n:4\n",
		"verify|":                            "workflow-appcred\nkuser/\n:4\n",
		"rotate|-n|tenant-b|kappcred/":       "kappcred/workflow-appcred\n:4\n",
		"tree|--as|stranger|kuser/":          ":4\n",
		"tree|--kubeconfig|/missing|kuser/":  ":4\n",
		"tree|pod/":                          ":4\n",
		"rotate|kuser/workflow|and|a|third|": ":4\n",
	} {
		c.completes(t, line, want)
	}
}

// eventually waits for something that another part brings about. It fails after half a minute.
func (c *testCluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("it does not hold that %s", what)
		}
	}
}

// fakeKeystone issues tokens for one application credential and one password, and lists the credential.
type fakeKeystone struct {
	*httptest.Server
	// login and listing are statuses to answer instead, 0 for none.
	login, listing int
}

func newFakeKeystone(t *testing.T) *fakeKeystone {
	t.Helper()
	k := &fakeKeystone{}
	k.Server = httptest.NewTLSServer(k)
	k.Config.ErrorLog = log.New(io.Discard, "", 0) // that a client does not trust it is part of the test
	t.Cleanup(k.Close)
	return k
}

func (k *fakeKeystone) cloud() clouds.Cloud {
	return clouds.Cloud{AuthURL: k.URL + "/v3", ApplicationCredential: &clouds.ApplicationCredentialAuth{ID: "c1", Secret: credentialSecret}}
}

func (k *fakeKeystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	refuse := func(status int) {
		answer(status, map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": "Keystone says no."}})
	}
	switch {
	case r.URL.Path == "/v3/auth/tokens" && k.login == http.StatusServiceUnavailable:
		http.Error(w, "no healthy upstream", k.login)
	case r.URL.Path == "/v3/auth/tokens" && k.login != 0:
		refuse(k.login)
	case r.URL.Path == "/v3/auth/tokens":
		var body struct {
			Auth struct {
				Identity struct {
					Credential struct{ ID, Secret string } `json:"application_credential"`
					Password   struct {
						User struct{ Name, Password string }
					}
				}
			}
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			refuse(http.StatusBadRequest)
			return
		}
		token := map[string]any{"issued_at": "2026-01-01T00:00:00Z", "expires_at": "2029-01-01T00:00:00Z", "user": map[string]any{"id": "u1"}}
		switch identity := body.Auth.Identity; {
		case identity.Credential.ID == "c1" && identity.Credential.Secret == credentialSecret:
			token["project"] = map[string]any{"id": "p1"}
			token["roles"] = []any{map[string]any{"id": "r2", "name": "reader"}, map[string]any{"id": "r1", "name": "member"}}
		case identity.Password.User.Password != userPassword:
			refuse(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Subject-Token", issuedToken)
		answer(http.StatusCreated, map[string]any{"token": token})
	case r.Header.Get("X-Auth-Token") != issuedToken:
		refuse(http.StatusUnauthorized)
	case k.listing != 0:
		refuse(k.listing)
	case r.URL.Path == "/v3/users/u1/application_credentials":
		answer(http.StatusOK, map[string]any{"application_credentials": []any{
			map[string]any{"id": "c0", "name": "another", "expires_at": nil},
			map[string]any{"id": "c1", "name": "workflow-appcred-credential-v1", "expires_at": "2030-01-01T00:00:00.000000"},
		}, "links": map[string]any{"next": nil}})
	default:
		refuse(http.StatusNotFound)
	}
}
