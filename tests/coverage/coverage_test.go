package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The smallest repository in which everything is in order. Each case breaks one thing of it.
var repository = map[string]string{
	"api/v1alpha1/conditions.go": `package v1alpha1

const (
	ConditionReady = "Ready"
	// ReasonCooked says that it is done.
	ReasonCooked = "Cooked"
)
`,
	"config/crd/bases/c5c3.io_eggs.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: eggs.c5c3.io}
spec:
  group: c5c3.io
  names: {kind: Egg, plural: eggs}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size:
                type: string
                maxLength: 3
                minLength: 1
                default: "M"
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: size is immutable}
          status:
            type: object
            properties:
              minutes: {type: integer}
              conditions:
                type: array
                items:
                  type: object
                  properties:
                    reason: {type: string, maxLength: 10}
`,
	"docs/decisions/0001-boiled.md": "# Boiled\n",
	"kitchen/kitchen_test.go": `package kitchen

import (
	"testing"

	"github.com/c5c3/c5c3-operator/spices/spicetest"
)

func TestEgg(t *testing.T) {
	for name, reason := range table {
		t.Run(name, func(t *testing.T) { check(t, reason); t.Log("weighed") })
	}
	eaten := func(t *testing.T) { t.Log("salted", spicetest.Sprinkle()) }
	t.Run("is_eaten", eaten)
	t.Run("takes its minutes", func(t *testing.T) { t.Log("minutes", conditions) })
}

var table = map[string]string{
	"is_cooked": v1alpha1.ReasonCooked,
	"is_raw":    "Raw",
}

const conditions = "conditions"

func check(t *testing.T, reason string) { t.Log(reason) }
`,
	"spices/spicetest/spices.go": `package spicetest

func Sprinkle() []string { return spices }

var spices = []string{"chives"}

var Others = []string{"mustard"}
`,
	"suites/breakfast/chainsaw-test.yaml": `apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
spec:
  steps:
  - name: the egg is cooked
    use: {template: ../cook.yaml}
  - name: the egg is eaten
    try: [{script: {content: eat}}]
`,
	"suites/cook.yaml": "reason: Cooked\n",
	"tests/coverage/1-egg.yaml": `title: Egg
kind: Egg
sections:
- title: Conditions
  rows:
  - covers: [reason Ready=True/Cooked]
    holds: The egg is done.
    tests:
      kitchen: [TestEgg/is_cooked]
      suites/breakfast: [the egg is cooked]
  - covers: [status minutes]
    holds: How long it took.
    tests:
      kitchen: [TestEgg/takes_its_minutes]
    deviates: 0001-boiled.md
  - covers: [status conditions]
    holds: Whether it is done.
    tests:
      kitchen: [TestEgg]
  - row: everything else
    covers:
    - 'rule spec.size: size is immutable'
    - 'limits spec.size: maxLength 3, minLength 1, required'
    - 'default spec.size: "M"'
    - 'column Size: .spec.size'
    holds: A size | stays.
    tests:
      kitchen: [TestEgg]
  - row: two kitchens
    holds: An egg is cooked where it lies.
    needs: target clusters
`,
}

// write makes a repository with some files replaced: old text by new text, in the file of that name.
func write(t *testing.T, file, old, replacement string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range repository {
		if name == file {
			if !strings.Contains(content, old) {
				t.Fatalf("%s does not hold %q", file, old)
			}
			content = strings.Replace(content, old, replacement, 1)
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestVerify(t *testing.T) {
	const rows, tests = "tests/coverage/1-egg.yaml", "kitchen/kitchen_test.go"
	for name, c := range map[string]struct {
		file, old, new string
		problem        string
	}{
		"a_repository_in_order_has_no_problem": {rows, "Egg", "Egg", ""},

		"a_row_without_a_test":                {rows, "    tests:\n      kitchen: [TestEgg]\n  - row: everything", "  - row: everything", "no test shows it"},
		"another_excuse_than_target_clusters": {rows, "needs: target clusters", "needs: time", `needs "time"`},
		"a_row_that_promises_nothing":         {rows, "holds: The egg is done.", "holds: ''", "says what holds"},
		"a_field_that_no_row_has":             {rows, "deviates:", "deviated:", `unknown field "deviated"`},
		"a_test_that_does_not_exist":          {rows, "TestEgg/is_cooked", "TestOmelette", "has no test TestOmelette"},
		"a_subtest_that_does_not_exist":       {rows, "TestEgg/is_cooked", "TestEgg/is_fried", `has no subtest "is_fried"`},
		"a_folder_without_tests":              {rows, "kitchen: [TestEgg/is_cooked]", "cellar: [TestEgg]", "neither Go tests nor a Chainsaw suite"},
		"a_step_that_does_not_exist":          {rows, "[the egg is cooked]", "[the egg is fried]", `has no step "the egg is fried"`},
		"a_decision_that_does_not_exist":      {rows, "0001-boiled", "0002-fried", "0002-fried"},
		"an_item_in_two_rows":                 {rows, "covers: [status conditions]", "covers: [status conditions, status minutes]", "has a row in 1-egg.yaml already"},
		"an_item_that_the_api_does_not_have":  {rows, "status conditions", "status colour", `Egg has no "status colour"`},
		"a_reason_that_the_api_does_not_have": {rows, "Ready=True/Cooked", "Ready=True/Fried", `no reason "Fried"`},
		"a_condition_that_does_not_exist":     {rows, "Ready=True", "Eaten=True", `no condition "Eaten"`},
		"a_status_that_no_condition_has":      {rows, "Ready=True", "Ready=Maybe", `no condition is ever "Maybe"`},

		"a_test_that_never_mentions_the_reason":     {tests, `"is_cooked": v1alpha1.ReasonCooked`, `"is_cooked": ""`, "never mentions reason Cooked"},
		"a_subtest_beside_the_one_that_mentions_it": {rows, "TestEgg/is_cooked", "TestEgg/is_raw", "never mentions reason Cooked"},
		"a_field_that_no_test_mentions":             {tests, `"minutes", `, "", "none of its tests mentions minutes"},

		"a_new_reason":          {"api/v1alpha1/conditions.go", "ReasonCooked =", "ReasonFried = \"Fried\"\n\tReasonCooked =", "no row covers reason Fried"},
		"a_new_status_field":    {"config/crd/bases/c5c3.io_eggs.yaml", "minutes: {type: integer}", "minutes: {type: integer}\n              colour: {type: string}", `Egg: no row covers "status colour"`},
		"another_rule":          {"config/crd/bases/c5c3.io_eggs.yaml", "size is immutable", "size stays", `no row covers "rule spec.size: size stays"`},
		"another_default":       {"config/crd/bases/c5c3.io_eggs.yaml", `"M"`, `"L"`, `no row covers "default spec.size: \"L\""`},
		"another_limit":         {"config/crd/bases/c5c3.io_eggs.yaml", "maxLength: 3", "maxLength: 4", "maxLength 4, minLength 1, required"},
		"a_column_of_something": {"config/crd/bases/c5c3.io_eggs.yaml", "jsonPath: .spec.size", "jsonPath: .status.minutes", "column Size: .status.minutes"},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := run(write(t, c.file, c.old, c.new), false)
			if err != nil {
				problems = append(problems, err.Error())
			}
			switch said := strings.Join(problems, "\n"); {
			case c.problem == "" && said != "":
				t.Errorf("found:\n%s", said)
			case !strings.Contains(said, c.problem):
				t.Errorf("want %q, found:\n%s", c.problem, said)
			}
		})
	}
}

// TestScope: what a subtest mentions is what runs in it, and nothing that runs in its neighbours.
func TestScope(t *testing.T) {
	evidence := newEvidence(write(t, "", "", ""))
	for test, c := range map[string]struct{ says, saysNot []string }{
		"TestEgg":                   {[]string{"weighed", "salted", "minutes", "Raw", "chives"}, []string{"mustard"}},
		"TestEgg/is_raw":            {[]string{"weighed", "Raw"}, []string{"salted", "minutes"}},
		"TestEgg/is_eaten":          {[]string{"salted", "chives"}, []string{"weighed", "Raw", "minutes"}},
		"TestEgg/takes_its_minutes": {[]string{"minutes", "conditions"}, []string{"weighed", "salted", "Raw"}},
	} {
		t.Run(test, func(t *testing.T) {
			said, _, err := evidence.find("kitchen", test)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range c.says {
				if !said.texts[word] {
					t.Errorf("it does not say %q", word)
				}
			}
			for _, word := range c.saysNot {
				if said.texts[word] {
					t.Errorf("it says %q", word)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	root := write(t, "", "", "")
	if _, err := run(root, true); err == nil {
		t.Error("a page that was never written passes")
	}
	if _, err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if problems, err := run(root, true); err != nil || len(problems) > 0 {
		t.Errorf("the page that was just written does not pass: %v, %v", problems, err)
	}
	path := filepath.Join(root, pagePath)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.Clone(before), "edited\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	problems, err := run(root, true)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "is not what the rows say") {
		t.Errorf("an edited page: %v, %v", problems, err)
	}
}

func TestPage(t *testing.T) {
	root := write(t, "", "", "")
	if _, err := run(root, false); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(root, pagePath))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"5 rows, 1 of them without a test.",
		"| reason `Ready=True/Cooked` | The egg is done. | [kitchen](../kitchen): `TestEgg/is_cooked`<br>[suites/breakfast](../suites/breakfast): `the egg is cooked` |",
		"Deviates: [decision 0001](decisions/0001-boiled.md) |",
		"| two kitchens | An egg is cooked where it lies. | **target clusters** |",
		`A size \| stays.`,
	} {
		if !strings.Contains(string(written), want) {
			t.Errorf("the page lacks %q:\n%s", want, written)
		}
	}
}
