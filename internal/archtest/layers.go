package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// What each layer may use. Imports point downwards:
//
//	usage, internal/catalogue, internal/fault, internal/ident, internal/secret, internal/proc
//	  ← session
//	  ← recovery, goals
//	  ← internal/store, internal/provider, internal/tools, internal/worktree, internal/instance, mcp, acp
//	  ← cmd
//
// Adapters do not import each other, and neither do recovery and goals.
var (
	ground  = []string{"usage", "internal/catalogue", "internal/fault", "internal/ident", "internal/secret"}
	domain  = append([]string{"session", "internal/proc", "internal/sandbox"}, ground...)
	upper   = append([]string{"recovery", "goals"}, domain...)
	nothing []string
)

// layers says what each package may import of ours. A package that is not here has no layer and is refused.
var layers = map[string][]string{
	"usage":          nothing,
	"internal/fault": nothing,
	"internal/ident": nothing,

	"internal/catalogue": nothing,
	"internal/nearest":   nothing,
	"internal/picture":   nothing,
	"internal/proc":      {"internal/fault", "internal/ident", "internal/sandbox", "internal/secret"},
	"internal/secret":    nothing,

	"internal/proc/early": {"internal/proc"},

	"internal/sandbox":       nothing,
	"internal/sandbox/early": {"internal/sandbox"},

	"session":  domain[1:],
	"recovery": domain,
	"goals":    domain,

	"internal/sqlite":   nothing,
	"internal/store":    append([]string{"goals", "internal/sqlite"}, domain...),
	"internal/provider": domain,
	"internal/tools":    append([]string{"internal/picture"}, domain...),
	"internal/worktree": domain,
	"internal/instance": ground,
	"internal/config":   append([]string{"internal/nearest"}, ground...),
	"internal/keys":     ground,

	"internal/instructions": nothing,

	"acp":         append([]string{"acp/rpc", "acp/v1", "acp/v2", "internal/nearest", "internal/picture"}, upper...),
	"mcp":         upper,
	"mcp/client":  {"internal/ident", "internal/fault", "internal/secret"}, // one external server and its wire; knows nothing of sessions
	"mcp/toolbox": append([]string{"mcp/client", "internal/picture"}, domain...),
	"mcp/server":  upper,

	"acp/rpc":            nothing,
	"acp/schema":         nothing,
	"acp/v1":             {"acp/schema", "internal/fault"},
	"acp/v2":             {"acp/schema"},
	"internal/schemagen": {"acp/schema"},
	"internal/archtest":  {"internal/fault"},
}

// planned packages have a layer before they exist.
var planned = map[string]bool{"mcp": true, "mcp/client": true, "mcp/server": true, "acp/v2": true}

// Layers returns one line for each import that points the wrong way.
func Layers(files []File) []string {
	var bad []string
	for _, f := range files {
		if _, known := layers[f.Package]; !known && !isCmd(f.Package) && !isSuite(f.Package) {
			bad = append(bad, fmt.Sprintf("%s: the package %s has no layer; give it one in internal/archtest/layers.go", f.Path, f.Package))
			continue
		}
		for _, imp := range f.Imports {
			if why := refuse(f, imp); why != "" {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s", f.Path, imp, why))
			}
		}
	}
	return bad
}

func refuse(f File, imp string) string {
	switch {
	case imp == f.Package:
		return "" // an external test of the package itself
	case isSuite(f.Package):
		if !isSuite(imp) {
			return "the conformance suite knows nothing of the product"
		}
	case isSuite(imp):
		if !f.Test {
			return "only tests may drive the product with the suite"
		}
	case isCmd(imp):
		return "nothing imports the wiring"
	case isCmd(f.Package):
		if imp == "internal/schemagen" || imp == "internal/archtest" {
			return "a tool of the build is not part of the product"
		}
	case !slices.Contains(layers[f.Package], imp):
		return "the layer of " + f.Package + " may not use it"
	}
	return ""
}

func isCmd(pkg string) bool { return strings.HasPrefix(pkg, "cmd/") }

func isSuite(pkg string) bool { return pkg == "conformance" || strings.HasPrefix(pkg, "conformance/") }
