package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// committers are the functions whose string arguments name a commit or an outside action.
var committers = map[string]bool{"Commit": true, "commit": true, "settle": true, "Point": true, "point": true}

// Points returns every crash point that the sources name, with one place where they do. Tests are left out.
func Points(files []File) map[string]string {
	found := map[string]string{}
	for _, f := range files {
		if f.Test || isSuite(f.Package) {
			continue
		}
		add := func(e ast.Expr) {
			if name, ok := literal(e); ok {
				found[name] = f.fset.Position(e.Pos()).String()
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if committers[callee(n)] {
					for _, arg := range n.Args {
						add(arg)
					}
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if id, ok := left.(*ast.Ident); ok && id.Name == "point" && i < len(n.Rhs) {
						add(n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	return found
}

// Workarounds returns every workaround that the sources ask internal/fault for, with one place where they do.
func Workarounds(files []File) map[string]string {
	found := map[string]string{}
	for _, f := range files {
		if f.Test || isSuite(f.Package) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && callee(call) == "Without" && len(call.Args) == 1 {
				if name, ok := literal(call.Args[0]); ok {
					found[name] = f.fset.Position(call.Pos()).String()
				}
			}
			return true
		})
	}
	return found
}

func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal is the point that a string names: the instant before or after it belongs to the same one.
func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return "", false
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, ":before"), ":after")
	return s, s != ""
}
