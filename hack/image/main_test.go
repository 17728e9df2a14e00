// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const caRoots = "-----BEGIN CERTIFICATE-----\nnot a real one\n-----END CERTIFICATE-----\n"

// pack builds an image for the platforms and returns the files of the written tar.
func pack(t *testing.T, platforms ...string) (digest v1.Hash, files map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	roots := filepath.Join(dir, "roots.pem")
	write(t, roots, caRoots)
	args := []string{"-name", "registry.test:5000/acme/operator:dev", "-version", "v1.2.3", "-revision", "abc",
		"-created", "1700000000", "-ca-roots", roots, "-out", filepath.Join(dir, "image.tar")}
	for _, platform := range platforms {
		binary := filepath.Join(dir, strings.ReplaceAll(platform, "/", "-"))
		write(t, binary, "program for "+platform)
		args = append(args, "-binary", platform+"="+binary)
		other := filepath.Join(dir, strings.ReplaceAll(platform, "/", "-")+"-others", "cards")
		if err := os.Mkdir(filepath.Dir(other), 0o750); err != nil {
			t.Fatal(err)
		}
		write(t, other, "cards for "+platform)
		args = append(args, "-binary", platform+"="+other)
	}
	opts, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	digest, err = build(opts)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(opts.Out)
	if err != nil {
		t.Fatal(err)
	}
	return digest, untar(t, bytes.NewReader(data))
}

func TestImage(t *testing.T) {
	t.Run("holds the binary, the CA roots and a writable /tmp, for a user without rights", func(t *testing.T) {
		digest, files := pack(t, "linux/amd64")
		var index v1.IndexManifest
		decode(t, files["index.json"], &index)
		if len(index.Manifests) != 1 || index.Manifests[0].Digest != digest {
			t.Fatalf("index.json lists %v, want the one manifest %s", index.Manifests, digest)
		}
		if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != "registry.test:5000/acme/operator:dev" {
			t.Errorf("containerd would import it as %q", got)
		}
		image := unpack(t, files, digest)
		if image.config.Config.User != "65532:65532" || image.config.Config.Entrypoint[0] != "/manager" {
			t.Errorf("it runs %v as %q", image.config.Config.Entrypoint, image.config.Config.User)
		}
		if got := image.config.Config.Labels["org.opencontainers.image.version"]; got != "v1.2.3" {
			t.Errorf("version label is %q", got)
		}
		if got := string(image.files["manager"]); got != "program for linux/amd64" {
			t.Errorf("/manager holds %q", got)
		}
		if got := string(image.files["etc/ssl/certs/ca-certificates.crt"]); got != caRoots {
			t.Errorf("the CA roots hold %q", got)
		}
		if _, there := image.files["tmp/"]; !there {
			t.Error("there is no /tmp")
		}
		if got := string(image.files["cards"]); got != "cards for linux/amd64" {
			t.Errorf("/cards holds %q", got)
		}
	})
	t.Run("has the same digest when built again", func(t *testing.T) {
		first, _ := pack(t, "linux/amd64")
		second, _ := pack(t, "linux/amd64")
		if first != second {
			t.Errorf("%s and then %s", first, second)
		}
	})
	t.Run("for several platforms is an index with one image each", func(t *testing.T) {
		digest, files := pack(t, "linux/amd64", "linux/arm64")
		var index v1.IndexManifest
		decode(t, files["blobs/sha256/"+digest.Hex], &index)
		if len(index.Manifests) != 2 {
			t.Fatalf("the index lists %d images", len(index.Manifests))
		}
		for _, descriptor := range index.Manifests {
			image := unpack(t, files, descriptor.Digest)
			if want := "program for " + descriptor.Platform.String(); string(image.files["manager"]) != want {
				t.Errorf("%s holds %q", descriptor.Platform, image.files["manager"])
			}
		}
	})
	t.Run("names every blob by its content", func(t *testing.T) {
		_, files := pack(t, "linux/amd64", "linux/arm64")
		for name, data := range files {
			hash, isBlob := strings.CutPrefix(name, "blobs/sha256/")
			if sum := sha256.Sum256(data); isBlob && hash != "" && hash != hex.EncodeToString(sum[:]) {
				t.Errorf("%s holds something else", name)
			}
		}
	})
}

func TestCommandLine(t *testing.T) {
	for name, args := range map[string][]string{
		"refuses a name whose only colon is a port": {"-name", "registry.test:5000/acme", "-out", "x", "-binary", "linux/amd64=x"},
		"refuses to build without a binary":         {"-name", "a:b", "-out", "x"},
		"refuses a binary without a platform":       {"-name", "a:b", "-out", "x", "-binary", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(args); err == nil {
				t.Errorf("parse(%q) is accepted", args)
			}
		})
	}
}

func TestCARoots(t *testing.T) {
	t.Run("without a certificate are refused", func(t *testing.T) {
		empty := filepath.Join(t.TempDir(), "roots.pem")
		write(t, empty, "")
		if _, err := baseLayer(options{CARoots: empty}); err == nil {
			t.Error("an image without CA roots is built")
		}
	})
}

// unpacked is one platform's image.
type unpacked struct {
	config v1.ConfigFile
	files  map[string][]byte
}

func unpack(t *testing.T, files map[string][]byte, manifestDigest v1.Hash) unpacked {
	t.Helper()
	var manifest v1.Manifest
	decode(t, files["blobs/sha256/"+manifestDigest.Hex], &manifest)
	image := unpacked{files: map[string][]byte{}}
	decode(t, files["blobs/sha256/"+manifest.Config.Digest.Hex], &image.config)
	for _, layer := range manifest.Layers {
		plain, err := gzip.NewReader(bytes.NewReader(files["blobs/sha256/"+layer.Digest.Hex]))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(image.files, untar(t, plain))
	}
	return image
}

func untar(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
