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

// definitions is the schema, read once; a definition is resolved when a message first needs it.
var definitions = sync.OnceValues(func() (*schemaSet, error) {
	_, file, _, _ := runtime.Caller(0)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "acp", "schema", "v1", "schema.json"))
	if err != nil {
		return nil, err
	}
	set := &schemaSet{params: map[string]string{}, results: map[string]string{}, resolved: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal(raw, &set.root); err != nil {
		return nil, err
	}
	var methods struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &methods); err != nil {
		return nil, err
	}
	for name, d := range methods.Defs {
		switch {
		case d.Method == "":
		case strings.HasSuffix(name, "Response"):
			set.results[d.Method] = name
		default:
			set.params[d.Method] = name
		}
	}
	return set, nil
})

type schemaSet struct {
	root            jsonschema.Schema
	params, results map[string]string // definition by method

	mu       sync.Mutex
	resolved map[string]*jsonschema.Resolved
}

// resolve returns a definition with everything it refers to, or nil when there is none.
func (s *schemaSet) resolve(name string) (*jsonschema.Resolved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.resolved[name]; r != nil || name == "" {
		return r, nil
	}
	r, err := (&jsonschema.Schema{Defs: s.root.CloneSchemas().Defs, Ref: "#/$defs/" + name}).Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", name, err)
	}
	s.resolved[name] = r
	return r, nil
}

// Validate checks one message of the agent against the definition of its method. Methods that the protocol does not define, our own
// extensions among them, have none; an agent may send none of those by itself.
func Validate(method string, m Message) error {
	set, err := definitions()
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
		s, err := set.resolve(set.params[m.Method])
		if err != nil {
			return err
		}
		if s == nil {
			return fmt.Errorf("method %q is not one of the protocol's", m.Method)
		}
		return check(s, m.Params)
	}
	s, err := set.resolve(set.results[method])
	if err != nil || s == nil {
		return err
	}
	return check(s, m.Result)
}

func check(s *jsonschema.Resolved, raw json.RawMessage) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return s.Validate(v)
}
