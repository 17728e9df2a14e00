package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/metrics"
)

var (
	created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	turned  = created.Add(time.Hour)
)

func conditions(reasons ...string) []metav1.Condition {
	var all []metav1.Condition
	for i := 0; i < len(reasons); i += 3 {
		all = append(all, metav1.Condition{
			Type: reasons[i], Status: metav1.ConditionStatus(reasons[i+1]), Reason: reasons[i+2], LastTransitionTime: metav1.NewTime(turned),
		})
	}
	return all
}

func TestSnapshot_of_an_order(t *testing.T) {
	const (
		minted, delivered, ready = v1alpha1.ConditionCredentialReady, v1alpha1.ConditionDeliveryReady, v1alpha1.ConditionReady
		yes, no                  = "True", "False"
	)
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(created.Add(d))) }
	for name, test := range map[string]struct {
		change func(*v1alpha1.KeystoneApplicationCredential)
		want   metrics.Order
	}{
		"that_nobody_looked_at_yet": {
			change: func(*v1alpha1.KeystoneApplicationCredential) {},
			want:   metrics.Order{Reason: metrics.NotReconciled, NotReadySince: created},
		},
		"that_is_ready": {
			change: func(o *v1alpha1.KeystoneApplicationCredential) {
				o.Status.Conditions = conditions(minted, yes, v1alpha1.ReasonCredentialMinted, delivered, yes, v1alpha1.ReasonDelivered, ready, yes, v1alpha1.ReasonAllReady)
				o.Status.NextRotation, o.Status.CredentialExpiresAt = at(2*time.Hour), at(3*time.Hour)
			},
			want: metrics.Order{Reason: metrics.AllReady, NextRotation: created.Add(2 * time.Hour), CredentialExpiry: created.Add(3 * time.Hour)},
		},
		"whose_backup_is_behind_in_a_grace_period": {
			change: func(o *v1alpha1.KeystoneApplicationCredential) {
				o.Status.Conditions = conditions(minted, yes, v1alpha1.ReasonCredentialMinted, delivered, no, v1alpha1.ReasonBackupNotSynced, ready, no, v1alpha1.ReasonNotAllReady)
				o.Status.PreviousCredentialDeleteAt = at(4 * time.Hour)
			},
			want: metrics.Order{Reason: v1alpha1.ReasonBackupNotSynced, NotReadySince: turned, BackupBehindSince: turned, RevocationDue: created.Add(4 * time.Hour)},
		},
		"that_is_frozen": {
			change: func(o *v1alpha1.KeystoneApplicationCredential) {
				o.Status.Conditions = conditions(minted, no, v1alpha1.ReasonNamespaceNotAssigned, delivered, no, v1alpha1.ReasonNamespaceNotAssigned, ready, no, v1alpha1.ReasonNotAllReady)
			},
			want: metrics.Order{Reason: v1alpha1.ReasonNamespaceNotAssigned, NotReadySince: turned, Frozen: true},
		},
		"that_is_being_revoked": {
			change: func(o *v1alpha1.KeystoneApplicationCredential) {
				o.DeletionTimestamp = at(5 * time.Hour)
				o.Status.Conditions = conditions(minted, no, v1alpha1.ReasonWaitingForRevocation, delivered, yes, v1alpha1.ReasonDelivered, ready, no, v1alpha1.ReasonNotAllReady)
			},
			want: metrics.Order{Reason: v1alpha1.ReasonWaitingForRevocation, NotReadySince: turned, Deleting: true, RevocationDue: created.Add(5 * time.Hour)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.KeystoneApplicationCredential{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "cred", CreationTimestamp: metav1.NewTime(created)}}
			test.change(o)
			want := test.want
			want.Kind, want.Namespace, want.Name, want.Delivers, want.LiveCredentials = order.ApplicationCredentialKind.Name, "tenant-a", "cred", true, 2
			got := observe(order.ApplicationCredentialKind, o, map[order.Key]int{order.KeyOf("", o): 2})
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
	t.Run("whose_user_is_held_by_others_owes_nothing_yet", func(t *testing.T) {
		user := &v1alpha1.KeystoneUser{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: at(time.Hour)}}
		user.Status.Conditions = conditions(v1alpha1.ConditionUserReady, no, v1alpha1.ReasonReferencedByRoleAssignments)
		if got := observe(order.UserKind, user, nil); !got.RevocationDue.IsZero() || got.LiveCredentials != -1 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestSnapshot reads everything from what passes for the cache.
func TestSnapshot(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	credential := func(name string, id *string) *orcv1alpha1.ApplicationCredential {
		return &orcv1alpha1.ApplicationCredential{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name, Labels: order.ApplicationCredentialKind.Labels(order.Key{Namespace: "tenant-a", Name: "cred"})},
			Status:     orcv1alpha1.ApplicationCredentialStatus{ID: id},
		}
	}
	cp := &v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "cp"}}
	cp.Status.Conditions = conditions(v1alpha1.ConditionAdminCredentialReady, "True", "a", v1alpha1.ConditionSecretStoreReady, "False", "b", v1alpha1.ConditionKeystoneReachable, "Unknown", "c")
	served := true
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		cp,
		&v1alpha1.KeystoneUser{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "user"}},
		&v1alpha1.KeystoneApplicationCredential{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "cred"}},
		credential("one", ptr.To("id-1")), credential("two", ptr.To("id-2")), credential("not-made-yet", nil),
		&orcv1alpha1.ApplicationCredential{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "theirs"}},
	).WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*orcv1alpha1.ApplicationCredentialList); ok && !served {
			return &meta.NoKindMatchError{}
		}
		return c.List(ctx, list, options...)
	}}).Build()
	elected := make(chan struct{})
	taker := snapshots{cache: cache, elected: elected, log: logr.Discard()}

	if _, ok := taker.take(); ok {
		t.Error("a replica that does not lead reports the state of orders")
	}
	close(elected)
	snapshot, ok := taker.take()
	if !ok || len(snapshot.Orders) != 2 || snapshot.Orders[1].Name != "cred" || snapshot.Orders[1].LiveCredentials != 2 {
		t.Errorf("the orders are %+v", snapshot.Orders)
	}
	if len(snapshot.ControlPlanes) != 1 || len(snapshot.ControlPlanes[0].Conditions) != 2 ||
		!snapshot.ControlPlanes[0].Conditions[v1alpha1.ConditionAdminCredentialReady] || snapshot.ControlPlanes[0].Conditions[v1alpha1.ConditionSecretStoreReady] {
		t.Errorf("the ControlPlanes are %+v", snapshot.ControlPlanes)
	}
	served = false
	if snapshot, ok = taker.take(); !ok || snapshot.Orders[1].LiveCredentials != -1 {
		t.Errorf("while K-ORC's kind is not served: %+v", snapshot.Orders)
	}
	taker.cache = failing{cache}
	if _, ok := taker.take(); ok {
		t.Error("a cache that cannot be read gives a snapshot")
	}
}

type failing struct{ client.Reader }

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not filled")
}
