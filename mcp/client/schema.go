package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of a schema. A tool beyond them is set aside.
const (
	schemaBytes = 256 << 10
	schemaDepth = 32
	schemaNodes = 2000
)

// view is what a provider is given of an input schema: a plain tree in the part of JSON Schema that every provider takes. It may say less
// than the server's own schema, which the arguments are checked against.
type view struct {
	schema  json.RawMessage
	renamed map[string]string // by the new name
	rules   string            // what could not be said in the schema, for the description
}

type object = map[string]any

// simplifier makes one view.
type simplifier struct {
	root    object
	nodes   int
	renamed map[string]string
	rules   []string
}

func providerView(raw json.RawMessage) (view, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		raw = json.RawMessage("{}")
	}
	if len(raw) > schemaBytes {
		return view{}, fmt.Errorf("its input schema has more than %d bytes", schemaBytes)
	}
	v, err := decode(raw)
	if err != nil {
		return view{}, errors.New("its input schema cannot be read")
	}
	root, ok := v.(object)
	if !ok {
		return view{}, errors.New("its input schema is not an object")
	}
	nodes := 0
	if err := survey(root, 0, &nodes); err != nil {
		return view{}, err
	}
	s := &simplifier{root: root, renamed: map[string]string{}}
	out, err := s.top(root)
	if err != nil {
		return view{}, err
	}
	b, err := json.Marshal(out)
	if err != nil {
		return view{}, err
	}
	rules := ""
	if len(s.rules) > 0 {
		rules = "\n" + strings.Join(s.rules, "\n")
	}
	return view{schema: b, renamed: s.renamed, rules: rules}, nil
}

func decode(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v)
}

// survey refuses what is too large and what would have to be fetched.
func survey(v any, depth int, nodes *int) error {
	if *nodes++; *nodes > schemaNodes {
		return fmt.Errorf("its input schema has more than %d parts", schemaNodes)
	}
	if depth > schemaDepth {
		return fmt.Errorf("its input schema is more than %d levels deep", schemaDepth)
	}
	switch v := v.(type) {
	case object:
		for _, k := range []string{"$ref", "$dynamicRef"} {
			if ref, ok := v[k].(string); ok && !strings.HasPrefix(ref, "#") {
				return errors.New("its input schema refers to another document, which is not fetched")
			}
		}
		for _, e := range v {
			if err := survey(e, depth+1, nodes); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := survey(e, depth+1, nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// top simplifies the root, which has to be the schema of an object, and has no choices in it.
func (s *simplifier) top(root object) (object, error) {
	if ref, ok := root["$ref"].(string); ok {
		target, ok := s.find(ref).(object)
		if !ok {
			return nil, errors.New("its input schema refers to nothing")
		}
		merged := maps.Clone(target)
		for k, v := range root {
			if k != "$ref" {
				merged[k] = v
			}
		}
		root = merged
	}
	if t, ok := root["type"]; ok && t != nil && !slices.Contains(types(t), "object") {
		return nil, errors.New("its input schema is not the schema of an object")
	}
	if err := wellFormed(root); err != nil {
		return nil, err
	}
	root = s.flatten(root)
	out, ok := s.node(root, nil).(object)
	if !ok {
		return nil, errors.New("its input schema accepts nothing")
	}
	out["type"] = "object"
	if _, ok := out["properties"].(object); !ok {
		out["properties"] = object{}
	}
	return out, nil
}

// wellFormed refuses a root that no check could be made of.
func wellFormed(root object) error {
	if p, ok := root["properties"]; ok {
		if _, ok := p.(object); !ok {
			return errors.New("the properties of its input schema are not an object")
		}
	}
	if r, ok := root["required"]; ok {
		list, ok := r.([]any)
		for _, e := range list {
			_, isText := e.(string)
			ok = ok && isText
		}
		if !ok {
			return errors.New("the required properties of its input schema are not a list of names")
		}
	}
	return nil
}

// flatten brings the properties of a root's choices into the root, and says the rule in words: providers refuse choices there.
func (s *simplifier) flatten(root object) object {
	out := maps.Clone(root)
	props, _ := root["properties"].(object)
	props = maps.Clone(props)
	if props == nil {
		props = object{}
	}
	required, _ := root["required"].([]any)
	required = slices.Clone(required)
	for _, e := range list(root["allOf"]) {
		part := s.resolve(e)
		more, _ := part["properties"].(object)
		addMissing(props, more)
		required = append(required, list(part["required"])...)
	}
	for _, k := range []string{"oneOf", "anyOf"} {
		var ways []string
		for _, e := range list(root[k]) {
			part := s.resolve(e)
			more, _ := part["properties"].(object)
			addMissing(props, more)
			ways = append(ways, way(part))
		}
		if len(ways) > 0 {
			s.rule(map[string]string{"oneOf": "Exactly one of these has to hold: ", "anyOf": "At least one of these has to hold: "}[k] + strings.Join(ways, "; ") + ".")
		}
	}
	for _, k := range []string{"if", "not"} {
		if root[k] != nil {
			s.rule("Not every combination of arguments is allowed; the server's own schema is checked before anything is sent.")
			break
		}
	}
	for _, k := range []string{"allOf", "oneOf", "anyOf", "not", "if", "then", "else", "enum", "const"} {
		delete(out, k)
	}
	out["properties"], out["required"] = props, required
	return out
}

// rule adds one sentence, within reason.
func (s *simplifier) rule(text string) {
	if len(s.rules) < 4 {
		s.rules = append(s.rules, clean(text, 500))
	}
}

// way says one choice of a root in words.
func way(part object) string {
	var names []string
	for _, r := range list(part["required"]) {
		names = append(names, fmt.Sprint(r))
	}
	if title, ok := part["title"].(string); ok && title != "" {
		return title
	}
	if len(names) == 0 {
		props, _ := part["properties"].(object)
		names = slices.Sorted(maps.Keys(props))
	}
	return "{" + strings.Join(names, ", ") + "}"
}

func addMissing(props, more object) {
	for k, v := range more {
		if _, ok := props[k]; !ok {
			props[k] = v
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// resolve follows a local reference, once.
func (s *simplifier) resolve(v any) object {
	o, _ := v.(object)
	if ref, ok := o["$ref"].(string); ok {
		o, _ = s.find(ref).(object)
	}
	return o
}

// find follows a pointer into the document.
func (s *simplifier) find(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if path == "" {
		return s.root
	}
	if !strings.HasPrefix(path, "/") {
		return s.anchor(s.root, path)
	}
	var at any = s.root
	for _, token := range strings.Split(path[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%24", "$").Replace(token)
		switch v := at.(type) {
		case object:
			at = v[token]
		case []any:
			var i int
			if _, err := fmt.Sscan(token, &i); err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

func (s *simplifier) anchor(v any, name string) any {
	switch v := v.(type) {
	case object:
		if cmp.Or(v["$anchor"], v["$dynamicAnchor"]) == any(name) {
			return v
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if found := s.anchor(v[k], name); found != nil {
				return found
			}
		}
	case []any:
		for _, e := range v {
			if found := s.anchor(e, name); found != nil {
				return found
			}
		}
	}
	return nil
}
