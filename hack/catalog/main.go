// SPDX-License-Identifier: Apache-2.0

// Command catalog renders a file-based catalog from basic templates: opm renders each bundle, from its
// folder.
//
// `opm alpha render-template basic` would pull every bundle's image, so that a catalog could only be made
// of bundles that are published already, and not be tested before.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

// template is a file of schema olm.template.basic.
type template struct {
	Schema  string           `json:"schema"`
	Entries []map[string]any `json:"entries"`
}

// renderer makes the catalog's entries of one bundle: its folder, and the image that the catalog names.
type renderer func(ctx context.Context, folder, image string) ([]byte, error)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opm := flag.String("opm", "opm", "operator-registry's `program`")
	out := flag.String("out", "", "`folder` to write the catalog to, one folder per template")
	bundles := map[string]string{}
	flag.Func("bundle", "`image=folder` of a bundle that the templates name, once per bundle", func(value string) error {
		image, folder, found := strings.Cut(value, "=")
		if !found {
			return errors.New("want image=folder")
		}
		bundles[image] = folder
		return nil
	})
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: catalog -out FOLDER -bundle IMAGE=FOLDER... TEMPLATE...")
		os.Exit(2)
	}
	if err := run(ctx, *opm, *out, bundles, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opm, out string, bundles map[string]string, templates []string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	byOPM := func(ctx context.Context, folder, image string) ([]byte, error) {
		// What OLM shows of a bundle is in its CSV's metadata; the manifests themselves are in the image.
		return command(ctx, opm, "render", folder, "--alpha-image-ref-template", image,
			"--migrate-level", "bundle-object-to-csv-metadata", "-o", "yaml")
	}
	for _, file := range templates {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rendered, err := render(ctx, text, bundles, byOPM)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		target := filepath.Join(out, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(target, "catalog.yaml"), rendered, 0o644); err != nil {
			return err
		}
	}
	_, err := command(ctx, opm, "validate", out)
	return err
}

// render replaces each entry that names a bundle's image by what the renderer makes of the bundle's folder.
func render(ctx context.Context, text []byte, bundles map[string]string, bundle renderer) ([]byte, error) {
	var t template
	if err := yaml.UnmarshalStrict(text, &t); err != nil {
		return nil, err
	}
	if t.Schema != "olm.template.basic" {
		return nil, fmt.Errorf("schema %q, and not olm.template.basic", t.Schema)
	}
	var out bytes.Buffer
	for _, entry := range t.Entries {
		image, _ := entry["image"].(string)
		if entry["schema"] != "olm.bundle" || image == "" {
			document, err := yaml.Marshal(entry)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "---\n%s", document)
			continue
		}
		folder, found := bundles[image]
		if !found {
			return nil, fmt.Errorf("no folder is given for the bundle %s", image)
		}
		document, err := bundle(ctx, folder, image)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s\n", bytes.TrimPrefix(bytes.TrimSpace(document), []byte("---\n")))
	}
	return out.Bytes(), nil
}

func command(ctx context.Context, name string, arguments ...string) ([]byte, error) {
	var out, problems bytes.Buffer
	c := exec.CommandContext(ctx, name, arguments...)
	c.Stdout, c.Stderr = &out, &problems
	if err := c.Run(); err != nil {
		said := slices.Concat(out.Bytes(), problems.Bytes())
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(arguments, " "), err, bytes.TrimSpace(said))
	}
	return out.Bytes(), nil
}
