package main

import (
	"encoding/json"
	"slices"
	"strings"
)

// node is the part of JSON Schema that the ACP schema uses.
type node struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	Title       string           `json:"title"`
	Type        any              `json:"type"`
	Format      string           `json:"format"`
	Const       any              `json:"const"`
	Enum        []any            `json:"enum"`
	Default     json.RawMessage  `json:"default"`
	Items       *node            `json:"items"`
	Properties  map[string]*node `json:"properties"`
	Additional  json.RawMessage  `json:"additionalProperties"`
	Required    []string         `json:"required"`
	AllOf       []*node          `json:"allOf"`
	AnyOf       []*node          `json:"anyOf"`
	OneOf       []*node          `json:"oneOf"`
	Not         *node            `json:"not"`
	Method      string           `json:"x-method"`
	Side        string           `json:"x-side"`
	OnError     bool             `json:"x-deserialize-default-on-error"`
	OnNull      bool             `json:"x-deserialize-default-on-null"`
	Skip        bool             `json:"x-deserialize-skip-invalid-items"`
	Envelope    bool             `json:"x-docs-ignore"` // helper types of the JSON-RPC envelope
}

// is tells whether the node has exactly this type.
func (n *node) is(want string) bool { return n.Type == want }

// refers returns the name of the definition that the node stands for, directly or as the only part of an allOf.
func (n *node) refers() string {
	if n.Ref == "" && len(n.AllOf) == 1 {
		return n.AllOf[0].refers()
	}
	return strings.TrimPrefix(n.Ref, "#/$defs/")
}

// bare returns the node without its null, and whether it had one.
func (n *node) bare() (*node, bool) {
	if len(n.AnyOf) == 2 && n.AnyOf[1].is("null") {
		return n.AnyOf[0], true
	}
	if list, ok := n.Type.([]any); ok && len(list) == 2 && list[1] == "null" {
		c := *n
		c.Type = list[0]
		return &c, true
	}
	return n, false
}

// choices returns what a union chooses from.
func (n *node) choices() []*node { return append(slices.Clone(n.OneOf), n.AnyOf...) }

// extra returns the type of the members that have no name of their own: nil for any.
func (n *node) extra() *node {
	var p node
	if json.Unmarshal(n.Additional, &p) != nil { // "true"
		return nil
	}
	return &p
}

// scalar returns the Go type of a string, number or boolean.
func (n *node) scalar() string {
	switch n.Type {
	case "string":
		return "string"
	case "boolean":
		return "bool"
	case "number":
		return "float64"
	case "integer":
		switch n.Format {
		case "uint16", "uint32", "uint64", "int32":
			return n.Format
		}
		return "int64"
	}
	return ""
}

// constant is one value of a list of constants.
type constant struct {
	name  string
	value any
	doc   string
}

// constants returns the values of a definition that lists them, and whether others are allowed as well. There are none for other definitions.
func (n *node) constants() (list []constant, open bool) {
	from := n.choices()
	for _, v := range n.Enum {
		from = append(from, &node{Const: v})
	}
	for _, c := range from {
		switch v := c.Const.(type) {
		case string:
			list = append(list, constant{goName(v), v, c.Description})
		case float64:
			list = append(list, constant{goName(c.Title), int64(v), c.Description})
		case nil:
			if c.scalar() == "" || c.Title == "" {
				return nil, false
			}
			open = true
		}
	}
	return list, open
}

// variant is one shape of a union of objects.
type variant struct {
	field string
	value string // of the tag; "" for the shape without a tag
	typ   string // a definition; "" when members has all there is
	// members are those of a shape that has no definition, without the tag.
	members  map[string]*node
	required []string
	doc      string
}

// union returns the variants of a union of objects, and the tag that most of them carry. Any other definition has none.
func (n *node) union() (tag string, list []variant) {
	for _, c := range n.choices() {
		if c.Not != nil {
			continue // "any other": Unknown has it
		}
		v := variant{typ: c.refers(), required: c.Required, doc: c.Description, members: map[string]*node{}}
		for _, name := range sorted(c.Properties) {
			if s, ok := c.Properties[name].Const.(string); ok {
				tag, v.value = name, s
			} else {
				v.members[name] = c.Properties[name]
			}
		}
		v.required = slices.DeleteFunc(slices.Clone(v.required), func(s string) bool { return v.value != "" && s == tag })
		v.field = goName(v.value)
		if v.value == "" {
			v.field = goName(c.Title)
		}
		if v.field == "" || v.typ == "" && c.Properties == nil {
			return "", nil
		}
		list = append(list, v)
	}
	return tag, list
}
