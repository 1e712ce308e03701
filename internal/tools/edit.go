package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"holdfast/session"
)

type editArgs struct {
	Path  string        `json:"path"`
	Edits []replacement `json:"edits"`
}

type replacement struct {
	Old        *string `json:"old"`
	New        *string `json:"new"`
	ReplaceAll bool    `json:"replace_all,omitempty"`
}

type editTool struct{ o Options }

func (editTool) Spec() session.ToolSpec {
	return spec("edit", "Replace exact text in a file. Each edit's old text must occur exactly once, unless replace_all is set; edits apply one after the other, all or none. "+
		"Line ends, byte-order mark and permissions stay as they are.",
		`{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"},`+
			`"new":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old","new"],"additionalProperties":false}}},`+
			`"required":["path","edits"],"additionalProperties":false}`)
}
func (editTool) Class() session.Class { return session.StateProbe }
func (editTool) Kind() session.Kind   { return session.KindEdit }
func (editTool) Version() string      { return "1" }

func (t editTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in editArgs
	if err := decodeArgs("edit", args, &in, "path", "edits"); err != nil {
		return session.Plan{}, err
	}
	if len(in.Edits) == 0 {
		return session.Plan{}, failf("There are no edits. Give at least one with old and new.")
	}
	p, err := t.o.locateWrite(env, in.Path)
	if err != nil {
		return session.Plan{}, err
	}
	b, info, err := p.content()
	switch {
	case err != nil:
		return session.Plan{}, err
	case b == nil:
		return session.Plan{}, failf("%s does not exist. Use write to create it.", in.Path)
	}
	if err := replaceable(in.Path, b, info); err != nil {
		return session.Plan{}, err
	}
	text, line := string(b), 0
	for i, e := range in.Edits {
		at := 0
		if e.Old == nil || e.New == nil {
			return session.Plan{}, failf("Edit %d of %s needs both \"old\" and \"new\". Nothing was changed.", i+1, in.Path)
		}
		if text, at, err = e.apply(text); err != nil {
			return session.Plan{}, failf("Edit %d of %s: %v. Nothing was changed.", i+1, in.Path, err)
		}
		if i == 0 {
			line = at
		}
	}
	old := string(b)
	if text == old {
		return session.Plan{}, failf("The edits change nothing in %s.", in.Path)
	}
	pl, err := plan(struct {
		Path string `json:"path"`
	}{in.Path}, "Edit "+shown(env, p.abs), p.abs)
	pl.Line = line
	pl.Files = []session.FileChange{{Path: p.abs, Before: digestOf(b), After: digestOf([]byte(text)), OldText: &old, NewText: text}}
	return pl, err
}

// nearest names the line that looks most like the first line of the text that was not found.
func nearest(text, old string) string {
	want := ""
	for l := range strings.SplitSeq(old, "\n") {
		if want = strings.TrimSpace(l); want != "" {
			break
		}
	}
	best, bestLine, bestAt := 0, "", 0
	for i, l := range strings.Split(text, "\n") {
		if score := alike(strings.TrimSpace(l), want); score > best {
			best, bestLine, bestAt = score, strings.TrimSuffix(l, "\r"), i+1
		}
	}
	if best*2 < len(want) || want == "" {
		return "read the file again"
	}
	return fmt.Sprintf("the nearest is line %d: %q", bestAt, clipLine(bestLine))
}

// alike counts the bytes two lines share at their beginning and end.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < len(a)-n && m < len(b)-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return n + m
}

func (t editTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	return t.o.replace(ctx, env, pl)
}

// Probe tells from the file itself what became of a call.
func (t editTool) Probe(_ context.Context, env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	return t.o.probe(env, pl)
}
