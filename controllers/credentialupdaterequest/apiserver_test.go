package credentialupdaterequest

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// TestAgainstAnAPIServer runs the registered controller with the rights of config/rbac and of
// config/agentprimitives and nothing more, on an API server that serves the kinds only later.
func TestAgainstAnAPIServer(t *testing.T) {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, agents.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config := dependenciestest.StartAPIServer(t, "../..")
	operator := dependenciestest.AsOperator(t, config, "../..")
	tracker := dependencies.NewTracker(discovery.NewDiscoveryClientForConfigOrDie(operator), logr.Discard())
	mgr, err := mcmanager.New(operator, nil, manager.Options{Scheme: scheme, NewCache: tracker.Guard, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tracker.Run(mgr.GetLocalManager()))
	settings, _ := provider(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) })
	must(Setup(order.Environment{Manager: mgr, Keystone: keystone.New(keystone.Config{}), Clock: clock.RealClock{}, Late: tracker}, settings))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(t.Context()) }()

	// The kinds and the rights come while the operator runs.
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../../config/crd/agentprimitives"}, ErrorIfPathMissing: true})
	must(err)
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(err)
	grant(t, c)
	must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	for _, object := range (&world{t: t}).agents() {
		object.SetUID("")
		must(c.Create(t.Context(), object))
	}

	s := &agents.AgentSession{}
	must(c.Get(t.Context(), key(session), s))
	request := &agents.CredentialUpdateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: agents.GroupVersion.String(), Kind: "AgentSession", Name: s.Name, UID: s.UID},
		}},
		Spec: agents.CredentialUpdateRequestSpec{SessionRef: agents.ObjectReference{Namespace: namespace, Name: session}, Origin: "mcpserver/git", ToolName: "t", RequestedBy: "user:alice"},
	}
	must(c.Create(t.Context(), request))
	becomes := func(phase string, within time.Duration) {
		t.Helper()
		for end := time.Now().Add(within); request.Status.Phase != phase; time.Sleep(100 * time.Millisecond) {
			select {
			case err := <-stopped:
				t.Fatalf("the operator stopped: %v", err)
			default:
			}
			if time.Now().After(end) {
				t.Fatalf("after %s it is %+v, want %s", within, request.Status, phase)
			}
			must(c.Get(t.Context(), client.ObjectKeyFromObject(request), request))
		}
	}
	becomes(agents.PhaseOpen, time.Minute) // discovery follows a CRD late
	if request.Status.Determination != agents.DeterminationRejectedVerified || request.Status.ObservedGeneration != request.Generation {
		t.Errorf("it is %+v", request.Status)
	}

	t.Run("the_spec_is_immutable", func(t *testing.T) {
		changed := request.DeepCopy()
		changed.Spec.Origin = "mcpserver/other"
		if err := c.Update(t.Context(), changed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec is immutable") {
			t.Errorf("a change of it is answered with %v", err)
		}
	})
	t.Run("fields_of_the_other_project_are_kept", func(t *testing.T) {
		server := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": agents.GroupVersion.String(), "kind": "MCPServer", "metadata": map[string]any{"namespace": namespace, "name": "whole"},
			"spec": map[string]any{"url": "https://mcp.example.com", "auth": map[string]any{"credential": "x", "mode": "header"}},
		}}
		must(c.Create(t.Context(), server))
		must(c.Get(t.Context(), key("whole"), server))
		mode, _, _ := unstructured.NestedString(server.Object, "spec", "auth", "mode")
		address, _, _ := unstructured.NestedString(server.Object, "spec", "url")
		if mode != "header" || address == "" {
			t.Errorf("it became %v", server.Object["spec"])
		}
	})
	says := func(reason string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			list := &eventsv1.EventList{}
			must(c.List(t.Context(), list, client.InNamespace(namespace)))
			if slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Regarding.UID == request.UID && e.Reason == reason && e.Note != ""
			}) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("there is no Event %s among %d", reason, len(list.Items))
			}
		}
	}
	t.Run("its_determination_is_an_Event", func(*testing.T) { says(agents.DeterminationRejectedVerified) })
	t.Run("a_new_value_fulfils_within_ten_seconds", func(t *testing.T) {
		secret := &corev1.Secret{}
		must(c.Get(t.Context(), key("bot-token"), secret))
		secret.Data["value"] = []byte("a-new-token")
		must(c.Update(t.Context(), secret))
		becomes(agents.PhaseFulfilled, 10*time.Second)
		says(agents.PhaseFulfilled)
	})
}

// grant gives the operator what config/agentprimitives grants.
func grant(t *testing.T, c client.Client) {
	t.Helper()
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	for file, object := range map[string]client.Object{"role.yaml": role, "role_binding.yaml": binding} {
		content, err := os.ReadFile("../../config/agentprimitives/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(content, object); err != nil {
			t.Fatal(err)
		}
	}
	for i := range binding.Subjects {
		binding.Subjects[i].Namespace = dependenciestest.OperatorNamespace
	}
	for _, object := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
