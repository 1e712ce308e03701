package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

var schemas = sync.OnceValues(loadSchemas)

type schemaSet struct {
	params, results map[string]*jsonschema.Resolved
}

// loadSchemas resolves the definition of each method's parameters and result.
func loadSchemas() (*schemaSet, error) {
	_, file, _, _ := runtime.Caller(0)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "acp", "schema", "v1", "schema.json"))
	if err != nil {
		return nil, err
	}
	var root struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	set := &schemaSet{params: map[string]*jsonschema.Resolved{}, results: map[string]*jsonschema.Resolved{}}
	for name, def := range root.Defs {
		var d struct {
			Method string `json:"x-method"`
		}
		if err := json.Unmarshal(def, &d); err != nil || d.Method == "" {
			continue
		}
		r, err := resolve(root.Defs, name)
		if err != nil {
			return nil, fmt.Errorf("resolve %s: %w", name, err)
		}
		if strings.HasSuffix(name, "Response") {
			set.results[d.Method] = r
		} else {
			set.params[d.Method] = r
		}
	}
	return set, nil
}

func resolve(defs map[string]json.RawMessage, name string) (*jsonschema.Resolved, error) {
	b, err := json.Marshal(map[string]any{"$defs": defs, "$ref": "#/$defs/" + name})
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// Validate checks one message of the agent against the definition of its method. Methods that the protocol does not define, our own
// extensions among them, have none; an agent may send none of those by itself.
func Validate(method string, m Message) error {
	set, err := schemas()
	if err != nil {
		return err
	}
	switch {
	case m.Error != nil:
		if m.Error.Message == "" || strings.ContainsAny(m.Error.Message, "\n\r") {
			return fmt.Errorf("an error needs a message of one line: %q", m.Error.Message)
		}
		return nil
	case m.Method != "":
		s := set.params[m.Method]
		if s == nil {
			return fmt.Errorf("method %q is not one of the protocol's", m.Method)
		}
		return check(s, m.Params)
	}
	if s := set.results[method]; s != nil {
		return check(s, m.Result)
	}
	return nil
}

func check(s *jsonschema.Resolved, raw json.RawMessage) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return s.Validate(v)
}
