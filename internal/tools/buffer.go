package tools

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"holdfast/session"
)

// maxBuffer is up to which size of the file the editor is asked for its text.
const maxBuffer = 8 << 20

// editorText asks the editor for the text of a file, as the user sees it.
func editorText(ctx context.Context, env session.ToolEnv, p place) (string, bool) {
	if env.Buffer == nil {
		return "", false
	}
	path := p.abs
	if cwd, err := filepath.EvalSymlinks(env.Cwd); err == nil { // the editor knows the file by the name it opened the folder with
		if rel, in := below(cwd, p.abs); in {
			path = filepath.Join(env.Cwd, rel)
		}
	}
	return env.Buffer(ctx, path)
}

// unsavedFile shows a file that is in the editor only.
func (o Options) unsavedFile(ctx context.Context, env session.ToolEnv, p place, in readArgs) (session.Output, bool) {
	if in.From == fromDisk {
		return session.Output{}, false
	}
	text, ok := editorText(ctx, env, p)
	if !ok || text == "" {
		return session.Output{}, false
	}
	page := o.newPage(in)
	_ = page.scan(strings.NewReader(text), true) // a text in memory is always read
	return session.Output{Text: page.told("the editor's text; the file is not on disk", true)}, true
}

// unlike shows the editor's text of a file that holds another. It names no version: nothing may replace the file on the strength of it. Who
// wants to write reads the file itself first.
func (r *reading) unlike(disk *page) session.Output {
	p := r.o.newPage(r.in)
	_ = p.scan(strings.NewReader(r.editor), true) // a text in memory is always read
	const what = "the editor's text. The file on disk differs: the user has not saved, or the editor has not noticed a change. " +
		"Read with from \"disk\" before you write this file"
	return session.Output{Text: p.told(what, true)}
}

// normal is a text without what an editor may leave out or change: byte-order mark and line ends.
func normal(text string) []byte {
	text = strings.TrimPrefix(text, "\ufeff")
	return []byte(strings.ReplaceAll(text, "\r\n", "\n"))
}

// comparison is written a text piece by piece and tells whether it is the one that was wanted.
type comparison struct {
	want   []byte
	at     int
	begun  bool
	held   []byte // what may be the beginning of a mark or of a line end
	differ bool
}

func (c *comparison) Write(b []byte) (int, error) {
	text := append(c.held, b...)
	c.held = nil
	if !c.begun && len(text) >= len("\ufeff") {
		text, c.begun = bytes.TrimPrefix(text, []byte("\ufeff")), true
	}
	if !c.begun || bytes.HasSuffix(text, []byte("\r")) {
		keep := len(text) - 1
		if !c.begun {
			keep = 0
		}
		c.held = bytes.Clone(text[keep:])
		text = text[:keep]
	}
	c.take(text)
	return len(b), nil
}

func (c *comparison) take(text []byte) {
	text = bytes.ReplaceAll(text, []byte("\r\n"), newline)
	if c.differ || !bytes.HasPrefix(c.want[c.at:], text) {
		c.differ = true
		return
	}
	c.at += len(text)
}

func (c *comparison) same() bool {
	c.take(c.held)
	c.held = nil
	return !c.differ && c.at == len(c.want)
}
