package keystoneapplicationcredential

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// each visits the objects of a list.
func each(list client.ObjectList, visit func(client.Object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		visit(item.(client.Object)) // the lists of these tests hold objects
		return nil
	})
}

func (w *world) wantsNothingLeft() {
	w.t.Helper()
	if !w.gone() {
		w.t.Errorf("the order is still there: %+v", w.order().Status.Conditions)
	}
	if w.delivered() != nil {
		w.t.Error("the delivered Secret is still there")
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &orcv1alpha1.ApplicationCredentialList{}, &externalsecrets.PushSecretList{}} {
		w.must(w.client.List(w.t.Context(), list, client.HasLabels{order.ApplicationCredentialKind.NameLabel()}))
		w.must(each(list, func(left client.Object) { w.t.Errorf("%T %s is left", left, left.GetName()) }))
	}
	if held := w.held(); len(held) > 0 {
		w.t.Errorf("Keystone holds %v", held)
	}
	if len(w.eso.Store) > 0 {
		w.t.Errorf("the store holds %d documents", len(w.eso.Store))
	}
}

func TestTeardown(t *testing.T) {
	t.Run("first_phase", func(t *testing.T) {
		w := fulfilled(t)
		w.korcAway = true
		w.remove(w.order())
		w.pass()
		w.playESO()
		w.pass()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonWaitingForRevocation)
		if push := (&externalsecrets.PushSecret{}); w.get(childKey(order.BackupChild), push) || len(w.eso.Store) > 0 {
			t.Error("the backup is still there")
		}
		if w.korcCredential(1).DeletionTimestamp.IsZero() || w.secret(childKey(order.SourceChild)) != nil {
			t.Error("the credential or the source was not deleted")
		}
		for _, kept := range []string{mintCloudChild, secretChild(1)} {
			if secret := w.secret(childKey(kept)); secret == nil || !secret.DeletionTimestamp.IsZero() {
				t.Errorf("%s is gone or going while K-ORC still lists a credential", kept)
			}
		}
		if w.delivered() == nil {
			t.Error("the delivered Secret went in the first phase")
		}
	})
	t.Run("second_phase", func(t *testing.T) {
		w := rotated(t)
		w.remove(w.order())
		w.settle()
		w.wantsNothingLeft()
		if w.announced("RevocationRepaired") || !w.announced("CredentialRevoked") {
			t.Errorf("Events: %v", w.events)
		}
	})
	t.Run("waits_for_keystones_word", func(t *testing.T) {
		w := fulfilled(t)
		w.keystone.Down(true)
		w.remove(w.order())
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonWaitingForRevocation)
		if w.korcCredential(1) != nil || w.secret(childKey(secretChild(1))) == nil {
			t.Error("K-ORC did not let go, or the record went before Keystone answered")
		}
		w.keystone.Down(false)
		w.settle()
		w.wantsNothingLeft()
	})
	t.Run("revokes_what_korc_let_go_of", func(t *testing.T) {
		w := fulfilled(t)
		w.remove(w.order())
		w.keystone.Down(true)
		w.settle()
		if len(w.held()) != 1 {
			t.Fatal("Keystone does not hold it any more: the test proves nothing")
		}
		w.keystone.Down(false)
		w.settle()
		w.wantsNothingLeft()
		if !w.announced("RevocationRepaired") {
			t.Errorf("Events: %v", w.events)
		}
	})
	t.Run("the_mint_document_follows_the_password", func(t *testing.T) {
		w := fulfilled(t)
		w.korcAway = true
		w.remove(w.order())
		w.pass()
		w.changePassword()
		w.pass()
		parsed, err := clouds.Parse(w.secret(childKey(mintCloudChild)).Data[order.CloudsKey])
		w.must(err)
		if got := parsed[order.CloudName].Password; got == nil || got.Password != "password-2" {
			t.Fatal("the document has the password that Keystone refuses")
		}
		w.korcAway = false
		w.settle()
		w.wantsNothingLeft()
		if w.announced("RevocationRepaired") {
			t.Error("K-ORC did not delete the credential itself")
		}
	})
	t.Run("works_while_the_order_is_frozen", func(t *testing.T) {
		w := fulfilled(t)
		w.assign(false)
		w.pass()
		w.remove(w.order())
		w.settle()
		w.wantsNothingLeft()
	})
	t.Run("works_while_its_references_are_gone", func(t *testing.T) {
		w := fulfilled(t)
		for _, object := range []client.Object{w.user(), w.project(), w.assignment()} {
			w.remove(object)
		}
		w.remove(w.order())
		w.settle()
		w.wantsNothingLeft()
	})
	t.Run("owes_keystone_no_question_when_nothing_was_minted", func(t *testing.T) {
		w := newWorld(t)
		w.remove(w.assignment())
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonNoRoleOnProject)
		w.keystone.Down(true)
		w.remove(w.order())
		w.settle()
		w.wantsNothingLeft()
	})
	t.Run("with_the_control_plane_gone_tells_what_is_not_proven", func(t *testing.T) {
		w := fulfilled(t)
		w.remove(w.plane()[0])
		w.remove(w.order())
		w.pass()
		if !w.gone() {
			t.Fatal("the order is not released after one pass")
		}
		told := ""
		for _, event := range w.events {
			if strings.Contains(event, " RevocationUnproven ") {
				told = event
			}
		}
		if !strings.Contains(told, childKey(credentialChild(1)).Name) {
			t.Errorf("the Events do not name what is unproven: %v", w.events)
		}
		if left := w.korcCredential(1); w.delivered() != nil || left != nil && left.DeletionTimestamp.IsZero() {
			t.Error("something was not deleted")
		}
	})
}
