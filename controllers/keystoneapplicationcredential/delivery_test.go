package keystoneapplicationcredential

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
)

func TestDelivered(t *testing.T) {
	t.Run("name_keys_labels_and_owner", func(t *testing.T) {
		w := fulfilled(t)
		secret, status := w.delivered(), w.status()
		if secret.Name != "agent-credentials" || secret.Namespace != ordertest.TenantNamespace || secret.Type != "Opaque" || len(secret.Data) != 3 ||
			string(secret.Data["application_credential_id"]) != status.CredentialID || len(secret.Data["application_credential_secret"]) != 43 || len(secret.Data["clouds.yaml"]) == 0 {
			t.Errorf("Secret %s of type %s has %d keys", secret.Name, secret.Type, len(secret.Data))
		}
		if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != w.order().UID || owner.Kind != "KeystoneApplicationCredential" || owner.APIVersion != "c5c3.io/v1alpha1" {
			t.Errorf("the owner is %+v", owner)
		}
		want := map[string]string{
			"c5c3.io/keystoneapplicationcredential-name":      "agent",
			"c5c3.io/keystoneapplicationcredential-namespace": ordertest.TenantNamespace,
			"app.kubernetes.io/managed-by":                    "c5c3-operator",
		}
		if len(secret.Labels) != len(want) {
			t.Errorf("the labels are %v", secret.Labels)
		}
		for label, value := range want {
			if secret.Labels[label] != value {
				t.Errorf("label %s is %q", label, secret.Labels[label])
			}
		}
	})
	t.Run("the_document", func(t *testing.T) {
		w := fulfilled(t)
		secret := w.delivered()
		parsed, err := clouds.Parse(secret.Data[order.CloudsKey])
		w.must(err)
		cloud := parsed[order.CloudName]
		if cloud.ApplicationCredential == nil || cloud.Password != nil || cloud.AuthURL != w.keystone.URL+"/v3" || cloud.RegionName != "RegionOne" ||
			cloud.ApplicationCredential.ID != w.status().CredentialID || cloud.ApplicationCredential.Secret != string(secret.Data[keyCredentialSecret]) {
			t.Errorf("the document is for %s in %s", cloud.AuthURL, cloud.RegionName)
		}
		document := string(secret.Data[order.CloudsKey])
		if !strings.Contains(document, "v3applicationcredential") || strings.Contains(document, "project") || strings.Contains(document, "cacert") {
			t.Error("the document names a project or a bundle, or has another way to log in")
		}
	})
	t.Run("an_edited_key_is_rewritten_and_somebody_elses_stays", func(t *testing.T) {
		w := fulfilled(t)
		w.edit(w.delivered(), func(s *corev1.Secret) { s.Data[keyCredentialSecret], s.Data["theirs"] = []byte("edited"), []byte("x") })
		w.pass()
		w.wantsWorking()
		if string(w.delivered().Data["theirs"]) != "x" {
			t.Error("somebody else's key is gone")
		}
	})
	t.Run("a_deleted_secret_is_written_again", func(t *testing.T) {
		w := fulfilled(t)
		id := w.status().CredentialID
		w.remove(w.delivered())
		w.pass()
		w.wantsWorking()
		if w.status().CredentialID != id {
			t.Error("it is another credential")
		}
	})
	foreign := func(t *testing.T, theirs *corev1.Secret) {
		t.Helper()
		w := newWorld(t)
		w.create(theirs)
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialMinted)
		if message := w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDeliveryRefused); !strings.Contains(message, "does not own") {
			t.Errorf("the message is %q", message)
		}
		if w.status().SecretName != "" {
			t.Error("status names a Secret that is not the order's")
		}
		w.remove(w.order())
		w.settle()
		if got := w.delivered(); !w.gone() || got == nil || len(got.Data) != 1 || got.UID != theirs.UID {
			t.Errorf("the order is gone: %t; the Secret is %v", w.gone(), got)
		}
	}
	named := metav1.ObjectMeta{Namespace: ordertest.TenantNamespace, Name: agent + "-credentials", UID: "theirs"}
	t.Run("a_foreign_secret_is_never_taken_over", func(t *testing.T) {
		foreign(t, &corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"theirs": []byte("x")}})
	})
	t.Run("a_user_of_the_same_name_collides", func(t *testing.T) {
		theirs := &corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"password": []byte("x")}}
		theirs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(
			&v1alpha1.KeystoneUser{ObjectMeta: metav1.ObjectMeta{Name: agent, UID: "uid-of-the-user"}}, v1alpha1.GroupVersion.WithKind("KeystoneUser"))}
		foreign(t, theirs)
	})
	t.Run("is_repaired_while_keystone_is_away", func(t *testing.T) {
		w := fulfilled(t)
		w.keystone.Down(true)
		w.edit(w.delivered(), func(s *corev1.Secret) { s.Data[order.CloudsKey] = []byte("edited") })
		w.pass()
		w.wantsWorking()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
}

func TestBackup(t *testing.T) {
	t.Run("comes_before_the_secret", func(t *testing.T) {
		w := newWorld(t)
		w.esoAway = true
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialMinted)
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonBackupNotSynced)
		if w.delivered() != nil || w.status().SecretName != "" || w.secret(childKey(order.SourceChild)) == nil {
			t.Error("a Secret was delivered without a backup, or there is nothing to back up")
		}
	})
	t.Run("an_older_push_that_ends_late_does_not_count", func(t *testing.T) {
		w := newWorld(t)
		w.esoAway = true
		w.settle()
		w.esoAway, w.eso.Late = false, true
		w.playESO() // begins with the document of region RegionOne
		w.changePlane(func(cp *v1alpha1.ControlPlane) { cp.Spec.Region = "RegionTwo" })
		w.pass()
		w.playESO() // ends, and reports Ready
		w.pass()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonBackupNotSynced)
		if w.delivered() != nil {
			t.Fatal("the Secret was written on the word of another document's push")
		}
		w.playESO()
		w.playESO()
		w.pass()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
		if !strings.Contains(string(w.delivered().Data[order.CloudsKey]), "RegionTwo") {
			t.Error("the older document was delivered")
		}
	})
	t.Run("names_the_path", func(t *testing.T) {
		w := fulfilled(t)
		path := "openstack/keystone/openstack/" + strings.TrimSuffix(childKey("").Name, "-") + "/service-accounts/application-credential"
		if got := w.eso.Store[path]; string(got[order.CloudsKey]) != string(w.delivered().Data[order.CloudsKey]) {
			t.Errorf("the store has %d paths, and nothing that was delivered at %s", len(w.eso.Store), path)
		}
	})
}

func TestNoSecretIsShown(t *testing.T) {
	w := rotated(t)
	secret := string(w.delivered().Data[keyCredentialSecret])
	for _, condition := range w.status().Conditions {
		if strings.Contains(condition.Message, secret) {
			t.Errorf("condition %s shows the secret", condition.Type)
		}
	}
	for _, event := range w.events {
		if strings.Contains(event, secret) {
			t.Error("an Event shows the secret")
		}
	}
	if len(w.events) == 0 {
		t.Error("there are no Events: the test proves nothing")
	}
}
