package manifests

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestThePodIsRestricted has the API server judge the pod by its own rules. That those are in force where
// the operator runs is what the pods show that lack one thing each.
func TestThePodIsRestricted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		refuse string
	}{
		"as_deployed":             {func(*corev1.PodSpec) {}, ""},
		"without_seccomp":         {func(pod *corev1.PodSpec) { pod.SecurityContext.SeccompProfile = nil }, "seccompProfile"},
		"as_anybody":              {func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsNonRoot = nil }, "runAsNonRoot"},
		"as_root":                 {func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsUser = ptr.To[int64](0) }, "runAsUser"},
		"with_capabilities":       {func(pod *corev1.PodSpec) { pod.Containers[0].SecurityContext.Capabilities = nil }, "capabilities"},
		"with_escalation":         {func(pod *corev1.PodSpec) { pod.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil }, "allowPrivilegeEscalation"},
		"on_the_network_of_nodes": {func(pod *corev1.PodSpec) { pod.HostNetwork = true }, "host namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			template := deployment(t).Spec.Template
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "manager-", Namespace: operatorNamespace, Labels: template.Labels},
				Spec:       *template.Spec.DeepCopy(),
			}
			c.change(&pod.Spec)
			err := api.Create(t.Context(), pod, client.DryRunAll)
			switch {
			case c.refuse == "" && err != nil:
				t.Errorf("the operator's pod is refused: %v", err)
			case c.refuse != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.refuse)):
				t.Errorf("a refusal for %s expected, got: %v", c.refuse, err)
			}
		})
	}
}

// What the standard "restricted" does not ask for.
func TestThePodAsksForLittle(t *testing.T) {
	spec := deployment(t).Spec.Template.Spec
	if len(spec.InitContainers) > 0 || len(spec.Containers) != 1 {
		t.Fatalf("one container expected, got %d and %d init containers", len(spec.Containers), len(spec.InitContainers))
	}
	container := spec.Containers[0]
	if !ptr.Deref(container.SecurityContext.ReadOnlyRootFilesystem, false) {
		t.Error("the root file system is writable")
	}
	if len(spec.Volumes) > 0 || len(container.VolumeMounts) > 0 {
		t.Error("the pod has volumes, and the operator keeps nothing on disk")
	}
	if len(container.Env) > 0 || len(container.EnvFrom) > 0 {
		t.Error("the container has variables: a secret in one would be in every dump of the process")
	}
	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
		t.Errorf("requests and a limit of memory expected, got %+v", container.Resources)
	}
	for name, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != name || probe.HTTPGet.Port != intstr.FromString("probes") {
			t.Errorf("a probe of %s expected, got %+v", name, probe)
		}
	}
	if !slices.Contains(container.Args, "--leader-elect") {
		t.Error("the leader election is off: during a rollout two operators would work at once")
	}
	if spec.ServiceAccountName != operatorName {
		t.Errorf("the pod runs as ServiceAccount %q", spec.ServiceAccountName)
	}
}

// TestNetworkPolicy reads the policy as a network plugin would. The local stack's has none that enforces
// policies, so it cannot be tried there.
func TestNetworkPolicy(t *testing.T) {
	policy := object[networkingv1.NetworkPolicy](t, "NetworkPolicy", operatorName)
	template := deployment(t).Spec.Template
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	if policy.Namespace != operatorNamespace || selector.Empty() || !selector.Matches(labels.Set(template.Labels)) {
		t.Errorf("the policy selects %s in namespace %s, and not the operator's pod alone", selector, policy.Namespace)
	}
	var open []string
	for _, rule := range policy.Spec.Ingress {
		if len(rule.Ports) == 0 {
			t.Error("a rule opens all ports")
		}
		for _, port := range rule.Ports {
			open = append(open, port.Port.String())
		}
	}
	var served []string
	for _, port := range template.Spec.Containers[0].Ports {
		served = append(served, port.Name)
	}
	if slices.Sort(open); !slices.Equal(open, []string{"metrics", "probes"}) {
		t.Errorf("open are the ports %v", open)
	}
	if slices.Sort(served); !slices.Equal(open, served) {
		t.Errorf("the policy opens %v by name, and the container has %v", open, served)
	}
	// A Keystone is where its ControlPlane says, on whatever port.
	egress := policy.Spec.Egress
	if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(egress) != 1 || len(egress[0].To) > 0 || len(egress[0].Ports) > 0 {
		t.Errorf("one rule that lets everything out expected, got %+v of %v", egress, policy.Spec.PolicyTypes)
	}
}

func TestMetricsService_finds_the_pod(t *testing.T) {
	service := object[corev1.Service](t, "Service", "c5c3-operator-metrics")
	template := deployment(t).Spec.Template
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(template.Labels)) || service.Namespace != operatorNamespace {
		t.Errorf("the Service selects %v in namespace %s", service.Spec.Selector, service.Namespace)
	}
	for _, port := range service.Spec.Ports {
		if !slices.ContainsFunc(template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.String() }) {
			t.Errorf("the pod has no port %s", port.TargetPort.String())
		}
	}
}
