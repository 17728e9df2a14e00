// SPDX-License-Identifier: Apache-2.0

// Command image packs the operator's static binaries into an OCI image, without an image builder,
// an engine or a registry: the local node needs the image on machines that have none of these.
//
// The image holds what the Dockerfile's holds: the binaries, the CA roots and a /tmp, for a user
// without rights. It is written as an OCI image layout in a tar file, which `ctr images import`,
// `docker load`, `podman load` and `crane push` take. The same inputs give the same digest: every
// time stamp in it is the one given by -created.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user and group that the operator runs as: not root, and the same number as in the
// Dockerfile and in distroless's "nonroot", so that a volume's ownership survives a change of base.
const nobody = "65532:65532"

// Paths inside the image.
const (
	binaryPath  = "manager"                           // the entrypoint
	caRootsPath = "etc/ssl/certs/ca-certificates.crt" // Go's first choice on every Linux
)

// options is the command line.
type options struct {
	// Name is the reference that the image is imported under, with a tag.
	Name string
	// Version and Revision become labels. Neither is interpreted.
	Version, Revision string
	// Created is the time of every file and of the image.
	Created time.Time
	// CARoots is the PEM bundle of the build host.
	CARoots string
	// Binaries maps a platform (os/architecture) to its static binaries, in the order given.
	Binaries []platformBinaries
	// Out is the tar file to write.
	Out string
}

type platformBinaries struct {
	Platform v1.Platform
	// File is the entrypoint. Others keep the names of their files, and have a pod's command name them.
	File   string
	Others []string
}

func main() {
	opts, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(2)
	}
	digest, err := build(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s@%s\n", opts.Name, digest)
}

func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&opts.Name, "name", "", "the image's `reference`, with a tag")
	flags.StringVar(&opts.Version, "version", "dev", "version label")
	flags.StringVar(&opts.Revision, "revision", "unknown", "revision label")
	created := flags.Int64("created", 0, "time of every file, in `seconds` since 1970")
	flags.StringVar(&opts.CARoots, "ca-roots", "/etc/ssl/certs/ca-certificates.crt", "PEM bundle to put in")
	flags.StringVar(&opts.Out, "out", "", "tar `file` to write")
	flags.Func("binary", "`os/arch=file`, the entrypoint first, once per platform and program", func(value string) error {
		name, file, found := strings.Cut(value, "=")
		if !found {
			return errors.New("want os/arch=file")
		}
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(opts.Binaries, func(b platformBinaries) bool { return b.Platform.Equals(*platform) })
		if i < 0 {
			opts.Binaries = append(opts.Binaries, platformBinaries{Platform: *platform, File: file})
		} else {
			opts.Binaries[i].Others = append(opts.Binaries[i].Others, file)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	opts.Created = time.Unix(*created, 0).UTC()
	if tagOf(opts.Name) == "" {
		return options{}, fmt.Errorf("-name %q has no tag", opts.Name)
	}
	if opts.Out == "" || len(opts.Binaries) == 0 {
		return options{}, errors.New("-out and at least one -binary are needed")
	}
	return opts, nil
}

// tagOf returns the tag of "registry:5000/name:tag", or nothing: a port is not one.
func tagOf(reference string) string {
	if colon := strings.LastIndex(reference, ":"); colon > strings.LastIndex(reference, "/") {
		return reference[colon+1:]
	}
	return ""
}

// build writes the image and returns its digest: the manifest's for one platform, the index's for
// more. One platform is not wrapped in an index, because that is what older importers expect.
func build(opts options) (v1.Hash, error) {
	base, err := baseLayer(opts)
	if err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var image v1.Image
	for _, binary := range opts.Binaries {
		image, err = platformImage(opts, binary, base)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("for %s: %w", binary.Platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &binary.Platform},
		})
	}
	named := mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: nameAnnotations(opts.Name)}}
	digest := index.Digest
	if len(opts.Binaries) == 1 {
		named.Add, named.Platform, digest = image, &opts.Binaries[0].Platform, image.Digest
	}
	layoutIndex := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), named)
	if err := writeLayout(opts.Out, layoutIndex, opts.Created); err != nil {
		return v1.Hash{}, fmt.Errorf("writing %s: %w", opts.Out, err)
	}
	return digest()
}

// nameAnnotations says what the image is called: containerd reads the first, others the second.
func nameAnnotations(reference string) map[string]string {
	return map[string]string{
		"io.containerd.image.name":          reference,
		"org.opencontainers.image.ref.name": tagOf(reference),
	}
}

func platformImage(opts options, binary platformBinaries, base v1.Layer) (v1.Image, error) {
	created := v1.Time{Time: opts.Created}
	layers := []mutate.Addendum{{Layer: base, History: v1.History{Created: created, CreatedBy: "CA roots, /tmp, users"}}}
	add := func(from, to string) error {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		program, err := layer(opts.Created, file{path: to, mode: 0o755, data: data})
		layers = append(layers, mutate.Addendum{Layer: program, History: v1.History{Created: created, CreatedBy: to + " of c5c3-operator " + opts.Version}})
		return err
	}
	if err := add(binary.File, binaryPath); err != nil {
		return nil, err
	}
	for _, other := range binary.Others {
		if err := add(other, filepath.Base(other)); err != nil {
			return nil, err
		}
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = created
	config.OS, config.Architecture, config.Variant = binary.Platform.OS, binary.Platform.Architecture, binary.Platform.Variant
	config.Config = v1.Config{
		Entrypoint: []string{"/" + binaryPath},
		User:       nobody,
		WorkingDir: "/",
		Labels:     labels(opts),
	}
	return mutate.ConfigFile(image, config)
}

func labels(opts options) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "c5c3-operator",
		"org.opencontainers.image.description": "Keystone identities and rotating application credentials, ordered as Kubernetes objects",
		"org.opencontainers.image.source":      "https://github.com/c5c3/c5c3-operator",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     opts.Version,
		"org.opencontainers.image.revision":    opts.Revision,
		"org.opencontainers.image.created":     opts.Created.Format(time.RFC3339),
	}
}

// baseLayer holds what a static Go program still wants from a file system. It changes only with
// the CA roots, so nodes keep it from one build of the operator to the next.
func baseLayer(opts options) (v1.Layer, error) {
	roots, err := os.ReadFile(opts.CARoots)
	if err != nil {
		return nil, fmt.Errorf("reading the CA roots (Debian's package is ca-certificates): %w", err)
	}
	if !bytes.Contains(roots, []byte("-----BEGIN CERTIFICATE-----")) {
		return nil, fmt.Errorf("%s holds no certificate", opts.CARoots)
	}
	return layer(opts.Created,
		file{path: caRootsPath, mode: 0o644, data: roots},
		file{path: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		file{path: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		file{path: "tmp", mode: 0o1777, directory: true},
	)
}

type file struct {
	path      string
	mode      int64
	data      []byte
	directory bool
}

// layer packs files, and the folders above them, owned by root.
func layer(modified time.Time, files ...file) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, modified, files); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

func writeTar(out io.Writer, modified time.Time, files []file) error {
	archive := tar.NewWriter(out)
	var folders []string
	for _, f := range files {
		for folder := path.Dir(f.path); folder != "."; folder = path.Dir(folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	entries := make([]file, 0, len(files)+len(folders))
	for _, folder := range slices.Compact(folders) {
		entries = append(entries, file{path: folder, mode: 0o755, directory: true})
	}
	for _, f := range append(entries, files...) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: modified, Format: tar.FormatUSTAR,
		}
		if f.directory {
			header.Typeflag, header.Name = tar.TypeDir, f.path+"/"
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if _, err := archive.Write(f.data); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return archive.Close()
}
