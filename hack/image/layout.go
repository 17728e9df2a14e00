// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// writeLayout writes root as an OCI image layout into one tar file. go-containerregistry writes
// layouts as folders only, with the times of today and in an order that differs from run to run,
// and its own tar format (docker's) holds one platform.
func writeLayout(target string, root v1.ImageIndex, modified time.Time) error {
	blobs := &blobs{seen: map[v1.Hash]bool{}}
	index, err := root.RawManifest()
	if err != nil {
		return err
	}
	if err := blobs.addIndex(root); err != nil {
		return err
	}
	files := append([]file{
		{path: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{path: "index.json", mode: 0o644, data: index},
	}, blobs.files...)

	// Written beside the target and renamed, so that a reader never meets half an image.
	out, err := os.CreateTemp(filepath.Dir(target), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // gone already after the rename
	if err := writeTar(out, modified, files); err != nil {
		return err
	}
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), target)
}

// blobs collects everything that an index leads to, each once, in the order of the manifests.
type blobs struct {
	seen  map[v1.Hash]bool
	files []file
}

func (b *blobs) add(digest v1.Hash, data []byte) {
	if b.seen[digest] {
		return
	}
	b.seen[digest] = true
	b.files = append(b.files, file{path: "blobs/" + digest.Algorithm + "/" + digest.Hex, mode: 0o644, data: data})
}

// addIndex adds what index lists. The index itself is added by whoever lists it, because the
// outermost one is index.json and no blob.
func (b *blobs) addIndex(index v1.ImageIndex) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, descriptor := range manifest.Manifests {
		switch {
		case descriptor.MediaType.IsIndex():
			child, err := index.ImageIndex(descriptor.Digest)
			if err != nil {
				return err
			}
			raw, err := child.RawManifest()
			if err != nil {
				return err
			}
			b.add(descriptor.Digest, raw)
			if err := b.addIndex(child); err != nil {
				return err
			}
		case descriptor.MediaType.IsImage():
			image, err := index.Image(descriptor.Digest)
			if err != nil {
				return err
			}
			if err := b.addImage(descriptor.Digest, image); err != nil {
				return err
			}
		default:
			return fmt.Errorf("an index lists %s, which is neither an image nor an index", descriptor.MediaType)
		}
	}
	return nil
}

func (b *blobs) addImage(digest v1.Hash, image v1.Image) error {
	raw, err := image.RawManifest()
	if err != nil {
		return err
	}
	b.add(digest, raw)
	configName, err := image.ConfigName()
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	b.add(configName, config)
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := b.addLayer(layer); err != nil {
			return err
		}
	}
	return nil
}

func (b *blobs) addLayer(layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	compressed, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer compressed.Close()
	var data bytes.Buffer
	if _, err := io.Copy(&data, compressed); err != nil {
		return err
	}
	b.add(digest, data.Bytes())
	return nil
}
