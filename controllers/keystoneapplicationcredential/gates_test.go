package keystoneapplicationcredential

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// refusals are the ways in which what an order names can be in its way. Each is undone by writing the
// objects anew.
var refusals = map[string]struct {
	change   func(*world)
	reason   string
	mentions string
}{
	"no_user":    {func(w *world) { w.remove(w.user()) }, v1alpha1.ReasonUserNotFound, `"workflow"`},
	"no_project": {func(w *world) { w.remove(w.project()) }, v1alpha1.ReasonProjectNotFound, `"workflow-project"`},
	"a_user_of_another_control_plane": {func(w *world) {
		o := w.user()
		o.Spec.ControlPlaneRef.Name = "other"
		w.replace(o)
	}, v1alpha1.ReasonControlPlaneMismatch, "openstack/other"},
	"a_project_of_another_control_plane": {func(w *world) {
		o := w.project()
		o.Spec.ControlPlaneRef.Namespace = "elsewhere"
		w.replace(o)
	}, v1alpha1.ReasonControlPlaneMismatch, "elsewhere/cp"},
	"a_user_that_is_not_ready": {func(w *world) {
		o := w.user()
		o.Status.Conditions[0].Status, o.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonSecretStoreNotReady
		w.replace(o)
	}, v1alpha1.ReasonWaitingForUser, "SecretStoreNotReady"},
	"a_project_that_is_not_ready": {func(w *world) {
		o := w.project()
		o.Status.Conditions = nil
		w.replace(o)
	}, v1alpha1.ReasonWaitingForProject, "not reconciled yet"},
	"a_project_without_a_name": {func(w *world) {
		o := w.project()
		o.Status.ProjectName = ""
		w.replace(o)
	}, v1alpha1.ReasonWaitingForProject, "no project name"},
	"a_password_that_is_not_there": {func(w *world) { w.remove(w.password(1, "")) }, v1alpha1.ReasonWaitingForUser, "password of generation 1"},
	"no_role_on_the_project":       {func(w *world) { w.remove(w.assignment()) }, v1alpha1.ReasonNoRoleOnProject, "order one"},
}

// replace writes an object anew, whatever is there of it.
func (w *world) replace(object client.Object) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), object.DeepCopyObject().(client.Object))))
	w.create(object)
}

func (w *world) undo() {
	w.t.Helper()
	for _, object := range []client.Object{w.user(), w.project(), w.assignment(), w.password(1, "password-1")} {
		w.replace(object)
	}
}

func TestReferences(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.change(w)
			w.settle()
			if message := w.wants(v1alpha1.ConditionCredentialReady, test.reason); !strings.Contains(message, test.mentions) {
				t.Errorf("the message is %q", message)
			}
			w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForCredential)
			if w.korcCredential(1) != nil || len(w.held()) > 0 || w.secret(childKey(secretChild(1))) != nil || w.delivered() != nil {
				t.Error("something was created")
			}
			w.undo()
			w.settle()
			w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		})
	}
}

func TestReferences_pause_a_delivered_order(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			w := fulfilled(t)
			id := w.status().CredentialID
			test.change(w)
			w.raise(2)
			w.edit(w.delivered(), func(s *corev1.Secret) { s.Data[keyCredentialID] = []byte("edited") })
			w.settle()
			w.wants(v1alpha1.ConditionCredentialReady, test.reason)
			w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
			if status := w.status(); status.CredentialID != id || status.CredentialGeneration != 1 {
				t.Errorf("status is %+v", status)
			}
			w.wantsWorking()
			if held := w.held(); !slices.Equal(held, []string{"credential-v1"}) {
				t.Errorf("Keystone holds %v", held)
			}
			w.undo()
			w.settle()
			w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
			if generation := w.status().CredentialGeneration; generation != 2 {
				t.Errorf("what was asked for did not happen: generation %d", generation)
			}
		})
	}
}

func TestReferences_in_order(t *testing.T) {
	w := newWorld(t)
	for _, object := range []client.Object{w.user(), w.project(), w.assignment()} {
		w.remove(object)
	}
	for _, step := range []struct {
		reason string
		then   client.Object
	}{
		{v1alpha1.ReasonUserNotFound, w.user()}, {v1alpha1.ReasonProjectNotFound, w.project()}, {v1alpha1.ReasonNoRoleOnProject, w.assignment()},
	} {
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, step.reason)
		if w.secret(childKey(mintCloudChild)) != nil {
			t.Errorf("the mint document was written in spite of %s", step.reason)
		}
		w.create(step.then)
	}
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
}

func TestRole_gate_reads_the_role_id(t *testing.T) {
	t.Run("a_frozen_assignment_keeps_its_role", func(t *testing.T) {
		w := newWorld(t)
		frozen := w.assignment()
		frozen.Status.Conditions[0].Status, frozen.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonRoleNotAllowed
		w.replace(frozen)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	for name, change := range map[string]func(*v1alpha1.KeystoneRoleAssignment){
		"an_assignment_that_reports_none_gives_none": func(o *v1alpha1.KeystoneRoleAssignment) { o.Status.RoleID = "" },
		"another_user_s_assignment_gives_none":       func(o *v1alpha1.KeystoneRoleAssignment) { o.Spec.UserRef.Name = "another" },
		"another_project_s_assignment_gives_none":    func(o *v1alpha1.KeystoneRoleAssignment) { o.Spec.ProjectRef.Name = "another" },
		"an_assignment_elsewhere_gives_none":         func(o *v1alpha1.KeystoneRoleAssignment) { o.Namespace = "tenant-b" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.remove(w.assignment())
			other := w.assignment()
			change(other)
			w.create(other)
			w.settle()
			w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonNoRoleOnProject)
		})
	}
}

func TestFreeze(t *testing.T) {
	// frozen withdraws the entry and lets the order see it.
	frozen := func(w *world) {
		w.t.Helper()
		w.assign(false)
		w.pass()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonNamespaceNotAssigned)
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonNamespaceNotAssigned)
		w.reads, w.writes = nil, nil
		w.keystone.Asked()
	}
	quiet := func(w *world) {
		w.t.Helper()
		for range 3 {
			w.pass()
			w.advance(time.Minute)
		}
		if asked := w.keystone.Asked(); len(w.writes) > 0 || len(asked) > 0 {
			w.t.Errorf("a frozen order wrote %v and asked Keystone %v", w.writes, asked)
		}
		for _, read := range w.reads {
			if read != "*v1alpha1.ControlPlane "+plane.Name {
				w.t.Errorf("a frozen order read %s", read)
			}
		}
	}
	t.Run("reads_and_writes_nothing", func(t *testing.T) {
		w := fulfilled(t)
		before := w.status()
		working := w.delivered().DeepCopy()
		frozen(w)
		w.raise(2)
		w.pass() // takes note of the new generation, in the status
		w.reads, w.writes = nil, nil
		w.edit(w.delivered(), func(s *corev1.Secret) { s.Data[order.CloudsKey] = []byte("edited") })
		w.edit(w.secret(childKey(mintCloudChild)), func(s *corev1.Secret) { s.Data[order.CloudsKey] = []byte("edited") })
		w.remove(w.secret(childKey(secretChild(1))))
		quiet(w)
		after := w.status()
		if after.CredentialID != before.CredentialID || after.SecretName != before.SecretName || !after.NextRotation.Equal(before.NextRotation) {
			t.Errorf("status was %+v and is %+v", before, after)
		}
		if string(w.delivered().Data[order.CloudsKey]) != "edited" || string(w.secret(childKey(mintCloudChild)).Data[order.CloudsKey]) != "edited" || w.korcCredential(2) != nil {
			t.Error("something was repaired, written or created")
		}
		w.wantsAccepted(working)
	})
	t.Run("sweeps_nothing_when_the_grace_period_ends", func(t *testing.T) {
		w := rotated(t)
		frozen(w)
		w.clock.SetTime(w.status().PreviousCredentialDeleteAt.Add(time.Hour))
		quiet(w)
		if held := w.held(); !slices.Equal(held, []string{"credential-v1", "credential-v2"}) || w.status().PreviousCredentialID == "" {
			t.Errorf("Keystone holds %v", held)
		}
	})
	t.Run("rotates_at_once_when_the_entry_returns", func(t *testing.T) {
		w := fulfilled(t)
		frozen(w)
		w.clock.SetTime(w.status().NextRotation.Add(time.Hour))
		quiet(w)
		if w.korcCredential(2) != nil {
			t.Fatal("the schedule went on while frozen")
		}
		w.assign(true)
		w.pass()
		if w.korcCredential(2) == nil {
			t.Error("the overdue rotation did not start on the first pass")
		}
	})
	t.Run("goes_on_with_the_same_credential", func(t *testing.T) {
		w := fulfilled(t)
		id := w.status().CredentialID
		frozen(w)
		w.edit(w.delivered(), func(s *corev1.Secret) { s.Data[order.CloudsKey] = []byte("edited") })
		w.assign(true)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if status := w.status(); status.CredentialID != id || status.CredentialGeneration != 1 || string(w.delivered().Data[order.CloudsKey]) == "edited" {
			t.Errorf("status is %+v, or the Secret was not repaired", status)
		}
	})
}

func TestCABundle(t *testing.T) {
	w := newWorld(t)
	w.changePlane(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.Services.Keystone.External.CABundleSecretRef = &v1alpha1.SecretReference{Name: "keystone-ca"}
	})
	w.settle()
	if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonWaitingForCABundle); !strings.Contains(message, "openstack/keystone-ca") {
		t.Errorf("the message is %q", message)
	}
	if w.secret(childKey(mintCloudChild)) != nil || w.korcCredential(1) != nil {
		t.Error("something was created without the bundle")
	}
	bundle := certificate()
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: "keystone-ca"}, Data: map[string][]byte{order.CABundleKey: bundle}})
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if got := w.secret(childKey(mintCloudChild)).Data[order.CACertKey]; string(got) != string(bundle) {
		t.Error("the mint document does not carry the bundle")
	}
	if secret := w.delivered(); len(secret.Data) != 3 || strings.Contains(string(secret.Data[order.CloudsKey]), "cacert") {
		t.Error("the delivered Secret carries a bundle")
	}
}

func TestErrors(t *testing.T) {
	refusedWrite := func(write string) func(string) error {
		return func(seen string) error {
			if seen == write {
				return errRefused
			}
			return nil
		}
	}
	t.Run("a_child_that_cannot_be_written", func(t *testing.T) {
		w := newWorld(t)
		w.pass()
		w.fail = refusedWrite("apply " + childKey(mintCloudChild).Name)
		if _, err := w.tryPass(); err == nil {
			t.Error("the pass did not fail")
		}
		if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialError); !strings.Contains(message, errRefused.Error()) {
			t.Errorf("the message is %q", message)
		}
		w.fail = nil
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	t.Run("a_foreign_object_of_a_childs_name", func(t *testing.T) {
		w := newWorld(t)
		key := childKey(secretChild(1))
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{secretKey: []byte("theirs")}})
		w.settle()
		if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialError); !strings.Contains(message, "refusing to adopt pre-existing") {
			t.Errorf("the message is %q", message)
		}
		if string(w.secret(key).Data[secretKey]) != "theirs" || w.korcCredential(1) != nil {
			t.Error("a foreign Secret was changed or used")
		}
	})
	t.Run("a_latch_that_may_not_be_cleared", func(t *testing.T) {
		w := newWorld(t)
		w.korcAway = true
		w.settle()
		w.latch(1, "InvalidConfiguration", "invalid configuration creating resource: read tcp: connection reset by peer")
		w.fail = func(write string) error {
			if write == "patch-status "+childKey(credentialChild(1)).Name {
				return errForbidden
			}
			return nil
		}
		if _, err := w.tryPass(); err != nil {
			t.Errorf("the pass failed: %v", err)
		}
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonTransportErrorRetryFailed)
		w.fail, w.korcAway = nil, false
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	for name, write := range map[string]string{
		"a_source_that_cannot_be_written":           "apply " + childKey(order.SourceChild).Name,
		"a_delivered_secret_that_cannot_be_written": "apply " + agent + "-credentials",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fail = refusedWrite(write)
			w.settle()
			w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialMinted)
			if message := w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDeliveryError); !strings.Contains(message, errRefused.Error()) {
				t.Errorf("the message is %q", message)
			}
			if w.delivered() != nil || w.status().SecretName != "" {
				t.Error("something was delivered")
			}
			w.fail = nil
			w.settle()
			w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		})
	}
	t.Run("a_keystone_that_is_published_nowhere", func(t *testing.T) {
		w := newWorld(t)
		w.cluster = "edge"
		w.changePlane(func(cp *v1alpha1.ControlPlane) {
			cp.Spec.Services.Keystone = v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneManaged}
			cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{
				Namespace: ordertest.TenantNamespace, TargetClusterRef: &v1alpha1.ClusterReference{Name: "edge"},
			}}
		})
		w.pass()
		w.pass()
		if message := w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonKeystoneNotPublished); !strings.Contains(message, "publicEndpoint") {
			t.Errorf("the message is %q", message)
		}
		w.changePlane(func(cp *v1alpha1.ControlPlane) {
			cp.Spec.Services.Keystone.PublicEndpoint = "https://keystone.example.com/v3"
		})
		w.pass()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForCredential)
	})
}
