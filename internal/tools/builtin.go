package tools

import (
	"encoding/json"
	"errors"
	"strings"

	"holdfast/internal/proc"
	"holdfast/internal/secret"
	"holdfast/session"
)

// Options of the built-in tools.
type Options struct {
	// StateDir holds the agent's own records; no tool goes there.
	StateDir string
	// Own are more folders of that kind: the user's configuration, which decides what runs and what is allowed.
	Own []string
	// PrivateHosts are hosts that fetch may reach although their addresses are not public.
	PrivateHosts []string
	// IsDetach tells causes by which this process only lets go of a command from those that stop it. Without it they are
	// session.ErrDetach and session.ErrFenced.
	IsDetach func(error) bool
	// Sandbox confines the commands whose plan says so; nil where nothing does.
	Sandbox *Sandbox
	// Mask hides secrets in what is read; nil knows no values.
	Mask *secret.Masker
	// Debug takes what nobody but a developer wants to know; nil for nobody.
	Debug func(text string)
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
	return []session.Tool{readTool{o}, listTool{o}, globTool{o}, grepTool{o}, writeTool{writer{o}}, editTool{writer{o}},
		patchTool{writer{o}}, moveTool{writer{o}}, deleteTool{writer{o}}, shellTool{o}, outputTool{o}, killTool{o},
		todoTool{}, fetchTool{o, fetchLimit}, askTool{}}
}

func spec(name, about, schema string) session.ToolSpec {
	return session.ToolSpec{Name: name, Description: about, Schema: json.RawMessage(schema)}
}

// plan puts checked arguments into a plan.
func plan(args any, title string, paths ...string) (session.Plan, error) {
	stored, err := normalised(args)
	return session.Plan{Args: stored, Title: title, Paths: paths}, err
}

// readingPlan is the plan of a tool that reads one place.
func readingPlan(p place, args any, title string) (session.Plan, error) {
	if p.kind == session.PlaceOutside || p.kind == session.PlaceSecret {
		if !strings.Contains(title, p.abs) {
			title += " in " + p.abs
		}
		title += marks[p.kind]
	}
	pl, err := plan(args, title, p.abs)
	pl.Place = p.kind
	return pl, err
}
