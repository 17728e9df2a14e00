// SPDX-License-Identifier: Apache-2.0

package externalsecrets

import (
	"crypto/sha3"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Store is a SecretStore or a ClusterSecretStore.
//
// +kubebuilder:object:generate=false
type Store interface {
	metav1.Object
	// StoreStatus is the status that ESO reported.
	StoreStatus() SecretStoreStatus
}

// StoreStatus implements Store.
func (s *SecretStore) StoreStatus() SecretStoreStatus { return s.Status }

// StoreStatus implements Store.
func (s *ClusterSecretStore) StoreStatus() SecretStoreStatus { return s.Status }

var (
	_ Store = (*SecretStore)(nil)
	_ Store = (*ClusterSecretStore)(nil)
)

// capabilityReadOnly is what ESO reports of a store that it cannot push to.
const capabilityReadOnly = "ReadOnly"

// StoreReady tells whether a store can take a push, and if not, why, in words that follow the
// store's name ("is ..."). A store that works but can only be read is not ready: every push to it
// would fail.
func StoreReady(store Store) (ready bool, message string) {
	status := store.StoreStatus()
	condition := readyCondition(status.Conditions)
	switch {
	case condition == nil:
		return false, "has not been validated by External Secrets Operator yet"
	case condition.Status != corev1.ConditionTrue:
		return false, fmt.Sprintf("is not ready (%s): %s", condition.Reason, condition.Message)
	case status.Capabilities == capabilityReadOnly:
		return false, "is read-only, so nothing can be backed up to it"
	}
	return true, ""
}

// Pushed tells whether ps has carried the document with that digest to its store. digestAnnotationKey
// is the annotation of ps in which the operator stamps the digest of the document to push.
//
// Three things have to hold: the push that ESO reports succeeded; the stamp is the document's; and
// ESO's last push was of the object as it is now, stamp included (ResourceVersion). Comparing
// against the version that was synced before the stamp, as simpler operators do, would accept an
// older push that was still under way when the stamp was set.
//
// The source Secret has to be written before the stamp: ESO reads the PushSecret first and the
// Secret afterwards, so a push of the stamped object carries that document or a later one.
//
// An empty digest is never pushed: it would equal the annotation of an object that has none.
func Pushed(ps *PushSecret, digestAnnotationKey, digest string) bool {
	ready := readyCondition(ps.Status.Conditions)
	return digest != "" &&
		ready != nil && ready.Status == corev1.ConditionTrue &&
		ps.Annotations[digestAnnotationKey] == digest &&
		ps.Status.SyncedResourceVersion == ResourceVersion(ps.ObjectMeta)
}

// ResourceVersion is what ESO writes to status.syncedResourceVersion after it has reconciled an
// object with this metadata: the generation, a dash, and a hash over annotations and labels.
//
// It repeats ESO's pkg/controllers/util.GetResourceVersion, the same in 0.16 and 1.x: the SHA3-224
// of the text that Go's fmt prints with %+v for a struct of the two maps. fmt sorts map keys, and
// prints a nil map like an empty one. Odd as the format is, it must not be improved on; the tests
// hold values that ESO's function returned.
func ResourceVersion(m metav1.ObjectMeta) string {
	text := fmt.Sprintf("{annotations:%+v labels:%+v}", m.Annotations, m.Labels)
	return fmt.Sprintf("%d-%x", m.Generation, sha3.Sum224([]byte(text)))
}

func readyCondition(conditions []StatusCondition) *StatusCondition {
	for i := range conditions {
		if conditions[i].Type == ReadyCondition {
			return &conditions[i]
		}
	}
	return nil
}
