package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const bundleFolder = "../../bundle"

func committed(t *testing.T) *version {
	t.Helper()
	v, err := readVersion(os.DirFS(bundleFolder))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEveryFieldHasADescriptor goes through the CRDs that are applied, not through those of the bundle, and finds
// each of their fields in the committed bundle by its path.
func TestEveryFieldHasADescriptor(t *testing.T) {
	definitions, err := definitionsOf(os.DirFS("../../config/crd/bases"))
	if err != nil {
		t.Fatal(err)
	}
	owned := committed(t).list("spec", "customresourcedefinitions", "owned")
	if len(owned) != len(definitions) || len(owned) == 0 {
		t.Fatalf("%d kinds are owned, %d defined", len(owned), len(definitions))
	}
	for _, kind := range owned {
		definition := definitions[at[string](kind, "name")]
		for _, one := range definition.Spec.Versions {
			for section, list := range map[string]string{"spec": "specDescriptors", "status": "statusDescriptors"} {
				t.Run(definition.Spec.Names.Kind+"/"+section, func(t *testing.T) {
					// What each field is: whether it has fields below it.
					fields := map[string]bool{}
					collect(fields, "", one.Schema.OpenAPIV3Schema.Properties[section])
					if len(fields) == 0 {
						t.Fatal("no field: nothing was checked")
					}
					titles := map[string]string{}
					for _, d := range only[object](at[[]any](kind, list)) {
						path, title := at[string](d, "path"), at[string](d, "displayName")
						group, ok := fields[path]
						switch {
						case !ok:
							t.Errorf("%s is described, and is no field or twice there", path)
						case at[string](d, "description") == "" || title == "":
							t.Errorf("%s has no description or no name", path)
						case !group && len(at[[]any](d, "x-descriptors")) == 0:
							t.Errorf("%s has no x-descriptors", path)
						case titles[title] != "":
							t.Errorf("%s and %s are both called %q", titles[title], path, title)
						}
						delete(fields, path)
						titles[title] = path
					}
					if len(fields) > 0 {
						t.Errorf("without a descriptor: %s. Run `make bundle`", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
					}
				})
			}
		}
	}
}

// collect is deliberately not the walk of the generator. Conditions are one field: all of metav1.Condition is
// shown by one widget.
func collect(into map[string]bool, path string, s *schema) {
	if s == nil {
		return
	}
	if s.Type == "array" {
		collect(into, path+"[0]", s.Items)
		return
	}
	for name, child := range s.Properties {
		below := strings.TrimPrefix(path+"."+name, ".")
		into[below] = len(child.Properties) > 0 || child.Items != nil && len(child.Items.Properties) > 0
		if name != "conditions" {
			collect(into, below, child)
		}
	}
}

func TestNamesOfFields(t *testing.T) {
	str := &schema{Type: "string"}
	got := describe(&schema{Properties: map[string]*schema{
		"authURL":         str,
		"adminUserID":     str,
		"korc":            {Properties: map[string]*schema{"caBundleSecretRef": {Properties: map[string]*schema{"name": str}}}},
		"controlPlaneRef": {Properties: map[string]*schema{"name": str}},
		"assignments":     {Type: "array", Items: &schema{Properties: map[string]*schema{"namespace": str, "allowed": {Type: "boolean"}}}},
		"managed":         {Properties: map[string]*schema{"size": {Type: "integer"}}},
		"external":        {Properties: map[string]*schema{"size": {Type: "integer"}}},
		"type":            {Type: "string", Enum: []string{"a", "b"}},
	}})
	want := map[string]string{
		"authURL": "Auth URL", "adminUserID": "Admin user ID", "korc": "K-ORC",
		"korc.caBundleSecretRef": "CA bundle secret reference", "korc.caBundleSecretRef.name": "CA bundle secret reference name",
		"controlPlaneRef": "Control plane reference", "controlPlaneRef.name": "Control plane reference name",
		"assignments": "Assignments", "assignments[0].namespace": "Assignments namespace", "assignments[0].allowed": "Allowed",
		"managed": "Managed", "managed.size": "Managed size", "external": "External", "external.size": "External size", "type": "Type",
	}
	for _, d := range got {
		if d.DisplayName != want[d.Path] {
			t.Errorf("%s is called %q, %q expected", d.Path, d.DisplayName, want[d.Path])
		}
		delete(want, d.Path)
	}
	if len(want) > 0 {
		t.Errorf("not described: %v", want)
	}
}

func TestWidgets(t *testing.T) {
	for path, c := range map[string]struct {
		field schema
		want  []string
	}{
		"region":                              {schema{Type: "string"}, []string{widgetText}},
		"roles":                               {schema{Type: "array", Items: &schema{Type: "string"}}, []string{widgetText}},
		"mode":                                {schema{Type: "string", Enum: []string{"A", "B"}}, []string{widgetSelect + "A", widgetSelect + "B"}},
		"generation":                          {schema{Type: "integer"}, []string{widgetNumber}},
		"x[0].allowCatalogEntries":            {schema{Type: "boolean"}, []string{widgetSwitch, widgetAdvanced}},
		"services.keystone.external":          {schema{Type: "object"}, []string{widgetDependency + "services.keystone.mode:External"}},
		"external.caBundleSecretRef.name":     {schema{Type: "string"}, []string{widgetSecret}},
		"secretName":                          {schema{Type: "string"}, []string{widgetSecret}},
		"conditions":                          {schema{Type: "array", Items: &schema{Type: "object"}}, []string{widgetConditions}},
		"namespaceAssignments[0].namespace":   {schema{Type: "string"}, []string{widgetText}},
		"services.keystone.caBundleSecretRef": {schema{Type: "object"}, []string{widgetAdvanced}},
	} {
		if got := widgetsOf(path, &c.field); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v expected", path, got, c.want)
		}
	}
}
