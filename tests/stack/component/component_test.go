package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	stack := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(stack, "components/thing", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module thing\n")
	write("go.sum", "")
	write("main.go", "package main\n")
	thing := Component{Name: "thing", Version: "v1.2.3", Folder: "components/thing", Package: "."}
	key := func(c Component, goVersion string) string {
		t.Helper()
		k, err := c.Key(stack, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key(thing, "go1.26.8")

	if !strings.HasPrefix(first, "v1.2.3-") {
		t.Errorf("the key %q does not start with the version", first)
	}
	if key(thing, "go1.26.8") != first {
		t.Error("the same sources have two keys")
	}
	if key(thing, "go1.26.9") == first {
		t.Error("another Go makes the same key")
	}
	linked := thing
	linked.LDFlags = []string{"-X a.b=c"}
	if key(linked, "go1.26.8") == first {
		t.Error("another link makes the same key")
	}
	write("main_test.go", "package main\n")
	if key(thing, "go1.26.8") != first {
		t.Error("a test file changes the key")
	}
	for _, name := range []string{"go.mod", "go.sum", "main.go", "other.go", "stand-in/go.mod", "stand-in/x.go"} {
		before := key(thing, "go1.26.8")
		write(name, "package main // changed\n")
		if key(thing, "go1.26.8") == before {
			t.Errorf("a change of %s does not change the key", name)
		}
	}
}

// The version that a component shows is the one that its go.mod pins.
func TestVersionsAreThePinnedOnes(t *testing.T) {
	modules := map[string]string{
		"kube": "k8s.io/kubernetes", "kv": "github.com/hashicorp/vault", "etcd": "go.etcd.io/etcd/server/v3",
		"eso":  "github.com/external-secrets/external-secrets",
		"korc": "github.com/k-orc/openstack-resource-controller/v2",
		"olm":  "github.com/operator-framework/operator-lifecycle-manager", "coredns": "github.com/coredns/coredns",
	}
	for name, module := range modules {
		c, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join("..", c.Folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), module+" "+c.Version) {
			t.Errorf("%s says %s, its go.mod does not require %s at that version", name, c.Version, module)
		}
	}
}

func TestOPMVersionIsThePinnedOne(t *testing.T) {
	text, err := os.ReadFile("../components/olm/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/operator-framework/operator-registry " + OPMVersion; !strings.Contains(string(text), want) {
		t.Errorf("components/olm/go.mod does not require %s", want)
	}
}

func TestOrderIsLongestFirst(t *testing.T) {
	for i := 1; i < len(All); i++ {
		if All[i].Expected > All[i-1].Expected {
			t.Errorf("%s takes longer than %s and comes later", All[i].Name, All[i-1].Name)
		}
	}
}
