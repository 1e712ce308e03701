package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// later are members that other doors know and this version does not.
var later = map[string]string{
	"grants": "grants are not available in this version; each call asks as the session's mode says",
}

// check holds arguments against a schema of ours and says in words what is wrong. No arguments at all, null and Lua's empty array are an
// empty object; a member that is null was not given.
func check(s *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	if t := bytes.TrimSpace(raw); len(t) == 0 || bytes.Equal(t, []byte("null")) || bytes.Equal(t, []byte("[]")) {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, invalid("arguments", "%v", err)
	}
	return raw, checkValue(s, "", v)
}

func checkValue(s *jsonschema.Schema, at string, v any) error {
	switch s.Type {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong(at, "an object", v)
		}
		return checkObject(s, at, m)
	case "array":
		a, ok := v.([]any)
		if !ok {
			return wrong(at, "an array", v)
		}
		for i, e := range a {
			if err := checkValue(s.Items, fmt.Sprintf("%s[%d]", at, i), e); err != nil {
				return err
			}
		}
	case "string":
		t, ok := v.(string)
		if !ok {
			return wrong(at, "a string", v)
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(t)) {
			return invalid(at, "%q is none of %s", t, join(s.Enum))
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong(at, "true or false", v)
		}
	case "integer":
		n, ok := v.(json.Number)
		if _, err := n.Int64(); !ok || err != nil {
			return wrong(at, "a whole number", v)
		}
	}
	return nil
}

func checkObject(s *jsonschema.Schema, at string, m map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p, known := s.Properties[name]
		switch {
		case !known && later[name] != "":
			return invalid(below(at, name), "%s", later[name])
		case !known:
			return invalid(below(at, name), "there is no such member; known are %s", strings.Join(s.PropertyOrder, ", "))
		case m[name] == nil:
			continue
		}
		if err := checkValue(p, below(at, name), m[name]); err != nil {
			return err
		}
	}
	for _, name := range s.Required {
		if m[name] == nil {
			return invalid(below(at, name), "it is missing")
		}
	}
	return nil
}

func below(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func wrong(at, want string, v any) error {
	got := "an object"
	switch v := v.(type) {
	case nil:
		got = "null"
	case bool:
		got = "true or false"
	case string:
		got = "a string"
	case json.Number:
		got = "the number " + v.String()
	case []any:
		got = "an array"
	}
	if at == "" {
		at = "arguments"
	}
	return invalid(at, "want %s, got %s", want, got)
}

func join(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}
