package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// operator is what community-operators calls an operator: operators/<name> with a folder for each version.
type operator struct {
	name     string
	config   object // ci.yaml
	versions []*version
}

// version is one bundle of a submission.
type version struct {
	folder      string
	csv         object
	annotations map[string]string // metadata/annotations.yaml
	manifests   map[string]object // by file
	definitions map[string]definition
	metadata    []string
	compressed  int
}

// checkSubmission holds operators/* below a folder against the rules. The first result is what stands against
// the submission, the second why it could not be read.
func checkSubmission(root fs.FS) ([]error, error) {
	operators, err := fs.Glob(root, "operators/*")
	if err != nil {
		return nil, err
	}
	if len(operators) != 1 {
		return nil, fmt.Errorf("one operator per submission, %d found in operators/", len(operators))
	}
	o, err := readOperator(root, operators[0])
	if err != nil {
		return nil, err
	}
	var findings []error
	for _, v := range o.versions {
		for _, r := range rules {
			for _, finding := range r.broken(o, v) {
				findings = append(findings, fmt.Errorf("%s: %s: %s", v.folder, r.name, finding))
			}
		}
	}
	return findings, nil
}

func readOperator(root fs.FS, folder string) (*operator, error) {
	o := &operator{name: path.Base(folder)}
	entries, err := fs.ReadDir(root, folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		switch {
		case entry.Name() == "ci.yaml":
			if err := read(root, path.Join(folder, "ci.yaml"), &o.config); err != nil {
				return nil, err
			}
		case entry.IsDir():
			sub, err := fs.Sub(root, path.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			v, err := readVersion(sub)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", entry.Name(), err)
			}
			v.folder = entry.Name()
			o.versions = append(o.versions, v)
		default:
			return nil, fmt.Errorf("%s does not belong into %s", entry.Name(), folder)
		}
	}
	if len(o.versions) == 0 {
		return nil, errors.New("no version: nothing was checked")
	}
	return o, nil
}

func readVersion(folder fs.FS) (*version, error) {
	v := &version{manifests: map[string]object{}, definitions: map[string]definition{}}
	manifests, err := fs.Sub(folder, "manifests")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(manifests, "*")
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	for _, file := range files {
		text, err := fs.ReadFile(manifests, file)
		if err != nil {
			return nil, err
		}
		if _, err := writer.Write(text); err != nil {
			return nil, err
		}
		var manifest object
		if err := read(manifests, file, &manifest); err != nil {
			return nil, err
		}
		v.manifests[file] = manifest
		if at[string](manifest, "kind") == "ClusterServiceVersion" {
			if v.csv != nil {
				return nil, errors.New("two ClusterServiceVersions in one bundle")
			}
			v.csv = manifest
		}
		if err := addDefinition(v.definitions, manifest); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	v.compressed = packed.Len()
	if v.csv == nil {
		return nil, errors.New("no ClusterServiceVersion in manifests/")
	}
	if v.metadata, err = fs.Glob(folder, "metadata/*"); err != nil {
		return nil, err
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := read(folder, "metadata/annotations.yaml", &metadata); err != nil {
		return nil, err
	}
	v.annotations = metadata.Annotations
	return v, nil
}

func (v *version) annotation(name string) string {
	return at[string](v.csv, "metadata", "annotations", name)
}

func (v *version) packageName() string {
	return v.annotations["operators.operatorframework.io.bundle.package.v1"]
}

func (v *version) channels() []string {
	return strings.Split(v.annotations["operators.operatorframework.io.bundle.channels.v1"], ",")
}

// list returns the objects of a list in the CSV's spec.
func (v *version) list(path ...string) []object { return only[object](at[[]any](v.csv, path...)) }

// only returns the elements of a list that have the type.
func only[T any](list []any) []T {
	var found []T
	for _, element := range list {
		if typed, ok := element.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func (v *version) examples() ([]object, error) {
	var examples []object
	if err := json.Unmarshal([]byte(v.annotation("alm-examples")), &examples); err != nil {
		return nil, err
	}
	return examples, nil
}

// permissions are the rules of the CSV, cluster-wide ones and those of the operator's namespace.
func (v *version) permissions() []object {
	var all []object
	for _, list := range []string{"clusterPermissions", "permissions"} {
		for _, account := range v.list("spec", "install", "spec", list) {
			all = append(all, only[object](at[[]any](account, "rules"))...)
		}
	}
	return all
}

// heads are the versions of a channel that no other one of the channel replaces.
func (o *operator) heads(channel string) []string {
	var names, replaced []string
	for _, v := range o.versions {
		if slices.Contains(v.channels(), channel) {
			names = append(names, at[string](v.csv, "metadata", "name"))
			replaced = append(replaced, at[string](v.csv, "spec", "replaces"))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(replaced, name) })
}

func semverOf(text string) error {
	parsed, err := semver.Parse(text)
	if err == nil && parsed.String() != text {
		err = fmt.Errorf("%q is not how the version %s is written", text, parsed)
	}
	return err
}
