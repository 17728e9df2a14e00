package ordertest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// Causes are why an external Keystone does not do what it is asked, each with K-ORC's words for it:
// what K-ORC v2.6.0 puts around errors of gophercloud v2 and of Go.
var Causes = map[string]string{
	v1alpha1.ReasonAuthenticationFailed: `providerClient authentication err: Expected HTTP response code [201 202 200] when accessing ` +
		`[POST https://keystone.example.com/v3/auth/tokens], but got 401 instead: {"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`,
	v1alpha1.ReasonCredentialDrift: `Expected HTTP response code [201] when accessing [POST https://keystone.example.com/v3/users/u/application_credentials], ` +
		`but got 403 instead: {"error":{"code":403,"message":"You are not authorized to perform the requested action: identity:create_application_credential.","title":"Forbidden"}}`,
	v1alpha1.ReasonEndpointUnreachable: `providerClient authentication err: Post "https://keystone.example.com/v3/auth/tokens": ` +
		`dial tcp 192.0.2.7:443: connect: connection refused`,
	v1alpha1.ReasonTLSVerificationFailed: `providerClient authentication err: Post "https://keystone.example.com/v3/auth/tokens": ` +
		`tls: failed to verify certificate: x509: certificate signed by unknown authority`,
	v1alpha1.ReasonCatalogEndpointMismatch: `failed to create user service client: No suitable endpoint could be found in the service catalog.`,
}

// External makes the Keystone of the world's ControlPlane one that somebody else runs.
func (w *World) External() {
	w.T.Helper()
	cp := w.ControlPlane()
	cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{
		Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: w.Keystone.URL + "/v3"},
	}
	w.Must(w.Client.Update(w.T.Context(), cp))
}

// Retrying sets the conditions of an object that K-ORC has not given up on: the last try failed.
func Retrying(object order.KORCObject, conditions *[]metav1.Condition, message string) {
	report(object, conditions, false, true, orcv1alpha1.ConditionReasonTransientError, message)
}

// ReplacesTheWait runs a test for each cause: K-ORC tells it of one child of the order workflow, and the
// order has to show it as its reason, with the URL of the external Keystone and K-ORC's words. For a
// managed Keystone the order keeps the reason of its wait. await makes a world in which the order waits
// for the child, a new one each time.
func ReplacesTheWait(t *testing.T, name string, await func(*testing.T) *World, key types.NamespacedName, child order.KORCObject, conditions *[]metav1.Condition, wait string) {
	t.Helper()
	for _, cause := range slices.Sorted(maps.Keys(Causes)) {
		t.Run(cause, func(t *testing.T) {
			w := await(t)
			if !w.Get(key, child) {
				t.Fatalf("K-ORC's %T %s is not there", child, key)
			}
			Retrying(child, conditions, Causes[cause])
			w.Must(w.Client.Status().Update(t.Context(), child))
			w.Pass(name)
			if message := w.Wants(name, wait); !strings.Contains(message, Causes[cause]) {
				t.Errorf("K-ORC's words are missing: %s", message)
			}
			w.External()
			w.Pass(name)
			if message, want := w.Wants(name, cause), "external Keystone at "+w.Keystone.URL+"/v3: "+Causes[cause]; message != want {
				t.Errorf("the message is\n%s, want\n%s", message, want)
			}
		})
	}
}
