package imagetar

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	in := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = content
	}
}

func TestWrite(t *testing.T) {
	image := Binary("local.test/thing:v1", "amd64", []byte("program"))
	var first, second bytes.Buffer
	digest, err := Write(&first, image)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("the same input makes the same bytes", func(t *testing.T) {
		again, err := Write(&second, image)
		if err != nil {
			t.Fatal(err)
		}
		if again != digest || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("two writes of one image differ")
		}
	})

	files := untar(t, first.Bytes())
	t.Run("every blob is named by its digest", func(t *testing.T) {
		blobs := 0
		for name, content := range files {
			hash, ok := strings.CutPrefix(name, "blobs/sha256/")
			if !ok {
				continue
			}
			blobs++
			sum := sha256.Sum256(content)
			if hex.EncodeToString(sum[:]) != hash {
				t.Errorf("%s holds other bytes than its name says", name)
			}
		}
		if blobs != 3 {
			t.Errorf("got %d blobs, want layer, config and manifest", blobs)
		}
	})

	t.Run("the index leads to the program", func(t *testing.T) {
		var index struct {
			Manifests []struct {
				Digest      string
				Annotations map[string]string
			}
		}
		if err := json.Unmarshal(files["index.json"], &index); err != nil {
			t.Fatal(err)
		}
		if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != image.Reference {
			t.Errorf("the runtime would name the image %q", got)
		}
		if index.Manifests[0].Digest != digest {
			t.Errorf("Write returned %s, the index says %s", digest, index.Manifests[0].Digest)
		}
		var manifest struct{ Layers []struct{ Digest string } }
		blob := func(d string) []byte { return files["blobs/sha256/"+strings.TrimPrefix(d, "sha256:")] }
		if err := json.Unmarshal(blob(digest), &manifest); err != nil {
			t.Fatal(err)
		}
		layer := untar(t, blob(manifest.Layers[0].Digest))
		if string(layer["app"]) != "program" {
			t.Error("the layer does not hold the program")
		}
		if _, ok := layer["etc/"]; !ok {
			t.Error("the parent folder of etc/passwd is missing")
		}
	})
}

func TestWriteRefuses(t *testing.T) {
	for name, image := range map[string]Image{
		"a reference that means docker.io": {Reference: "local/thing:v1"},
		"a reference without a tag":        {Reference: "local.test/thing"},
		"an absolute path":                 {Reference: "local.test/t:1", Files: []File{{Path: "/app"}}},
		"a path that leaves the image":     {Reference: "local.test/t:1", Files: []File{{Path: "../app"}}},
		"a path given twice":               {Reference: "local.test/t:1", Files: []File{{Path: "app"}, {Path: "app"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Write(io.Discard, image); err == nil {
				t.Error("accepted")
			}
		})
	}
}
