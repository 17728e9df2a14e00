package api

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

var shortNames = map[string]string{
	admission.ControlPlane: "cplane", admission.User: "kuser", admission.Project: "kproject", admission.RoleAssignment: "krole", admission.ApplicationCredential: "kappcred",
}

func TestDefinitions(t *testing.T) {
	for kind, definition := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			t.Run("is_namespaced_with_a_short_name_and_the_category", func(t *testing.T) {
				spec := definition.Spec
				if spec.Scope != apiextensionsv1.NamespaceScoped {
					t.Errorf("scope %s", spec.Scope)
				}
				if !slices.Equal(spec.Names.ShortNames, []string{shortNames[kind]}) {
					t.Errorf("short names %v, want %s", spec.Names.ShortNames, shortNames[kind])
				}
				if !slices.Equal(spec.Names.Categories, []string{"c5c3"}) {
					t.Errorf("categories %v, want c5c3", spec.Names.Categories)
				}
				if spec.Names.ListKind != kind+"List" {
					t.Errorf("list kind %s", spec.Names.ListKind)
				}
			})
			t.Run("has_one_version_with_a_status_subresource", func(t *testing.T) {
				versions := definition.Spec.Versions
				if len(versions) != 1 || versions[0].Name != "v1alpha1" || !versions[0].Served || !versions[0].Storage || versions[0].Deprecated {
					t.Fatalf("versions %+v", versions)
				}
				if versions[0].Subresources == nil || versions[0].Subresources.Status == nil {
					t.Error("no status subresource: whoever may write an order could write what became of it")
				}
			})
			t.Run("needs_no_webhook", func(t *testing.T) {
				if c := definition.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
					t.Errorf("conversion %s: target clusters run nothing of ours that could convert", c.Strategy)
				}
			})
			t.Run("keeps_nothing_that_the_schema_does_not_know", func(t *testing.T) {
				if definition.Spec.PreserveUnknownFields {
					t.Error("unknown fields are preserved")
				}
				walk("", schemaOf(definition), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
					if schema.XPreserveUnknownFields != nil || schema.XIntOrString || schema.AdditionalProperties != nil {
						t.Errorf("%s takes anything", path)
					}
				})
			})
			t.Run("describes_every_field", func(t *testing.T) {
				walk("", schemaOf(definition), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
					// kubectl explain has words of its own for metadata; an item is described by its list.
					if path == "metadata" || strings.HasSuffix(path, "[]") {
						return
					}
					if len(strings.Fields(schema.Description)) < 3 {
						t.Errorf("%s is described by %q", path, schema.Description)
					}
				})
			})
			t.Run("bounds_every_text_and_every_list", func(t *testing.T) {
				walk("", schemaOf(definition), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
					switch {
					case path == "apiVersion" || path == "kind": // the API server's own
					case schema.Type == "string" && schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format != "date-time":
						t.Errorf("%s is a text of any length", path)
					case schema.Type == "array" && schema.MaxItems == nil:
						t.Errorf("%s is a list of any length", path)
					}
				})
			})
			t.Run("words_every_rule", func(t *testing.T) {
				walk("", schemaOf(definition), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
					for _, validation := range schema.XValidations {
						if validation.Message == "" {
							t.Errorf("%s: a person who breaks %q is shown the expression", path, validation.Rule)
						}
					}
				})
			})
			t.Run("says_how_lists_merge", func(t *testing.T) {
				walk("", schemaOf(definition), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
					if schema.Type == "array" && schema.XListType == nil {
						t.Errorf("%s says nothing about how Server-Side Apply merges it", path)
					}
				})
			})
		})
	}
}

// TestDiscovery asks what `kubectl api-resources --api-group=c5c3.io` asks.
func TestDiscovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") {
			continue // a subresource, which kubectl does not list
		}
		kinds = append(kinds, resource.Kind)
		if !resource.Namespaced || !slices.Contains(resource.Categories, "c5c3") || !slices.Equal(resource.ShortNames, []string{shortNames[resource.Kind]}) {
			t.Errorf("%s: namespaced %t, categories %v, short names %v", resource.Kind, resource.Namespaced, resource.Categories, resource.ShortNames)
		}
	}
	slices.Sort(kinds)
	want := slices.Sorted(slices.Values(admission.Kinds))
	if !slices.Equal(kinds, want) {
		t.Errorf("served are %v, want %v", kinds, want)
	}
}
