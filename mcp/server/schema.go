package server

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"holdfast/goals"
	"holdfast/session"
)

// enums are the closed lists that arguments are taken from.
var enums = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[mode]():            list(session.Modes...),
	reflect.TypeFor[action]():          list("pause", "resume", "end", "verify", "retry", "redo", "revise", "waive", "confirm", "add", "budget"),
	reflect.TypeFor[requirementKind](): list(goals.KindCommand, goals.KindFile, goals.KindSemantic),
	reflect.TypeFor[grantKind]():       list(goals.GrantEdit, goals.GrantCommand),
	reflect.TypeFor[status](): list(goals.Active, goals.Paused, goals.Blocked, goals.Achieved, goals.Cancelled,
		goals.Exhausted),
	reflect.TypeFor[fact](): list(session.FactNotStarted, session.FactUnknown, session.FactCompleted, session.FactRunning),
}

// Types of arguments with a closed list of values. Results stay plain strings: a client that keeps a schema must not refuse a new state.
type (
	mode            string
	action          string
	requirementKind string
	grantKind       string
	status          string
	fact            string
)

func list[T ~string](values ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// inputOf is the closed schema of a tool's arguments.
func inputOf[A any]() *jsonschema.Schema { return infer[A]() }

// outputOf is the schema of a tool's structured content: its result, or an error. The root is exactly an object, because older clients
// refuse everything else, and clients check failed results against it as well.
func outputOf[R any]() *jsonschema.Schema {
	s := infer[R]()
	s.Properties["error"] = infer[problem]()
	s.PropertyOrder = append(s.PropertyOrder, "error")
	s.AnyOf = []*jsonschema.Schema{{Type: "object", Required: s.Required}, {Type: "object", Required: []string{"error"}}}
	s.Required = nil
	return s
}

func infer[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: enums})
	if err != nil {
		panic(fmt.Sprintf("server: the schema of %v: %v", reflect.TypeFor[T](), err))
	}
	plain(s)
	return s
}

// plain makes a schema portable: one type at each place. Go's nil slices are no part of any answer of ours; what may be null says so as
// one of two branches.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for _, p := range s.Properties {
		plain(p)
	}
	plain(s.Items)
	if len(s.Types) != 2 || s.Types[0] != "null" {
		return
	}
	kind := s.Types[1]
	s.Types, s.Type = nil, kind
	if kind == "array" {
		return
	}
	branch := *s
	branch.Description = ""
	*s = jsonschema.Schema{Description: s.Description, AnyOf: []*jsonschema.Schema{&branch, {Type: "null"}}}
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("server: encode %T: %v", v, err))
	}
	return b
}
