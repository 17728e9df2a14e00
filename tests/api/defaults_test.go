package api

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// storedSpec is what the API server makes of the least that a person can write. The durations are
// texts here on purpose: the API server stores a default as the schema has it.
var storedSpec = map[string]values{
	admission.ControlPlane: {
		"region":   "RegionOne",
		"services": values{"keystone": values{"mode": "Managed"}},
		"korc": values{"adminCredential": values{
			"userName": "admin", "projectName": "admin", "domainName": "Default",
			"passwordSecretRef": values{"name": "keystone-admin", "key": "password"},
		}},
	},
	admission.User: {
		"controlPlaneRef": values{"name": "cp"}, "passwordGeneration": 1, "rotation": values{"interval": "0s"},
	},
	admission.Project: {"controlPlaneRef": values{"name": "cp"}},
	admission.RoleAssignment: {
		"controlPlaneRef": values{"name": "cp"}, "userRef": values{"name": "workflow"},
		"projectRef": values{"name": "workflow-project"}, "role": "member",
	},
	admission.ApplicationCredential: {
		"controlPlaneRef": values{"name": "cp"}, "userRef": values{"name": "workflow"},
		"projectRef": values{"name": "workflow-project"}, "credentialGeneration": 1,
		"rotation": values{"interval": "720h", "gracePeriod": "24h"},
	},
}

func TestDefaults(t *testing.T) {
	for _, kind := range admission.Kinds {
		t.Run(kind, func(t *testing.T) {
			stored := store(t, admission.Minimal(kind, uniqueName()))
			t.Run("of_the_spec", func(t *testing.T) { checkField(t, stored, "spec", storedSpec[kind]) })
			// Nothing may take a new order for one that a controller has looked at.
			t.Run("of_the_status", func(t *testing.T) { checkField(t, stored, "status", values{"observedGeneration": -1}) })
		})
	}
	cases := []struct {
		name, kind string
		given      admission.Edit
		path       string
		want       any
	}{
		{"an_empty_rotation_is_the_default_schedule", admission.ApplicationCredential, admission.Set("spec.rotation", values{}), "spec.rotation", values{"interval": "720h", "gracePeriod": "24h"}},
		{"a_schedule_keeps_the_default_grace_period", admission.ApplicationCredential, admission.Set("spec.rotation", values{"interval": "48h"}), "spec.rotation", values{"interval": "48h", "gracePeriod": "24h"}},
		{"a_grace_period_keeps_the_default_schedule", admission.ApplicationCredential, admission.Set("spec.rotation", values{"gracePeriod": "1h"}), "spec.rotation", values{"interval": "720h", "gracePeriod": "1h"}},
		{"null_is_the_default", admission.ApplicationCredential, admission.Set("spec.rotation", values{"interval": nil, "gracePeriod": nil}), "spec.rotation", values{"interval": "720h", "gracePeriod": "24h"}},
		{"0s_is_not_the_default", admission.ApplicationCredential, admission.Set("spec.rotation", values{"interval": "0s", "gracePeriod": "0s"}), "spec.rotation", values{"interval": "0s", "gracePeriod": "0s"}},
		{"a_duration_stays_as_it_was_written", admission.ApplicationCredential, admission.Set("spec.rotation", values{"interval": "1.5h", "gracePeriod": "60s"}), "spec.rotation", values{"interval": "1.5h", "gracePeriod": "60s"}},
		{"an_empty_rotation_of_a_password_is_off", admission.User, admission.Set("spec.rotation", values{}), "spec.rotation", values{"interval": "0s"}},
		{"a_store_is_a_SecretStore", admission.ControlPlane, admission.Set("spec.secretStoreRef", values{"name": "vault"}), "spec.secretStoreRef", values{"name": "vault", "kind": "SecretStore"}},
		{"empty_services_are_a_managed_keystone", admission.ControlPlane, admission.Set("spec.services", values{"keystone": values{}}), "spec.services", values{"keystone": values{"mode": "Managed"}}},
		{"an_external_keystone_is_used_at_its_public_interface", admission.ControlPlane, admission.Set("spec.services.keystone", values{"mode": "External", "external": values{"authURL": "https://k/v3"}}), "spec.services.keystone.external.endpointType", "public"},
		{"an_admin_of_another_name_keeps_the_other_defaults", admission.ControlPlane, admission.Set("spec.korc.adminCredential.userName", "root"), "spec.korc.adminCredential.domainName", "Default"},
		{"a_password_secret_of_another_name_keeps_its_key", admission.ControlPlane, admission.Set("spec.korc.adminCredential.passwordSecretRef", values{"name": "mine"}), "spec.korc.adminCredential.passwordSecretRef", values{"name": "mine", "key": "password"}},
		{"an_assignment_allows_nothing_by_itself", admission.ControlPlane, admission.Set("spec.namespaceAssignments", []values{{"namespace": "tenant-a"}}), "spec.namespaceAssignments", []any{values{"namespace": "tenant-a"}}},
		{"a_field_that_no_schema_knows_is_dropped", admission.User, admission.Set("spec.password", "never"), "spec.password", nil},
		{"a_status_that_a_person_writes_is_dropped", admission.User, admission.Set("status", values{"userID": "mine", "observedGeneration": 1}), "status", values{"observedGeneration": -1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			object := admission.Minimal(c.kind, uniqueName())
			c.given(object)
			checkField(t, store(t, object), c.path, c.want)
		})
	}
}

// TestDefaults_hold_in_status makes sure that a controller that writes its first status leaves no
// object without an observed generation.
func TestDefaults_hold_in_status(t *testing.T) {
	for _, kind := range admission.Kinds {
		t.Run(kind, func(t *testing.T) {
			stored := store(t, admission.Minimal(kind, uniqueName()))
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":null,"conditions":[]}}`))
			if err := api.Status().Patch(t.Context(), stored, patch); err != nil {
				t.Fatal(err)
			}
			checkField(t, read(t, stored), "status.observedGeneration", -1)
		})
	}
}

// TestDefaults_are_the_reconcilers makes sure that an order which an API server stored without
// defaults means to the reconciler what it means to ours.
func TestDefaults_are_the_reconcilers(t *testing.T) {
	decode := func(t *testing.T, kind string, into any) {
		t.Helper()
		stored := store(t, admission.Minimal(kind, uniqueName()))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	t.Run(admission.ApplicationCredential, func(t *testing.T) {
		stored, bare := &v1alpha1.KeystoneApplicationCredential{}, &v1alpha1.KeystoneApplicationCredential{}
		decode(t, admission.ApplicationCredential, stored)
		interval, grace := stored.Spec.Rotation.Resolved()
		bareInterval, bareGrace := bare.Spec.Rotation.Resolved()
		if interval != bareInterval || grace != bareGrace {
			t.Errorf("stored %s and %s, resolved %s and %s", interval, grace, bareInterval, bareGrace)
		}
		if got, want := stored.DeclaredCredentialGeneration(), bare.DeclaredCredentialGeneration(); got != want {
			t.Errorf("stored generation %d, resolved %d", got, want)
		}
	})
	t.Run(admission.User, func(t *testing.T) {
		stored, bare := &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneUser{}
		decode(t, admission.User, stored)
		if got, want := stored.Spec.Rotation.Resolved(), bare.Spec.Rotation.Resolved(); got != want {
			t.Errorf("stored %s, resolved %s", got, want)
		}
		if got, want := stored.DeclaredPasswordGeneration(), bare.DeclaredPasswordGeneration(); got != want {
			t.Errorf("stored generation %d, resolved %d", got, want)
		}
	})
}

func checkField(t *testing.T, stored *object, path string, want any) {
	t.Helper()
	got := nested(stored, path)
	if want == nil {
		if got != nil {
			t.Errorf("%s is %v, want nothing", path, got)
		}
		return
	}
	if !equality.Semantic.DeepEqual(got, admission.AsJSON(want)) {
		t.Errorf("%s is %v, want %v%s", path, got, want, keysOf(got))
	}
}

func keysOf(value any) string {
	if fields, ok := value.(values); ok {
		return " (fields " + strings.Join(slices.Sorted(maps.Keys(fields)), ", ") + ")"
	}
	return ""
}
