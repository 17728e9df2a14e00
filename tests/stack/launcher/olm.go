package launcher

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/c5c3/c5c3-operator/tests/stack/component"
	"github.com/c5c3/c5c3-operator/tests/stack/imagetar"
)

// olmNamespace is where OLM itself runs.
const olmNamespace = "olm"

const busybox = "/bin/busybox"

// nobody is the user of the images made here: numeric, or a pod that sets runAsNonRoot is refused.
const nobody = "65532"

func (s *Stack) olmImage() string     { return "local.test/olm/olm:" + s.built("olm").Version }
func (s *Stack) opmImage() string     { return "local.test/olm/opm:" + component.OPMVersion }
func (s *Stack) corednsImage() string { return "local.test/olm/coredns:" + s.built("coredns").Version }
func (s *Stack) controllerImage(name string) string {
	return "local.test/c5c3/" + name + ":" + s.built(name).Version
}

// upOLM installs OLM from its own chart, with images of the binaries built here, and cluster DNS, by
// which OLM finds the pods of catalogs.
func (s *Stack) upOLM(ctx context.Context) (err error) {
	if err := s.importOLMImages(ctx); err != nil {
		return err
	}
	if err := s.apply(ctx, "coredns.yaml", map[string]string{"Image": s.corednsImage()}); err != nil {
		return err
	}
	if err := s.applyCRDs(ctx, "olm", "crds"); err != nil {
		return err
	}
	manifests, err := s.olmManifests()
	if err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("applying OLM's manifests: %w", err)
	}
	task := s.Board.Start("waiting for OLM", 30*time.Second)
	defer func() { task.Done(err) }()
	if _, err := s.kubectl(ctx, nil, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=3m"); err != nil {
		return err
	}
	// The packageserver is installed by OLM itself: when it is there, OLM works.
	_, err = s.kubectl(ctx, nil, "-n", olmNamespace, "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=5m",
		"clusterserviceversions.operators.coreos.com/packageserver")
	return err
}

func (s *Stack) olmManifests() ([]byte, error) {
	image := map[string]any{"ref": s.olmImage(), "pullPolicy": "IfNotPresent"}
	restricted := map[string]any{"enforceLevel": "restricted", "enforceVersion": "latest"}
	return renderChart(s.built("olm").Path("crds"), "olm", strings.TrimPrefix(s.built("olm").Version, "v"), map[string]any{
		"installType":       "none", // "upstream" adds the public catalog, which is not reached from here
		"namespace":         olmNamespace,
		"catalog_namespace": olmNamespace,
		"namespace_psa":     restricted,
		"olm":               map[string]any{"image": image},
		"catalog": map[string]any{
			"image": image,
			// For catalogs in ConfigMaps, of which there are none.
			"commandArgs":  "--configmapServerImage=local.test/olm/none:1",
			"opmImageArgs": "--opmImage=" + s.opmImage(),
		},
		"package": map[string]any{"image": image, "replicaCount": 1},
	})
}

func (s *Stack) importOLMImages(ctx context.Context) (err error) {
	task := s.Board.Start("importing OLM's images", 20*time.Second)
	defer func() { task.Done(err) }()
	olm, err := s.programs("olm", "olm", "catalog", "package-server", "copy-content", "cpb")
	if err != nil {
		return err
	}
	copier, err := staticBusybox()
	if err != nil {
		return err
	}
	// OLM has this image unpack bundles with /bin/cp.
	olm = append(olm, copier, imagetar.File{Path: "bin/cp", Link: "busybox"})
	opm, err := s.opmPrograms()
	if err != nil {
		return err
	}
	coredns, err := os.ReadFile(s.built("coredns").Path("coredns"))
	if err != nil {
		return err
	}
	images := []imagetar.Image{
		programImage(s.olmImage(), "/bin/olm", olm),
		programImage(s.opmImage(), "/bin/opm", opm),
		imagetar.Binary(s.corednsImage(), runtime.GOARCH, coredns),
	}
	for _, name := range []string{"korc", "eso"} {
		program, err := os.ReadFile(s.built(name).Path(name))
		if err != nil {
			return err
		}
		image := imagetar.Binary(s.controllerImage(name), runtime.GOARCH, program)
		// Where K-ORC's own manifest calls it.
		image.Files = append(image.Files, imagetar.File{Path: "manager", Link: "app"})
		images = append(images, image)
	}
	for _, image := range images {
		if _, err := s.importImage(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// programs returns binaries of a component as files of /bin.
func (s *Stack) programs(component string, names ...string) ([]imagetar.File, error) {
	var files []imagetar.File
	for _, name := range names {
		program, err := os.ReadFile(s.built(component).Path(name))
		if err != nil {
			return nil, err
		}
		// The probe of a catalog's pod calls it by its C name.
		files = append(files, imagetar.File{Path: "bin/" + strings.ReplaceAll(name, "grpc-health-probe", "grpc_health_probe"), Mode: 0o755, Data: program})
	}
	return files, nil
}

func (s *Stack) opmPrograms() ([]imagetar.File, error) {
	return s.programs("olm", "opm", "grpc-health-probe")
}

func programImage(reference, entrypoint string, files []imagetar.File) imagetar.Image {
	return imagetar.Image{
		Reference: reference, Architecture: runtime.GOARCH, Entrypoint: []string{entrypoint}, User: nobody,
		Env: []string{"PATH=/bin"},
		Files: append([]imagetar.File{
			{Path: "tmp", Mode: 0o1777, Directory: true},
			{Path: "etc/nsswitch.conf", Data: []byte("hosts: files dns\n")},
			{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/:/bin\nnonroot:x:65532:65532::/:/bin\n")},
		}, files...),
	}
}

// staticBusybox is the machine's busybox, for an image without a C library.
func staticBusybox() (imagetar.File, error) {
	file, err := elf.Open(busybox)
	if err != nil {
		return imagetar.File{}, err
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return imagetar.File{}, fmt.Errorf("%s needs a C library, which OLM's image has not: install busybox-static", busybox)
	}
	program, err := os.ReadFile(busybox)
	return imagetar.File{Path: "bin/busybox", Mode: 0o755, Data: program}, err
}

// LoadBundle imports an image of a bundle's folder under reference and returns its reference by digest.
// OLM pulls a bundle that is named by tag every time; one named by digest may be there already.
func (s *Stack) LoadBundle(ctx context.Context, reference, folder string) (string, error) {
	files, err := folderFiles(folder, "")
	if err != nil {
		return "", err
	}
	labels, err := bundleLabels(files)
	if err != nil {
		return "", fmt.Errorf("%s is no bundle: %w", folder, err)
	}
	return s.importByDigest(ctx, imagetar.Image{
		Reference: reference, Architecture: runtime.GOARCH, User: nobody, Labels: labels, Files: files,
	})
}

// LoadCatalog imports an image of a file-based catalog under reference, with the opm that serves it, and
// returns its reference by digest.
func (s *Stack) LoadCatalog(ctx context.Context, reference, folder string) (string, error) {
	files, err := folderFiles(folder, "configs")
	if err != nil {
		return "", err
	}
	opm, err := s.opmPrograms()
	if err != nil {
		return "", err
	}
	image := programImage(reference, "/bin/opm", append(opm, files...))
	// The cache is made when the pod starts: made here it would have to agree with opm's digest of it.
	image.Cmd = []string{"serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"}
	image.Labels = map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	return s.importByDigest(ctx, image)
}

func (s *Stack) importByDigest(ctx context.Context, image imagetar.Image) (string, error) {
	if _, err := s.client.HostPID(); err != nil {
		return "", err
	}
	digest, err := s.importImage(ctx, image)
	if err != nil {
		return "", err
	}
	byDigest := image.Reference[:strings.LastIndex(image.Reference, ":")] + "@" + digest
	_, err = s.ctr(ctx, "images", "tag", "--force", image.Reference, byDigest)
	return byDigest, err
}

// bundleLabels are a bundle's annotations, which its image carries as labels.
func bundleLabels(files []imagetar.File) (map[string]string, error) {
	for _, file := range files {
		if file.Path != "metadata/annotations.yaml" {
			continue
		}
		var metadata struct {
			Annotations map[string]string `json:"annotations"`
		}
		if err := yaml.Unmarshal(file.Data, &metadata); err != nil {
			return nil, err
		}
		return metadata.Annotations, nil
	}
	return nil, fmt.Errorf("metadata/annotations.yaml: %w", fs.ErrNotExist)
}

// folderFiles reads a folder into files of an image below prefix.
func folderFiles(folder, prefix string) ([]imagetar.File, error) {
	var files []imagetar.File
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		files = append(files, imagetar.File{Path: path.Join(prefix, filepath.ToSlash(relative)), Data: content})
		return err
	})
	return files, err
}

// Stores makes the SecretStores when ESO came from elsewhere than the group eso.
func (s *Stack) Stores(ctx context.Context) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.upStores(ctx)
}
