// SPDX-License-Identifier: Apache-2.0

package externalsecrets

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden is where the stack's module, which links ESO's own types, looks for what the product
// writes and reads.
const golden = "../../tests/stack/components/eso/testdata"

// TestResourceVersion compares with what util.GetResourceVersion of ESO v0.16.2 returned.
func TestResourceVersion(t *testing.T) {
	for name, test := range map[string]struct {
		meta metav1.ObjectMeta
		want string
	}{
		"nothing": {metav1.ObjectMeta{}, "0-f47fe3c0b255b6dd8047cdffa772587bb829efe7a1cb70febeda2eb2"},
		"empty_maps_are_like_none": {
			metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{}, Labels: map[string]string{}},
			"1-f47fe3c0b255b6dd8047cdffa772587bb829efe7a1cb70febeda2eb2",
		},
		"a_label_alone": {
			metav1.ObjectMeta{Generation: 1, Labels: map[string]string{"app.kubernetes.io/managed-by": "c5c3-operator"}},
			"1-89ca1aaacbe752a8b4cc56416e5dc777c248d65baa78b786c102cd18",
		},
		"several_in_any_order_and_an_empty_value": {
			metav1.ObjectMeta{
				Generation:  7,
				Annotations: map[string]string{"c5c3.io/keystoneuser-push-hash": "d1", "b": "2", "a": "1"},
				Labels:      map[string]string{"c5c3.io/keystoneuser-name": "svc", "c5c3.io/keystoneuser-cluster": ""},
			},
			"7-42c3d0374e2a6094b028f7deb8792c49cd3814f76ba4544fddf1b810",
		},
		"values_that_look_like_the_format": {
			metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{"a": "1 b:2]"}, Labels: map[string]string{"ü": "map[x:y]"}},
			"2-1e5143b2dccfb22069943d7348d76770f9ea96620026cb3a2220af68",
		},
		"other_metadata_plays_no_part": {
			metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "99", Generation: 1, Finalizers: []string{"f"}},
			"1-f47fe3c0b255b6dd8047cdffa772587bb829efe7a1cb70febeda2eb2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ResourceVersion(test.meta); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

const digestKey = "c5c3.io/keystoneapplicationcredential-push-hash"

func backup() *PushSecret {
	ps := Backup{
		Namespace:    "openstack",
		Name:         "agent-0123abcd-applicationcredential-backup",
		Labels:       map[string]string{"app.kubernetes.io/managed-by": "c5c3-operator", "c5c3.io/keystoneapplicationcredential-name": "agent"},
		Annotations:  map[string]string{digestKey: "ba7816bf"},
		Store:        PushSecretStoreRef{Name: "openbao-tenant-store"},
		SourceSecret: "agent-0123abcd-applicationcredential-source",
		RemoteKey:    "openstack/keystone/openstack/agent-0123abcd-applicationcredential/service-accounts/application-credential",
	}.PushSecret()
	ps.Generation = 2
	ps.Status = PushSecretStatus{
		RefreshTime:           metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		SyncedResourceVersion: ResourceVersion(ps.ObjectMeta),
		SyncedPushSecrets: map[string]map[string]PushSecretData{
			"SecretStore/openbao-tenant-store": {ps.Spec.Data[0].Match.RemoteRef.RemoteKey: {Match: ps.Spec.Data[0].Match, ConversionStrategy: "None"}},
		},
		Conditions: []StatusCondition{{
			Type: ReadyCondition, Status: corev1.ConditionTrue, Reason: "Synced", Message: "PushSecret synced successfully",
			LastTransitionTime: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		}},
	}
	return ps
}

func TestPushed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*PushSecret)
		digest string
		want   bool
	}{
		"the_stamped_document_was_pushed": {func(*PushSecret) {}, "ba7816bf", true},
		"another_document_is_stamped":     {func(*PushSecret) {}, "00000000", false},
		"no_stamp_and_no_digest": {func(ps *PushSecret) {
			delete(ps.Annotations, digestKey)
			ps.Status.SyncedResourceVersion = ResourceVersion(ps.ObjectMeta)
		}, "", false},
		"the_stamp_is_younger_than_the_push": {func(ps *PushSecret) { ps.Annotations[digestKey] = "cb8379ac" }, "cb8379ac", false},
		"an_older_push_finished_after_the_stamp": {func(ps *PushSecret) {
			// The version that was synced before differs from the one synced now, and still neither
			// is the one with the new stamp.
			ps.Annotations[digestKey] = "00000000"
			older := ResourceVersion(ps.ObjectMeta)
			ps.Annotations[digestKey] = "cb8379ac"
			ps.Status.SyncedResourceVersion = older
		}, "cb8379ac", false},
		"the_spec_changed_since": {func(ps *PushSecret) { ps.Generation++ }, "ba7816bf", false},
		"a_label_changed_since":  {func(ps *PushSecret) { ps.Labels["x"] = "y" }, "ba7816bf", false},
		"the_last_push_failed":   {func(ps *PushSecret) { ps.Status.Conditions[0].Status = corev1.ConditionFalse }, "ba7816bf", false},
		"eso_has_not_looked_yet": {func(ps *PushSecret) { ps.Status = PushSecretStatus{} }, "ba7816bf", false},
		"only_another_condition": {func(ps *PushSecret) { ps.Status.Conditions[0].Type = "Deleted" }, "ba7816bf", false},
	} {
		t.Run(name, func(t *testing.T) {
			ps := backup()
			test.change(ps)
			if got := Pushed(ps, digestKey, test.digest); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestStoreReady(t *testing.T) {
	ready := []StatusCondition{{Type: "Ready", Status: corev1.ConditionTrue, Reason: "Valid", Message: "store validated"}}
	refused := []StatusCondition{{Type: "Ready", Status: corev1.ConditionFalse, Reason: "InvalidProviderConfig", Message: "permission denied"}}
	for name, test := range map[string]struct {
		store   Store
		want    bool
		message string
	}{
		"a_valid_store":               {&SecretStore{Status: SecretStoreStatus{Conditions: ready, Capabilities: "ReadWrite"}}, true, ""},
		"a_valid_cluster_wide_store":  {&ClusterSecretStore{Status: SecretStoreStatus{Conditions: ready}}, true, ""},
		"a_write_only_store":          {&SecretStore{Status: SecretStoreStatus{Conditions: ready, Capabilities: "WriteOnly"}}, true, ""},
		"a_read_only_store":           {&SecretStore{Status: SecretStoreStatus{Conditions: ready, Capabilities: "ReadOnly"}}, false, "read-only"},
		"a_store_that_eso_refuses":    {&SecretStore{Status: SecretStoreStatus{Conditions: refused}}, false, "InvalidProviderConfig"},
		"a_store_that_eso_never_read": {&ClusterSecretStore{}, false, "not been validated"},
	} {
		t.Run(name, func(t *testing.T) {
			ready, message := StoreReady(test.store)
			if ready != test.want || !strings.Contains(message, test.message) || (message == "") != test.want {
				t.Errorf("got %v, %q; want %v and %q in the message", ready, message, test.want, test.message)
			}
		})
	}
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for object, want := range map[runtime.Object]schema.GroupVersionKind{
		&PushSecret{}:         {Group: "external-secrets.io", Version: "v1alpha1", Kind: "PushSecret"},
		&PushSecretList{}:     {Group: "external-secrets.io", Version: "v1alpha1", Kind: "PushSecretList"},
		&SecretStore{}:        {Group: "external-secrets.io", Version: "v1", Kind: "SecretStore"},
		&ClusterSecretStore{}: {Group: "external-secrets.io", Version: "v1", Kind: "ClusterSecretStore"},
	} {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil || len(kinds) != 1 || kinds[0] != want {
			t.Errorf("got %v (%v), want %v", kinds, err, want)
		}
	}
}

func TestBackup_applies_only_what_the_operator_decides(t *testing.T) {
	applied, err := json.Marshal(Backup{
		Namespace: "openstack", Name: "b", Store: PushSecretStoreRef{Name: "s"}, SourceSecret: "src", RemoteKey: "k",
	}.PushSecret())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"PushSecret","apiVersion":"external-secrets.io/v1alpha1","metadata":{"name":"b","namespace":"openstack"},` +
		`"spec":{"secretStoreRefs":[{"name":"s","kind":"SecretStore"}],"deletionPolicy":"Delete","selector":{"secret":{"name":"src"}},` +
		`"data":[{"match":{"remoteRef":{"remoteKey":"k"}}}]}}`
	if string(applied) != want {
		t.Errorf("got\n%s\nwant\n%s", applied, want)
	}
}

// TestGolden keeps the files that the stack's module checks against ESO's own types and CRDs.
func TestGolden(t *testing.T) {
	store := &SecretStore{
		TypeMeta:   metav1.TypeMeta{APIVersion: StoreGroupVersion.String(), Kind: SecretStoreKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "openbao-tenant-store"},
		Status: SecretStoreStatus{
			Capabilities: "ReadWrite",
			Conditions: []StatusCondition{{
				Type: ReadyCondition, Status: corev1.ConditionTrue, Reason: "Valid", Message: "store validated",
				LastTransitionTime: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
			}},
		},
	}
	for file, object := range map[string]any{"product-pushsecret.yaml": backup(), "product-secretstore.yaml": store} {
		t.Run(file, func(t *testing.T) {
			text, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(golden, file)
			if *update {
				if err := os.MkdirAll(golden, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test ./internal/externalsecrets -update writes it)", err)
			}
			if string(text) != string(want) {
				t.Errorf("%s is out of date (go test ./internal/externalsecrets -update writes it); got\n%s", path, text)
			}
			back := reflect.New(reflect.TypeOf(object).Elem()).Interface()
			if err := yaml.UnmarshalStrict(want, back); err != nil {
				t.Errorf("%s does not decode into our own types: %v", path, err)
			}
		})
	}
}
