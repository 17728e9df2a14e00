package api

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions are the generated CRDs, by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if definition.Spec.Group == "c5c3.io" {
			found[definition.Spec.Names.Kind] = definition
		}
	}
	if len(found) != len(allKinds) {
		t.Fatalf("%s holds %d kinds of c5c3.io, want %d", crdFolder, len(found), len(allKinds))
	}
	return found
}

func schemaOf(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits a schema and everything below it. Paths look like spec.namespaceAssignments[].namespace.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name := range schema.Properties {
		child := schema.Properties[name]
		walk(strings.TrimPrefix(path+"."+name, "."), &child, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
}

// rulesOf are all rules that a schema sets on what a person writes.
func rulesOf(kind string, definition *apiextensionsv1.CustomResourceDefinition) []rule {
	var rules []rule
	walk("", schemaOf(definition), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		if path != "" && path != "spec" && !strings.HasPrefix(path, "spec.") {
			return
		}
		add := func(field, name string, set bool) {
			if set {
				rules = append(rules, rule{kind, field, name})
			}
		}
		for _, name := range schema.Required {
			add(strings.TrimPrefix(path+"."+name, "."), "required", true)
		}
		add(path, "minLength", schema.MinLength != nil)
		add(path, "maxLength", schema.MaxLength != nil)
		add(path, "pattern", schema.Pattern != "")
		add(path, "enum", len(schema.Enum) > 0)
		add(path, "minimum", schema.Minimum != nil)
		add(path, "maximum", schema.Maximum != nil)
		add(path, "minItems", schema.MinItems != nil)
		add(path, "maxItems", schema.MaxItems != nil)
		for _, validation := range schema.XValidations {
			add(path, validation.Message, true)
		}
	})
	return rules
}

// TestEveryRule keeps the cases and the schema side by side: a rule that somebody adds without an
// accepting and a refusing case fails here, and so does a case about a rule that is gone.
func TestEveryRule(t *testing.T) {
	for kind, definition := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			accepted, refused := map[rule]bool{}, map[rule]bool{}
			for _, c := range admissions[kind] {
				cases := accepted
				if c.refused != "" {
					cases = refused
				}
				cases[rule{kind, c.field, c.rule}] = true
			}
			rules := rulesOf(kind, definition)
			if len(rules) < 10 {
				t.Fatalf("only %d rules were found; the walk through the schema is wrong", len(rules))
			}
			for _, r := range rules {
				// What has everything that is required is accepted in every accepting case.
				if !accepted[r] && r.name != "required" {
					t.Errorf("no case accepts something about %s", r)
				}
				if !refused[r] {
					t.Errorf("no case refuses something about %s", r)
				}
			}
			for r := range refused {
				if r.name != "type" && !slices.Contains(rules, r) {
					t.Errorf("a case is about %s, which the schema does not have", r)
				}
			}
		})
	}
}
