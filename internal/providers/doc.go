// Package providers is the catalog of those who issue credentials: how to ask one whether it accepts a
// credential, with a request or, Keystone, by a login, what its refusals look like, and what a credential of its looks like.
//
// The catalog is a file per provider, embedded, and whoever runs the platform adds or replaces entries
// with a ConfigMap. Every entry is checked when it is loaded, and a wrong one fails the load: an entry
// that could take a working credential for a dead one has humans asked for credentials in vain.
package providers
