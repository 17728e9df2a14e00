package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schema is the part of a CRD's OpenAPI schema that a descriptor is made of.
type schema struct {
	Description string             `json:"description"`
	Type        string             `json:"type"`
	Enum        []string           `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
}

// descriptor is an element of specDescriptors or statusDescriptors: how a console shows and edits one field.
type descriptor struct {
	DisplayName  string   `json:"displayName"`
	Description  string   `json:"description"`
	Path         string   `json:"path"`
	XDescriptors []string `json:"x-descriptors,omitempty"`
}

// The widgets of OpenShift's console, which is what reads x-descriptors.
const (
	widgetText       = "urn:alm:descriptor:com.tectonic.ui:text"
	widgetNumber     = "urn:alm:descriptor:com.tectonic.ui:number"
	widgetSwitch     = "urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	widgetSelect     = "urn:alm:descriptor:com.tectonic.ui:select:"
	widgetAdvanced   = "urn:alm:descriptor:com.tectonic.ui:advanced"
	widgetDependency = "urn:alm:descriptor:com.tectonic.ui:fieldDependency:"
	widgetSecret     = "urn:alm:descriptor:io.kubernetes:Secret" //nolint:gosec // the name of a widget
	widgetConditions = "urn:alm:descriptor:io.kubernetes.conditions"
	widgetLink       = "urn:alm:descriptor:org.w3:link"
)

// widgets are those that a field's type does not tell, by its path without indexes.
var widgets = []struct {
	path    *regexp.Regexp
	add     []string
	instead bool
}{
	// Secrets in the ControlPlane's own namespace: the console offers those of the form's namespace.
	{path: regexp.MustCompile(`ecretRef\.name$`), add: []string{widgetSecret}, instead: true},
	{path: regexp.MustCompile(`^secretName$`), add: []string{widgetSecret}, instead: true},
	{path: regexp.MustCompile(`^conditions$`), add: []string{widgetConditions}, instead: true},
	{path: regexp.MustCompile(`^authURL$`), add: []string{widgetLink}, instead: true},
	// Required in mode External, refused in mode Managed.
	{path: regexp.MustCompile(`^services\.keystone\.external$`), add: []string{widgetDependency + "services.keystone.mode:External"}},
	// What most installations leave alone: a managed Keystone, further clusters, what no kind reads yet.
	{path: regexp.MustCompile(`(targetClusterRef|\.gateway|publicEndpoint|allowCatalogEntries|keystone\.namespace|keystone\.caBundleSecretRef)$`),
		add: []string{widgetAdvanced}},
}

// describe makes the descriptors of all fields below a schema, parents before children. A list of conditions is
// one field: its widget shows the list as a table.
func describe(root *schema) []descriptor {
	var all []descriptor
	var walk func(prefix string, s *schema)
	walk = func(prefix string, s *schema) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			field, path := s.Properties[name], prefix+name
			d := descriptor{Path: path, Description: strings.Join(strings.Fields(field.Description), " "), XDescriptors: widgetsOf(path, field)}
			all = append(all, d)
			switch {
			case slices.Contains(d.XDescriptors, widgetConditions):
			case field.Items != nil:
				walk(path+"[0].", field.Items)
			default:
				walk(path+".", field)
			}
		}
	}
	if root != nil {
		walk("", root)
	}
	name(all)
	return all
}

func widgetsOf(path string, field *schema) []string {
	var found []string
	switch {
	case len(field.Enum) > 0:
		for _, value := range field.Enum {
			found = append(found, widgetSelect+value)
		}
	case field.Type == "boolean":
		found = []string{widgetSwitch}
	case field.Type == "integer":
		found = []string{widgetNumber}
	case field.Type == "string", field.Type == "array" && field.Items != nil && field.Items.Type == "string":
		found = []string{widgetText}
	}
	// Objects and lists of objects get none: the console draws them as the group of their fields.
	path = strings.ReplaceAll(path, "[0]", "")
	for _, widget := range widgets {
		switch {
		case !widget.path.MatchString(path):
		case widget.instead:
			return widget.add
		default:
			found = append(found, widget.add...)
		}
	}
	return found
}

// name gives each field the shortest name that no other one has: the words of its last element, with as many
// of those before as it takes.
func name(all []descriptor) {
	for i := range all {
		elements := strings.Split(strings.ReplaceAll(all[i].Path, "[0]", ""), ".")
		for from := range slices.Backward(elements) {
			all[i].DisplayName = words(elements[from:])
			if !ambiguous(all, i, elements[from:]) {
				break
			}
		}
	}
}

func ambiguous(all []descriptor, self int, elements []string) bool {
	// Of these words alone nobody could tell what they are about, even where they are unique.
	if len(elements) == 1 && slices.Contains([]string{"name", "namespace", "key", "kind", "mode", "reason", "hostname"}, elements[0]) &&
		strings.Contains(all[self].Path, ".") {
		return true
	}
	suffix := strings.Join(elements, ".")
	for i, other := range all {
		path := strings.ReplaceAll(other.Path, "[0]", "")
		if i != self && (path == suffix || strings.HasSuffix(path, "."+suffix)) {
			return true
		}
	}
	return false
}

var (
	wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])`)
	spelling  = map[string]string{"id": "ID", "url": "URL", "ca": "CA", "korc": "K-ORC", "ref": "reference"}
)

// words spells the elements of a path as a title in sentence case: caBundleSecretRef.name is "CA bundle secret
// reference name".
func words(elements []string) string {
	var all []string
	for _, element := range elements {
		for word := range strings.FieldsSeq(wordStart.ReplaceAllString(element, "$1$3 $2$4")) {
			word = strings.ToLower(word)
			if spelt, ok := spelling[word]; ok {
				word = spelt
			}
			all = append(all, word)
		}
	}
	title := strings.Join(all, " ")
	return strings.ToUpper(title[:1]) + title[1:]
}
