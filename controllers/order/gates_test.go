package order

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// orderOf is a user order of tenant-a on a cluster, placed with ControlPlane openstack/cp.
func orderOf(t *testing.T, cluster string, controlPlanes ...client.Object) *Pass {
	t.Helper()
	user := &v1alpha1.KeystoneUser{}
	user.Name, user.Namespace = "workflow", "tenant-a"
	user.Spec.ControlPlaneRef = v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: "openstack"}
	p := newPass(user)
	p.Key = KeyOf(cluster, user)
	p.Management = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(controlPlanes...).Build()
	return p
}

func assigning(entries ...v1alpha1.NamespaceAssignment) *v1alpha1.ControlPlane {
	cp := planeWith(v1alpha1.KeystoneServiceSpec{})
	cp.Spec.NamespaceAssignments = entries
	return cp
}

func entryFor(namespace, cluster string) v1alpha1.NamespaceAssignment {
	entry := v1alpha1.NamespaceAssignment{Namespace: namespace}
	if cluster != "" {
		entry.TargetClusterRef = &v1alpha1.ClusterReference{Name: cluster}
	}
	return entry
}

func TestGates(t *testing.T) {
	const (
		frozen = "; the order is frozen: nothing is created, rotated, repaired or removed until the entry is there. Ask whoever runs the ControlPlane to add it"
		here   = `ControlPlane openstack/cp does not assign namespace "tenant-a" on the management cluster (spec.namespaceAssignments)` + frozen
		onEdge = `ControlPlane openstack/cp does not assign namespace "tenant-a" on target cluster "edge" (spec.namespaceAssignments)` + frozen
	)
	elsewhere := assigning(entryFor("tenant-a", ""))
	elsewhere.Namespace = "other"
	cases := map[string]struct {
		cluster string
		cp      *v1alpha1.ControlPlane
		reason  string
		message string
		after   time.Duration
	}{
		"assigned":                                         {"", assigning(entryFor("tenant-b", ""), entryFor("tenant-a", "")), "", "", 0},
		"assigned_on_its_target_cluster":                   {"edge", assigning(entryFor("tenant-a", "edge")), "", "", 0},
		"a_cluster_name_of_63_characters":                  {strings.Repeat("c", 63), assigning(entryFor("tenant-a", strings.Repeat("c", 63))), "", "", 0},
		"no_entry":                                         {"", assigning(), v1alpha1.ReasonNamespaceNotAssigned, here, WaitLong},
		"an_entry_for_another_namespace":                   {"", assigning(entryFor("tenant-b", "")), v1alpha1.ReasonNamespaceNotAssigned, here, WaitLong},
		"an_entry_for_a_longer_name":                       {"", assigning(entryFor("tenant-a1", "")), v1alpha1.ReasonNamespaceNotAssigned, here, WaitLong},
		"an_entry_for_another_cluster":                     {"", assigning(entryFor("tenant-a", "edge")), v1alpha1.ReasonNamespaceNotAssigned, here, WaitLong},
		"an_entry_for_the_management_cluster_only":         {"edge", assigning(entryFor("tenant-a", "")), v1alpha1.ReasonNamespaceNotAssigned, onEdge, WaitLong},
		"the_controlplanes_own_namespace_does_not_consent": {"", assigning(entryFor("openstack", "")), v1alpha1.ReasonNamespaceNotAssigned, here, WaitLong},
		"no_controlplane": {"", nil, v1alpha1.ReasonControlPlaneNotFound,
			"there is no ControlPlane openstack/cp; correct spec.controlPlaneRef (delete and re-create the order) or create the ControlPlane", WaitShort},
		"a_controlplane_of_the_name_in_another_namespace": {"", elsewhere, v1alpha1.ReasonControlPlaneNotFound,
			"there is no ControlPlane openstack/cp; correct spec.controlPlaneRef (delete and re-create the order) or create the ControlPlane", WaitShort},
		// A target cluster must not learn which ControlPlanes there are: to the letter the answer of
		// one that did not assign the namespace, and after the same time.
		"no_controlplane_seen_from_a_target_cluster": {"edge", nil, v1alpha1.ReasonNamespaceNotAssigned, onEdge, WaitLong},
		"a_cluster_name_of_64_characters": {strings.Repeat("c", 64), assigning(), v1alpha1.ReasonClusterNameTooLong,
			`the name of target cluster "` + strings.Repeat("c", 64) + `" is longer than the 63 characters a label value carries; register the cluster under a shorter name`, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var stored []client.Object
			if c.cp != nil {
				stored = append(stored, c.cp)
			}
			p := orderOf(t, c.cluster, stored...)
			outcome := p.gates(t.Context())
			if c.reason == "" {
				if outcome != nil {
					t.Fatalf("refused: %s: %s", outcome.Reason, outcome.Message)
				}
				if p.ControlPlane == nil || p.Assignment == nil || p.Assignment.Namespace != "tenant-a" {
					t.Errorf("passed without what the steps work with: %v, %v", p.ControlPlane, p.Assignment)
				}
				return
			}
			if outcome == nil {
				t.Fatal("passed")
			}
			want := Outcome{Status: metav1.ConditionFalse, Reason: c.reason, Message: c.message, After: c.after}
			if *outcome != want {
				t.Errorf("got  %+v\nwant %+v", *outcome, want)
			}
		})
	}
	t.Run("a_failing_read_is_neither_refusal_nor_consent", func(t *testing.T) {
		for _, cluster := range []string{"", "edge"} {
			p := orderOf(t, cluster)
			p.Management = fake.NewClientBuilder().WithScheme(testScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return errors.New("etcd is away")
				},
			}).Build()
			outcome := p.gates(t.Context())
			if outcome == nil || outcome.Err == nil || outcome.Reason != UserKind.ErrorReason {
				t.Errorf("on cluster %q: %+v", cluster, outcome)
			}
		}
	})
	t.Run("an_empty_namespace_is_the_orders_own", func(t *testing.T) {
		cp := assigning(entryFor("tenant-a", ""))
		cp.Namespace = "tenant-a"
		p := orderOf(t, "", cp)
		p.Order.(*v1alpha1.KeystoneUser).Spec.ControlPlaneRef.Namespace = ""
		if outcome := p.gates(t.Context()); outcome != nil {
			t.Errorf("refused: %s", outcome.Message)
		}
	})
}

func TestAdminCredentialGate(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		message    string
	}{
		"it_is_true": {[]metav1.Condition{{Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionTrue}}, ""},
		"nothing_is_reported": {nil,
			"ControlPlane openstack/cp has not been reconciled yet"},
		"another_condition_is_true": {[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
			"ControlPlane openstack/cp has not been reconciled yet"},
		"it_is_false": {[]metav1.Condition{{Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAuthenticationFailed, Message: "Keystone says 401"}},
			"ControlPlane openstack/cp: AdminCredentialReady is False: AuthenticationFailed: Keystone says 401"},
		"it_is_unknown": {[]metav1.Condition{{Type: v1alpha1.ConditionAdminCredentialReady, Status: metav1.ConditionUnknown, Reason: "Asking", Message: "no answer"}},
			"ControlPlane openstack/cp: AdminCredentialReady is Unknown: Asking: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := orderOf(t, "")
			p.ControlPlane = assigning()
			p.ControlPlane.Status.Conditions = c.conditions
			outcome := p.adminCredentialGate()
			switch {
			case c.message == "" && outcome != nil:
				t.Errorf("refused: %s", outcome.Message)
			case c.message != "" && outcome == nil:
				t.Error("passed")
			case c.message != "":
				want := Outcome{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForAdminCredential, Message: c.message, After: WaitShort}
				if *outcome != want {
					t.Errorf("got  %+v\nwant %+v", *outcome, want)
				}
			}
		})
	}
}
