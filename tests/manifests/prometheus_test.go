package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// monitor is the part of a ServiceMonitor that has to fit the rest.
type monitor struct {
	Kind     string
	Metadata struct{ Namespace string }
	Spec     struct {
		Selector  metav1.LabelSelector
		Endpoints []struct {
			Port        string
			HonorLabels bool
		}
	}
}

// TestPrometheus builds config/default with the component config/prometheus, as docs/metrics.md says.
func TestPrometheus(t *testing.T) {
	// Kustomize takes relative paths only, so the kustomization lies in the clone, where git ignores it.
	if err := os.MkdirAll("../../bin", 0o750); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("../../bin", "with-prometheus-") //nolint:usetesting // t.TempDir is outside of the clone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	const text = "resources: [../../config/default]\ncomponents: [../../config/prometheus]\n"
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := build(t, folder)
	found := map[string]monitor{}
	for document := range strings.SplitSeq(printed, "\n---\n") {
		var object monitor
		if yaml.Unmarshal([]byte(document), &object) == nil {
			found[object.Kind] = object
		}
	}
	if rules := found["PrometheusRule"]; rules.Metadata.Namespace != operatorNamespace {
		t.Errorf("the rules are in namespace %q", rules.Metadata.Namespace)
	}
	scraped, service := found["ServiceMonitor"], object[corev1.Service](t, "Service", "c5c3-operator-metrics")
	selector, err := metav1.LabelSelectorAsSelector(&scraped.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	cards := labels.Set{"app.kubernetes.io/name": cardsName}
	if scraped.Metadata.Namespace != service.Namespace || !selector.Matches(labels.Set(service.Labels)) || !selector.Matches(cards) || selector.Empty() {
		t.Errorf("the ServiceMonitor selects %v in %s, and the Service is %s/%s with %v", selector, scraped.Metadata.Namespace, service.Namespace, service.Name, service.Labels)
	}
	if len(scraped.Spec.Endpoints) != 1 || scraped.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name {
		t.Errorf("it scrapes %+v, and the Service has the ports %+v", scraped.Spec.Endpoints, service.Spec.Ports)
	} else if !scraped.Spec.Endpoints[0].HonorLabels {
		t.Error("without honorLabels the label namespace is the operator's and not the order's")
	}
	for _, object := range rendered {
		if strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com") {
			t.Errorf("config/default needs the Prometheus Operator for %s %s", object.GetKind(), object.GetName())
		}
	}
}

// build is what kustomize makes of a folder.
func build(t *testing.T, folder string) string {
	t.Helper()
	kustomize, err := exec.CommandContext(t.Context(), "../../hack/tools/tool.sh", "kustomize").Output()
	if err != nil {
		t.Fatalf("finding kustomize: %v", err)
	}
	printed, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(kustomize)), "build", folder).CombinedOutput() //nolint:gosec // a tool of this repository
	if err != nil {
		t.Fatalf("kustomize: %v\n%s", err, printed)
	}
	return string(printed)
}
