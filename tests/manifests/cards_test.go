package manifests

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	cardsName     = "c5c3-cards"
	secretsRole   = "c5c3-cards-secrets"
	linkKeySecret = "c5c3-cards-link-key" //nolint:gosec // its name
)

// TestCards builds config/cards-example, as docs/cards.md says, and holds what it adds against what that page
// promises.
func TestCards(t *testing.T) {
	objects, err := split(build(t, "../../config/cards-example"))
	if err != nil {
		t.Fatal(err)
	}
	var added []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetLabels()["app.kubernetes.io/name"] == cardsName || strings.HasPrefix(object.GetName(), cardsName) {
			added = append(added, object)
		}
		keyIsMountedBy(t, object)
	}
	for _, object := range added {
		secretsAreOpen(t, object)
		err := api.Create(t.Context(), object.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}

	deployment := one[appsv1.Deployment](t, added, "Deployment")
	template := deployment.Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "cards-", Namespace: operatorNamespace, Labels: template.Labels}, Spec: *template.Spec.DeepCopy()}
	// The namespace admits restricted pods only.
	if err := api.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("the pod is refused: %v", err)
	}
	if template.Spec.ServiceAccountName != cardsName || len(template.Spec.Containers) != 1 {
		t.Fatalf("the pod is %+v", template.Spec)
	}
	container := template.Spec.Containers[0]
	if !ptr.Deref(container.SecurityContext.ReadOnlyRootFilesystem, false) || len(container.Env)+len(container.EnvFrom) > 0 || container.Resources.Limits.Memory().IsZero() {
		t.Errorf("the container is %+v", container)
	}

	policy := one[networkingv1.NetworkPolicy](t, added, "NetworkPolicy")
	if !labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(template.Labels)) || len(policy.Spec.PodSelector.MatchLabels) == 0 {
		t.Error("the policy is about other pods")
	}
	var opened, served []string
	for _, port := range policy.Spec.Ingress[0].Ports {
		opened = append(opened, port.Port.String())
	}
	for _, port := range container.Ports {
		served = append(served, port.Name)
	}
	if slices.Sort(opened); !slices.Equal(opened, slices.Sorted(slices.Values(served))) {
		t.Errorf("the policy opens %v, the container serves %v", opened, served)
	}

	where := map[string]string{
		"ClusterRole c5c3-cards": "everywhere", "ClusterRole " + secretsRole: "where bound", "Role c5c3-cards-leader-election": "its own",
		"ClusterRole c5c3-cards-answerer": "for people",
	}
	granted := map[string][]rbacv1.PolicyRule{}
	for _, object := range added {
		if kind := object.GetKind(); kind == "ClusterRole" || kind == "Role" {
			place := where[kind+" "+object.GetName()]                                         // a role that is not known above is documented nowhere
			granted[place] = append(granted[place], decoded[rbacv1.Role](t, object).Rules...) // a ClusterRole has them in the same place
		}
	}
	delete(granted, "for people")
	rightsAreDocumented(t, "../../docs/cards.md", granted)
}

// secretsAreOpen has the card server reach the Secrets of one tenant and of no other namespace. All else that is in a
// namespace is in the operator's.
func secretsAreOpen(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	want := operatorNamespace
	if object.GetName() == secretsRole && object.GetKind() != "ClusterRole" {
		want = tenantNamespace
	}
	if namespace := object.GetNamespace(); namespace != want && (namespace != "" || want == tenantNamespace) {
		t.Errorf("%s %s is in namespace %q", object.GetKind(), object.GetName(), namespace)
	}
	if object.GetKind() == "ClusterRoleBinding" && decoded[rbacv1.ClusterRoleBinding](t, object).RoleRef.Name == secretsRole {
		t.Errorf("ClusterRoleBinding %s opens the Secrets of the whole cluster", object.GetName())
	}
}

// keyIsMountedBy lets the card server have the link key, which it cannot start without, and nobody else.
func keyIsMountedBy(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetKind() != "Deployment" {
		return
	}
	has := false
	for _, volume := range decoded[appsv1.Deployment](t, object).Spec.Template.Spec.Volumes {
		if volume.Secret != nil && volume.Secret.SecretName == linkKeySecret {
			has = true
			if ptr.Deref(volume.Secret.Optional, false) {
				t.Error("the link key is optional")
			}
		}
	}
	if has != (object.GetName() == cardsName) {
		t.Errorf("%s has the link key: %t", object.GetName(), has)
	}
}

func one[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return decoded[T](t, objects[i])
}

func decoded[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	found := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
		t.Fatal(err)
	}
	return found
}
