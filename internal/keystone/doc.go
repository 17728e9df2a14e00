// SPDX-License-Identifier: Apache-2.0

// Package keystone is what the operator asks Keystone itself, beside what K-ORC does for it: does a
// credential log in, which application credentials and roles does a user really hold, and is a
// revoked one really gone.
//
// Its answers end grace periods and teardowns, so the package is strict about whose word counts. A
// refusal is Keystone's only when it carries Keystone's JSON error body; a proxy's 404 or 401 is
// "unreachable", like any other answer that is not understood. Nothing is retried here: a
// reconciler retries, with its back-off and its conditions. The one exception is an administrator's
// cached token that Keystone no longer takes, which is replaced once (see Service.Admin).
//
// No error, log line or metric of this package carries a password, a secret or a token.
package keystone
