package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// API is what the rows have to cover.
type API struct {
	// Reasons and Conditions are the values of the constants of api/v1alpha1, and of those of a
	// CredentialUpdateRequest, whose phases and determinations are reasons too.
	Reasons, Conditions map[string]bool
	// Items are, by kind, what the CRDs hold, spelled as in a row's covers:
	//
	//	status secretName
	//	rule spec.userRef: the message of a CEL rule
	//	default spec.rotation.interval: "720h"
	//	limits spec.userRef.name: required, minLength 1, maxLength 63
	//	column Ready: .status.conditions[?(@.type=='Ready')].status
	Items map[string][]string
}

// definitions are the CRDs that rows cover. The other kinds of agents are another project's, and only as far as they are
// read.
var definitions = []string{"config/crd/bases/c5c3.io_*.yaml", "config/crd/agentprimitives/*_credentialupdaterequests.yaml"}

// loadAPI derives the items from the constants of the kinds and from their CRDs.
func loadAPI(root string) (API, error) {
	api := API{Reasons: map[string]bool{}, Conditions: map[string]bool{}, Items: map[string][]string{}}
	for _, folder := range []string{"api/v1alpha1", "api/agentprimitives/v1alpha1"} {
		if err := api.readConstants(filepath.Join(root, folder)); err != nil {
			return API{}, err
		}
	}
	var files []string
	for _, pattern := range definitions {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return API{}, err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return API{}, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, definition); err != nil {
			return API{}, fmt.Errorf("%s: %w", file, err)
		}
		api.Items[definition.Spec.Names.Kind] = itemsOf(definition)
	}
	if len(api.Items) == 0 || len(api.Reasons) == 0 {
		return API{}, fmt.Errorf("%d kinds and %d reasons below %s: the search is wrong", len(api.Items), len(api.Reasons), root)
	}
	return api, nil
}

// readConstants finds the string constants named Reason*, Determination*, Phase* and Condition* of a package.
func (api API) readConstants(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				return true
			}
			switch name := spec.Names[0].Name; {
			case strings.HasPrefix(name, "Reason"), strings.HasPrefix(name, "Determination"), strings.HasPrefix(name, "Phase"):
				api.Reasons[value] = true
			case strings.HasPrefix(name, "Condition"):
				api.Conditions[value] = true
			}
			return true
		})
	}
	return nil
}

// itemsOf derives the items of one CRD, sorted.
func itemsOf(definition *apiextensionsv1.CustomResourceDefinition) []string {
	var items []string
	add := func(format string, args ...any) { items = append(items, fmt.Sprintf(format, args...)) }
	for _, version := range definition.Spec.Versions {
		for _, column := range version.AdditionalPrinterColumns {
			add("column %s: %s", column.Name, column.JSONPath)
		}
		walk("", version.Schema.OpenAPIV3Schema, false, func(path string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
			for _, rule := range schema.XValidations {
				add("rule %s: %s", orObject(path), rule.Message)
			}
			if schema.Default != nil {
				add("default %s: %s", path, compact(schema.Default.Raw))
			}
			if field, ok := strings.CutPrefix(path, "status."); ok && len(schema.Properties) == 0 && (schema.Items == nil || len(schema.Items.Schema.Properties) == 0 || field == "conditions") {
				add("status %s", strings.TrimSuffix(field, "[]"))
			}
			if limits := limitsOf(schema, required); len(limits) > 0 && (path == "spec" || strings.HasPrefix(path, "spec.")) {
				add("limits %s: %s", path, strings.Join(limits, ", "))
			}
		})
	}
	slices.Sort(items)
	return slices.Compact(items)
}

// walk visits a schema and what is below it. A path looks like spec.namespaceAssignments[].namespace.
// It goes no deeper into conditions: what a condition is made of is Kubernetes' business.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, required bool, visit func(string, *apiextensionsv1.JSONSchemaProps, bool)) {
	visit(path, schema, required)
	if path == "status.conditions" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		child := schema.Properties[name]
		walk(strings.TrimPrefix(path+"."+name, "."), &child, slices.Contains(schema.Required, name), visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, false, visit)
	}
}

// limitsOf are the limits of one field in words.
func limitsOf(schema *apiextensionsv1.JSONSchemaProps, required bool) []string {
	var limits []string
	add := func(format string, args ...any) { limits = append(limits, fmt.Sprintf(format, args...)) }
	if required {
		add("required")
	}
	for name, bound := range map[string]*int64{
		"minLength": schema.MinLength, "maxLength": schema.MaxLength, "minItems": schema.MinItems, "maxItems": schema.MaxItems,
	} {
		if bound != nil {
			add("%s %d", name, *bound)
		}
	}
	for name, bound := range map[string]*float64{"minimum": schema.Minimum, "maximum": schema.Maximum} {
		if bound != nil {
			add("%s %g", name, *bound)
		}
	}
	if schema.Pattern != "" {
		add("pattern %s", schema.Pattern)
	}
	for _, value := range schema.Enum {
		add("enum %s", compact(value.Raw))
	}
	slices.Sort(limits)
	return limits
}

func orObject(path string) string {
	if path == "" {
		return "object"
	}
	return path
}

// compact is a JSON value without the spaces that a generator may or may not write.
func compact(raw []byte) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	short, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(short)
}
