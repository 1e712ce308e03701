package tools

import (
	"context"
	"encoding/json"
	"strings"

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
	if err := decodeArgs("write", args, &in, "path", "content"); err != nil {
		return session.Plan{}, err
	}
	p, err := t.o.locateWrite(env, in.Path)
	if err != nil {
		return session.Plan{}, err
	}
	if strings.ContainsRune(in.Content, 0) {
		return session.Plan{}, failf("The content holds a NUL character; only text is written here. Use a command.")
	}
	old, info, err := p.content()
	if err == nil {
		err = replaceable(in.Path, old, info)
	}
	if err != nil {
		return session.Plan{}, err
	}
	in.Content = likeOld(string(old), in.Content)
	change := session.FileChange{Path: p.abs, Before: absent, After: digestOf([]byte(in.Content)), NewText: in.Content}
	if old != nil {
		text := string(old)
		change.Before, change.OldText = digestOf(old), &text
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

// likeOld gives new content the byte-order mark and the line ends of the file it replaces: read does not show them, so content without
// them was not meant to take them away.
func likeOld(old, content string) string {
	const mark = "\ufeff"
	if strings.HasPrefix(old, mark) && !strings.HasPrefix(content, mark) {
		content = mark + content
	}
	if n := strings.Count(old, "\n"); n > 0 && strings.Count(old, "\r\n") == n && !strings.Contains(content, "\r\n") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	return content
}

func (t writeTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	return t.o.replace(ctx, env, pl)
}

// Probe tells from the file itself what became of a call.
func (t writeTool) Probe(_ context.Context, env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	return t.o.probe(env, pl)
}
