// Command invalid-keystoneuser-cr writes the admission corpus of KeystoneUser.
package main

import "github.com/c5c3/c5c3-operator/tests/e2e/admission"

//go:generate go run .

func main() {
	const kind = admission.User
	admission.Generate(kind,
		admission.Order(kind),
		admission.EffectiveName(kind, "userName", "user"),
		admission.Generation("passwordGeneration"),
		admission.Interval(kind, ""),
	)
}
