// Command invalid-keystoneproject-cr writes the admission corpus of KeystoneProject.
package main

import "github.com/c5c3/c5c3-operator/tests/e2e/admission"

//go:generate go run .

func main() {
	const kind = admission.Project
	admission.Generate(kind,
		admission.Order(kind),
		admission.EffectiveName(kind, "projectName", "project"),
	)
}
