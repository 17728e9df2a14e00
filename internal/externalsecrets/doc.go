// SPDX-License-Identifier: Apache-2.0

// Package externalsecrets declares the part of External Secrets Operator's API that the operator
// writes and reads: PushSecret (external-secrets.io/v1alpha1) and, to read only, SecretStore and
// ClusterSecretStore (external-secrets.io/v1).
//
// ESO's own Go types are not used: the only release of them that can be had as a module, v0.16.2,
// does not compile beside the controller-runtime that the operator needs. The stack's module, which
// does link that release, tests that what is written here decodes into ESO's types without loss.
//
// The types are a subset, so an object must never be read, changed and updated as a whole: fields
// that the subset lacks would be lost. PushSecrets are written by server-side apply and stores are
// never written.
//
// +kubebuilder:object:generate=true
package externalsecrets
