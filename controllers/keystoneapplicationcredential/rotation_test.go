package keystoneapplicationcredential

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

var (
	errRefused   = fmt.Errorf("the API server is in a bad mood")
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "applicationcredentials"}, "x", errRefused)
)

func TestAnOrderIsFulfilled(t *testing.T) {
	w := fulfilled(t)
	w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialMinted)
	w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
	status := w.status()
	var held ordertest.FakeCredential
	w.keystone.With(func() { held = w.keystone.Credentials[status.CredentialID] })
	if held.Name != childKey(credentialChild(1)).Name || held.UserID != w.userID || held.ProjectID != w.projectID || status.CredentialGeneration != 1 {
		t.Errorf("status names %s of generation %d, Keystone holds %+v", status.CredentialID, status.CredentialGeneration, held.Name)
	}
	const interval, grace = v1alpha1.DefaultRotationInterval, v1alpha1.DefaultGracePeriod
	if status.LastRotation == nil || status.CredentialExpiresAt == nil || !status.CredentialExpiresAt.Time.Equal(held.ExpiresAt) {
		t.Fatalf("status is %+v, Keystone's expiry %s", status, held.ExpiresAt)
	}
	if late := status.LastRotation.Add(interval + grace).Sub(status.CredentialExpiresAt.Time); late < 0 || late > time.Minute {
		t.Errorf("the credential expires %s before its last rotation plus interval and grace period", late)
	}
	if next := status.CredentialExpiresAt.Add(-grace); status.NextRotation == nil || !status.NextRotation.Time.Equal(next) {
		t.Errorf("the next rotation is %s, want %s", status.NextRotation, next)
	}
	if status.PreviousCredentialID != "" || status.PreviousCredentialGeneration != 0 || status.PreviousCredentialDeleteAt != nil {
		t.Errorf("the first credential superseded something: %+v", status)
	}
	if want := []string{"application_credential_id", "application_credential_secret", "clouds.yaml"}; status.SecretName != agent+"-credentials" || !slices.Equal(status.SecretKeys, want) {
		t.Errorf("status names Secret %q with keys %v", status.SecretName, status.SecretKeys)
	}
	w.wantsWorking()

	w.writes = nil
	w.keystone.Asked()
	for range 3 {
		result := w.pass()
		if want := status.NextRotation.Sub(w.clock.Now()); result.RequeueAfter != want {
			t.Errorf("comes back after %s, want %s: at the next rotation", result.RequeueAfter, want)
		}
	}
	if asked := w.keystone.Asked(); len(w.writes) > 0 || len(asked) > 0 {
		t.Errorf("a steady pass wrote %v and asked Keystone %v", w.writes, asked)
	}
}

func TestFirstCredential(t *testing.T) {
	t.Run("waits_for_korc", func(t *testing.T) {
		w := newWorld(t)
		w.korcAway = true
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonWaitingForCredential)
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForCredential)
		w.korcAway = false
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	})
	t.Run("is_the_declared_generation", func(t *testing.T) {
		w := fulfilled(t, func(o *v1alpha1.KeystoneApplicationCredential) { o.Spec.CredentialGeneration = 4 })
		if held := w.held(); !slices.Equal(held, []string{"credential-v4"}) {
			t.Errorf("Keystone holds %v", held)
		}
	})
}

func TestChildren(t *testing.T) {
	w := fulfilled(t)
	selector := client.MatchingLabels{
		"c5c3.io/keystoneapplicationcredential-name":      agent,
		"c5c3.io/keystoneapplicationcredential-namespace": ordertest.TenantNamespace,
		"c5c3.io/keystoneapplicationcredential-cluster":   "",
		"app.kubernetes.io/managed-by":                    "c5c3-operator",
	}
	var found []string
	for kind, list := range map[string]client.ObjectList{"Secret": &corev1.SecretList{}, "ApplicationCredential": &orcv1alpha1.ApplicationCredentialList{}, "PushSecret": &externalsecrets.PushSecretList{}} {
		w.must(w.client.List(t.Context(), list, client.InNamespace(plane.Namespace), selector))
		w.must(each(list, func(child client.Object) {
			found = append(found, kind+" "+strings.TrimPrefix(child.GetName(), childKey("").Name))
			if len(child.GetOwnerReferences()) > 0 {
				t.Errorf("%s %s has an owner", kind, child.GetName())
			}
		}))
	}
	slices.Sort(found)
	if want := []string{"ApplicationCredential credential-v1", "PushSecret backup", "Secret mint-cloud", "Secret secret-v1", "Secret source"}; !slices.Equal(found, want) {
		t.Errorf("the children are %v, want %v", found, want)
	}
}

func TestMint(t *testing.T) {
	w := newWorld(t)
	w.korcAway = true
	w.settle()
	made, minted := w.korcCredential(1), w.secret(childKey(secretChild(1)))
	resource := made.Spec.Resource
	if ptr.Deref(resource.Unrestricted, true) || resource.Name != nil || len(resource.RoleRefs) > 0 || len(resource.AccessRules) > 0 {
		t.Errorf("the credential is not restricted to what the user has: %+v", resource)
	}
	if want := "KeystoneApplicationCredential tenant-a/agent generation 1"; ptr.Deref(resource.Description, "") != want {
		t.Errorf("the description is %q", ptr.Deref(resource.Description, ""))
	}
	if string(resource.SecretRef) != minted.Name || string(resource.UserRef) != childMeta(order.UserKind, user, "user").Name ||
		made.Spec.CloudCredentialsRef.SecretName != childKey(mintCloudChild).Name || made.Spec.ManagementPolicy != orcv1alpha1.ManagementPolicyManaged {
		t.Errorf("the spec is %+v", made.Spec)
	}
	value := string(minted.Data[secretKey])
	if raw, err := base64.RawURLEncoding.DecodeString(value); err != nil || len(value) != 43 || len(raw) != 32 {
		t.Errorf("the secret has %d characters", len(value))
	}
	first, then := slices.Index(w.writes, "create "+minted.Name), slices.Index(w.writes, "create "+made.Name)
	if first < 0 || then < first {
		t.Errorf("the secret is not on record before K-ORC's object: %v", w.writes)
	}
	document := slices.IndexFunc(w.writes, func(write string) bool { return write == "apply "+childKey(mintCloudChild).Name })
	if document < 0 || document > first {
		t.Errorf("the mint document does not come first: %v", w.writes)
	}
	if resource.ExpiresAt == nil {
		t.Error("it never expires")
	}
}

func TestMintDocument(t *testing.T) {
	read := func(w *world) *clouds.PasswordAuth {
		w.t.Helper()
		parsed, err := clouds.Parse(w.secret(childKey(mintCloudChild)).Data[order.CloudsKey])
		w.must(err)
		cloud := parsed[order.CloudName]
		if cloud.AuthURL != w.keystone.URL+"/v3" || cloud.EndpointType != "public" || cloud.Password == nil {
			w.t.Fatalf("the cloud is at %s, interface %s", cloud.AuthURL, cloud.EndpointType)
		}
		return cloud.Password
	}
	t.Run("is_the_users_password_on_the_project", func(t *testing.T) {
		w := fulfilled(t)
		want := clouds.PasswordAuth{
			Username: user, UserDomainName: "Default", Password: "password-1", ProjectName: project, ProjectDomainName: "Default",
		}
		if got := read(w); *got != want {
			t.Errorf("it logs in as %s in %s", got.Username, got.ProjectName)
		}
	})
	t.Run("is_rebuilt_when_somebody_edits_it", func(t *testing.T) {
		w := fulfilled(t)
		w.edit(w.secret(childKey(mintCloudChild)), func(s *corev1.Secret) {
			s.Data = map[string][]byte{order.CloudsKey: []byte("edited"), order.CACertKey: []byte("theirs")}
		})
		w.pass()
		if got := read(w); got.Password != "password-1" || len(w.secret(childKey(mintCloudChild)).Data) != 1 {
			t.Error("it is not what it was")
		}
	})
	t.Run("follows_the_password", func(t *testing.T) {
		w := fulfilled(t)
		id := w.status().CredentialID
		w.changePassword()
		w.pass()
		if read(w).Password != "password-2" || w.status().CredentialID != id {
			t.Error("it has the old password, or the credential changed")
		}
		w.raise(2)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		w.wantsWorking()
	})
}

func TestRotation(t *testing.T) {
	t.Run("the_schedule_is_due", func(t *testing.T) {
		w := fulfilled(t)
		before, old := w.status(), w.delivered().DeepCopy()
		w.clock.SetTime(before.NextRotation.Time)
		w.pass()
		if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialMinted); !strings.Contains(message, "generation 1") || !strings.Contains(message, "generation 2") {
			t.Errorf("while a successor is made the message is %q", message)
		}
		w.playKORC()
		w.pass()
		status := w.status()
		if status.CredentialGeneration != 2 || status.CredentialID == before.CredentialID || status.PreviousCredentialID != before.CredentialID ||
			status.PreviousCredentialGeneration != 1 || !status.LastRotation.Time.Equal(w.clock.Now()) || status.SecretName != "" {
			t.Errorf("after the switch status is %+v", status)
		}
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonBackupNotSynced)
		if !maps.EqualFunc(w.delivered().Data, old.Data, slices.Equal[[]byte]) {
			t.Error("the Secret was written before the backup")
		}
		w.wantsAccepted(old)
		w.playESO()
		w.playESO()
		w.pass()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
		w.wantsWorking()
		w.wantsAccepted(old)
		if !w.announced("CredentialSwitched") {
			t.Errorf("no Event tells of the switch: %v", w.events)
		}
	})
	t.Run("a_raised_generation", func(t *testing.T) {
		w := fulfilled(t)
		w.raise(5)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if status := w.status(); status.CredentialGeneration != 5 || status.PreviousCredentialGeneration != 1 {
			t.Errorf("status is %+v", status)
		}
		w.wantsWorking()
	})
	t.Run("the_secret_is_lost", func(t *testing.T) {
		w := fulfilled(t)
		lost := w.status().CredentialID
		w.remove(w.secret(childKey(secretChild(1))))
		w.pass()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForCredential)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if status := w.status(); status.CredentialGeneration != 2 || status.CredentialID == lost {
			t.Errorf("status is %+v", status)
		}
		w.wantsWorking()
	})
	t.Run("a_store_that_is_away_holds_it", func(t *testing.T) {
		w := fulfilled(t)
		w.remove(w.store())
		w.raise(2)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if w.korcCredential(2) != nil {
			t.Error("a credential was made that cannot be backed up")
		}
		w.create(w.store())
		w.settle()
		if generation := w.status().CredentialGeneration; generation != 2 {
			t.Errorf("generation %d", generation)
		}
	})
}

func TestGracePeriod(t *testing.T) {
	t.Run("names_the_superseded_credential_and_no_longer", func(t *testing.T) {
		w := fulfilled(t)
		old := w.status().CredentialID
		w.raise(2)
		w.settle()
		status := w.status()
		if status.PreviousCredentialID != old || status.PreviousCredentialGeneration != 1 || status.PreviousCredentialDeleteAt == nil {
			t.Fatalf("status is %+v", status)
		}
		w.clock.SetTime(status.PreviousCredentialDeleteAt.Add(-time.Second))
		w.pass()
		if held := w.held(); !slices.Equal(held, []string{"credential-v1", "credential-v2"}) {
			t.Fatalf("a second before its end Keystone holds %v", held)
		}
		w.advance(time.Second)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		status = w.status()
		if held := w.held(); !slices.Equal(held, []string{"credential-v2"}) || status.PreviousCredentialID != "" || status.PreviousCredentialGeneration != 0 || status.PreviousCredentialDeleteAt != nil {
			t.Errorf("Keystone holds %v, status is %+v", held, status)
		}
		if w.korcCredential(1) != nil || w.secret(childKey(secretChild(1))) != nil {
			t.Error("children of the old generation are left")
		}
		if !w.announced("CredentialRevoked") || w.announced("RevocationRepaired") {
			t.Errorf("Events: %v", w.events)
		}
	})
	t.Run("starts_when_the_secret_switches", func(t *testing.T) {
		w := fulfilled(t)
		w.esoAway = true
		w.raise(2)
		w.settle()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonBackupNotSynced)
		w.advance(time.Hour)
		w.esoAway = false
		w.playESO()
		w.playESO()
		w.pass()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
		if end := w.clock.Now().Add(v1alpha1.DefaultGracePeriod); !w.status().PreviousCredentialDeleteAt.Time.Equal(end) {
			t.Errorf("it ends at %s, want %s", w.status().PreviousCredentialDeleteAt, end)
		}
		// A repair is no switch.
		w.advance(time.Hour)
		end := w.status().PreviousCredentialDeleteAt
		w.edit(w.delivered(), func(s *corev1.Secret) { s.Data[keyCredentialID] = []byte("edited") })
		w.pass()
		w.wantsWorking()
		if !w.status().PreviousCredentialDeleteAt.Equal(end) {
			t.Error("a repaired Secret prolonged it")
		}
	})
	// The backup came a whole interval late. A full grace period from there would hold the next rotation
	// back beyond the expiry of the credential that was just delivered, for one that has expired long ago.
	t.Run("does_not_outlast_the_superseded_credentials_own_expiry", func(t *testing.T) {
		w := fulfilled(t)
		w.esoAway = true
		w.clock.SetTime(w.status().NextRotation.Time)
		w.settle()
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonBackupNotSynced)
		expiry := w.status().CredentialExpiresAt.Time
		w.clock.SetTime(expiry.Add(-v1alpha1.DefaultGracePeriod / 2))
		w.esoAway = false
		w.playESO()
		w.playESO()
		w.settle()
		if generation := w.status().CredentialGeneration; generation != 3 || !w.clock.Now().Before(expiry) {
			t.Errorf("at %s, with generation 2 expiring at %s, generation %d is live", w.clock.Now(), expiry, generation)
		}
		w.wantsWorking()
	})
	t.Run("lasts_until_the_secret_carries_the_live_one", func(t *testing.T) {
		w := fulfilled(t)
		old := w.delivered().DeepCopy()
		w.esoAway = true
		w.raise(2)
		w.settle()
		w.advance(2 * v1alpha1.DefaultGracePeriod)
		w.settle()
		w.wantsAccepted(old)
		if !maps.EqualFunc(w.delivered().Data, old.Data, slices.Equal[[]byte]) {
			t.Fatal("the Secret was written without a backup")
		}
		w.esoAway = false
		w.settle()
		w.wantsAccepted(old)
		w.advance(v1alpha1.DefaultGracePeriod)
		w.settle()
		if held := w.held(); !slices.Equal(held, []string{"credential-v2"}) {
			t.Errorf("Keystone holds %v", held)
		}
	})
	t.Run("no_rotation_starts_in_it", func(t *testing.T) {
		w := rotated(t)
		w.raise(9)
		w.remove(w.secret(childKey(secretChild(2))))
		w.settle()
		if held := w.held(); !slices.Equal(held, []string{"credential-v1", "credential-v2"}) {
			t.Fatalf("Keystone holds %v", held)
		}
		w.clock.SetTime(w.status().PreviousCredentialDeleteAt.Time)
		w.settle()
		if status := w.status(); status.CredentialGeneration != 9 || len(w.held()) > 2 {
			t.Errorf("status is %+v, Keystone holds %v", status, w.held())
		}
		w.wantsWorking()
	})
	t.Run("of_zero_still_waits_for_the_secret", func(t *testing.T) {
		w := fulfilled(t, schedule(time.Hour, 0))
		old := w.delivered().DeepCopy()
		w.esoAway = true
		w.raise(2)
		w.settle()
		w.wantsAccepted(old)
		w.esoAway = false
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if held := w.held(); !slices.Equal(held, []string{"credential-v2"}) {
			t.Errorf("Keystone holds %v", held)
		}
	})
	t.Run("ends_on_keystones_word_only", func(t *testing.T) {
		// Short enough for K-ORC's session to outlast it.
		w := rotated(t, schedule(time.Hour, 10*time.Minute))
		w.clock.SetTime(w.status().PreviousCredentialDeleteAt.Time)
		w.pass()
		// K-ORC lets go of a credential that it cannot read.
		w.keystone.Down(true)
		w.settle()
		if w.korcCredential(1) != nil {
			t.Fatal("K-ORC did not let go")
		}
		if status := w.status(); status.PreviousCredentialID == "" || w.secret(childKey(secretChild(1))) == nil {
			t.Errorf("without an answer the record is gone: %+v", status)
		}
		w.keystone.Down(false)
		w.settle()
		if held := w.held(); !slices.Equal(held, []string{"credential-v2"}) || w.status().PreviousCredentialID != "" || !w.announced("RevocationRepaired") {
			t.Errorf("Keystone holds %v, Events %v", held, w.events)
		}
	})
}

func TestVerification(t *testing.T) {
	t.Run("a_refused_successor_is_not_delivered", func(t *testing.T) {
		w := fulfilled(t)
		old := w.delivered().DeepCopy()
		w.raise(2)
		w.pass()
		w.playKORC()
		w.role(false)
		w.settle()
		if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialFailed); !strings.Contains(message, "role on the project") {
			t.Errorf("the message is %q", message)
		}
		if status := w.status(); status.CredentialGeneration != 1 || !maps.EqualFunc(w.delivered().Data, old.Data, slices.Equal[[]byte]) {
			t.Errorf("it is delivered: %+v", status)
		}
		w.role(true)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if generation := w.status().CredentialGeneration; generation != 2 {
			t.Errorf("generation %d", generation)
		}
		w.wantsWorking()
	})
	t.Run("an_unanswered_login_is_asked_again", func(t *testing.T) {
		w := fulfilled(t)
		w.raise(2)
		w.pass()
		w.playKORC()
		w.keystone.Down(true)
		w.settle()
		w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialMinted)
		if generation := w.status().CredentialGeneration; generation != 1 {
			t.Errorf("switched to %d without an answer", generation)
		}
		w.keystone.Down(false)
		w.settle()
		if generation := w.status().CredentialGeneration; generation != 2 {
			t.Errorf("generation %d", generation)
		}
	})
}

func TestTerminal(t *testing.T) {
	// stuck has K-ORC give up on one generation.
	stuck := func(w *world, generation int64) {
		w.korc.Stuck = func(object client.Object) (reason, message string) {
			if object.GetName() == childKey(credentialChild(generation)).Name && object.GetDeletionTimestamp().IsZero() {
				return orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: over quota"
			}
			return "", ""
		}
	}
	t.Run("keystone_does_not_hold_it", func(t *testing.T) {
		w := newWorld(t)
		stuck(w, 1)
		w.settle()
		if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialFailed); !strings.Contains(message, "over quota") || !strings.Contains(message, "spec.credentialGeneration") {
			t.Errorf("the message is %q", message)
		}
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonWaitingForCredential)
	})
	t.Run("beside_a_delivered_credential", func(t *testing.T) {
		w := fulfilled(t)
		stuck(w, 2)
		w.raise(2)
		w.settle()
		if message := w.wants(v1alpha1.ConditionCredentialReady, v1alpha1.ReasonCredentialFailed); !strings.Contains(message, "generation 1 stays") {
			t.Errorf("the message is %q", message)
		}
		w.wants(v1alpha1.ConditionDeliveryReady, v1alpha1.ReasonDelivered)
		w.wantsWorking()
	})
	t.Run("a_raised_generation_gives_it_up", func(t *testing.T) {
		w := fulfilled(t)
		stuck(w, 2)
		w.raise(2)
		w.settle()
		w.raise(3)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if w.status().CredentialGeneration != 3 || w.korcCredential(2) != nil {
			t.Errorf("status is %+v, and K-ORC has generation 2: %t", w.status(), w.korcCredential(2) != nil)
		}
		w.wantsWorking()
	})
	t.Run("keystone_holds_it_so_korc_looks_again", func(t *testing.T) {
		w := fulfilled(t)
		w.raise(2)
		w.pass()
		w.playKORC()
		// The create arrived and its answer did not.
		made := w.korcCredential(2)
		made.Status = orcv1alpha1.ApplicationCredentialStatus{}
		w.must(w.client.Status().Update(t.Context(), made))
		w.latch(2, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: Expected HTTP response code [201] but got 409 instead")
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if w.status().CredentialGeneration != 2 {
			t.Errorf("status is %+v", w.status())
		}
		w.wantsWorking()
	})
}

func TestSchedule(t *testing.T) {
	off := func(o *v1alpha1.KeystoneApplicationCredential) { o.Spec.Rotation.Interval = &metav1.Duration{} }
	t.Run("off_from_the_start_means_no_expiry", func(t *testing.T) {
		w := fulfilled(t, off)
		if status := w.status(); status.CredentialExpiresAt != nil || status.NextRotation != nil {
			t.Errorf("status is %+v", status)
		}
		if result := w.pass(); result.RequeueAfter != 0 {
			t.Errorf("comes back after %s", result.RequeueAfter)
		}
	})
	t.Run("off_clears_the_next_rotation", func(t *testing.T) {
		w := fulfilled(t)
		expiry := w.status().CredentialExpiresAt
		w.change(off)
		w.pass()
		if status := w.status(); status.NextRotation != nil || !status.CredentialExpiresAt.Equal(expiry) {
			t.Errorf("status is %+v", status)
		}
	})
	t.Run("off_keeps_the_live_expiry_and_rotates_before_it", func(t *testing.T) {
		w := fulfilled(t)
		w.change(off)
		w.settle()
		w.clock.SetTime(w.status().CredentialExpiresAt.Add(-11 * time.Minute))
		w.pass()
		if w.korcCredential(2) != nil {
			t.Fatal("it rotates a whole minute too early")
		}
		w.advance(time.Minute)
		w.settle()
		w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
		if status := w.status(); status.CredentialGeneration != 2 || status.CredentialExpiresAt != nil {
			t.Errorf("status is %+v", status)
		}
		w.wantsWorking()
	})
	t.Run("off_then_raised_drops_the_expiry", func(t *testing.T) {
		w := fulfilled(t)
		w.change(func(o *v1alpha1.KeystoneApplicationCredential) { off(o); o.Spec.CredentialGeneration = 2 })
		w.settle()
		if status := w.status(); status.CredentialGeneration != 2 || status.CredentialExpiresAt != nil {
			t.Errorf("status is %+v", status)
		}
	})
	t.Run("a_lengthened_interval_does_not_run_into_the_expiry", func(t *testing.T) {
		w := fulfilled(t)
		w.change(schedule(10*v1alpha1.DefaultRotationInterval, v1alpha1.DefaultGracePeriod))
		w.pass()
		status := w.status()
		if want := status.CredentialExpiresAt.Add(-v1alpha1.DefaultGracePeriod); !status.NextRotation.Time.Equal(want) {
			t.Errorf("the next rotation is %s, want %s", status.NextRotation, want)
		}
	})
	t.Run("comes_back_in_time_after_a_restart", func(t *testing.T) {
		w := rotated(t)
		w.restart()
		end := w.status().PreviousCredentialDeleteAt
		if result := w.pass(); result.RequeueAfter != end.Sub(w.clock.Now()) {
			t.Errorf("comes back after %s, want %s: at the end of the grace period", result.RequeueAfter, end.Sub(w.clock.Now()))
		}
		w.clock.SetTime(end.Time)
		w.settle()
		w.restart()
		next := w.status().NextRotation
		if result := w.pass(); result.RequeueAfter != next.Sub(w.clock.Now()) {
			t.Errorf("comes back after %s, want %s: at the next rotation", result.RequeueAfter, next.Sub(w.clock.Now()))
		}
	})
}

func TestAudit_replaces_what_somebody_removed(t *testing.T) {
	w := fulfilled(t)
	w.revokeInKeystone(w.status().CredentialID)
	w.settle()
	if w.status().CredentialGeneration != 1 {
		t.Fatal("found without an audit: the test proves nothing")
	}
	w.base.AuditInterval = time.Minute
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.status(); status.CredentialGeneration != 2 || status.PreviousCredentialID != "" {
		t.Errorf("status is %+v", status)
	}
	w.wantsWorking()
}

func TestAudit_revokes_what_nothing_is_on_record_for(t *testing.T) {
	w := fulfilled(t)
	orphan := ordertest.FakeCredential{UserID: w.userID, ProjectID: w.projectID, Name: childKey(credentialChild(7)).Name, Secret: "x"}
	stranger := ordertest.FakeCredential{UserID: w.userID, ProjectID: w.projectID, Name: "somebody-s-own", Secret: "x"}
	w.keystone.With(func() { w.keystone.Credentials["ac-orphan"], w.keystone.Credentials["ac-stranger"] = orphan, stranger })
	w.base.AuditInterval = time.Minute
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if held := w.held(); !slices.Equal(held, []string{"credential-v1", "somebody-s-own"}) || !w.announced("RevocationRepaired") {
		t.Errorf("Keystone holds %v, Events %v", held, w.events)
	}
	if w.status().CredentialGeneration != 1 {
		t.Errorf("status is %+v", w.status())
	}
}

func TestHealing_in_a_grace_period(t *testing.T) {
	w := rotated(t)
	before := w.status()
	w.base.AuditInterval = time.Minute
	w.revokeInKeystone(before.CredentialID)
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	status := w.status()
	if status.CredentialGeneration != 3 || status.PreviousCredentialID != before.PreviousCredentialID || !status.PreviousCredentialDeleteAt.After(w.clock.Now()) {
		t.Errorf("status was %+v and is %+v", before, status)
	}
	w.wantsWorking()
	if held := w.held(); !slices.Equal(held, []string{"credential-v1", "credential-v3"}) {
		t.Errorf("Keystone holds %v", held)
	}
}

func TestExpiry_is_on_keystones_clock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.keystone.Now = func() time.Time { return w.clock.Now().Add(skew) }
			w.settle()
			w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
			status := w.status()
			lives := status.CredentialExpiresAt.Sub(status.LastRotation.Add(skew))
			if want := v1alpha1.DefaultRotationInterval + v1alpha1.DefaultGracePeriod; lives < want-time.Minute || lives > want+time.Minute {
				t.Errorf("on Keystone's clock it lives for %s, want %s", lives, want)
			}
		})
	}
}

func TestHealingAnnotation(t *testing.T) {
	w := fulfilled(t)
	id := w.status().CredentialID
	annotate := func(id string) {
		o := w.order()
		o.Annotations = map[string]string{order.RotateAnnotation: id}
		w.must(w.client.Update(t.Context(), o))
		w.settle()
	}
	annotate(id)
	if w.status().CredentialGeneration != 1 {
		t.Fatal("rotated although Keystone holds the credential")
	}
	w.revokeInKeystone(id)
	annotate("ac-of-yesterday")
	if w.status().CredentialGeneration != 1 {
		t.Fatal("rotated for another credential's sake")
	}
	annotate(id)
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if w.status().CredentialGeneration != 2 {
		t.Errorf("status is %+v", w.status())
	}
	w.wantsWorking()
}

func TestLostStatus_adopts(t *testing.T) {
	w := fulfilled(t)
	id := w.status().CredentialID
	o := w.order()
	o.Status = v1alpha1.KeystoneApplicationCredentialStatus{}
	w.must(w.client.Status().Update(t.Context(), o))
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if status := w.status(); status.CredentialID != id || status.CredentialGeneration != 1 || len(w.held()) != 1 {
		t.Errorf("status is %+v, Keystone holds %v", status, w.held())
	}
}
