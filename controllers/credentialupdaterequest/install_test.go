package credentialupdaterequest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A cluster may serve the kinds of agents already, from the project that they are of: whoever installs the operator
// there must not be given other definitions of them, and whoever has no agents no rights on any.
func TestInstallations_without_agents_hold_nothing_of_theirs(t *testing.T) {
	const group = "agentprimitives.authzed.com"
	files := kustomized(t, "../../config/default")
	if err := filepath.WalkDir("../../bundle", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("%d files are installed: the search is wrong", len(files))
	}
	for file := range files {
		if text := read(t, file); strings.Contains(text, group) {
			t.Errorf("%s is about %s", file, group)
		}
	}
	// The component grants the rights, and leaves the definitions to config/crd/agentprimitives.
	component, granted := kustomized(t, "../../config/agentprimitives"), false
	for file := range component {
		text := read(t, file)
		granted = granted || strings.Contains(text, group)
		if strings.Contains(text, "kind: CustomResourceDefinition") {
			t.Errorf("%s of the component defines a kind", file)
		}
	}
	if !granted {
		t.Errorf("the component grants nothing on %s", group)
	}
}

// kustomized are the files that a kustomization leads to.
func kustomized(t *testing.T, folder string) map[string]bool {
	t.Helper()
	var kustomization struct {
		Resources, Components []string
		Patches               []struct{ Path string }
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(folder, "kustomization.yaml"))), &kustomization); err != nil {
		t.Fatal(err)
	}
	names := append(kustomization.Resources, kustomization.Components...)
	for _, patch := range kustomization.Patches {
		if patch.Path != "" {
			names = append(names, patch.Path)
		}
	}
	files := map[string]bool{}
	for _, name := range names {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			t.Fatal(err)
		case info.IsDir():
			for file := range kustomized(t, path) {
				files[file] = true
			}
		default:
			files[path] = true
		}
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
