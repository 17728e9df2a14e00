package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := writeFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRenderChart(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "values.yaml"), "image: {ref: theirs, policy: Always}\nports: [{port: 53}]\nextra: \"\"\n")
	write(t, filepath.Join(folder, "templates/_named.tpl"), `{{- define "named" -}}{{ .Release.Name | trunc 2 | trimSuffix "-" }}{{- end -}}`)
	write(t, filepath.Join(folder, "templates/b.yaml"), `---
image: {{ .Values.image.ref | quote }}
policy: {{ .Values.image.policy }}
version: {{ .Chart.Version }}
name: {{ include "named" . }}
missing: {{ default "x" .Values.extra }}
ports:
{{- .Values.ports | toYaml | nindent 2 }}
`)
	write(t, filepath.Join(folder, "templates/a.yaml"), "{{- if .Values.image.none }}\nkind: Never\n{{- end }}\n")
	got, err := renderChart(folder, "o-lm", "1.2.3", map[string]any{"image": map[string]any{"ref": "ours"}})
	want := `---
image: "ours"
policy: Always
version: 1.2.3
name: o
missing: x
ports:
  - port: 53
`
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s", err, got)
	}
	if _, err := renderChart(t.TempDir(), "x", "1", nil); err == nil {
		t.Error("a folder without a chart was rendered")
	}
}

func TestBundle(t *testing.T) {
	folder := t.TempDir()
	crds := filepath.Join(folder, "crds")
	write(t, filepath.Join(crds, "things.yaml"), `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  conversion: {strategy: None}
  names: {kind: Thing}
  versions: [{name: v1alpha1}, {name: v1}]
`)
	write(t, filepath.Join(crds, "kustomization.yaml"), "kind: Kustomization\n")
	b := bundle{
		packageName: "thing", displayName: "Things", crds: []string{crds}, account: "keeper",
		cluster: []any{map[string]any{"verbs": []any{"get"}}}, deploymentName: "thing",
		deployment: map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "controller:latest"}}}}},
	}
	target := filepath.Join(folder, "bundle")
	if err := b.write(target, "1.2.3", "local.test/thing:v1.2.3"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(target, "manifests/thing.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"name: thing.v1.2.3", "image: local.test/thing:v1.2.3", "serviceAccountName: keeper", "version: v1alpha1", "version: v1\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "\n      permissions:") {
		t.Errorf("rights in a namespace that the manifests do not give:\n%s", text)
	}
	crd, err := os.ReadFile(filepath.Join(target, "manifests/things.yaml"))
	if err != nil || strings.Contains(string(crd), "conversion") {
		t.Errorf("the conversion is OLM's: %v\n%s", err, crd)
	}
	if _, err := os.Stat(filepath.Join(target, "manifests/kustomization.yaml")); err == nil {
		t.Error("the bundle has a file that is no manifest")
	}
	files, err := folderFiles(target, "")
	if err != nil {
		t.Fatal(err)
	}
	labels, err := bundleLabels(files)
	if err != nil || labels["operators.operatorframework.io.bundle.package.v1"] != "thing" {
		t.Errorf("labels %v, %v", labels, err)
	}
	if _, err := bundleLabels(nil); err == nil {
		t.Error("a folder without annotations is a bundle")
	}
}

// The rules of ESO's manifest reach its bundle whole.
func TestESOBundleHasTheRulesOfTheManifest(t *testing.T) {
	b, err := testStack(t).esoBundle()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(b.cluster)
	if err != nil || len(b.cluster) < 5 || !strings.Contains(string(text), "pushsecrets/finalizers") {
		t.Errorf("%v\n%s", err, text)
	}
}
