package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// mirroring is a pass over a ControlPlane with entries for these namespaces, on a cluster that answers as
// given. asked counts the questions.
func mirroring(failure error, asked *int, namespaces ...string) *pass {
	now := metav1.Now()
	cluster := fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-a"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving", DeletionTimestamp: &now, Finalizers: []string{"kubernetes"}}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			*asked++
			if failure != nil {
				return failure
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	cp := &v1alpha1.ControlPlane{}
	for _, namespace := range namespaces {
		cp.Spec.NamespaceAssignments = append(cp.Spec.NamespaceAssignments, v1alpha1.NamespaceAssignment{Namespace: namespace})
	}
	return &pass{
		reconciler: &reconciler{env: order.Environment{Manager: ordertest.FakeManager{Cached: cluster, Live: cluster}}},
		cp:         cp, memory: &memory{}, now: time.Now(), log: logr.Discard(), after: refresh,
	}
}

func TestMirrorNamespace(t *testing.T) {
	reasons := func(p *pass) (got []string) {
		for _, row := range p.cp.Status.NamespaceAssignments {
			got = append(got, row.Reason)
		}
		return got
	}
	t.Run("a_namespace_that_is_being_deleted", func(t *testing.T) {
		asked := 0
		p := mirroring(nil, &asked, "leaving", "tenant-a")
		p.mirrorNamespaces(t.Context())
		rows := p.cp.Status.NamespaceAssignments
		if len(rows) != 2 || rows[0].Reason != v1alpha1.ReasonNamespaceTerminating || rows[0].NamespaceExists || !rows[0].ClusterReachable || rows[1].Reason != v1alpha1.ReasonAssigned {
			t.Errorf("the rows are %+v", rows)
		}
	})
	t.Run("a_cluster_that_does_not_answer", func(t *testing.T) {
		asked := 0
		p := mirroring(errors.New("no route to host"), &asked, "tenant-a", "tenant-b", "tenant-c")
		p.mirrorNamespaces(t.Context())
		for i, reason := range reasons(p) {
			if row := p.cp.Status.NamespaceAssignments[i]; reason != v1alpha1.ReasonClusterUnreachable || row.ClusterReachable || row.NamespaceExists {
				t.Errorf("row %d is %+v", i, row)
			}
		}
		if asked != 1 || len(reasons(p)) != 3 {
			t.Errorf("asked %d times about %d entries; a silent cluster is asked once", asked, len(reasons(p)))
		}
		if p.namespaces.again.Sub(p.now) != order.WaitLong {
			t.Errorf("it is looked at again after %s", p.namespaces.again.Sub(p.now))
		}
	})
}
