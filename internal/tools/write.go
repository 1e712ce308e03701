package tools

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"holdfast/session"
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Version string `json:"version,omitempty"`
}

type writeTool struct{ o Options }

func (writeTool) Spec() session.ToolSpec {
	return spec("write", "Create a file, or replace a whole one. To replace a file, pass the version that read showed; for a change of some lines use edit.",
		`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"version":{"type":"string","description":"version of the file you replace"}},`+
			`"required":["path","content"],"additionalProperties":false}`)
}
func (writeTool) Class() session.Class { return session.StateProbe }
func (writeTool) Kind() session.Kind   { return session.KindEdit }
func (writeTool) Version() string      { return "1" }

func (t writeTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in writeArgs
	if err := decodeArgs("write", args, &in); err != nil {
		return session.Plan{}, err
	}
	p, err := t.o.locateWrite(env, in.Path)
	if err != nil {
		return session.Plan{}, err
	}
	old, _, err := p.content()
	if err != nil {
		return session.Plan{}, err
	}
	change := session.FileChange{Path: p.abs, Before: absent, After: digestOf([]byte(in.Content)), NewText: in.Content}
	if old != nil {
		change.Before = digestOf(old)
		if utf8.Valid(old) {
			text := string(old)
			change.OldText = &text
		}
		switch {
		case in.Version == "":
			return session.Plan{}, failf("%s exists. Read it first and pass its version, or use edit.", in.Path)
		case in.Version != versionOf(change.Before):
			return session.Plan{}, failf("%s has changed since version %s; it is now %s. Read it again before you replace it.", in.Path, in.Version, versionOf(change.Before))
		}
	} else if in.Version != "" {
		return session.Plan{}, failf("%s does not exist any more. Leave out the version to create it.", in.Path)
	}
	pl, err := plan(struct {
		Path string `json:"path"`
	}{in.Path}, "Write "+shown(env, p.abs), p.abs)
	pl.Files = []session.FileChange{change}
	return pl, err
}

func (t writeTool) Run(_ context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	return t.o.replace(env, pl)
}

// Probe tells from the file itself what became of a call.
func (t writeTool) Probe(_ context.Context, env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	return t.o.probe(env, pl)
}
