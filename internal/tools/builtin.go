package tools

import (
	"encoding/json"

	"holdfast/session"
)

// Options of the built-in tools.
type Options struct {
	// StateDir holds the agent's own records; no tool goes there.
	StateDir string
	// IsDetach tells causes by which this process only lets go of a command from those that stop it.
	IsDetach func(error) bool
}

// Builtin returns every built-in tool.
func Builtin(o Options) []session.Tool {
	return []session.Tool{readTool{o}, listTool{o}, globTool{o}, grepTool{o}, writeTool{o}, editTool{o}, shellTool{o}}
}

func spec(name, about, schema string) session.ToolSpec {
	return session.ToolSpec{Name: name, Description: about, Schema: json.RawMessage(schema)}
}

// plan puts checked arguments into a plan.
func plan(args any, title string, paths ...string) (session.Plan, error) {
	stored, err := normalised(args)
	return session.Plan{Args: stored, Title: title, Paths: paths}, err
}
