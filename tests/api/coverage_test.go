package api

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// rule is one sentence of a CRD's schema: a constraint on a field, such as maxLength, or the message
// of a CEL rule.
type rule struct {
	kind string
	// field is the path, [] for a list's items, empty for the object itself.
	field string
	// name is required, minLength, maxLength, pattern, enum, minimum or maxItems; for a CEL rule it is
	// the rule's message.
	name string
}

func (r rule) String() string { return fmt.Sprintf("%s %s: %s", r.kind, r.field, r.name) }

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
	if len(found) != len(admission.Kinds) {
		t.Fatalf("%s holds %d kinds of c5c3.io, want %d", crdFolder, len(found), len(admission.Kinds))
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

// TestEveryRule keeps the corpora and the schema side by side: a rule that somebody adds without an
// accepting and a refusing case fails here, and so does a case about a rule that is gone.
func TestEveryRule(t *testing.T) {
	for kind, definition := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			accepted, refused := map[rule]bool{}, map[rule]bool{}
			for _, c := range corpus(t, kind) {
				cases := accepted
				if !c.Accepted {
					cases = refused
				}
				cases[rule{kind, c.Field, c.Rule}] = true
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
				if !slices.Contains(admission.SchemaWide, r.name) && !slices.Contains(rules, r) {
					t.Errorf("a case is about %s, which the schema does not have", r)
				}
			}
		})
	}
}
