package manifests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const bundleManifests = "../../bundle/manifests"

// installStrategy is what OLM makes of a ClusterServiceVersion: spec.install.spec.
type installStrategy struct {
	Deployments []struct {
		Name  string                `json:"name"`
		Label map[string]string     `json:"label"`
		Spec  appsv1.DeploymentSpec `json:"spec"`
	} `json:"deployments"`
	ClusterPermissions []permissions `json:"clusterPermissions"`
	Permissions        []permissions `json:"permissions"`
}

type permissions struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

func readBundle(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bundleManifests, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestBundleInstallsWhatIsDeployed holds the committed OLM bundle against what `make deploy` installs: the same pod
// with the same rights, but for the image, which is a released one, and where that can run.
func TestBundleInstallsWhatIsDeployed(t *testing.T) {
	var csv struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Install struct {
				Strategy string          `json:"strategy"`
				Spec     installStrategy `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	readBundle(t, "c5c3-operator.clusterserviceversion.yaml", &csv)
	strategy := csv.Spec.Install.Spec
	if csv.Spec.Install.Strategy != "deployment" || len(strategy.Deployments) != 1 {
		t.Fatalf("one deployment expected, got %d (%s)", len(strategy.Deployments), csv.Spec.Install.Strategy)
	}

	installed, want := strategy.Deployments[0], deployment(t)
	if installed.Name != want.Name || !reflect.DeepEqual(installed.Label, want.Labels) {
		t.Errorf("the deployment is %s %v, %s %v expected", installed.Name, installed.Label, want.Name, want.Labels)
	}
	container := &installed.Spec.Template.Spec.Containers[0]
	if container.Image == want.Spec.Template.Spec.Containers[0].Image {
		t.Errorf("the bundle deploys %s, which is no release", container.Image)
	}
	container.Image = want.Spec.Template.Spec.Containers[0].Image
	expectPlatforms(t, installed.Spec.Template.Spec.Affinity, csv.Labels)
	installed.Spec.Template.Spec.Affinity = nil
	if !equality.Semantic.DeepEqual(installed.Spec, want.Spec) {
		t.Errorf("the deployment differs from config/manager; run `make bundle`\nbundle: %+v\nconfig: %+v", installed.Spec, want.Spec)
	}

	account := want.Spec.Template.Spec.ServiceAccountName
	expectRights(t, "clusterPermissions", strategy.ClusterPermissions, account, object[rbacv1.ClusterRole](t, "ClusterRole", operatorName).Rules)
	expectRights(t, "permissions", strategy.Permissions, account, object[rbacv1.Role](t, "Role", operatorName+"-leader-election").Rules)
}

// expectPlatforms wants the pod on nodes of just the platforms that the labels promise: a catalog shows the labels, the
// scheduler reads only the affinity.
func expectPlatforms(t *testing.T, affinity *corev1.Affinity, labels map[string]string) {
	t.Helper()
	want := map[string][]string{}
	for label := range labels {
		if platform, ok := strings.CutPrefix(label, "operatorframework.io/"); ok {
			kind, name, _ := strings.Cut(platform, ".")
			want["kubernetes.io/"+kind] = append(want["kubernetes.io/"+kind], name)
		}
	}
	got := map[string][]string{}
	if affinity != nil {
		for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, requirement := range term.MatchExpressions {
				got[requirement.Key] = append(got[requirement.Key], requirement.Values...)
			}
		}
	}
	for _, values := range want {
		slices.Sort(values)
	}
	if len(want) != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("the pod goes to nodes of %v, the labels promise %v", got, want)
	}
}

func expectRights(t *testing.T, list string, got []permissions, account string, rules []rbacv1.PolicyRule) {
	t.Helper()
	if want := []permissions{{account, rules}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%s are not those of config/rbac; run `make bundle`\nbundle: %+v\nconfig: %+v", list, got, want)
	}
}

// TestBundleHoldsNothingElse compares the other manifests with what `make deploy` installs. What is in one and not
// in the other is listed here, with its reason.
func TestBundleHoldsNothingElse(t *testing.T) {
	left := []string{
		"Namespace " + operatorNamespace,                   // made by whoever makes the Subscription
		"NetworkPolicy " + operatorName,                    // refused by OperatorHub's pipeline
		"ServiceAccount " + operatorName,                   // made by OLM, as are the next five, out of the ClusterServiceVersion
		"Deployment " + operatorName,                       //
		"ClusterRole " + operatorName,                      //
		"ClusterRoleBinding " + operatorName,               //
		"Role " + operatorName + "-leader-election",        //
		"RoleBinding " + operatorName + "-leader-election", //
	}
	var want []string
	config := map[string]*unstructured.Unstructured{}
	for _, manifest := range rendered {
		key := manifest.GetKind() + " " + manifest.GetName()
		if slices.Contains(left, key) {
			continue
		}
		config[key] = manifest
		want = append(want, key)
	}
	files, err := filepath.Glob(bundleManifests + "/*")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		manifest := &unstructured.Unstructured{}
		readBundle(t, filepath.Base(file), &manifest.Object)
		if manifest.GetKind() == "ClusterServiceVersion" {
			continue
		}
		key := manifest.GetKind() + " " + manifest.GetName()
		got = append(got, key)
		original := config[key]
		if original == nil {
			continue // reported below
		}
		if manifest.GetKind() == "CustomResourceDefinition" || manifest.GetKind() == "ClusterRole" {
			for _, field := range []string{"spec", "rules"} {
				if inJSON(t, manifest.Object[field]) != inJSON(t, original.Object[field]) {
					t.Errorf("%s: the %s of %s is not that of config; run `make bundle`", file, field, key)
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the bundle holds %v, %v expected", got, want)
	}
}

// inJSON spells a value so that it can be compared with one that another reader of YAML made.
func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
