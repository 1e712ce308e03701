package tools

import (
	"encoding/json"
	"errors"

	"holdfast/internal/proc"
	"holdfast/internal/secret"
	"holdfast/session"
)

// Options of the built-in tools.
type Options struct {
	// StateDir holds the agent's own records; no tool goes there.
	StateDir string
	// IsDetach tells causes by which this process only lets go of a command from those that stop it. Without it they are
	// session.ErrDetach and session.ErrFenced.
	IsDetach func(error) bool
	// Mask hides secrets in what is read; nil knows no values.
	Mask *secret.Masker
}

// command is a command whose output is read without secrets.
func (o Options) command(dir string) *proc.Handle { return proc.Open(dir).Masking(o.Mask) }

func (o Options) letsGo(cause error) bool {
	if o.IsDetach != nil {
		return o.IsDetach(cause)
	}
	return errors.Is(cause, session.ErrDetach) || errors.Is(cause, session.ErrFenced)
}

// Builtin returns every built-in tool.
func Builtin(o Options) []session.Tool {
	return []session.Tool{readTool{o}, listTool{o}, globTool{o}, grepTool{o}, writeTool{o}, editTool{o}, shellTool{o}, outputTool{o}, killTool{o}}
}

func spec(name, about, schema string) session.ToolSpec {
	return session.ToolSpec{Name: name, Description: about, Schema: json.RawMessage(schema)}
}

// plan puts checked arguments into a plan.
func plan(args any, title string, paths ...string) (session.Plan, error) {
	stored, err := normalised(args)
	return session.Plan{Args: stored, Title: title, Paths: paths}, err
}
