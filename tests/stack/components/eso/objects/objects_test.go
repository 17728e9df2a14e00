// Package objects holds objects as the operator writes them against ESO's own Go types and CRDs.
//
// The operator can't import those types (they need an older controller-runtime), so it declares the few
// fields that it uses. The files in ../testdata are what it writes; the test here shows that they mean
// to ESO what they mean to the operator. A package of its own, because a test of the program next to it
// would link every provider.
package objects

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	esv1alpha1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// kinds maps what the operator writes to ESO's own type and CRD file.
var kinds = map[string]struct {
	new func() any
	crd string
}{
	"external-secrets.io/v1alpha1 PushSecret":   {func() any { return &esv1alpha1.PushSecret{} }, "external-secrets.io_pushsecrets.yaml"},
	"external-secrets.io/v1 SecretStore":        {func() any { return &esv1.SecretStore{} }, "external-secrets.io_secretstores.yaml"},
	"external-secrets.io/v1 ClusterSecretStore": {func() any { return &esv1.ClusterSecretStore{} }, "external-secrets.io_clustersecretstores.yaml"},
}

func TestObjectsAreESOs(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects to hold against ESO: %v", err)
	}
	crds := crdFolder(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, document := range bytes.Split(text, []byte("\n---\n")) {
			if len(bytes.TrimSpace(document)) == 0 {
				continue
			}
			t.Run(filepath.Base(file)+"/"+string(rune('0'+i)), func(t *testing.T) { check(t, document, crds) })
		}
	}
}

func check(t *testing.T, document []byte, crds string) {
	var want map[string]any
	if err := yaml.Unmarshal(document, &want); err != nil {
		t.Fatal(err)
	}
	apiVersion, _ := want["apiVersion"].(string)
	kind, _ := want["kind"].(string)
	known, ok := kinds[apiVersion+" "+kind]
	if !ok {
		t.Fatalf("%s %s is no kind that this test knows", apiVersion, kind)
	}

	t.Run("decodes strictly", func(t *testing.T) {
		if err := yaml.UnmarshalStrict(document, known.new()); err != nil {
			t.Error(err)
		}
	})
	t.Run("comes back without loss", func(t *testing.T) {
		object := known.new()
		if err := yaml.Unmarshal(document, object); err != nil {
			t.Fatal(err)
		}
		encoded, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		for _, difference := range differences("", want, got) {
			t.Error(difference)
		}
	})
	t.Run("passes the schema of its CRD", func(t *testing.T) {
		for _, problem := range schemaProblems(t, filepath.Join(crds, known.crd), strings.TrimPrefix(apiVersion, "external-secrets.io/"), want) {
			t.Error(problem)
		}
	})
}

// differences lists the fields that were lost or changed, and the ones that appeared with a value.
// What a Go type writes for an unset field (null, "", {}) is neither.
func differences(path string, want, got any) []string {
	wantMap, wantIsMap := want.(map[string]any)
	gotMap, gotIsMap := got.(map[string]any)
	if wantIsMap && gotIsMap {
		var all []string
		for key, value := range wantMap {
			other, ok := gotMap[key]
			if !ok {
				all = append(all, path+"."+key+" was lost")
				continue
			}
			all = append(all, differences(path+"."+key, value, other)...)
		}
		for key, value := range gotMap {
			if _, ok := wantMap[key]; !ok && !empty(value) {
				all = append(all, path+"."+key+" appeared")
			}
		}
		return all
	}
	wantList, wantIsList := want.([]any)
	gotList, gotIsList := got.([]any)
	if wantIsList && gotIsList && len(wantList) == len(gotList) {
		var all []string
		for i := range wantList {
			all = append(all, differences(path+"[]", wantList[i], gotList[i])...)
		}
		return all
	}
	if !reflect.DeepEqual(want, got) {
		return []string{path + " was changed"}
	}
	return nil
}

func empty(value any) bool {
	if m, ok := value.(map[string]any); ok {
		for _, v := range m {
			if !empty(v) {
				return false
			}
		}
		return true
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

func TestDifferences(t *testing.T) {
	full := map[string]any{"a": "1", "b": []any{map[string]any{"c": "2"}}}
	for name, c := range map[string]struct {
		got  map[string]any
		want string
	}{
		"equal":          {map[string]any{"a": "1", "b": []any{map[string]any{"c": "2"}}}, ""},
		"unset field":    {map[string]any{"a": "1", "b": []any{map[string]any{"c": "2", "d": nil}}, "status": map[string]any{"t": nil}}, ""},
		"lost field":     {map[string]any{"a": "1", "b": []any{map[string]any{}}}, ".b[].c was lost"},
		"changed field":  {map[string]any{"a": "3", "b": []any{map[string]any{"c": "2"}}}, ".a was changed"},
		"new field":      {map[string]any{"a": "1", "e": "5", "b": []any{map[string]any{"c": "2"}}}, ".e appeared"},
		"shortened list": {map[string]any{"a": "1", "b": []any{}}, ".b was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(differences("", full, c.got), ","); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func schemaProblems(t *testing.T, file, version string, object map[string]any) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != version {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			t.Fatal(err)
		}
		validator, _, err := validation.NewSchemaValidator(&schema)
		if err != nil {
			t.Fatal(err)
		}
		var problems []string
		for _, e := range validation.ValidateCustomResource(nil, object, validator) {
			problems = append(problems, e.Error())
		}
		return problems
	}
	t.Fatalf("%s has no version %s", file, version)
	return nil
}

// crdFolder finds ESO's CRDs in the module that is linked.
func crdFolder(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/external-secrets/external-secrets").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config/crds/bases")
}
