package credentialupdaterequest

import (
	"encoding/json"
	"fmt"
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
	"k8s.io/client-go/rest"
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
	"github.com/c5c3/c5c3-operator/internal/command"
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
	mgr, err := mcmanager.New(operator, nil, manager.Options{Scheme: scheme, NewCache: tracker.Guard, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: command.Controllers()})
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
	t.Run("its_limits", func(t *testing.T) { limits(t, c) })
	t.Run("its_columns", func(t *testing.T) { columns(t, config) })
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

// limits sends the API server a request on either side of each limit.
func limits(t *testing.T, c client.Client) {
	refuses := func(t *testing.T, spec any, says string) {
		t.Helper()
		request := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": agents.GroupVersion.String(), "kind": Kind, "metadata": map[string]any{"namespace": namespace, "name": "limits"},
		}}
		if spec != nil {
			request.Object["spec"] = spec
		}
		err := c.Create(t.Context(), request, client.DryRunAll)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("it is answered with %v, want %q", err, says)
		}
	}
	t.Run("no_spec", func(t *testing.T) { refuses(t, nil, "spec: Required") })
	for name, edge := range map[string]struct {
		field string // below spec
		value any
		says  string // part of the refusal; empty when it is taken
	}{
		"why_of_280_characters":          {"why", strings.Repeat("界", 280), ""},
		"why_of_281_characters":          {"why", strings.Repeat("界", 281), "spec.why: Too long"},
		"no_why":                         {"why", nil, ""},
		"origin_of_512_characters":       {"origin", strings.Repeat("o", 512), ""},
		"origin_of_513_characters":       {"origin", strings.Repeat("o", 513), "spec.origin: Too long"},
		"no_origin":                      {"origin", nil, "spec.origin: Required"},
		"toolName_of_512_characters":     {"toolName", strings.Repeat("t", 512), ""},
		"toolName_of_513_characters":     {"toolName", strings.Repeat("t", 513), "spec.toolName: Too long"},
		"no_toolName":                    {"toolName", nil, "spec.toolName: Required"},
		"requestedBy_of_1024_characters": {"requestedBy", strings.Repeat("r", 1024), ""},
		"requestedBy_of_1025_characters": {"requestedBy", strings.Repeat("r", 1025), "spec.requestedBy: Too long"},
		"no_requestedBy":                 {"requestedBy", nil, "spec.requestedBy: Required"},
		"no_sessionRef":                  {"sessionRef", nil, "spec.sessionRef: Required"},
		"session_name_of_253":            {"sessionRef", map[string]any{"name": strings.Repeat("n", 253), "namespace": "n"}, ""},
		"session_name_of_254":            {"sessionRef", map[string]any{"name": strings.Repeat("n", 254), "namespace": "n"}, "spec.sessionRef.name: Too long"},
		"session_without_a_name":         {"sessionRef", map[string]any{"namespace": "n"}, "spec.sessionRef.name: Required"},
		"session_of_an_empty_name":       {"sessionRef", map[string]any{"name": "", "namespace": "n"}, "spec.sessionRef.name"},
		"session_namespace_of_63":        {"sessionRef", map[string]any{"name": "n", "namespace": strings.Repeat("n", 63)}, ""},
		"session_namespace_of_64":        {"sessionRef", map[string]any{"name": "n", "namespace": strings.Repeat("n", 64)}, "spec.sessionRef.namespace: Too long"},
		"session_without_a_namespace":    {"sessionRef", map[string]any{"name": "n"}, "spec.sessionRef.namespace: Required"},
		"session_of_an_empty_namespace":  {"sessionRef", map[string]any{"name": "n", "namespace": ""}, "spec.sessionRef.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"sessionRef": map[string]any{"name": "n", "namespace": "n"}, "origin": "o", "toolName": "t", "requestedBy": "r"}
			spec[edge.field] = edge.value
			if edge.value == nil {
				delete(spec, edge.field)
			}
			refuses(t, spec, edge.says)
		})
	}
}

// columns are what kubectl prints, and by which short name.
func columns(t *testing.T, config *rest.Config) {
	served, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerResourcesForGroupVersion(agents.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == Kind && slices.Contains(r.ShortNames, "credupdate") }) {
		t.Errorf("it is not served as credupdate: %v", served.APIResources)
	}
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	at := host.JoinPath("apis", agents.GroupVersion.String(), "namespaces", namespace, "credentialupdaterequests", "r")
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := api.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	table := &metav1.Table{}
	if err := json.NewDecoder(response.Body).Decode(table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("it is answered with %+v, %v", table, err)
	}
	var shown []string
	for i, column := range table.ColumnDefinitions {
		cell := fmt.Sprint(table.Rows[0].Cells[i])
		if column.Name == "Age" {
			cell = "?"
		}
		shown = append(shown, column.Name+"="+cell)
	}
	if want := []string{"Name=r", "Phase=Open", "Determination=RejectedVerified", "Origin=mcpserver/git", "Age=?"}; !slices.Equal(shown, want) {
		t.Errorf("it shows %q, want %q", shown, want)
	}
}
