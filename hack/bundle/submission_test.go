package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/constraints"
	"sigs.k8s.io/yaml"
)

// submission is the committed bundle as `make operatorhub` lays it out.
type submission struct {
	t      *testing.T
	files  fstest.MapFS
	folder string // of the one version
	csv    object
}

const csvFile = "/manifests/c5c3-operator.clusterserviceversion.yaml"

func newSubmission(t *testing.T) *submission {
	t.Helper()
	number := at[string](committed(t).csv, "spec", "version")
	s := &submission{t: t, files: fstest.MapFS{}, folder: "operators/c5c3-operator/" + number}
	err := fs.WalkDir(os.DirFS(bundleFolder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == "metadata/dependencies.yaml" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(bundleFolder, path))
		s.files[s.folder+"/"+path] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../../config/manifests/ci.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.files["operators/c5c3-operator/ci.yaml"] = &fstest.MapFile{Data: config}
	if err := yaml.Unmarshal(s.files[s.folder+csvFile].Data, &s.csv); err != nil {
		t.Fatal(err)
	}
	return s
}

// check judges the submission with what was done to its ClusterServiceVersion.
func (s *submission) check() error {
	text, err := yaml.Marshal(s.csv)
	if err != nil {
		s.t.Fatal(err)
	}
	s.files[s.folder+csvFile] = &fstest.MapFile{Data: text}
	findings, err := checkSubmission(s.files)
	return errors.Join(append([]error{err}, findings...)...)
}

func (s *submission) put(path, text string) { s.files[path] = &fstest.MapFile{Data: []byte(text)} }

// add puts another version beside the first one, which it replaces or not.
func (s *submission) add(number, replaces string) {
	var csv object
	text, err := yaml.Marshal(s.csv)
	if err == nil {
		err = yaml.Unmarshal(text, &csv)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	at[object](csv, "metadata")["name"] = "c5c3-operator.v" + number
	at[object](csv, "spec")["version"] = number
	at[object](csv, "spec")["replaces"] = replaces
	if text, err = yaml.Marshal(csv); err != nil {
		s.t.Fatal(err)
	}
	for path, file := range s.files {
		if below, ok := strings.CutPrefix(path, s.folder); ok {
			s.files["operators/c5c3-operator/"+number+below] = file
		}
	}
	s.files["operators/c5c3-operator/"+number+csvFile] = &fstest.MapFile{Data: text}
}

func (s *submission) annotations() object { return at[object](s.csv, "metadata", "annotations") }
func (s *submission) spec() object        { return at[object](s.csv, "spec") }
func (s *submission) owned(i int) object {
	return only[object](at[[]any](s.csv, "spec", "customresourcedefinitions", "owned"))[i]
}

func (s *submission) container() object {
	deployment := only[object](at[[]any](s.csv, "spec", "install", "spec", "deployments"))[0]
	return only[object](at[[]any](deployment, "spec", "template", "spec", "containers"))[0]
}

func (s *submission) examples(change func([]object) []object) {
	var examples []object
	if err := json.Unmarshal([]byte(s.annotations()["alm-examples"].(string)), &examples); err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(change(examples))
	if err != nil {
		s.t.Fatal(err)
	}
	s.annotations()["alm-examples"] = string(text)
}

func icon(svg string) []any {
	return []any{object{"base64data": base64.StdEncoding.EncodeToString([]byte(svg)), "mediatype": "image/svg+xml"}}
}

// TestSubmission holds the committed bundle against the rules, and shows of each rule that it finds what is
// spoilt in one place.
func TestSubmission(t *testing.T) {
	const square = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">%s</svg>`
	for name, c := range map[string]struct {
		spoil  func(*submission)
		refuse string
	}{
		"as_committed": {func(*submission) {}, ""},
		"two_versions": {func(s *submission) { s.add("9.0.0", at[string](s.csv, "metadata", "name")) }, ""},
		"a_good_icon":  {func(s *submission) { s.spec()["icon"] = icon(fmt.Sprintf(square, "")) }, ""},
		"a_reviewer": {func(s *submission) {
			s.put("operators/c5c3-operator/ci.yaml", "{updateGraph: semver-mode, reviewers: [a-b]}")
		}, ""},
		"another_CSV_name":          {func(s *submission) { at[object](s.csv, "metadata")["name"] = "c5c3.v0.1.0" }, `is called "c5c3.v0.1.0"`},
		"another_folder":            {func(s *submission) { s.add("9.0.0", ""); s.spec()["version"] = "9.0.1" }, "is in the folder"},
		"no_version":                {func(s *submission) { s.spec()["version"] = "1.0" }, "spec.version"},
		"a_version_with_a_v":        {func(s *submission) { s.spec()["version"] = "v1.0.0" }, "spec.version"},
		"half_a_Kubernetes":         {func(s *submission) { s.spec()["minKubeVersion"] = "1.29" }, "spec.minKubeVersion"},
		"no_Kubernetes":             {func(s *submission) { delete(s.spec(), "minKubeVersion") }, "spec.minKubeVersion"},
		"a_long_name":               {func(s *submission) { s.spec()["displayName"] = strings.Repeat("x", 51) }, "spec.displayName has 51"},
		"a_short_description":       {func(s *submission) { s.spec()["description"] = "An operator." }, "spec.description"},
		"no_provider":               {func(s *submission) { delete(s.spec(), "provider") }, "spec.provider.name"},
		"no_support":                {func(s *submission) { delete(s.annotations(), "support") }, "support has 0"},
		"a_long_tile":               {func(s *submission) { s.annotations()["description"] = strings.Repeat("x", 136) }, "description has 136"},
		"an_unknown_level":          {func(s *submission) { s.annotations()["capabilities"] = "Autopilot" }, "capability level"},
		"a_category_of_one_list":    {func(s *submission) { s.annotations()["categories"] = "Security, Observability" }, `"Observability"`},
		"a_date_without_zone":       {func(s *submission) { s.annotations()["createdAt"] = "2026-12-01T00:00:00" }, "createdAt"},
		"a_day":                     {func(s *submission) { s.annotations()["createdAt"] = "2026-12-01" }, "createdAt"},
		"no_repository":             {func(s *submission) { s.annotations()["repository"] = "github.com/c5c3" }, "repository"},
		"no_keywords":               {func(s *submission) { s.spec()["keywords"] = []any{} }, "spec.keywords"},
		"no_maintainers":            {func(s *submission) { delete(s.spec(), "maintainers") }, "spec.maintainers"},
		"an_unreachable_maintainer": {func(s *submission) { s.spec()["maintainers"] = []any{object{"name": "x", "email": "x"}} }, "maintainer"},
		"no_links":                  {func(s *submission) { s.spec()["links"] = []any{} }, "spec.links"},
		"a_link_to_nowhere":         {func(s *submission) { s.spec()["links"] = []any{object{"name": "x", "url": "docs/x"}} }, `to "docs/x"`},
		"no_icon":                   {func(s *submission) { delete(s.spec(), "icon") }, "0 icons"},
		"an_icon_in_no_base64": {func(s *submission) {
			s.spec()["icon"] = []any{object{"base64data": "<svg>", "mediatype": "image/svg+xml"}}
		}, "no base64"},
		"an_icon_of_another_type":    {func(s *submission) { s.spec()["icon"] = []any{object{"base64data": "AAAA", "mediatype": "image/webp"}} }, "image/webp"},
		"an_icon_that_is_no_SVG":     {func(s *submission) { s.spec()["icon"] = icon("<html></html>") }, "no SVG"},
		"an_icon_that_is_not_square": {func(s *submission) { s.spec()["icon"] = icon(strings.Replace(square, "8 8", "80 40", 1)) }, "not square"},
		"an_icon_with_a_script":      {func(s *submission) { s.spec()["icon"] = icon(fmt.Sprintf(square, "<script/>")) }, "<script"},
		"no_related_images":          {func(s *submission) { delete(s.spec(), "relatedImages") }, "spec.relatedImages lacks"},
		"a_related_image_without_tag": {func(s *submission) {
			s.spec()["relatedImages"] = []any{object{"name": "x", "image": "ghcr.io/c5c3/c5c3-operator"}}
		}, "related image"},
		"the_latest_image":      {func(s *submission) { s.container()["image"] = "ghcr.io/c5c3/c5c3-operator:latest" }, "one version"},
		"an_image_of_a_machine": {func(s *submission) { s.container()["image"] = "controller:v1" }, "in a registry"},
		"another_image_shown":   {func(s *submission) { s.annotations()["containerImage"] = "ghcr.io/c5c3/other:v1" }, "containerImage"},
		"a_NetworkPolicy": {func(s *submission) {
			s.put(s.folder+"/manifests/policy.yaml", "{kind: NetworkPolicy, apiVersion: networking.k8s.io/v1}")
		}, "refuses a NetworkPolicy"},
		"a_Namespace": {func(s *submission) { s.put(s.folder+"/manifests/n.yaml", "{kind: Namespace, apiVersion: v1}") }, `no "Namespace"`},
		"the_deployments_account": {func(s *submission) {
			s.put(s.folder+"/manifests/a.yaml", "{kind: ServiceAccount, apiVersion: v1, metadata: {name: c5c3-operator}}")
		}, "by itself"},
		"an_object_with_a_namespace": {func(s *submission) {
			s.put(s.folder+"/manifests/a.yaml", "{kind: ConfigMap, apiVersion: v1, metadata: {name: a, namespace: b}}")
		}, "names a namespace"},
		"an_old_CRD": {func(s *submission) {
			s.put(s.folder+"/manifests/c.yaml", "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1beta1, metadata: {name: a.b}}")
		}, "serves only"},
		"a_CRD_that_is_not_owned": {func(s *submission) {
			s.put(s.folder+"/manifests/c.yaml", "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: a.b}}")
		}, "a.b is in the bundle and not owned"},
		"an_owned_kind_without_CRD": {func(s *submission) { delete(s.files, s.folder+"/manifests/c5c3.io_keystoneusers.yaml") }, "keystoneusers.c5c3.io is owned and not in"},
		"a_kind_by_another_name":    {func(s *submission) { s.owned(0)["kind"] = "Plane" }, `owned as a "Plane"`},
		"a_kind_nobody_explains":    {func(s *submission) { s.owned(0)["description"] = "" }, "has no description"},
		"a_kind_of_nothing":         {func(s *submission) { delete(s.owned(0), "resources") }, "lists no resources"},
		"a_conversion": {func(s *submission) {
			path := s.folder + "/manifests/c5c3.io_keystoneusers.yaml"
			s.put(path, strings.Replace(string(s.files[path].Data), "spec:\n", "spec:\n  conversion: {strategy: None}\n", 1))
		}, "spec.conversion"},
		"examples_that_are_no_JSON":   {func(s *submission) { s.annotations()["alm-examples"] = "[" }, "alm-examples"},
		"an_example_without_status":   {func(s *submission) { s.examples(func(e []object) []object { delete(e[0], "status"); return e }) }, "no status"},
		"a_kind_without_an_example":   {func(s *submission) { s.examples(func(e []object) []object { return e[1:] }) }, "no example of"},
		"an_example_of_anothers_kind": {func(s *submission) { s.examples(func(e []object) []object { e[0]["apiVersion"] = "v1"; return e }) }, "does not own"},
		"an_install_mode_twice": {func(s *submission) {
			s.spec()["installModes"] = append(s.spec()["installModes"].([]any), object{"type": "AllNamespaces", "supported": true})
		}, "AllNamespaces is named 2 times"},
		"no_install_mode_supported": {func(s *submission) {
			for _, mode := range only[object](s.spec()["installModes"].([]any)) {
				mode["supported"] = false
			}
		}, "none is supported"},
		"no_deployment":     {func(s *submission) { delete(at[object](s.csv, "spec", "install", "spec"), "deployments") }, "deployment: there is none"},
		"no_requests":       {func(s *submission) { delete(at[object](s.container(), "resources"), "requests") }, "requests no cpu"},
		"no_liveness_probe": {func(s *submission) { delete(s.container(), "livenessProbe") }, "no livenessProbe"},
		"a_right_to_make_CRDs": {func(s *submission) {
			rights := only[object](at[[]any](s.csv, "spec", "install", "spec", "clusterPermissions"))[0]
			rights["rules"] = append(rights["rules"].([]any), object{
				"apiGroups": []any{"apiextensions.k8s.io"}, "resources": []any{"customresourcedefinitions"}, "verbs": []any{"create"},
			})
		}, "may write CRDs"},
		"more_than_a_ConfigMap_holds": {func(s *submission) {
			random := rand.NewChaCha8([32]byte{})
			noise := make([]byte, 1<<20)
			_, _ = random.Read(noise)
			s.put(s.folder+"/manifests/noise.yaml", "{kind: ConfigMap, apiVersion: v1, metadata: {name: "+base64.StdEncoding.EncodeToString(noise)+"}}")
		}, "bytes packed"},
		"an_odd_channel":              {func(s *submission) { s.replace("metadata/annotations.yaml", "candidate,stable", "alpha,stable") }, `channel "alpha"`},
		"a_default_channel_of_others": {func(s *submission) { s.replace("metadata/annotations.yaml", "default.v1: stable", "default.v1: fast") }, "default channel"},
		"another_package": {func(s *submission) {
			s.replace("metadata/annotations.yaml", "package.v1: c5c3-operator", "package.v1: c5c3")
		}, `the package "c5c3"`},
		"no_scorecard": {func(s *submission) { s.replace("metadata/annotations.yaml", "scorecard+v1", "") }, "test.mediatype"},
		"dependencies": {func(s *submission) { s.put(s.folder+"/metadata/dependencies.yaml", "dependencies: []") }, "nothing on OperatorHub"},
		"required_kinds": {func(s *submission) {
			at[object](s.csv, "spec", "customresourcedefinitions")["required"] = []any{object{"name": "x"}}
		}, "required kinds"},
		"no_ci_yaml":                {func(s *submission) { delete(s.files, "operators/c5c3-operator/ci.yaml") }, "ci.yaml: there is none"},
		"an_odd_update_graph":       {func(s *submission) { s.put("operators/c5c3-operator/ci.yaml", "updateGraph: replaces") }, `no updateGraph "replaces"`},
		"no_update_graph":           {func(s *submission) { s.put("operators/c5c3-operator/ci.yaml", "{}") }, "updateGraph is missing"},
		"a_reviewer_by_mail":        {func(s *submission) { s.put("operators/c5c3-operator/ci.yaml", "reviewers: [a@example.com]") }, "no account"},
		"a_setting_nobody_reads":    {func(s *submission) { s.put("operators/c5c3-operator/ci.yaml", "merge: true") }, `reads no "merge"`},
		"a_dangling_version":        {func(s *submission) { s.add("9.0.0", "") }, "has 2 heads"},
		"a_loop":                    {func(s *submission) { s.spec()["replaces"] = s.csv["metadata"].(object)["name"] }, "loop"},
		"a_version_that_is_missing": {func(s *submission) { s.spec()["replaces"] = "c5c3-operator.v0.0.9" }, "not there"},
		"a_skip_without_replaces":   {func(s *submission) { s.annotations()["olm.skipRange"] = "<1.0.0" }, "olm.skipRange"},
		"two_operators":             {func(s *submission) { s.put("operators/other/ci.yaml", "") }, "one operator per submission"},
		"a_file_too_many":           {func(s *submission) { s.put("operators/c5c3-operator/README.md", "") }, "does not belong"},
		"two_CSVs":                  {func(s *submission) { s.put(s.folder+"/manifests/2.yaml", "kind: ClusterServiceVersion") }, "two ClusterServiceVersions"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubmission(t)
			c.spoil(s)
			expect(t, s.check(), c.refuse)
		})
	}
}

// replace changes a file of the version, which has to have what is replaced.
func (s *submission) replace(file, old, replacement string) {
	path := s.folder + "/" + file
	text := string(s.files[path].Data)
	if !strings.Contains(text, old) {
		s.t.Fatalf("%s has no %q to spoil", file, old)
	}
	s.put(path, strings.Replace(text, old, replacement, 1))
}

// TestFlavours has `make operatorhub` lay out a submission: it is the bundle of our catalog but for the
// dependencies.
func TestFlavours(t *testing.T) {
	folder := t.TempDir()
	if err := layOut(t, "OPERATORHUB_DIR="+folder); err != nil {
		t.Fatal(err)
	}
	versions, err := filepath.Glob(filepath.Join(folder, "operators/c5c3-operator/*/"))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := contents(t, bundleFolder), map[string]string{}
	for _, version := range versions {
		if filepath.Base(version) != "ci.yaml" {
			theirs = contents(t, version)
		}
	}
	for file, text := range ours {
		other, ok := theirs[file]
		switch {
		case file == "metadata/dependencies.yaml":
			if ok {
				t.Errorf("OperatorHub's bundle has %s", file)
			}
		case !ok || other != text:
			t.Errorf("%s differs", file)
		}
		delete(theirs, file)
	}
	if len(theirs) > 0 {
		t.Errorf("only OperatorHub's bundle has %v", theirs)
	}
}

// layOut runs what `make operatorhub` does, on the committed bundle unless told otherwise.
func layOut(t *testing.T, env ...string) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../operatorhub.sh")
	command.Env = append(append(os.Environ(), "BUNDLE_DIR=bundle"), env...)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// TestNextVersion submits a version after the committed one is published.
func TestNextVersion(t *testing.T) {
	published := t.TempDir()
	if err := layOut(t, "OPERATORHUB_DIR="+published); err != nil {
		t.Fatal(err)
	}
	first := at[string](committed(t).csv, "metadata", "name")
	for name, c := range map[string]struct {
		replaces, clone, refuse string
	}{
		"replaces_the_published_one":     {first, published, ""},
		"without_the_published_one":      {first, "", first + `", which is not there`},
		"replaces_none":                  {"", published, "has 2 heads"},
		"replaces_one_that_is_not_there": {"c5c3-operator.v0.0.9", published, "which is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			next := filepath.Join(t.TempDir(), "bundle")
			if err := os.CopyFS(next, os.DirFS(bundleFolder)); err != nil {
				t.Fatal(err)
			}
			s := newSubmission(t)
			s.add("9.0.0", c.replaces)
			if err := os.WriteFile(next+csvFile, s.files["operators/c5c3-operator/9.0.0"+csvFile].Data, 0o600); err != nil {
				t.Fatal(err)
			}
			expect(t, layOut(t, "BUNDLE_DIR="+next, "OPERATORHUB_DIR="+t.TempDir(), "COMMUNITY_OPERATORS="+c.clone), c.refuse)
		})
	}
	t.Run("published_already", func(t *testing.T) {
		expect(t, layOut(t, "OPERATORHUB_DIR="+t.TempDir(), "COMMUNITY_OPERATORS="+published), "never changes")
	})
}

// expect wants an error that has the words, or none where there are no words.
func expect(t *testing.T, err error, refuse string) {
	t.Helper()
	switch {
	case refuse == "" && err != nil:
		t.Error(err)
	case refuse != "" && (err == nil || !strings.Contains(err.Error(), refuse)):
		t.Errorf("%q expected, got: %v", refuse, err)
	}
}

func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		files[relative] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDependencies has the libraries that OLM resolves with say which versions satisfy ours.
func TestDependencies(t *testing.T) {
	var file struct {
		Dependencies []struct {
			Type  string
			Value struct {
				PackageName, Version, FailureMessage string
				Cel                                  constraints.Cel
			}
		}
	}
	if err := read(os.DirFS(bundleFolder), "metadata/dependencies.yaml", &file); err != nil {
		t.Fatal(err)
	}
	// By dependency: whether a package in a version meets it.
	var met []func(name, version string) bool
	for _, dependency := range file.Dependencies {
		value := dependency.Value
		switch dependency.Type {
		case "olm.package":
			accepts, err := semver.ParseRange(value.Version)
			if err != nil {
				t.Fatal(err)
			}
			met = append(met, func(name, version string) bool {
				return name == value.PackageName && accepts(semver.MustParse(version))
			})
		case "olm.constraint":
			program, err := constraints.NewCelEnvironment().Validate(value.Cel.Rule)
			if err != nil || value.FailureMessage == "" {
				t.Fatalf("no rule, or no message for who fails it: %v", err)
			}
			met = append(met, func(name, version string) bool {
				ok, err := program.Evaluate(map[string]any{constraints.PropertiesKey: []map[string]any{
					{"type": "olm.gvk", "value": object{"group": "external-secrets.io", "kind": "PushSecret", "version": "v1alpha1"}},
					{"type": "olm.package", "value": object{"packageName": name, "version": version}},
				}})
				if err != nil {
					t.Error(err)
				}
				return ok
			})
		default:
			t.Fatalf("what is a dependency of type %q?", dependency.Type)
		}
	}
	if len(met) != 2 {
		t.Fatalf("%d dependencies, 2 expected: K-ORC and External Secrets", len(met))
	}
	for name, versions := range map[string]map[string]int{
		"orc":                                 {"2.5.9": -1, "2.6.0": 0, "2.7.1": 0, "3.0.0": -1},
		"external-secrets-operator":           {"0.11.0": -1, "0.15.1": -1, "0.16.0-rc.1": -1, "0.16.0": 1, "0.16.2": 1, "1.3.0": 1, "2.9.0": 1},
		"openshift-external-secrets-operator": {"0.1.0": -1, "1.0.0": 1, "1.2.1": 1},
		"another-operator":                    {"9.9.9": -1},
	} {
		for version, want := range versions {
			for i, accepts := range met {
				if got := accepts(name, version); got != (i == want) {
					t.Errorf("%s %s meets dependency %d: %t", name, version, i, got)
				}
			}
		}
	}
	// What the operator itself asks for where no catalog resolves anything: DependenciesReady names the same floors.
	kinds, err := os.ReadFile("../../controllers/dependencies/kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, floor := range []string{"v2.6.0 or newer", "v0.16.0 or newer"} {
		if !strings.Contains(string(kinds), floor) {
			t.Errorf("controllers/dependencies asks for something else than %s", floor)
		}
	}
}

// TestDockerfile holds bundle.Dockerfile against the bundle: OLM reads the labels of the image before it looks into
// annotations.yaml, which has to say the same, and takes each folder from where they say it is.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../bundle.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	labels, copied := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		switch words := strings.Fields(line); {
		case len(words) == 2 && words[0] == "LABEL":
			name, value, _ := strings.Cut(words[1], "=")
			labels[name] = value
		case len(words) == 3 && words[0] == "COPY":
			copied[strings.TrimPrefix(words[2], "/")] = words[1]
		}
	}
	if want := committed(t).annotations; len(want) == 0 || !maps.Equal(labels, want) {
		t.Errorf("the labels are %v, those of annotations.yaml %v", labels, want)
	}
	want := map[string]string{}
	for _, label := range []string{"bundle.manifests.v1", "bundle.metadata.v1", "test.config.v1"} {
		folder := labels["operators.operatorframework.io."+label]
		want[folder] = "bundle/" + strings.TrimSuffix(folder, "/")
	}
	if !maps.Equal(copied, want) {
		t.Errorf("copied is %v, %v expected", copied, want)
	}
	for _, folder := range want {
		if _, err := os.Stat("../../" + folder); err != nil {
			t.Error(err)
		}
	}
}
