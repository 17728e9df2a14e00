package order

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sources are the packages that report conditions or record Events.
var sources = []string{"../../controllers", "../../internal/korc"}

// rowReasons are reasons of the rows in a ControlPlane's status, and of the aggregate. No Event has them.
var rowReasons = map[string]bool{
	"AllReady": true, "NotAllReady": true,
	"Assigned": true, "NamespaceNotFound": true, "NamespaceTerminating": true, "TargetClusterUnavailable": true, "ClusterUnreachable": true,
}

// emitted are the reasons that Events can have, with the Event's type as far as the code shows it. A
// condition that holds is Normal, and so is an expected wait; whatever is left is a Warning.
type emitted map[string]string

// TestEventsPage holds docs/events.md against the code, in both directions: whoever adds an Event or a
// reason has to tell what it means, and whoever removes one has to remove the row.
func TestEventsPage(t *testing.T) {
	constants := constantsOf(t, "../../api/v1alpha1/conditions.go", "events.go")
	found := emitted{}
	for _, folder := range sources {
		eachFile(t, folder, func(path string, file *ast.File) { found.inFile(t, path, file, constants) })
	}
	if len(found) < 40 {
		t.Fatalf("only %d reasons are found in the code; the search is broken", len(found))
	}
	documented := pageRows(t, "../../docs/events.md")
	for reason, kind := range found {
		if kind == "" {
			kind = "Warning"
		}
		switch told, ok := documented[reason]; {
		case !ok:
			t.Errorf("the code emits Events with reason %s, and docs/events.md has no row for it", reason)
		case told != kind:
			t.Errorf("docs/events.md says %s of %s, and the code says %s", told, reason, kind)
		}
		delete(documented, reason)
	}
	for reason := range documented {
		t.Errorf("docs/events.md has a row for %s, and nothing emits it", reason)
	}
}

// inFile adds the reasons that a file reports: the conditions' that it names, and those of Eventf.
func (e emitted) inFile(t *testing.T, path string, file *ast.File, constants map[string]string) {
	t.Helper()
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			switch name := nameOf(node.Fun); {
			case name == "Eventf" && len(node.Args) > 3:
				e.add(t, path, node.Args, constants)
			case name == "Done" && len(node.Args) > 1:
				if reason := constants[nameOf(node.Args[0])]; reason != "" && !rowReasons[reason] {
					e[reason] = "Normal"
				}
			}
		case *ast.SelectorExpr, *ast.Ident:
			if name := nameOf(node); strings.HasPrefix(name, "Reason") {
				if reason := constants[name]; reason != "" && !rowReasons[reason] && e[reason] == "" {
					e[reason] = typeOf(reason)
				}
			}
		}
		return true
	})
}

// typeOf is the type of an Event that repeats a condition which does not hold. A reason of a condition
// that holds is given to Done somewhere, or, in one case, passed on by whoever judged it.
func typeOf(reason string) string {
	if expected(reason) || reason == "SecretStoreValid" {
		return "Normal"
	}
	return ""
}

// add takes the reason of one Eventf. It is a constant of events.go, so that there is one list of them,
// or the parameter of a function that passes a condition's on.
func (e emitted) add(t *testing.T, path string, arguments []ast.Expr, constants map[string]string) {
	t.Helper()
	for i, argument := range arguments[:min(len(arguments), 4)] {
		name := nameOf(argument)
		if !strings.HasPrefix(name, "EventType") && name != "eventType" {
			continue
		}
		reason := nameOf(arguments[i+1])
		if reason == "reason" {
			return
		}
		value := constants[reason]
		if value == "" || !strings.HasPrefix(reason, "Event") {
			t.Errorf("%s: the reason of an Event is a constant of controllers/order/events.go, and %s is none", path, reason)
			return
		}
		e[value] = strings.TrimPrefix(name, "EventType")
		return
	}
}

// nameOf is the last name of an identifier or a selector, "" of anything else.
func nameOf(node ast.Node) string {
	switch node := node.(type) {
	case *ast.Ident:
		return node.Name
	case *ast.SelectorExpr:
		return node.Sel.Name
	}
	return ""
}

func eachFile(t *testing.T, folder string, visit func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "ordertest") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parsing %s: %w", path, err)
		}
		visit(path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// constantsOf reads string constants by name, and the aliases of the packages' own.
func constantsOf(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	constants := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					constants[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
				}
			}
			return true
		})
	}
	return constants
}

var quotedReason = regexp.MustCompile("`([A-Za-z]+)`")

// pageRows reads the reasons in the first column of the page's tables, with the second. A reason that is
// in two rows must have one type in both.
func pageRows(t *testing.T, path string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		kind := strings.TrimSpace(cells[2])
		if kind != "Normal" && kind != "Warning" {
			t.Errorf("%s is no type of an Event: %s", kind, line)
		}
		for _, match := range quotedReason.FindAllStringSubmatch(cells[1], -1) {
			if before, again := rows[match[1]]; again && before != kind {
				t.Errorf("%s is %s in one row and %s in another", match[1], before, kind)
			}
			rows[match[1]] = kind
		}
	}
	return rows
}
