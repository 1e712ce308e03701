package main

import (
	"slices"
	"strings"
)

// class tells how a type behaves when its member is missing.
type class int

const (
	plain  class = iota // string, bool: the zero value may be meant
	number              // the zero value is often meant
	named               // id or enum: never empty when present
	list
	object
	open // map or any: nil when missing
)

// fields writes the members of an object.
func (g *generator) fields(n *node) {
	for _, name := range sorted(n.Properties) {
		p := n.Properties[name]
		required := slices.Contains(n.Required, name)
		opts := ""
		if !required {
			opts = ",omitzero"
		}
		if name != "_meta" { // its long text is the same everywhere
			g.printf("%s", comment("", p.Description))
		}
		g.printf("%s %s `json:\"%s%s\"", goName(name), g.fieldType(name, p, required), name, opts)
		if h := hints(p, required); h != "" {
			g.printf(" acp:%q", h)
		}
		g.printf("`\n")
	}
}

// hints is what the decoder has to know of a member: whether it must be there, whether what cannot be read becomes the default, and
// whether items that cannot be read are left out. A null is a missing member unless it must be there.
func hints(p *node, required bool) string {
	var h []string
	if p.OnError {
		h = append(h, "lenient")
	}
	if required && !p.OnError && !p.OnNull {
		h = append(h, "required")
	}
	if p.Skip {
		h = append(h, "skip")
	}
	return strings.Join(h, ",")
}

// fieldType is the Go type of a member. A pointer tells a missing value from a zero that may be meant.
func (g *generator) fieldType(name string, p *node, required bool) string {
	if name == "_meta" {
		return "Meta"
	}
	inner, nullable := p.bare()
	t, c := g.typeOf(inner)
	switch {
	case required && c == list:
		return "List[" + strings.TrimPrefix(t, "[]") + "]"
	case required && nullable && c != open, !required && c == number:
		return "*" + t
	case !required && c == plain && nullable:
		return "*" + t
	case !required && c == object && (nullable || p.Default == nil):
		return "*" + t
	}
	return t
}

// typeOf is the Go type of a value that is there.
func (g *generator) typeOf(p *node) (string, class) {
	if name := p.refers(); name != "" {
		return goName(name), g.classOf(name)
	}
	switch t := p.scalar(); {
	case t == "string" || t == "bool":
		return t, plain
	case t != "":
		return t, number
	case p.is("array") && p.Items != nil:
		item, _ := g.typeOf(p.Items)
		return "[]" + item, list
	case p.is("object"):
		item := "any"
		if e := p.extra(); e != nil {
			item, _ = g.typeOf(e)
		}
		return "map[string]" + item, open
	}
	return "any", open
}

func (g *generator) classOf(def string) class {
	d := g.defs[def]
	if consts, _ := d.constants(); consts != nil && d.scalar() == "" {
		if _, ok := consts[0].value.(string); ok {
			return named
		}
		return number
	}
	switch d.scalar() {
	case "":
		return object
	case "string":
		return named
	}
	return number
}
