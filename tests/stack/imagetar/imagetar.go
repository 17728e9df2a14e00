// Package imagetar writes small OCI images as tar files that `ctr images import` takes, without any
// image tool: one layer, made of the files it is given. The result depends on its input alone
// (no times, sorted names), so the same binary always makes the same digest.
package imagetar

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// File is one entry of the image's only layer.
type File struct {
	// Path inside the image, without a leading slash.
	Path string
	// Mode holds the permission bits; 0 means 0644.
	Mode int64
	// Data is the content of a regular file.
	Data []byte
	// Directory makes an empty folder instead of a file.
	Directory bool
	// Link, when not empty, makes a symbolic link to it instead of a file.
	Link string
}

// Image describes what to write.
type Image struct {
	// Reference is the full name, for example local.test/pause:1. Its first component needs a dot:
	// the container runtime reads anything else as a repository on docker.io.
	Reference string
	// Architecture in Go's spelling (runtime.GOARCH).
	Architecture string
	Entrypoint   []string
	Cmd          []string
	Env          []string
	Labels       map[string]string
	// User is numeric ("65532"): with a name, a pod that sets runAsNonRoot is refused.
	User  string
	Files []File
}

// Binary is the image of one static program at /app, run as user 65532, with the few files that a
// Go program looks for.
func Binary(reference, architecture string, program []byte) Image {
	return Image{
		Reference:    reference,
		Architecture: architecture,
		Entrypoint:   []string{"/app"},
		User:         "65532",
		Files: []File{
			{Path: "tmp", Mode: 0o1777, Directory: true},
			{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/:/app\nnonroot:x:65532:65532::/:/app\n")},
			{Path: "app", Mode: 0o755, Data: program},
		},
	}
}

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// Write writes the image as an OCI layout tar and returns the digest of its manifest, which is the
// digest that the container runtime lists.
func Write(w io.Writer, image Image) (string, error) {
	_, tag, found := strings.Cut(path.Base(image.Reference), ":")
	if !found || !strings.Contains(strings.SplitN(image.Reference, "/", 2)[0], ".") {
		return "", fmt.Errorf("image reference %q: want HOST.WITH.DOT/NAME:TAG", image.Reference)
	}
	layer, err := layerTar(image.Files)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", image.Reference, err)
	}
	config := mustJSON(map[string]any{
		"architecture": image.Architecture,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": image.Entrypoint, "Cmd": image.Cmd, "Env": image.Env,
			"User": image.User, "WorkingDir": "/", "Labels": image.Labels,
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
		"history": []map[string]string{{"created_by": "c5c3 test stack"}},
	})
	manifest := mustJSON(map[string]any{
		"schemaVersion": 2,
		"mediaType":     manifestType,
		"config":        descriptor{MediaType: configType, Digest: digest(config), Size: len(config)},
		"layers":        []descriptor{{MediaType: layerType, Digest: digest(layer), Size: len(layer)}},
	})
	index := mustJSON(map[string]any{
		"schemaVersion": 2,
		"mediaType":     indexType,
		"manifests": []descriptor{{
			MediaType: manifestType, Digest: digest(manifest), Size: len(manifest),
			Platform: &platform{Architecture: image.Architecture, OS: "linux"},
			Annotations: map[string]string{
				"io.containerd.image.name":          image.Reference,
				"org.opencontainers.image.ref.name": tag,
			},
		}},
	})

	out := tar.NewWriter(w)
	for _, f := range []File{
		{Path: "oci-layout", Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{Path: "index.json", Data: index},
		{Path: blobPath(layer), Data: layer},
		{Path: blobPath(config), Data: config},
		{Path: blobPath(manifest), Data: manifest},
	} {
		if err := addFile(out, f); err != nil {
			return "", fmt.Errorf("image %s: %w", image.Reference, err)
		}
	}
	return digest(manifest), out.Close()
}

func layerTar(files []File) ([]byte, error) {
	all := slices.Clone(files)
	seen := map[string]bool{}
	for _, f := range files {
		if f.Path == "" || path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || strings.HasPrefix(f.Path, "..") {
			return nil, fmt.Errorf("file path %q: want a clean relative path", f.Path)
		}
		if seen[f.Path] {
			return nil, fmt.Errorf("file path %q is given twice", f.Path)
		}
		seen[f.Path] = true
	}
	// Parents that nobody gave are added: an extractor would make them with modes of its own.
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, File{Path: dir, Directory: true})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	var buffer bytes.Buffer
	out := tar.NewWriter(&buffer)
	for _, f := range all {
		if err := addFile(out, f); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func addFile(out *tar.Writer, f File) error {
	header := &tar.Header{Name: f.Path, Mode: f.Mode, Size: int64(len(f.Data)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	switch {
	case f.Directory:
		header.Typeflag, header.Name, header.Size = tar.TypeDir, f.Path+"/", 0
		header.Mode = cmp.Or(f.Mode, 0o755)
	case f.Link != "":
		header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, f.Link, 0
		header.Mode = 0o777
	default:
		header.Mode = cmp.Or(f.Mode, 0o644)
	}
	if err := out.WriteHeader(header); err != nil {
		return fmt.Errorf("adding %s: %w", f.Path, err)
	}
	if header.Size == 0 {
		return nil
	}
	if _, err := out.Write(f.Data); err != nil {
		return fmt.Errorf("adding %s: %w", f.Path, err)
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(b []byte) string { return "blobs/sha256/" + strings.TrimPrefix(digest(b), "sha256:") }

// mustJSON encodes values of this package's own types, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
