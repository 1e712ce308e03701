package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"holdfast/session"
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

const defaultLines = 1000

type readTool struct{ o Options }

func (readTool) Spec() session.ToolSpec {
	return spec("read", "Read a text file. Lines are numbered; the last line of the result names the file's version, which the write tool wants back. "+
		"Use offset and limit for a part of a long file.",
		`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","description":"first line, from 1"},`+
			`"limit":{"type":"integer","description":"number of lines, 1000 unless told"}},"required":["path"],"additionalProperties":false}`)
}
func (readTool) Class() session.Class { return session.ReadOnly }
func (readTool) Kind() session.Kind   { return session.KindRead }
func (readTool) Version() string      { return "1" }

func (t readTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in readArgs
	if err := decodeArgs("read", args, &in, "path"); err != nil {
		return session.Plan{}, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return session.Plan{}, failf("offset and limit count lines from 1; they cannot be negative.")
	}
	p, err := t.o.locate(env, in.Path)
	if err != nil {
		return session.Plan{}, err
	}
	pl, err := plan(in, "Read "+shown(env, p.abs), p.abs)
	pl.Line = in.Offset
	return pl, err
}

func (t readTool) Run(_ context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in readArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	p, err := t.o.locate(env, in.Path)
	if err != nil {
		return session.Output{}, err
	}
	b, _, err := p.content()
	if err != nil {
		return session.Output{}, err
	}
	if b == nil {
		return session.Output{}, failf("%s does not exist. Use list or glob to find the right path.", in.Path)
	}
	digest := digestOf(b)
	if binary(b) {
		return session.Output{Text: fmt.Sprintf("[binary file, %d bytes, version %s; not shown]", len(b), versionOf(digest)), Digest: digest}, nil
	}
	return session.Output{Text: numbered(t.o.Mask.Text(string(b)), max(in.Offset, 1), in.Limit, versionOf(digest)), Digest: digest}, nil
}

// numbered shows a range of lines as "number<tab>line".
func numbered(text string, from, limit int, version string) string {
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, "\ufeff"), "\n"), "\n")
	if text == "" {
		return "[empty file, version " + version + "]"
	}
	if limit == 0 {
		limit = defaultLines
	}
	if from > len(lines) {
		return fmt.Sprintf("[the file has %d lines, version %s]", len(lines), version)
	}
	var b strings.Builder
	last := from - 1
	for i := from; i <= len(lines) && i-from < limit && b.Len() < maxResult; i++ {
		fmt.Fprintf(&b, "%d\t%s\n", i, clipLine(strings.TrimSuffix(lines[i-1], "\r")))
		last = i
	}
	fmt.Fprintf(&b, "[lines %d-%d of %d, version %s]", from, last, len(lines), version)
	return b.String()
}
