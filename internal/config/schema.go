package config

import (
	"encoding/json"
	"strings"
)

// node is a table of the schema while it is put together; encoding sorts the members.
type node = map[string]any

// Schema is the JSON Schema of config.toml, draft 7, as editors for TOML understand it.
func Schema() []byte {
	root := node{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "Holdfast configuration",
		"description": "config.toml of the user, and .holdfast/config.toml of a project, which may set less.",
	}
	for i := range keys {
		place(root, keys[i].segments(), keys[i].schema())
	}
	shut(root)
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: a schema of texts and numbers cannot fail to encode: " + err.Error())
	}
	return append(b, '\n')
}

// place puts the schema of a setting where its path says.
func place(table node, path []string, leaf node) {
	for i, seg := range path {
		name, list := strings.CutSuffix(seg, "[]")
		table["type"] = "object"
		members, _ := table["properties"].(node)
		if members == nil && name != "*" {
			members = node{}
			table["properties"] = members
		}
		if i == len(path)-1 {
			members[name] = leaf
			return
		}
		var next node
		if name == "*" {
			next, _ = table["additionalProperties"].(node)
			if next == nil {
				next = node{}
				table["additionalProperties"] = next
			}
		} else if next, _ = members[name].(node); next == nil {
			next = node{}
			members[name] = next
		}
		if list {
			items, _ := next["items"].(node)
			if items == nil {
				items = node{}
				next["type"], next["items"] = "array", items
			}
			next = items
		}
		table = next
	}
}

// shut lets no table hold names that it does not know.
func shut(v any) {
	n, ok := v.(node)
	if !ok {
		return
	}
	if _, table := n["properties"]; table && n["additionalProperties"] == nil {
		n["additionalProperties"] = false
	}
	for name, sub := range n {
		if name == "properties" {
			for _, p := range sub.(node) {
				shut(p)
			}
		} else if name == "items" || name == "additionalProperties" {
			shut(sub)
		}
	}
}

// schema is what the value of a setting may be.
func (k *Key) schema() node {
	s := node{"description": k.describe()}
	switch k.Type {
	case Text:
		s["type"] = "string"
		if len(k.OneOf) > 0 {
			s["enum"] = k.OneOf
		}
	case Whole, Number:
		s["type"] = map[Type]string{Whole: "integer", Number: "number"}[k.Type]
		s["minimum"] = k.Min
		if k.Max > 0 {
			s["maximum"] = k.Max
		}
	case Switch:
		s["type"] = "boolean"
	case Texts:
		items := node{"type": "string"}
		if len(k.OneOf) > 0 {
			items["enum"] = k.OneOf
		}
		s["type"], s["items"] = "array", items
	case Strings:
		s["type"], s["additionalProperties"] = "object", node{"type": "string"}
	}
	return s
}

// describe is what an editor shows beside a setting.
func (k *Key) describe() string {
	s := strings.ReplaceAll(k.Effect, "`", "") + "."
	if k.Unit != "" {
		s += " In " + k.Unit + "."
	}
	s += " Default: " + k.Default + ". Counts from " + k.Counts + "."
	switch k.Project {
	case Never:
		s += " A project cannot set it."
	case Narrower:
		s += " A project can only make it narrower."
	}
	return s
}
