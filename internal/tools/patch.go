package tools

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/session"
)

type patchArgs struct {
	Patch string `json:"patch"`
}

const maxPatched = 500 // files of one patch

type patchTool struct{ writer }

func (patchTool) Spec() session.ToolSpec {
	return spec("apply_patch", "Apply a unified diff as git diff makes it to one or more files: all of it or nothing. Paths are relative to the working directory. "+
		"New, deleted, renamed and copied files and mode lines are understood. Every context line must match; a hunk may lie up to 1000 lines from where its header says.",
		`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`)
}
func (patchTool) Kind() session.Kind { return session.KindEdit }

func (t patchTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in patchArgs
	if err := decodeArgs("apply_patch", args, &in, "patch"); err != nil {
		return session.Plan{}, err
	}
	files, err := parsePatch(in.Patch)
	if err != nil {
		return session.Plan{}, failf("The patch cannot be read: %v. Nothing was changed.", err)
	}
	if len(files) > maxPatched {
		return session.Plan{}, failf("The patch has %d files; at most %d are applied at once.", len(files), maxPatched)
	}
	p := patching{o: t.o, env: env, seen: map[string]bool{}}
	for _, f := range files {
		if err := p.add(f); err != nil {
			return session.Plan{}, failf("%s Nothing was changed.", strings.TrimSuffix(err.Error(), "Nothing was changed."))
		}
	}
	if len(p.changes) == 0 {
		return session.Plan{}, failf("The patch changes nothing: every file is as it wants it.")
	}
	var names []string
	for i, c := range p.changes {
		if i == 0 || p.changes[i-1].From != c.Path {
			names = append(names, shown(env, c.Path))
		}
	}
	return changing(env, "Patch "+some(names), p.kind, p.notes, p.changes...)
}

// some names a few files.
func some(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// patching collects what a patch would change.
type patching struct {
	o       Options
	env     session.ToolEnv
	seen    map[string]bool
	changes []session.FileChange
	notes   []string
	kind    session.Place
}

// source is a file as it is.
type source struct {
	place    place
	bytes    []byte
	info     fs.FileInfo
	text     string
	encoding session.TextEncoding
}

// open finds a file of the patch. once: it is changed, and nothing changes it twice.
func (p *patching) open(name string, once bool) (source, error) {
	if slices.Contains(strings.Split(filepath.ToSlash(name), "/"), "..") {
		return source{}, failf("%s leads upwards; a patch names files from the working directory down.", name)
	}
	at, err := p.o.locateWrite(p.env, filepath.FromSlash(name))
	if err != nil {
		return source{}, err
	}
	key := at.abs
	if foldCase {
		key = strings.ToLower(key)
	}
	if once && p.seen[key] {
		return source{}, failf("%s is changed twice by the patch. Put all its hunks under one header.", name)
	}
	p.seen[key] = p.seen[key] || once
	p.kind = p.kind.Worse(at.kind)
	s := source{place: at}
	if s.bytes, s.info, err = at.content(); err == nil && s.bytes != nil {
		s.text, s.encoding = session.DecodeText(s.bytes)
	}
	return s, err
}

// add works out what one file of the patch becomes.
func (p *patching) add(f filePatch) error {
	renamed := f.old != "" && f.new != "" && f.old != f.new
	var from source
	var err error
	if f.old != "" {
		if from, err = p.open(f.old, !f.copied); err != nil {
			return err
		}
		switch {
		case from.bytes == nil:
			return failf("%s does not exist.", f.old)
		case (renamed || f.new == "") && !f.copied:
			if err := p.o.itself(p.env, f.old, from.place); err != nil {
				return err
			}
		case from.info.Mode().Perm()&0o200 == 0:
			return failf("%s is read-only. Ask the user, or change its permissions with a command first.", f.old)
		}
	}
	text := from.text
	if len(f.hunks) > 0 {
		if from.encoding == session.EncodingBinary {
			return failf("%s is neither UTF-8 text nor UTF-16 with a byte-order mark. Use git apply in a command.", f.old)
		}
		var notes []string
		if text, notes, err = applyHunks(text, f.hunks, p.o.Mask); err != nil {
			return failf("%s: %v.", name(f), err)
		}
		for _, n := range notes {
			p.notes = append(p.notes, name(f)+": "+n)
		}
	}
	if strings.ContainsRune(text, 0) {
		return failf("%s would hold a NUL character; only text is written here.", name(f))
	}
	switch {
	case f.new == "":
		if text != "" {
			return failf("%s is to be deleted, but the patch leaves some of its lines. Use delete for the whole file.", f.old)
		}
		p.changes = append(p.changes, from.deletion())
		return nil
	case f.old == "", renamed:
		return p.fresh(f, from, text)
	}
	c := session.FileChange{Path: from.place.abs, Before: digestOf(from.bytes), OldText: &from.text, NewText: text, Encoding: from.encoding, WasExec: execOf(from.info)}
	if f.exec != "" && c.WasExec != "" && f.exec != c.WasExec {
		c.Exec = f.exec
	}
	if c.After = digestOf(c.New()); c.After != c.Before || c.Exec != "" {
		p.changes = append(p.changes, c)
	}
	return nil
}

func name(f filePatch) string {
	if f.new != "" {
		return f.new
	}
	return f.old
}

// fresh is a file that the patch makes: anew, or by moving or copying another.
func (p *patching) fresh(f filePatch, from source, text string) error {
	to, err := p.open(f.new, true)
	switch {
	case err != nil:
		return err
	case to.bytes != nil:
		return failf("%s exists already.", f.new)
	}
	c := session.FileChange{Path: to.place.abs, Before: absent, NewText: text, Encoding: from.encoding}
	if c.After = digestOf(c.New()); f.exec == "yes" && !foldsModes || f.copied && execOf(from.info) == "yes" && f.exec == "" {
		c.Exec = "yes"
	}
	if f.old == "" || f.copied {
		p.changes = append(p.changes, c)
		return nil
	}
	if c.WasExec = execOf(from.info); c.Exec == c.WasExec {
		c.Exec = ""
	}
	if f.exec == "no" && c.WasExec == "yes" {
		c.Exec = "no"
	}
	c.From = from.place.abs
	p.changes = append(p.changes, c, from.deletion())
	return nil
}

// deletion takes a file away. Its content stays in the plan, so that it can be brought back.
func (s source) deletion() session.FileChange {
	return session.FileChange{Path: s.place.abs, Before: digestOf(s.bytes), After: absent, OldText: &s.text, Encoding: s.encoding, WasExec: execOf(s.info)}
}
