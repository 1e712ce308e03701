package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/internal/secret"
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

	mask *secret.Masker // of what an error shows
}

type editTool struct{ writer }

func (editTool) Spec() session.ToolSpec {
	return spec("edit", "Replace exact text in a file. Each edit's old text must occur exactly once, unless replace_all is set; edits apply one after the other, all or none. "+
		"Encoding, line ends, byte-order mark and permissions stay as they are.",
		`{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"},`+
			`"new":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old","new"],"additionalProperties":false}}},`+
			`"required":["path","edits"],"additionalProperties":false}`)
}
func (editTool) Kind() session.Kind { return session.KindEdit }

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
	old, encoding, err := replaceable(in.Path, b, info)
	if err != nil {
		return session.Plan{}, err
	}
	text, line := old, 0
	for i, e := range in.Edits {
		at := 0
		switch {
		case e.Old == nil || e.New == nil:
			return session.Plan{}, failf("Edit %d of %s needs both \"old\" and \"new\". Nothing was changed.", i+1, in.Path)
		case strings.ContainsRune(*e.New, 0):
			return session.Plan{}, failf("Edit %d of %s holds a NUL character; only text is written here. Nothing was changed.", i+1, in.Path)
		}
		e.mask = t.o.Mask
		if text, at, err = e.apply(text); err != nil {
			return session.Plan{}, failf("Edit %d of %s: %v. Nothing was changed.", i+1, in.Path, err)
		}
		if i == 0 {
			line = at
		}
	}
	if text == old {
		return session.Plan{}, failf("The edits change nothing in %s.", in.Path)
	}
	change := session.FileChange{Path: p.abs, Before: digestOf(b), OldText: &old, NewText: text, Encoding: encoding, WasExec: execOf(info)}
	change.After = digestOf(change.New())
	if len(change.New()) > maxFile {
		return session.Plan{}, failf("%s would have %d bytes; files above %d are not handled here.", in.Path, len(change.New()), maxFile)
	}
	pl, err := changing(env, "Edit "+shown(env, p.abs), p.kind, nil, change)
	pl.Line = line
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
	if at := loosely(text, old); at > 0 {
		return fmt.Sprintf("lines from %d on are the same but for white space; copy them exactly", at)
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

// loosely finds the line from which on a text holds another one when white space does not count, 0 when it does not.
func loosely(text, old string) int {
	strip := func(s string) []string {
		out := strings.Split(strings.Trim(s, "\n"), "\n")
		for i := range out {
			out[i] = strings.Join(strings.Fields(out[i]), "")
		}
		return out
	}
	have, want := strings.Split(text, "\n"), strip(old)
	for i := range have {
		have[i] = strings.Join(strings.Fields(have[i]), "")
	}
	for i := 0; i+len(want) <= len(have); i++ {
		if slices.Equal(have[i:i+len(want)], want) {
			return i + 1
		}
	}
	return 0
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
