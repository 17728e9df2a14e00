// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// TestKindsAreCalledWhatTheirCRDsSay: kubectl takes its names from the CRDs, and so must we.
func TestKindsAreCalledWhatTheirCRDsSay(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/c5c3.io_*.yaml")
	if err != nil || len(files) != len(kinds) {
		t.Fatalf("the CRDs are %v (%v), for %d kinds", files, err, len(kinds))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		names := crd.Spec.Names
		k := named(names.Kind)
		if k.plural != names.Plural || !slices.Equal(names.ShortNames, []string{k.short}) || k.resource() != crd.Name {
			t.Errorf("%s is called %s and %s", crd.Name, k.plural, k.short)
		}
		if kindOf(k.new()).name != names.Kind {
			t.Errorf("an object of %s is taken for a %s", names.Kind, kindOf(k.new()).name)
		}
		for _, word := range []string{names.Singular, names.Plural, names.Kind, k.short, crd.Name} {
			if found, err := kindCalled(word); err != nil || found.name != names.Kind {
				t.Errorf("%s is not found by %q: %v", names.Kind, word, err)
			}
		}
	}
}

func TestParseArguments(t *testing.T) {
	for line, want := range map[string]string{
		"kappcred/a":                 "KeystoneApplicationCredential a",
		"kuser a":                    "KeystoneUser a",
		"KeystoneProjects.c5c3.io/a": "KeystoneProject a",
		"cplane":                     "ControlPlane ",
		"pod/a":                      "",
		"kuser/":                     "",
		"kuser/a b":                  "",
	} {
		k, name, err := parseArguments(strings.Fields(line))
		if got := k.name + " " + name; err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v", line, got, err)
		}
	}
}

// TestACommandLineThatMakesNoSenseIsWrongUse needs no cluster: nothing is asked before it is understood.
func TestACommandLineThatMakesNoSenseIsWrongUse(t *testing.T) {
	for _, line := range []string{
		"nonsense", "tree", "tree kuser", "tree kuser/", "tree pod/a", "tree kuser a b", "tree kuser/a -o xml", "tree kuser/a --nonsense",
		"why pod/a", "why kuser/a -A", "why a b c", "rotate kproject/a", "rotate kuser", "rotate kuser/a --dry-run=perhaps",
		"verify", "verify kproject/a", "verify cplane/cp", "requests kuser", "requests -o xml", "answer", "answer a b", "answer a --value=x",
	} {
		p, out, notes := testPlugin()
		if status := run(t.Context(), p, strings.Fields(line)); status != exitWrongUse {
			t.Errorf("%q ends with %d\n%s%s", line, status, out, notes)
		}
		if out.Len() > 0 || !strings.Contains(notes.String(), "error: ") {
			t.Errorf("%q says %q and %q", line, out, notes)
		}
	}
}

func TestKindsAreCompletedWithoutACluster(t *testing.T) {
	for line, want := range map[string][]string{
		"rotate|":       {"kappcred/", "keystoneapplicationcredential/", "kuser/", "keystoneuser/"},
		"tree|":         {"cplane/", "controlplane/", "kuser/", "kproject/", "krole/", "kappcred/", "keystoneroleassignment/"},
		"why|":          {"cplane", "kuser", "kappcred/"},
		"tree|kuser/a|": {":4"},
		"why|-o|":       {"json", "yaml"},
		"":              {"tree\t", "why\t", "rotate\t", "verify\t", "requests\t", "answer\t"},
		"requests|":     {":4"},
		"answer|a|":     {":4"},
	} {
		p, out, _ := testPlugin()
		args := append([]string{"__complete"}, strings.Split(line, "|")...)
		if status := run(t.Context(), p, args); status != 0 {
			t.Errorf("completing %q ends with %d", line, status)
		}
		for _, word := range want {
			if !strings.Contains("\n"+out.String(), "\n"+word) {
				t.Errorf("completing %q does not offer %q:\n%s", line, word, out)
			}
		}
	}
}

func TestKubectlCompletesThroughThePlugin(t *testing.T) {
	script, err := os.ReadFile("kubectl_complete-c5c3")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat("kubectl_complete-c5c3")
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the script cannot be run: %v, %v", info.Mode(), err)
	}
	if !strings.HasSuffix(string(script), "\nexec kubectl-c5c3 __complete \"$@\"\n") {
		t.Errorf("the script is\n%s", script)
	}
}

func TestATreeForPeople(t *testing.T) {
	root := subjectNode(aCredential(says("DeliveryReady", "BackupNotSynced", ""), grace(30*time.Minute)))
	user := &orcv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "workflow-1234-user-user", Generation: 2, CreationTimestamp: *at(-time.Hour)}}
	id := "u1"
	user.Status.ID = &id
	user.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "Success", ObservedGeneration: 2}}
	push := &externalsecrets.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "workflow-1234-user-backup"}}
	push.Status.Conditions = []externalsecrets.StatusCondition{{Type: "Ready", Status: corev1.ConditionFalse, Reason: "Errored"}}
	space := namespaceNode("openstack")
	space.Nodes = []node{objectNode("User", user), objectNode("PushSecret", push)}
	space.NotReadable = []string{"secrets"}
	root.Nodes = []node{
		subjectNode(aPlane()),
		{reference: reference{"KeystoneUser", "tenant-a", "workflow"}, Missing: true},
		subjectNode(aRole(deleting)),
		space,
	}
	p, out, _ := testPlugin()
	p.table(p.treeRows(root))
	want := `
NAME                                             READY   REASONS                AGE   DETAILS
KeystoneApplicationCredential/workflow-appcred   False   Fine,BackupNotSynced   3d    id c1, generation 1, next rotation in 60m (2026-03-01T13:00:00Z), expires in 120m (2026-03-01T14:00:00Z), superseded generation 1 (id c0) is deleted in 30m (2026-03-01T12:30:00Z)
├─ ControlPlane/cp (namespace openstack)         True    Fine                   3d
├─ KeystoneUser/workflow                                                              does not exist
├─ KeystoneRoleAssignment/workflow-member        True    Fine                   3d    being deleted, role member, id r1
└─ Namespace/openstack                                                                (not readable by you: secrets)
   ├─ User/workflow-1234-user-user               True    Success                60m   id u1
   └─ PushSecret/workflow-1234-user-backup       False   Errored
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("the tree is\n%s\nand not\n%s", got, want)
	}
}

func TestTimesThatHavePassedAreToldAsSuch(t *testing.T) {
	p, _, _ := testPlugin()
	got := p.details(node{NextRotation: at(-time.Minute), ExpiresAt: at(-time.Second), Previous: &previous{"c0", 1, at(-time.Hour)}})
	want := "rotation was due 60s ago (2026-03-01T11:59:00Z), expired 1s ago (2026-03-01T11:59:59Z), " +
		"superseded generation 1 (id c0) until Keystone confirms that it is gone"
	if got != want {
		t.Errorf("it is %q", got)
	}
}

func TestAnOlderReportOfKORCIsNotReady(t *testing.T) {
	project := &orcv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 2}}
	project.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "Success", ObservedGeneration: 1}}
	if n := objectNode("Project", project); n.Ready != "False" {
		t.Errorf("it is %q", n.Ready)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	p, out, _ := testPlugin()
	rows := [][]cell{{{"True", green}, plain("a")}, {{"F", red}, plain("b")}}
	p.table(rows)
	if got := out.String(); got != "True   a\nF      b\n" {
		t.Errorf("without colours it is %q", got)
	}
	out.Reset()
	p.colour = true
	p.table(rows)
	if got := out.String(); got != "\x1b[32mTrue\x1b[0m   a\n\x1b[31mF\x1b[0m      b\n" {
		t.Errorf("with colours it is %q", got)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if showsColour(out) || showsColour(file) {
		t.Error("a buffer or a file is taken for a terminal")
	}
}

func TestNO_COLORIsObeyed(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("this test needs a terminal: %v", err)
	}
	defer func() { _ = terminal.Close() }()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !showsColour(terminal) {
		t.Error("a terminal is not taken for one")
	}
	t.Setenv("TERM", "dumb")
	if showsColour(terminal) {
		t.Error("a dumb terminal gets colours")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	if showsColour(terminal) {
		t.Error("NO_COLOR is not obeyed")
	}
}

func TestWordsAreNotBroken(t *testing.T) {
	if got := strings.Join(wrap("one two  threeandahalf\nfour", 8), "|"); got != "one two|threeandahalf|four" {
		t.Errorf("it is %q", got)
	}
}

func TestWhyIsToldForPeople(t *testing.T) {
	of := aCredential(says("CredentialReady", "WaitingForUser", "the user waits"))
	w := world{subjects: []subject{
		of, aUser(says("UserReady", "WaitingForAdminCredential", "the admin waits")),
		aPlane(says("AdminCredentialReady", "WaitingForAdminPassword", "Secret openstack/keystone-admin does not exist")),
	}}
	p, out, _ := testPlugin()
	if err := p.showExplanation(w.explain(of)); err != nil {
		t.Fatal(err)
	}
	want := `
KeystoneApplicationCredential tenant-a/workflow-appcred is not Ready.

CredentialReady is False for 5m: WaitingForUser
└─ KeystoneUser tenant-a/workflow: UserReady is False for 5m: WaitingForAdminCredential
   └─ ControlPlane openstack/cp: AdminCredentialReady is False for 5m: WaitingForAdminPassword

  Secret openstack/keystone-admin does not exist
  What to do: Create the Secret and the key that the message names, with the password of Keystone's
  administrator.
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("it is\n%s\nand not\n%s", got, want)
	}
}

func TestACauseThatManyHaveIsToldOnce(t *testing.T) {
	plane := aPlane(says("AdminCredentialReady", "WaitingForAdminPassword", "no password"))
	user, project := aUser(says("UserReady", "WaitingForAdminCredential", "")), aProject(says("ProjectReady", "WaitingForAdminCredential", ""))
	w := world{subjects: []subject{plane, user, project}}
	p, out, _ := testPlugin()
	answer := explanations{Total: 5}
	for _, s := range w.subjects {
		answer.Items = append(answer.Items, w.explain(s))
	}
	if err := p.showExplanations(answer, ""); err != nil {
		t.Fatal(err)
	}
	want := `
NAMESPACE   NAME                               REASON                      FOR   CAUSE
openstack   ControlPlane/cp                    WaitingForAdminPassword     5m
tenant-a    KeystoneUser/workflow              WaitingForAdminCredential   5m    ControlPlane openstack/cp: WaitingForAdminPassword
tenant-a    KeystoneProject/workflow-project   WaitingForAdminCredential   5m    ControlPlane openstack/cp: WaitingForAdminPassword

ControlPlane openstack/cp: AdminCredentialReady is False for 5m: WaitingForAdminPassword
  no password
  What to do: Create the Secret and the key that the message names, with the password of Keystone's
  administrator.
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("it is\n%s\nand not\n%s", got, want)
	}
}
