package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mark3labs/mcp-go/mcp"
	mcpgo "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"

	"holdfast/goals"
	"holdfast/session"
)

// Backend is the opened store and what answers from it.
type Backend struct {
	Engine *session.Engine
	Goals  *goals.Service
	// Executor tells whether a live process executes work on this store, and what to do when none does.
	// It never fails: what was stored stands, whatever can be said of this.
	Executor func(ctx context.Context) Executor
}

// Executor is who will do what was just stored.
type Executor struct {
	Alive bool   `json:"alive" jsonschema:"a process that executes work is running now"`
	Hint  string `json:"hint" jsonschema:"what to do when none is; empty otherwise"`
}

// Options of a server.
type Options struct {
	Version   string
	Authority Authority
	Trust     []string // directories the user trusts besides those of stored sessions
	// Backend opens the store, or returns the one that is open. It is asked at each tool call, so that a repaired store is found.
	Backend func(ctx context.Context) (*Backend, error)
	// Diagnose names what a store reports; nil for an error that is not one of a store.
	Diagnose func(error) *Unavailable
	Log      zerolog.Logger
}

// Server answers one client.
type Server struct {
	o   Options
	mcp *mcpgo.MCPServer
}

// callLimit bounds one tool call: whoever holds the store longer is reported instead of waited for.
const callLimit = 5 * time.Second

const instructions = "Holdfast is a coding agent whose work survives its process. create_goal hands over an objective and answers at once; " +
	"poll get_goal for how it stands. Results that change something say in executor whether a process is there to do it. " +
	"After a lost answer, repeat create_goal and send_message with the same idempotencyKey."

// New returns a server with every tool.
func New(o Options) *Server {
	s := &Server{o: o, mcp: mcpgo.NewMCPServer("holdfast", o.Version, mcpgo.WithToolCapabilities(false), mcpgo.WithInstructions(instructions))}
	for _, t := range tools() {
		s.mcp.AddTool(t.definition(), s.handler(t))
	}
	return s
}

// call is one tool call on its way.
type call struct {
	*Backend
	s *Server
}

// read runs fn in a read transaction.
func (c call) read(ctx context.Context, fn func(session.Tx) error) error {
	return c.Engine.Store.Read(ctx, fn)
}

func (s *Server) handler(t tool) mcpgo.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		out, err := s.run(ctx, t, req.Params.RawArguments)
		if err != nil {
			p := s.problem(err)
			if p.internal {
				s.o.Log.Error().Err(err).Str("tool", t.name).Msg("a tool call failed")
			}
			return result(struct {
				Error problem `json:"error"`
			}{p}, p.text(), true)
		}
		return result(out, "", false)
	}
}

// run checks everything that needs no store first: a refusal costs nothing.
func (s *Server) run(ctx context.Context, t tool, args json.RawMessage) (any, error) {
	args, err := check(t.input, args)
	if err != nil {
		return nil, err
	}
	if !s.o.Authority.allows(t.needs) {
		return nil, &authorityError{what: "the tool " + t.name, needs: t.needs, has: s.o.Authority}
	}
	b, err := s.o.Backend(ctx)
	if err != nil {
		return nil, err
	}
	return t.run(ctx, call{b, s}, args)
}

// result is structured content with the same JSON as text, or with a sentence.
func result(v any, text string, failed bool) (*mcp.CallToolResult, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	if text == "" {
		text = string(b)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.TextContent{Type: "text", Text: text}}, StructuredContent: json.RawMessage(b), IsError: failed}, nil
}

// tool is one tool: its words, its schemas, and what it does.
type tool struct {
	name, title, about string
	hints              hints
	needs              Authority // the least setting under which it may be called
	input, output      *jsonschema.Schema
	run                func(ctx context.Context, c call, args json.RawMessage) (any, error)
}

// hints are all set, always: a client assumes the worst of a missing one.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

func (t tool) definition() mcp.Tool {
	h := t.hints
	return mcp.Tool{Name: t.name, Title: t.title, Description: t.about, RawInputSchema: encode(t.input), RawOutputSchema: encode(t.output),
		Annotations: mcp.ToolAnnotation{ReadOnlyHint: &h.readOnly, DestructiveHint: &h.destructive, IdempotentHint: &h.idempotent, OpenWorldHint: &h.openWorld}}
}

// define makes a tool whose schemas are those of its Go types.
func define[A, R any](t tool, run func(context.Context, call, A) (R, error)) tool {
	t.input, t.output = inputOf[A](), outputOf[R]()
	t.run = func(ctx context.Context, c call, raw json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, invalid("arguments", "%v", err)
		}
		return run(ctx, c, args)
	}
	return t
}
