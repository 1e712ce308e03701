package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
)

// plain are the keywords of a schema node that are copied as they are, if their values are what they have to be.
var plain = map[string]func(any) bool{
	"title": isText, "format": isText, "pattern": isText, "default": isAnything, "const": isAnything, "uniqueItems": isBool,
	"enum":    func(v any) bool { return len(list(v)) > 0 },
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
	"minLength": isNumber, "maxLength": isNumber, "minItems": isNumber, "maxItems": isNumber, "minProperties": isNumber, "maxProperties": isNumber,
}

func isText(v any) bool   { _, ok := v.(string); return ok }
func isNumber(v any) bool { _, ok := v.(json.Number); return ok }
func isBool(v any) bool   { _, ok := v.(bool); return ok }
func isAnything(any) bool { return true }

// node simplifies one schema; nil says that nothing fits it. refs are the references it lies within.
func (s *simplifier) node(v any, refs []string) any {
	if s.nodes++; s.nodes > schemaNodes {
		return object{} // references have multiplied it; anything is allowed from here, and the server's own schema is still checked
	}
	in, ok := v.(object)
	if !ok {
		if v == false {
			return nil
		}
		return object{}
	}
	if ref, ok := in["$ref"].(string); ok {
		return s.reference(in, ref, refs)
	}
	out := object{}
	for k, fits := range plain {
		if e, ok := in[k]; ok && fits(e) {
			out[k] = e
		}
	}
	if text, ok := in["description"].(string); ok {
		out["description"] = clean(text, longestDescription)
	}
	s.kinds(in, out)
	s.members(in, out, refs)
	s.items(in, out, refs)
	s.choices(in, out, refs)
	return out
}

// reference puts the target in place of a reference. A reference to where it stands itself becomes anything.
func (s *simplifier) reference(in object, ref string, refs []string) any {
	if slices.Contains(refs, ref) || len(refs) > schemaDepth {
		return object{"description": "The same again, as deep as needed."}
	}
	target := s.find(ref)
	if o, ok := target.(object); ok {
		merged := maps.Clone(o)
		for k, v := range in {
			if k != "$ref" {
				merged[k] = v
			}
		}
		target = merged
	}
	return s.node(target, append(slices.Clone(refs), ref))
}

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// types reads the type keyword, one name or several. Names that mean nothing are left out.
func types(v any) (names []string) {
	all := list(v)
	if one, ok := v.(string); ok {
		all = []any{one}
	}
	for _, e := range all {
		if name, ok := e.(string); ok && slices.Contains(typeNames, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// kinds leaves at most one type in a node. Null is said in words, several types become a choice.
func (s *simplifier) kinds(in, out object) {
	names := types(in["type"])
	null := in["nullable"] == true || len(names) > 1 && slices.Contains(names, "null")
	if null {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "null" })
		text, _ := out["description"].(string)
		if text != "" {
			text += " "
		}
		out["description"] = text + "(may be null)"
	}
	switch {
	case len(names) == 1:
		out["type"] = names[0]
	case len(names) > 1:
		var any []any
		for _, n := range names {
			any = append(any, object{"type": n})
		}
		out["anyOf"] = any
	case in["properties"] != nil:
		out["type"] = "object"
	}
}

// members simplifies properties, and renames those whose names a provider would refuse.
func (s *simplifier) members(in, out object, refs []string) {
	if props, ok := in["properties"].(object); ok {
		members := object{}
		for _, name := range slices.Sorted(maps.Keys(props)) {
			m := s.node(props[name], refs)
			if m == nil {
				continue
			}
			members[s.rename(name)] = m
		}
		out["properties"] = members
		var required []string
		for _, r := range list(in["required"]) {
			name, ok := r.(string)
			if name = s.rename(name); ok && members[name] != nil && !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
		if len(required) > 0 {
			out["required"] = required
		}
	}
	switch more := in["additionalProperties"].(type) {
	case bool:
		out["additionalProperties"] = more
	case object:
		if m := s.node(more, refs); m != nil {
			out["additionalProperties"] = m
		}
	}
}

// items makes one schema of the items of an array.
func (s *simplifier) items(in, out object, refs []string) {
	tuple := list(in["prefixItems"])
	if l, ok := in["items"].([]any); ok {
		tuple = l
	} else if _, ok := in["items"].(object); ok && len(tuple) == 0 {
		if m := s.node(in["items"], refs); m != nil {
			out["items"] = m
		}
		return
	}
	var any []any
	for _, e := range tuple {
		if m := s.node(e, refs); m != nil {
			any = append(any, m)
		}
	}
	switch {
	case len(any) == 1:
		out["items"] = any[0]
	case len(any) > 1:
		out["items"] = object{"anyOf": any}
	case out["type"] == "array":
		out["items"] = object{}
	}
}

// choices keeps them below the root, where providers take them; exactly-one becomes at-least-one.
func (s *simplifier) choices(in, out object, refs []string) {
	for _, k := range []string{"anyOf", "oneOf"} {
		var any []any
		for _, e := range list(in[k]) {
			if m := s.node(e, refs); m != nil {
				any = append(any, m)
			}
		}
		if len(any) > 0 && out["anyOf"] == nil {
			out["anyOf"] = any
		}
	}
	for _, e := range list(in["allOf"]) {
		m, _ := s.node(e, refs).(object)
		for k, v := range m {
			mine, isObject := out[k].(object)
			theirs, _ := v.(object)
			switch {
			case out[k] == nil:
				out[k] = v
			case k == "properties" && isObject:
				addMissing(mine, theirs)
			case k == "required":
				have, _ := out[k].([]string)
				more, _ := v.([]string)
				have = append(have, more...)
				slices.Sort(have)
				out[k] = slices.Compact(have)
			}
		}
	}
}

var legalKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// rename gives a property a name that every provider takes. It depends on the name alone, so that the way back does, too.
func (s *simplifier) rename(name string) string {
	if legalKey.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	short := legal(name)
	short = short[:min(len(short), 48)] + "_" + hex.EncodeToString(sum[:4])
	s.renamed[short] = name
	return short
}
