// Package archtest enforces the layer rule by parsing the files, and that crash points are listed and used.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// allowed names, for each package of ours, what else of ours it may import. "…/" covers everything below.
var allowed = map[string][]string{
	"usage":                 {},
	"internal/fault":        {},
	"internal/ident":        {},
	"internal/proc":         {"internal/fault", "internal/ident"},
	"session":               {"usage", "internal/fault", "internal/proc"},
	"recovery":              {"session"},
	"goals":                 {"session", "usage"},
	"internal/store":        {"session", "goals", "internal/fault"},
	"internal/provider":     {"session", "usage"},
	"internal/tools":        {"session", "internal/proc"},
	"internal/worktree":     {"session"},
	"internal/instance":     {},
	"acp":                   {"session", "goals", "acp/rpc", "acp/v1"},
	"acp/rpc":               {},
	"acp/v1":                {},
	"acp/schema":            {},
	"internal/schemagen":    {},
	"internal/archtest":     {},
	"conformance/harness":   {},
	"conformance/fakemodel": {},
}

// mayImport says whether a file of package pkg may import dep, both without the module's name.
func mayImport(pkg, dep string, test bool) bool {
	switch {
	case pkg == dep || strings.HasPrefix(pkg, "cmd/"):
		return true
	case strings.HasPrefix(pkg, "conformance/"):
		return strings.HasPrefix(dep, "conformance/")
	case test && (dep == "acp/schema" || pkg == "internal/provider" && dep == "conformance/fakemodel"):
		return true
	}
	list, known := allowed[pkg]
	return known && slices.Contains(list, dep)
}

func eachFile(t *testing.T, visit func(path string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "bin") && path != root {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		visit(filepath.ToSlash(rel), f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports_PointDownwards(t *testing.T) {
	files := 0
	eachFile(t, func(path string, f *ast.File) {
		files++
		pkg := filepath.ToSlash(filepath.Dir(path))
		for _, imp := range f.Imports {
			dep, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(dep, "holdfast/"); ok && !mayImport(pkg, ours, strings.HasSuffix(path, "_test.go")) {
				t.Errorf("%s imports %s", path, ours)
			}
		}
	})
	if files < 50 {
		t.Fatalf("only %d files were looked at", files)
	}
}

func TestImports_RuleRefusesViolations(t *testing.T) {
	for _, c := range [][2]string{{"session", "goals"}, {"acp", "internal/store"}, {"internal/tools", "internal/provider"}, {"conformance/kill", "session"},
		{"usage", "session"}, {"newpackage", "session"}} {
		if mayImport(c[0], c[1], false) {
			t.Errorf("%s may import %s", c[0], c[1])
		}
	}
}

var commitName = regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)

// Every string that has the form of a crash point and is passed to a call is listed, and every listed one is used.
func TestCrashPoints_ListedAndUsed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "internal/fault/points.go"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z_.]+)",$`).FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = false
	}
	eachFile(t, func(path string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "conformance/") || path == "internal/fault/points.go" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && commits(call) {
				for _, a := range call.Args {
					if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						name, err := strconv.Unquote(lit.Value)
						name = strings.TrimSuffix(strings.TrimSuffix(name, ":before"), ":after")
						if _, known := listed[name]; err == nil && commitName.MatchString(name) && !known {
							t.Errorf("%s: crash point %q is not listed", path, name)
						}
					}
				}
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name, err := strconv.Unquote(lit.Value); err == nil {
					name = strings.TrimSuffix(strings.TrimSuffix(name, ":before"), ":after")
					if _, known := listed[name]; known {
						listed[name] = true
					}
				}
			}
			return true
		})
	})
	for name, used := range listed {
		if !used {
			t.Errorf("crash point %q is listed and never used", name)
		}
	}
}

// commits tells whether a call is one of those that take a crash point.
func commits(call *ast.CallExpr) bool {
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		return slices.Contains([]string{"Commit", "commit", "settle", "Point"}, fn.Sel.Name)
	case *ast.Ident:
		return fn.Name == "point"
	}
	return false
}
