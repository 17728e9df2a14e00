// Package browser tests the page on which people answer CredentialUpdateRequests as they meet it: in a
// Chromium, against a real API server that says who they are and what they may, and with a real OpenID
// provider to log in at.
package browser
