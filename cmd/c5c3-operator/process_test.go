package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
)

// runsAsOperator, in the environment, has the test binary be the operator. Several replicas are needed
// here, and some of them are killed; neither can be done within one process.
const runsAsOperator = "C5C3_TEST_RUNS_AS_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(runsAsOperator) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// replica is an operator in a process of its own.
type replica struct {
	*exec.Cmd
	metrics, probes string
	output          *output
}

// output keeps what a process says.
type output struct {
	sync.Mutex
	text strings.Builder
}

func (o *output) Write(text []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.text.Write(text)
}

func (o *output) says(word string) bool {
	o.Lock()
	defer o.Unlock()
	return strings.Contains(o.text.String(), word)
}

func startReplica(t *testing.T, config *rest.Config, arguments ...string) *replica {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{metrics: freeAddress(t), probes: freeAddress(t), output: &output{}}
	r.Cmd = exec.Command(self, append([]string{"--metrics-bind-address=" + r.metrics, "--health-probe-bind-address=" + r.probes}, arguments...)...) //nolint:gosec // this test
	r.Env = append(os.Environ(), runsAsOperator+"=yes", "KUBECONFIG="+kubeconfig(t, config))
	r.Stdout, r.Stderr = r.output, r.output
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Process.Kill() // it may be gone
		_ = r.Wait()
		if t.Failed() {
			t.Logf("a replica said:\n%s", r.output.text.String())
		}
	})
	return r
}

// kubeconfig writes a file that says the same as a config.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["it"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["it"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken, Impersonate: config.Impersonate.UserName,
	}
	file.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	file.CurrentContext = "it"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *replica) scrape() (string, error) {
	response, err := http.Get("http://" + r.metrics + "/metrics")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %s", response.StatusCode, text)
	}
	return string(text), err
}

// leads returns nil for a replica that reports the state of orders, as only the leader does.
func (r *replica) leads() error {
	text, err := r.scrape()
	if err == nil && !strings.Contains(text, `c5c3_orders{kind="KeystoneUser",reason="AllReady"}`) {
		err = errors.New("it reports no orders")
	}
	return err
}

// queuesWithoutPriorities checks that every controller took command.Controllers, which the builder for many clusters
// does not do by itself.
func (r *replica) queuesWithoutPriorities(t *testing.T) {
	t.Helper()
	text, err := r.scrape()
	if err != nil {
		t.Fatal(err)
	}
	queues := regexp.MustCompile(`(?m)^workqueue_depth\{controller="([^"]*)",name="[^"]*",priority="([^"]*)"\}`).FindAllStringSubmatch(text, -1)
	if len(queues) < len(setups)+1 {
		t.Errorf("the metrics show the queues %q", queues)
	}
	for _, queue := range queues {
		if queue[2] != "" {
			t.Errorf("the queue of %s has the priority %s", queue[1], queue[2])
		}
	}
}

func TestReplicas_hand_over(t *testing.T) {
	config := dependenciestest.StartAPIServer(t, "../..")
	operator := dependenciestest.AsOperator(t, config, "../..")
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, kube: kube}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openstack"}})
	elect := []string{"--leader-elect", "--leader-election-namespace=" + dependenciestest.OperatorNamespace, "--leader-elect-retry-period=200ms"}
	short := slices.Concat(elect, []string{"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"})
	profiles := freeAddress(t)

	// Nobody would see its lease run out before the test's patience does: only giving it back helps.
	first := startReplica(t, operator, slices.Concat(elect, []string{"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m"})...)
	w.eventually("the first replica leads", first.leads)
	second := startReplica(t, operator, slices.Concat(short, []string{"--pprof-bind-address=" + profiles})...)
	w.eventually("the second replica is ready", func() error { return probe(second.probes, "/readyz") })
	if second.leads() == nil {
		t.Error("two replicas lead")
	}

	for what, address := range map[string]string{"metrics": first.metrics, "probes": first.probes} {
		if probe(address, "/debug/pprof/") == nil {
			t.Errorf("profiles are served beside the %s, and nobody asked for them", what)
		}
	}
	w.eventually("profiles are served where they are asked for", func() error { return probe(profiles, "/debug/pprof/") })

	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("a replica that is told to stop ends with: %v", err)
	}
	w.eventually("the second replica leads when the first stops", second.leads)
	w.create(&v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "cp", Namespace: "openstack"}})
	w.condition(v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonKindsMissing)
	second.queuesWithoutPriorities(t)

	third := startReplica(t, operator, short...)
	w.eventually("the third replica is ready", func() error { return probe(third.probes, "/readyz") })
	if err := second.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.eventually("the third replica leads when the second is killed", third.leads)
}

func TestReadiness_follows_the_caches(t *testing.T) {
	config := dependenciestest.StartAPIServer(t, "../..")
	kube, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, kube: kube}
	nobody := rest.CopyConfig(config)
	nobody.Impersonate.UserName = "nobody"

	r := startReplica(t, nobody)
	w.eventually("it tried to fill its caches", func() error {
		if !r.output.says("forbidden") {
			return errors.New("it has not been refused yet")
		}
		return nil
	})
	w.eventually("/healthz says ok", func() error { return probe(r.probes, "/healthz") })
	if probe(r.probes, "/readyz") == nil {
		t.Error("it is ready without its caches")
	}
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nobody"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "nobody"}},
	})
	w.eventually("/readyz says ok once it may read", func() error { return probe(r.probes, "/readyz") })
	w.eventually("it leads, for nobody else is asked", r.leads)
}

// With the variable that OLM sets the operator reports whether it may be upgraded, with the rights that OLM
// gives and its own.
func TestOLM_is_told_whether_an_upgrade_may_begin(t *testing.T) {
	config := dependenciestest.StartAPIServer(t, "../..")
	operator := dependenciestest.AsOperator(t, config, "../..")
	dependenciestest.InstallOperatorConditions(t, config)
	kube, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const version = "c5c3-operator.v0.1.0"
	dependenciestest.OperatorCondition(t, kube, version)
	t.Setenv(conditionVariable, version)
	w := &world{T: t, kube: kube}
	r := startReplica(t, operator, "--leader-elect", "--leader-election-namespace="+dependenciestest.OperatorNamespace)
	w.eventually("it is ready", func() error { return probe(r.probes, "/readyz") })
	w.eventually("Upgradeable is True", func() error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("operators.coreos.com/v2")
		object.SetKind("OperatorCondition")
		if err := kube.Get(t.Context(), client.ObjectKey{Namespace: dependenciestest.OperatorNamespace, Name: version}, object); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "spec", "conditions")
		if text := fmt.Sprint(conditions); !strings.Contains(text, "type:Upgradeable") || !strings.Contains(text, "status:True") {
			return fmt.Errorf("the conditions are %s", text)
		}
		return nil
	})
}
