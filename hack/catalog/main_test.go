// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const head = "schema: olm.template.basic\nentries:\n"

func TestRender(t *testing.T) {
	bundle := func(_ context.Context, folder, image string) ([]byte, error) {
		if folder == "broken" {
			return nil, errors.New("no bundle")
		}
		return []byte("---\nimage: " + image + "\nname: of " + folder + "\n"), nil
	}
	folders := map[string]string{"r.test/b:v1": "b1", "r.test/b:v2": "b2", "r.test/b:v3": "broken"}
	for name, c := range map[string]struct{ template, want, problem string }{
		"other entries stay as they are": {
			template: head + "- {schema: olm.package, name: p}\n",
			want:     "---\nname: p\nschema: olm.package\n",
		},
		"a bundle is rendered in its place": {
			template: head + "- {schema: olm.bundle, image: 'r.test/b:v2'}\n- {schema: olm.channel, name: c}\n",
			want:     "---\nimage: r.test/b:v2\nname: of b2\n---\nname: c\nschema: olm.channel\n",
		},
		"a bundle without a folder":        {template: head + "- {schema: olm.bundle, image: 'r.test/b:v9'}\n", problem: "r.test/b:v9"},
		"a bundle that cannot be rendered": {template: head + "- {schema: olm.bundle, image: 'r.test/b:v3'}\n", problem: "no bundle"},
		"a template of another kind":       {template: "schema: olm.semver\nentries: []\n", problem: "olm.semver"},
		"a misspelt field":                 {template: "schema: olm.template.basic\nentry: []\n", problem: "entry"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render(t.Context(), []byte(c.template), folders, bundle)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("error %v does not say %q", err, c.problem)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("got\n%s\n%v", got, err)
			}
		})
	}
}

// The rules that opm does not check: every version can be left by an edge that names what it replaces.
func TestCommittedTemplates(t *testing.T) {
	files, err := filepath.Glob("../../catalog/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no templates", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var parsed template
		if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
			t.Fatal(err)
		}
		for _, problem := range edgeProblems(t, parsed) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// The version of the bundle in this tree can be had, and what is in stable has been in candidate.
func TestChannelsHaveTheBundle(t *testing.T) {
	text, err := os.ReadFile("../../bundle/manifests/c5c3-operator.clusterserviceversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var csv struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(text, &csv); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile("../../catalog/c5c3-operator.yaml"); err != nil {
		t.Fatal(err)
	}
	var parsed template
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		t.Fatal(err)
	}
	channels := map[any]map[any]any{}
	for _, entry := range parsed.Entries {
		if entry["schema"] != "olm.channel" {
			continue
		}
		edges := map[any]any{}
		for _, one := range entry["entries"].([]any) {
			edges[one.(map[string]any)["name"]] = one
		}
		channels[entry["name"]] = edges
	}
	if _, found := channels["candidate"][csv.Metadata.Name]; !found {
		t.Errorf("candidate has no %s", csv.Metadata.Name)
	}
	for name, edge := range channels["stable"] {
		if !reflect.DeepEqual(edge, channels["candidate"][name]) {
			t.Errorf("stable has %v, and candidate %v", edge, channels["candidate"][name])
		}
	}
}

func TestEdgeProblems(t *testing.T) {
	channel := func(entries string) template {
		var parsed template
		if err := yaml.Unmarshal([]byte(head+"- {schema: olm.channel, name: c, entries: ["+entries+"]}\n"), &parsed); err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	if found := edgeProblems(t, channel("{name: p.v1.0.0}, {name: p.v1.1.0, replaces: p.v1.0.0, skipRange: '<1.1.0'}")); len(found) > 0 {
		t.Errorf("a channel in order: %v", found)
	}
	for name, entries := range map[string]string{
		"a skipRange alone":         "{name: p.v1.0.0}, {name: p.v1.1.0, skipRange: '<1.1.0'}",
		"two that replace nothing":  "{name: p.v1.0.0}, {name: p.v1.1.0}",
		"one that replaces nobody":  "{name: p.v1.0.0}, {name: p.v1.1.0, replaces: p.v0.9.0}",
		"a name without a version":  "{name: p}",
		"the same version replaced": "{name: p.v1.0.0, replaces: p.v1.0.0}",
	} {
		if len(edgeProblems(t, channel(entries))) == 0 {
			t.Errorf("%s: nothing found", name)
		}
	}
}

var versioned = regexp.MustCompile(`^[a-z0-9-]+\.v\d+\.\d+\.\d+`)

// edgeProblems finds entries of channels that nobody could upgrade to or from.
func edgeProblems(t *testing.T, parsed template) []string {
	t.Helper()
	var problems []string
	for _, entry := range parsed.Entries {
		if entry["schema"] != "olm.channel" {
			continue
		}
		list, _ := entry["entries"].([]any)
		names, first := map[string]bool{}, 0
		for _, one := range list {
			name, _ := one.(map[string]any)["name"].(string)
			names[name] = true
		}
		for _, one := range list {
			fields := one.(map[string]any)
			name, _ := fields["name"].(string)
			replaces, _ := fields["replaces"].(string)
			switch {
			case !versioned.MatchString(name):
				problems = append(problems, name+" is not called PACKAGE.vVERSION")
			case replaces == name:
				problems = append(problems, name+" replaces itself")
			case replaces != "" && !names[replaces]:
				problems = append(problems, name+" replaces "+replaces+", which the channel has not")
			case replaces == "" && fields["skipRange"] != nil:
				problems = append(problems, name+" has a skipRange and replaces nothing")
			case replaces == "":
				first++
			}
		}
		if first > 1 {
			problems = append(problems, "more than one entry replaces nothing")
		}
	}
	return problems
}
