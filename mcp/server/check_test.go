package server

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// What our own check accepts is what the schema that clients see accepts, and the other way round; only null and the empty array are
// taken for nothing given.
func TestCheck_AgreesWithTheSchema(t *testing.T) {
	for _, tool := range tools() {
		resolved, err := tool.input.CloneSchemas().Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for name, p := range tool.input.Properties {
			for _, value := range []string{`"x"`, `""`, `1`, `-1`, `1.5`, `true`, `{}`, `[1]`, `[{}]`, `[{"kind":"file"}]`, `[{"kind":"file","x":1}]`, `"` + first(p) + `"`} {
				raw := complete(tool.input, name, value)
				_, got := check(tool.input, raw)
				var v any
				if err := json.Unmarshal(raw, &v); err != nil {
					t.Fatal(err)
				}
				if want := resolved.Validate(v); (got == nil) != (want == nil) {
					t.Errorf("%s %s: check says %v, the schema %v", tool.name, raw, got, want)
				}
				var bad *invalidError
				if got != nil && (!errors.As(got, &bad) || !strings.HasPrefix(bad.field, name) || strings.Contains(bad.message, "\n")) {
					t.Errorf("%s %s: %v does not name %s", tool.name, raw, got, name)
				}
				tried++
			}
		}
		if tried == 0 {
			t.Errorf("%s has no arguments", tool.name)
		}
	}
}

func first(p *jsonschema.Schema) string {
	if len(p.Enum) > 0 {
		return p.Enum[0].(string)
	}
	return "y"
}

// complete is an object with one member as given and the required ones as they should be.
func complete(s *jsonschema.Schema, name, value string) json.RawMessage {
	m := map[string]json.RawMessage{}
	for _, r := range s.Required {
		switch p := s.Properties[r]; p.Type {
		case "boolean":
			m[r] = json.RawMessage("true")
		default:
			m[r] = json.RawMessage(`"` + first(p) + `"`)
		}
	}
	m[name] = json.RawMessage(value)
	return encode(m)
}

func TestCheck_NothingGiven(t *testing.T) {
	s := inputOf[listGoals]()
	for _, raw := range []string{"", " ", "null", "[]", "{}", `{"limit":null}`} {
		if _, err := check(s, json.RawMessage(raw)); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	}
	for _, tool := range tools() {
		for _, name := range tool.input.Required {
			raw := complete(tool.input, name, "null")
			if _, err := check(tool.input, raw); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s without %s: %v", tool.name, name, err)
			}
		}
	}
}
