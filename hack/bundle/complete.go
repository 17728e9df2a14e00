package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// completion is what complete adds to a bundle.
type completion struct {
	base, icon, created, replaces string
}

// object is a manifest.
type object = map[string]any

// definition is the part of a CRD that its descriptors, and the checks of a submission, are made of.
type definition struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Conversion *struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// complete adds to the bundle in a directory what operator-sdk does not know or gets wrong: the icon, a descriptor
// for every field of the CRDs, the images by name, and the time of the version instead of now, with which no two
// runs would be the same.
func complete(directory string, with completion) error {
	files, err := filepath.Glob(filepath.Join(directory, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("%s holds %d ClusterServiceVersions, 1 expected", directory, len(files))
	}
	var csv, base object
	if err := read(os.DirFS(filepath.Dir(files[0])), filepath.Base(files[0]), &csv); err != nil {
		return err
	}
	if err := read(os.DirFS(filepath.Dir(with.base)), filepath.Base(with.base), &base); err != nil {
		return err
	}
	icon, err := os.ReadFile(with.icon)
	if err != nil {
		return err
	}
	images := imagesOf(csv)
	if len(images) == 0 {
		return fmt.Errorf("%s deploys nothing", files[0])
	}
	annotations, spec := at[object](csv, "metadata", "annotations"), at[object](csv, "spec")
	annotations["containerImage"] = images[0].image
	annotations["createdAt"] = at[string](base, "metadata", "annotations", "createdAt")
	if with.created != "" {
		annotations["createdAt"] = with.created
	}
	if with.replaces != "" {
		spec["replaces"] = with.replaces
	}
	spec["icon"] = []any{object{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"}}
	related := make([]any, 0, len(images))
	for _, image := range images {
		related = append(related, object{"name": image.name, "image": image.image})
	}
	spec["relatedImages"] = related

	definitions, err := definitionsOf(os.DirFS(filepath.Join(directory, "manifests")))
	if err != nil {
		return err
	}
	for _, element := range at[[]any](csv, "spec", "customresourcedefinitions", "owned") {
		owned, _ := element.(object)
		definition, ok := definitions[at[string](owned, "name")]
		if !ok {
			return fmt.Errorf("the bundle owns %v and has no definition of it", owned["name"])
		}
		for _, version := range definition.Spec.Versions {
			if version.Name == owned["version"] {
				owned["specDescriptors"] = describe(version.Schema.OpenAPIV3Schema.Properties["spec"])
				owned["statusDescriptors"] = describe(version.Schema.OpenAPIV3Schema.Properties["status"])
			}
		}
	}
	text, err := yaml.Marshal(csv)
	if err != nil {
		return err
	}
	return os.WriteFile(files[0], text, 0o644)
}

// definitionsOf reads the CRDs of a folder, by name.
func definitionsOf(folder fs.FS) (map[string]definition, error) {
	files, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}
	found := map[string]definition{}
	for _, file := range files {
		var manifest object
		if err := read(folder, file, &manifest); err != nil {
			return nil, err
		}
		if err := addDefinition(found, manifest); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return found, nil
}

// addDefinition adds a manifest that is a CRD, by its name.
func addDefinition(to map[string]definition, manifest object) error {
	if at[string](manifest, "kind") != "CustomResourceDefinition" {
		return nil
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	var d definition
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	to[d.Metadata.Name] = d
	return nil
}

type namedImage struct{ name, image string }

// imagesOf are the images that a ClusterServiceVersion deploys, named after deployment and container.
func imagesOf(csv object) []namedImage {
	var images []namedImage
	for _, element := range at[[]any](csv, "spec", "install", "spec", "deployments") {
		deployment, _ := element.(object)
		for _, list := range []string{"containers", "initContainers"} {
			for _, element := range at[[]any](deployment, "spec", "template", "spec", list) {
				container, _ := element.(object)
				images = append(images, namedImage{
					name:  strings.Join([]string{at[string](deployment, "name"), at[string](container, "name")}, "-"),
					image: at[string](container, "image"),
				})
			}
		}
	}
	return images
}

// at returns what lies at a path of a manifest, or the zero value.
func at[T any](from object, path ...string) T {
	var value any = from
	for _, key := range path {
		fields, _ := value.(object)
		value = fields[key]
	}
	typed, _ := value.(T)
	return typed
}

func read(folder fs.FS, file string, into any) error {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
