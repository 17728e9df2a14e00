// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pages are the pages of the kinds, relative to this package.
var pages = map[string]string{
	"ControlPlane":                  "../../docs/controlplane.md",
	"KeystoneUser":                  "../../docs/keystoneuser.md",
	"KeystoneProject":               "../../docs/keystoneproject.md",
	"KeystoneRoleAssignment":        "../../docs/keystoneroleassignment.md",
	"KeystoneApplicationCredential": "../../docs/keystoneapplicationcredential.md",
}

func TestEveryReasonOfTheAPIHasAdviceOnEveryKind(t *testing.T) {
	reasons := apiReasons(t)
	if len(reasons) < 60 {
		t.Fatalf("only %d reasons were found in the API", len(reasons))
	}
	for _, reason := range reasons {
		for kind := range pages {
			if do, ok := For(kind, reason); !ok || do == "" {
				t.Errorf("%s on a %s has no advice", reason, kind)
			}
		}
	}
}

func TestTheTableHasNoRowThatNothingLeadsTo(t *testing.T) {
	reasons := append(apiReasons(t), NotReconciled, BeingDeleted)
	general := map[string]bool{}
	for _, r := range table {
		if !slices.Contains(reasons, r.reason) {
			t.Errorf("%s is no reason of the API", r.reason)
		}
		if general[r.reason] {
			t.Errorf("a row of %s stands behind the one for all kinds", r.reason)
		}
		general[r.reason] = len(r.kinds) == 0
		for _, kind := range r.kinds {
			if pages[kind] == "" {
				t.Errorf("%s names the kind %s, which does not exist", r.reason, kind)
			}
		}
	}
}

// TestEveryReasonOnAPageHasAdviceAndEverySpecialAdviceIsOnItsPage keeps table and pages from telling of
// different worlds: what a page lists can be explained, and a kind's own advice is about something that
// its page lists.
func TestEveryReasonOnAPageHasAdviceAndEverySpecialAdviceIsOnItsPage(t *testing.T) {
	for kind, page := range pages {
		documented := documentedReasons(t, page)
		if len(documented) < 10 {
			t.Fatalf("only %d reasons were found on %s", len(documented), page)
		}
		for _, reason := range documented {
			if _, ok := For(kind, reason); !ok {
				t.Errorf("%s lists %s, and there is no advice for it", page, reason)
			}
		}
		for _, r := range table {
			if slices.Contains(r.kinds, kind) && !slices.Contains(documented, r.reason) {
				t.Errorf("%s has advice of its own on a %s, and %s does not list it", r.reason, kind, page)
			}
		}
	}
}

// TestFieldsThatAnAdviceNamesAreOnThePage catches a renamed field, and advice that the page of the kind
// does not give.
func TestFieldsThatAnAdviceNamesAreOnThePage(t *testing.T) {
	field := regexp.MustCompile(`\b(spec|c5c3\.io)[./][a-zA-Z./-]*[a-zA-Z]|\b[a-z]+[A-Z][a-zA-Z]+\b`)
	for kind, page := range pages {
		text := read(t, page)
		for _, reason := range documentedReasons(t, page) {
			do, _ := For(kind, reason)
			for _, name := range field.FindAllString(do, -1) {
				leaf := name[strings.LastIndexAny(name, "./")+1:]
				if !strings.Contains(text, leaf) {
					t.Errorf("the advice on %s of a %s names %s, and %s does not", reason, kind, name, page)
				}
			}
		}
	}
}

func TestAReasonOfSomebodyElseHasNoAdvice(t *testing.T) {
	if do, ok := For("KeystoneUser", "ImagePullBackOff"); ok {
		t.Errorf("there is advice on a reason that is not ours: %s", do)
	}
}

// apiReasons are the values of the constants Reason... of the API.
func apiReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, "Reason") {
				continue
			}
			value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatalf("%s: %v", name.Name, err)
			}
			reasons = append(reasons, value)
		}
		return false
	})
	return reasons
}

// documentedReasons are the reasons in the table under "Conditions", and those that stand in for a wait
// with an External Keystone.
func documentedReasons(t *testing.T, page string) []string {
	t.Helper()
	_, section, ok := strings.Cut(read(t, page), "\n## Conditions\n")
	if !ok {
		t.Fatalf("%s has no section on conditions", page)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	reason := regexp.MustCompile("`([A-Z][A-Za-z]+)`")
	found := map[string]bool{}
	add := func(text string) {
		for _, match := range reason.FindAllStringSubmatch(text, -1) {
			found[match[1]] = true
		}
	}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		// The second cell of a row names the reason; the third may mention others.
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			t.Fatalf("%s: a row without cells: %s", page, line)
		}
		add(cells[2])
	}
	_, external, _ := strings.Cut(section, "With an External Keystone")
	external, _, _ = strings.Cut(external, "\n\n")
	add(external)
	return slices.Sorted(maps.Keys(found))
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
