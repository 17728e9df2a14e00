package order

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestPrefix(t *testing.T) {
	t.Run("is_the_name_eight_hex_digits_and_the_kind", func(t *testing.T) {
		// sha256("/tenant-a/workflow") begins with the eight digits; computed with sha256sum.
		got := UserKind.Prefix(Key{Namespace: "tenant-a", Name: "workflow"})
		if want := "workflow-cebe0e7a-user-"; got != want {
			t.Errorf("prefix %q, want %q", got, want)
		}
	})
	t.Run("tells_clusters_namespaces_and_names_apart", func(t *testing.T) {
		seen := map[string]Key{}
		for _, key := range []Key{
			{Namespace: "a", Name: "x"}, {Namespace: "b", Name: "x"}, {Cluster: "c", Namespace: "a", Name: "x"},
		} {
			prefix := UserKind.Prefix(key)
			if other, taken := seen[prefix]; taken {
				t.Errorf("%v and %v share the prefix %q", key, other, prefix)
			}
			seen[prefix] = key
		}
	})
	t.Run("leaves_room_for_every_child_name", func(t *testing.T) {
		longest := ApplicationCredentialKind.Prefix(Key{Name: strings.Repeat("n", 63)}) + "credential-v9223372036854775807"
		if len(longest) > 253 {
			t.Errorf("a child's name has %d bytes, and Kubernetes takes 253", len(longest))
		}
	})
}

func TestLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(Kinds).Draw(t, "kind")
		name := rapid.StringMatching(`[a-z]([a-z0-9-]{0,20}[a-z0-9])?`)
		key := Key{Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name")}
		if rapid.Bool().Draw(t, "target") {
			key.Cluster = name.Draw(t, "cluster")
		}
		labels := kind.Labels(key)
		if cluster, present := labels[kind.ClusterLabel()]; !present || cluster != key.Cluster {
			t.Fatalf("the cluster label must be there, empty for the management cluster: %v", labels)
		}
		back, ok := kind.KeyFromLabels(labels)
		if !ok || back != key {
			t.Fatalf("read back %v from the labels of %v", back, key)
		}
		for _, other := range Kinds {
			if _, ok := other.KeyFromLabels(labels); ok && other.Name != kind.Name {
				t.Fatalf("a child of %s is taken for one of %s", kind.Name, other.Name)
			}
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
		if !kind.owns(key, secret) {
			t.Fatal("an order does not own its child")
		}
		delete(labels, rapid.SampledFrom([]string{kind.NameLabel(), kind.NamespaceLabel(), kind.ClusterLabel()}).Draw(t, "missing"))
		if kind.owns(key, secret) {
			t.Fatal("an object with two of the three labels is taken for a child")
		}
	})
}
