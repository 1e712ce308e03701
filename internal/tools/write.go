package tools

import (
	"encoding/json"
	"strings"

	"holdfast/session"
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Version string `json:"version,omitempty"`
}

type writeTool struct{ writer }

func (writeTool) Spec() session.ToolSpec {
	return spec("write", "Create a file, or replace a whole one. To replace a file, pass the version that read showed; for a change of some lines use edit. "+
		"A file that is replaced keeps its encoding, byte-order mark, line ends and permissions.",
		`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"version":{"type":"string","description":"version of the file you replace"}},`+
			`"required":["path","content"],"additionalProperties":false}`)
}
func (writeTool) Kind() session.Kind { return session.KindEdit }

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
	if err != nil {
		return session.Plan{}, err
	}
	text, encoding, err := replaceable(in.Path, old, info)
	if err != nil {
		return session.Plan{}, err
	}
	change := session.FileChange{Path: p.abs, Before: absent, Encoding: encoding, NewText: likeOld(text, in.Content)}
	if old != nil {
		change.Before, change.OldText, change.WasExec = digestOf(old), &text, execOf(info)
		switch {
		case in.Version == "":
			return session.Plan{}, failf("%s exists. Read it first and pass its version, or use edit.", in.Path)
		case in.Version != versionOf(change.Before):
			return session.Plan{}, failf("%s is not at version %s any more. Read it again before you replace it.", in.Path, in.Version)
		}
	} else if in.Version != "" {
		return session.Plan{}, failf("%s does not exist any more. Leave out the version to create it.", in.Path)
	}
	if change.After = digestOf(change.New()); change.After == change.Before {
		return session.Plan{}, failf("%s holds exactly that already.", in.Path)
	}
	return changing(env, "Write "+shown(env, p.abs), p.kind, nil, change)
}

// changing is the plan of a tool that changes files.
func changing(env session.ToolEnv, title string, kind session.Place, notes []string, changes ...session.FileChange) (session.Plan, error) {
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	pl, err := plan(struct {
		Notes []string `json:"notes,omitempty"`
	}{notes}, title+marks[kind], paths...)
	pl.Files, pl.Place = changes, kind
	return pl, err
}

// likeOld gives new content what read does not show of the file it replaces: the byte-order mark, the line ends and the final newline.
// Content without them was not meant to take them away. Lines that stay keep the end they have, new ones end like the line before them.
func likeOld(old, content string) string {
	const mark = "\ufeff"
	if old == "" {
		return content
	}
	if strings.HasPrefix(old, mark) && !strings.HasPrefix(content, mark) {
		content = mark + content
	}
	if content != "" && strings.HasSuffix(old, "\n") && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if !strings.Contains(old, "\r\n") || strings.Contains(content, "\r\n") {
		return content
	}
	if strings.Count(old, "\r\n") == strings.Count(old, "\n") {
		return strings.ReplaceAll(content, "\n", "\r\n")
	}
	return likeLines(strings.SplitAfter(old, "\n"), strings.SplitAfter(content, "\n"))
}

// nearby is how far ahead a line of a file with mixed line ends is looked for.
const nearby = 500

// likeLines gives each line the end of the line it was in a file with mixed line ends.
func likeLines(old, now []string) string {
	plain := func(l string) string { return strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r") }
	tail := 0
	for tail < len(old) && tail < len(now) && plain(old[len(old)-1-tail]) == plain(now[len(now)-1-tail]) {
		tail++
	}
	var b strings.Builder
	at, end, crs := 0, "\n", 0
	for _, l := range old {
		if strings.HasSuffix(l, "\r\n") {
			crs++
		}
	}
	if crs*2 > len(old) {
		end = "\r\n"
	}
	for i, l := range now {
		from, to := at, min(len(old)-tail, at+nearby)
		if left := len(now) - i; left <= tail {
			from, to = len(old)-left, len(old)-left+1
		}
		for j := from; j < to; j++ {
			if plain(old[j]) == plain(l) && strings.HasSuffix(old[j], "\n") {
				at, end = j+1, old[j][len(plain(old[j])):]
				break
			}
		}
		if strings.HasSuffix(l, "\n") {
			l = plain(l) + end
		}
		b.WriteString(l)
	}
	return b.String()
}
