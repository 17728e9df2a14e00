// Package v1alpha1 holds the kinds of group c5c3.io: the ControlPlane, which says where a
// Keystone is and who may order from it, and the four orders a service owner places.
//
// No kind has an admission webhook. Orders may live on target clusters that run nothing of
// ours, so every rule that admission can check is a schema or CEL rule, and the reconciler
// resolves every default again by itself.
//
// +kubebuilder:object:generate=true
// +groupName=c5c3.io
package v1alpha1
