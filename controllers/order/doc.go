// Package order holds what every order kind shares: who may order (the gates), what children are
// called and whose they are, how a pass reports, how a Secret is backed up and delivered, how
// K-ORC's objects are read, and how everything is torn down.
//
// A kind's package supplies the steps between the gates and the report. The scaffold keeps the
// promises that no kind may break: consent is checked before anything is read or written in the
// ControlPlane's namespace, the finalizer is there before the first external create, no foreign
// object is taken over, and status is written once, only when it changed, with an optimistic lock.
package order
