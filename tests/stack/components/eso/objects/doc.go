// Package objects holds objects as the operator writes them against ESO's own Go types and CRDs.
//
// The operator can't import those types (they need an older controller-runtime), so it declares the few
// fields that it uses. The files in ../testdata are what it writes; the test here shows that they mean
// to ESO what they mean to the operator. A package of its own, because a test of the program next to it
// would link every provider.
package objects
