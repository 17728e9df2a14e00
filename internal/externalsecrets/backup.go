// SPDX-License-Identifier: Apache-2.0

package externalsecrets

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Backup is a Secret of the operator that is to be kept in a secret store, as a whole, under one key.
//
// +kubebuilder:object:generate=false
type Backup struct {
	// Namespace holds the PushSecret, the Secret and, unless it is cluster-wide, the store.
	Namespace string
	// Name is the PushSecret's.
	Name string
	// Labels and Annotations are the PushSecret's.
	Labels      map[string]string
	Annotations map[string]string
	// Store is where to. An empty kind means SecretStore.
	Store PushSecretStoreRef
	// SourceSecret is the name of the Secret.
	SourceSecret string
	// RemoteKey is the path in the store. It should be nobody else's: deleting the PushSecret
	// deletes what lies there.
	RemoteKey string
}

// PushSecret is what makes ESO keep the backup, fit for server-side apply: it carries type, name and
// what the operator decides, and leaves every default to the API server.
//
// The one data entry names no key of the Secret and no property of the remote one, which pushes the
// whole Secret: one entry per key would let a consumer of the store see half of a rotation.
func (b Backup) PushSecret() *PushSecret {
	store := b.Store
	if store.Kind == "" {
		// Written out: a defaulted kind would belong to no field manager and survive a change of store.
		store.Kind = SecretStoreKind
	}
	return &PushSecret{
		TypeMeta: metav1.TypeMeta{APIVersion: PushSecretGroupVersion.String(), Kind: PushSecretKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   b.Namespace,
			Name:        b.Name,
			Labels:      b.Labels,
			Annotations: b.Annotations,
		},
		Spec: PushSecretSpec{
			SecretStoreRefs: []PushSecretStoreRef{store},
			DeletionPolicy:  DeletionPolicyDelete,
			Selector:        PushSecretSelector{Secret: &PushSecretSecret{Name: b.SourceSecret}},
			Data:            []PushSecretData{{Match: PushSecretMatch{RemoteRef: PushSecretRemoteRef{RemoteKey: b.RemoteKey}}}},
		},
	}
}
