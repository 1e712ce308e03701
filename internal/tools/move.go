package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"holdfast/session"
)

// maxKept is how many bytes a call may move or delete: they are kept, so that the user can take the call back.
const maxKept = 16 << 20

type moveArgs struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type moveTool struct{ writer }

func (moveTool) Spec() session.ToolSpec {
	return spec("move", "Move or rename one file. Folders that are missing are made; a file that is there is never replaced. Use a command for whole folders.",
		`{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string","description":"new path, or a folder to move it into"}},`+
			`"required":["from","to"],"additionalProperties":false}`)
}
func (moveTool) Kind() session.Kind { return session.KindMove }

func (t moveTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in moveArgs
	if err := decodeArgs("move", args, &in, "from", "to"); err != nil {
		return session.Plan{}, err
	}
	from, err := t.o.whole(env, in.From)
	if err != nil {
		return session.Plan{}, err
	}
	to, err := t.o.reach(env, in.To)
	if err == nil && isFolder(to.abs) {
		in.To = filepath.Join(in.To, filepath.Base(from.place.abs))
	}
	if err == nil {
		to, err = t.o.locateWrite(env, in.To)
	}
	if err != nil {
		return session.Plan{}, err
	}
	if _, err := os.Lstat(to.abs); err == nil {
		return session.Plan{}, failf("%s exists already. Delete it first, or choose another name.", in.To)
	}
	gone := from.deletion()
	c := session.FileChange{Path: to.abs, Before: absent, After: gone.Before, NewText: from.text, Encoding: from.encoding, From: from.place.abs, WasExec: gone.WasExec}
	title := "Move " + shown(env, from.place.abs) + " to " + shown(env, to.abs)
	return changing(env, title, from.place.kind.Worse(to.kind), nil, c, gone)
}

// itself refuses a path whose last part is a link: what is moved or deleted is the file, and nobody can tell which of the two was meant.
func (o Options) itself(env session.ToolEnv, path string, p place) error {
	up, err := o.reach(env, filepath.Dir(strings.TrimRight(path, string(filepath.Separator))))
	if err != nil {
		return err
	}
	if filepath.Dir(p.abs) != up.abs || !sameName(filepath.Base(p.abs), filepath.Base(path)) {
		return failf("%s is a link to %s. Give the path of the file itself, or use a command for the link.", path, shown(env, p.abs))
	}
	return nil
}

// whole opens a file that is moved or deleted.
func (o Options) whole(env session.ToolEnv, path string) (source, error) {
	p, err := o.locateWrite(env, path)
	if err == nil {
		err = o.itself(env, path, p)
	}
	if err != nil {
		return source{}, err
	}
	if isFolder(p.abs) {
		return source{}, failf("%s is a folder; here only files are moved and deleted, which the user can take back. Name its files, or use the shell tool: mv, rmdir or rm -r.", path)
	}
	s := source{place: p}
	switch s.bytes, s.info, err = p.content(); {
	case err != nil:
		return s, err
	case s.bytes == nil:
		return s, failf("%s does not exist.", path)
	case len(s.bytes) > maxKept:
		return s, failf("%s has %d bytes; more than %d cannot be kept for the user to take back. Use a command.", path, len(s.bytes), maxKept)
	}
	s.text, s.encoding = session.DecodeText(s.bytes)
	return s, nil
}
