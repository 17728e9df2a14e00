package order

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

func TestStoreState(t *testing.T) {
	reports := func(status corev1.ConditionStatus, message string) externalsecrets.SecretStoreStatus {
		return externalsecrets.SecretStoreStatus{Conditions: []externalsecrets.StatusCondition{{Type: externalsecrets.ReadyCondition, Status: status, Message: message}}}
	}
	store := func(name string, status externalsecrets.SecretStoreStatus) client.Object {
		return &externalsecrets.SecretStore{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name}, Status: status}
	}
	named := func(kind string) *v1alpha1.ControlPlane {
		cp := planeWith(v1alpha1.KeystoneServiceSpec{})
		cp.Spec.SecretStoreRef = &v1alpha1.SecretStoreReference{Name: "vault", Kind: kind}
		return cp
	}
	byDefault := planeWith(v1alpha1.KeystoneServiceSpec{})
	for name, c := range map[string]struct {
		cp            *v1alpha1.ControlPlane
		stored        client.Object
		unserved      bool
		reason, wants string
	}{
		"a_store_that_is_ready":         {byDefault, store(DefaultSecretStore, reports(corev1.ConditionTrue, "")), false, v1alpha1.ReasonSecretStoreValid, ""},
		"no_store":                      {byDefault, store("another", reports(corev1.ConditionTrue, "")), false, v1alpha1.ReasonSecretStoreNotFound, "SecretStore openstack/openbao-tenant-store does not exist"},
		"a_store_that_is_not_ready":     {byDefault, store(DefaultSecretStore, reports(corev1.ConditionFalse, "sealed")), false, v1alpha1.ReasonSecretStoreNotReady, "sealed"},
		"a_store_that_nobody_looked_at": {byDefault, store(DefaultSecretStore, externalsecrets.SecretStoreStatus{}), false, v1alpha1.ReasonSecretStoreNotReady, "SecretStore openstack/openbao-tenant-store"},
		"the_one_that_is_named":         {named(""), store("vault", reports(corev1.ConditionTrue, "")), false, v1alpha1.ReasonSecretStoreValid, ""},
		"a_cluster_wide_one": {named(externalsecrets.ClusterSecretStoreKind),
			&externalsecrets.ClusterSecretStore{ObjectMeta: metav1.ObjectMeta{Name: "vault"}, Status: reports(corev1.ConditionTrue, "")}, false, v1alpha1.ReasonSecretStoreValid, ""},
		"a_cluster_wide_one_is_no_other": {named(externalsecrets.ClusterSecretStoreKind), store("vault", reports(corev1.ConditionTrue, "")), false, v1alpha1.ReasonSecretStoreNotFound, "ClusterSecretStore vault does not exist"},
		"a_kind_that_is_not_served":      {byDefault, nil, true, v1alpha1.ReasonSecretStoreNotReady, "install External Secrets Operator"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if !c.unserved {
				if err := externalsecrets.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if c.stored != nil {
				builder = builder.WithObjects(c.stored)
			}
			reader := builder.Build()
			reason, why, err := StoreState(t.Context(), reader, c.cp)
			if err != nil || reason != c.reason || !strings.Contains(why, c.wants) {
				t.Errorf("the store is %s (%s), %v; want %s", reason, why, err, c.reason)
			}
			ready, _, err := StoreReady(t.Context(), reader, c.cp)
			if err != nil || ready != (c.reason == v1alpha1.ReasonSecretStoreValid) {
				t.Errorf("ready: %t, %v", ready, err)
			}
		})
	}
}
