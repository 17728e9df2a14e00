package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// suiteFile makes a folder the folder of a Chainsaw suite.
const suiteFile = "chainsaw-test.yaml"

// Evidence finds tests by folder and name. What it read it keeps, for many rows name the same package.
type Evidence struct {
	root     string
	packages map[string]*testPackage
	suites   map[string]map[string]*words
}

func newEvidence(root string) *Evidence {
	return &Evidence{root: root, packages: map[string]*testPackage{}, suites: map[string]map[string]*words{}}
}

// find returns what a test says, and whether it is a Go test. It fails when there is no such test.
func (e *Evidence) find(folder, name string) (said *words, isGo bool, err error) {
	switch _, err := os.Stat(filepath.Join(e.root, folder, suiteFile)); {
	case err == nil:
		said, err := e.step(folder, name)
		return said, false, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	pkg, err := e.goPackage(folder)
	if err != nil {
		return nil, true, err
	}
	said, err = pkg.test(name)
	return said, true, err
}

// words are what a test mentions: the names and the texts in its source.
type words struct {
	names, texts map[string]bool
	// source is the text of a Chainsaw step, in which names cannot be told from texts.
	source string
}

func newWords() *words { return &words{names: map[string]bool{}, texts: map[string]bool{}} }

// mentionsReason tells whether a test speaks of a reason, by its constant or by its value.
func (w *words) mentionsReason(reason string) bool {
	return w.names["Reason"+reason] || w.names["Determination"+reason] || w.names["Phase"+reason] || w.texts[reason] || strings.Contains(w.source, reason)
}

// mentionsField tells whether a test speaks of a field, by its name in Go or in JSON.
func (w *words) mentionsField(field string) bool {
	for _, said := range []map[string]bool{w.names, w.texts} {
		for word := range said {
			if strings.EqualFold(word, field) {
				return true
			}
		}
	}
	return strings.Contains(w.source, field)
}

// step finds a step of a Chainsaw suite, with the step templates that it uses.
func (e *Evidence) step(folder, name string) (*words, error) {
	if e.suites[folder] == nil {
		suite, err := readSuite(filepath.Join(e.root, folder))
		if err != nil {
			return nil, err
		}
		e.suites[folder] = suite
	}
	if said := e.suites[folder][name]; said != nil {
		return said, nil
	}
	return nil, fmt.Errorf("suite %s has no step %q", folder, name)
}

func readSuite(folder string) (map[string]*words, error) {
	file := filepath.Join(folder, suiteFile)
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var suite struct {
		Spec struct {
			Steps []map[string]any `json:"steps"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &suite); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	steps := map[string]*words{}
	for _, step := range suite.Spec.Steps {
		name, _ := step["name"].(string)
		source, err := yaml.Marshal(step)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		said := newWords()
		said.source = string(source)
		if use, ok := step["use"].(map[string]any); ok {
			if template, ok := use["template"].(string); ok {
				text, err := os.ReadFile(filepath.Join(folder, template))
				if err != nil {
					return nil, fmt.Errorf("%s: step %q: %w", file, name, err)
				}
				said.source += string(text)
			}
		}
		steps[name] = said
	}
	return steps, nil
}

// testPackage are the test files of one folder. Its declarations are found by name, methods too and
// whatever they belong to: taking a few too many for reachable hides less than following types would
// cost.
type testPackage struct {
	folder string
	decls  map[string][]ast.Node
	tests  map[string]*ast.FuncDecl
	// homes says of a declaration of another package how that package's names begin in decls.
	homes map[ast.Node]string
}

func (e *Evidence) goPackage(folder string) (*testPackage, error) {
	if pkg := e.packages[folder]; pkg != nil {
		return pkg, nil
	}
	files, err := filepath.Glob(filepath.Join(e.root, folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s has neither Go tests nor a Chainsaw suite", folder)
	}
	pkg := &testPackage{folder: folder, decls: map[string][]ast.Node{}, tests: map[string]*ast.FuncDecl{}, homes: map[ast.Node]string{}}
	positions := token.NewFileSet() // one for all files, so that a position is in one node only
	for _, file := range files {
		parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			pkg.add(decl)
		}
		if err := pkg.addSupport(e.root, positions, parsed.Imports); err != nil {
			return nil, err
		}
	}
	e.packages[folder] = pkg
	return pkg, nil
}

func (p *testPackage) add(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		p.decls[decl.Name.Name] = append(p.decls[decl.Name.Name], decl)
		if decl.Recv == nil && (strings.HasPrefix(decl.Name.Name, "Test") || strings.HasPrefix(decl.Name.Name, "Fuzz")) {
			p.tests[decl.Name.Name] = decl
		}
		p.addFunctions(decl)
	case *ast.GenDecl:
		p.addValues("", decl)
		for _, spec := range decl.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok {
				p.decls[spec.Name.Name] = append(p.decls[spec.Name.Name], spec)
			}
		}
	}
}

// module is the path that imports of this repository begin with.
const module = "github.com/c5c3/c5c3-operator/"

// addSupport takes the functions, constants and variables of imported packages that support tests (their
// names end in "test"), as ordertest.Causes. A table that several packages share is what each of them
// goes through. Methods are left out: the world that they belong to says a little of everything.
func (p *testPackage) addSupport(root string, positions *token.FileSet, imports []*ast.ImportSpec) error {
	for _, spec := range imports {
		path, _ := textOf(spec.Path)
		folder, ours := strings.CutPrefix(path, module)
		if !ours || !strings.HasSuffix(path, "test") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range parsed.Decls {
				p.addOthers(parsed.Name.Name+".", decl)
			}
		}
	}
	return nil
}

func (p *testPackage) addOthers(qualifier string, decl ast.Decl) {
	if function, ok := decl.(*ast.FuncDecl); ok && function.Recv == nil {
		p.decls[qualifier+function.Name.Name] = []ast.Node{function}
		p.homes[function] = qualifier
	}
	p.addValues(qualifier, decl)
}

func (p *testPackage) addValues(qualifier string, decl ast.Decl) {
	general, ok := decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range general.Specs {
		if values, ok := spec.(*ast.ValueSpec); ok {
			for _, name := range values.Names {
				p.decls[qualifier+name.Name] = append(p.decls[qualifier+name.Name], values)
			}
			if qualifier != "" {
				p.homes[values] = qualifier
			}
		}
	}
}

// addFunctions takes functions that a function keeps in variables for declarations of the package.
func (p *testPackage) addFunctions(decl ast.Node) {
	ast.Inspect(decl, func(node ast.Node) bool {
		assign, ok := node.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for i := range assign.Lhs {
			name, isName := assign.Lhs[i].(*ast.Ident)
			if _, isFunction := assign.Rhs[i].(*ast.FuncLit); isName && isFunction {
				p.decls[name.Name] = append(p.decls[name.Name], assign.Rhs[i])
			}
		}
		return true
	})
}

// test finds TestName or TestName/subtest. Each part of a subtest's name must be a text in what the
// test reaches. What the subtest mentions is what its row in a table, or its call of Run, reaches: a
// reason that only the row above it speaks of is not shown by it.
func (p *testPackage) test(name string) (*words, error) {
	function, subtests, _ := strings.Cut(name, "/")
	decl := p.tests[function]
	if decl == nil {
		return nil, fmt.Errorf("%s has no test %s", p.folder, function)
	}
	said, reached := p.reach(decl)
	if subtests == "" {
		return said, nil
	}
	for part := range strings.SplitSeq(subtests, "/") {
		scopes, found := p.scopes(reached, part)
		if !found {
			return nil, fmt.Errorf("%s has no subtest %q in %s", p.folder, part, function)
		}
		if len(scopes) > 0 {
			said, reached = p.reach(scopes...)
		}
	}
	return said, nil
}

// reach collects what nodes mention, themselves and through the declarations of the package that they
// name.
func (p *testPackage) reach(nodes ...ast.Node) (*words, []ast.Node) {
	said, seen := newWords(), map[ast.Node]bool{}
	for i := 0; i < len(nodes); i++ {
		if seen[nodes[i]] {
			continue
		}
		seen[nodes[i]] = true
		home := p.homes[nodes[i]]
		ast.Inspect(nodes[i], func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.SelectorExpr:
				if qualifier, ok := node.X.(*ast.Ident); ok {
					nodes = append(nodes, p.decls[qualifier.Name+"."+node.Sel.Name]...)
				}
			case *ast.Ident:
				said.names[node.Name] = true
				nodes = append(nodes, p.decls[home+node.Name]...)
			case *ast.BasicLit:
				if text, ok := textOf(node); ok {
					said.texts[text] = true
				}
			}
			return true
		})
	}
	return said, nodes
}

// scopes finds where a subtest of a name is written, and returns what belongs to it: the row of a
// table with the loop over that table, or the call that runs it. A name that is a constant has no scope
// of its own.
func (p *testPackage) scopes(nodes []ast.Node, name string) (scopes []ast.Node, found bool) {
	matches := func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok {
			return false
		}
		text, ok := textOf(literal)
		return ok && subtestName(text) == subtestName(name)
	}
	for _, root := range nodes {
		ast.Inspect(root, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.KeyValueExpr:
				if matches(node.Key) {
					scopes = append(append(scopes, node), loopsOver(node, nodes)...)
				}
			case *ast.CompositeLit:
				for _, element := range node.Elts {
					pair, keyed := element.(*ast.KeyValueExpr)
					if matches(element) || keyed && matches(pair.Value) {
						scopes = append(append(scopes, node), loopsOver(node, nodes)...)
					}
				}
			case *ast.CallExpr:
				for _, argument := range node.Args {
					if matches(argument) {
						scopes = append(scopes, node)
					}
				}
			case *ast.BasicLit:
				found = found || matches(node)
			}
			return true
		})
	}
	return scopes, found
}

// loopsOver are the bodies of the loops over the table that a row is in.
func loopsOver(row ast.Node, nodes []ast.Node) (bodies []ast.Node) {
	holds := func(node ast.Node) bool { return node.Pos() <= row.Pos() && row.End() <= node.End() }
	tables := map[string]bool{}
	name := func(variable, value ast.Node) {
		if ident, ok := variable.(*ast.Ident); ok && holds(value) {
			tables[ident.Name] = true
		}
	}
	visit := func(do func(ast.Node)) {
		for _, root := range nodes {
			ast.Inspect(root, func(node ast.Node) bool {
				if node != nil {
					do(node)
				}
				return true
			})
		}
	}
	visit(func(node ast.Node) {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for i := range min(len(node.Lhs), len(node.Rhs)) {
				name(node.Lhs[i], node.Rhs[i])
			}
		case *ast.ValueSpec:
			for i := range min(len(node.Names), len(node.Values)) {
				name(node.Names[i], node.Values[i])
			}
		}
	})
	visit(func(node ast.Node) {
		loop, ok := node.(*ast.RangeStmt)
		if !ok {
			return
		}
		if ident, isName := loop.X.(*ast.Ident); holds(loop.X) || isName && tables[ident.Name] {
			bodies = append(bodies, loop.Body)
		}
	})
	return bodies
}

// subtestName is how go test spells the name of a subtest.
func subtestName(name string) string { return strings.ReplaceAll(name, " ", "_") }

func textOf(literal *ast.BasicLit) (string, bool) {
	if literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
