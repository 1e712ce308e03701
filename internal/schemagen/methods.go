package main

import (
	"cmp"
	"slices"
	"strings"
)

type method struct{ name, side, params, result string }

// methods writes the table of methods, and a constant for each.
func (g *generator) methods() {
	all := map[string]*method{}
	for _, name := range sorted(g.defs) {
		n := g.defs[name]
		if n.Method == "" {
			continue
		}
		m := all[n.Method]
		if m == nil {
			m = &method{name: n.Method}
			all[n.Method] = m
		}
		m.side = cmp.Or(m.side, n.Side)
		if strings.HasSuffix(name, "Response") {
			m.result = name
		} else {
			m.params = name
		}
	}
	names := sorted(all)
	slices.Sort(names)
	g.printf("\n// Names of the methods.\nconst (\n")
	for _, name := range names {
		g.printf("Method%s = %q\n", goName(name), name)
	}
	g.printf(")\n\n// Methods has every method by its name.\nvar Methods = map[string]Method{\n")
	for _, name := range names {
		m := all[name]
		g.printf("Method%s: {Side: %q, Params: %q", goName(name), m.side, m.params)
		if m.result != "" {
			g.printf(", Result: %q", m.result)
		}
		g.printf("},\n")
	}
	g.printf("}\n")
}
