package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"holdfast/session"
)

type listArgs struct {
	Path string `json:"path,omitempty"`
}

const maxEntries = 1000

type listTool struct{ o Options }

func (listTool) Spec() session.ToolSpec {
	return spec("list", "List a folder, ignored files too: folders end in a slash, files show their size in bytes, links where they lead, anything else what it is. "+
		"At most 1000 names. Default: the working directory. Use glob to find files below it.",
		`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`)
}
func (listTool) Class() session.Class { return session.ReadOnly }
func (listTool) Kind() session.Kind   { return session.KindRead }
func (listTool) Version() string      { return "2" }

func (t listTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in listArgs
	if err := decodeArgs("list", args, &in); err != nil {
		return session.Plan{}, err
	}
	p, err := t.o.reach(env, orDot(in.Path))
	if err != nil {
		return session.Plan{}, err
	}
	return readingPlan(p, in, "List "+titled(shown(env, p.abs)))
}

func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func (t listTool) Run(_ context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in listArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	p, err := t.o.again(env, orDot(in.Path), pl)
	if err != nil {
		return session.Output{}, err
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return session.Output{}, failf("%s cannot be listed: %v.", visibleName(orDot(in.Path)), plainError(err))
	}
	defer func() { _ = root.Close() }()
	dir, err := root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold it up
	if err != nil {
		return session.Output{}, failf("%s cannot be listed: %v.", visibleName(orDot(in.Path)), plainError(err))
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Stat(); err == nil && !info.IsDir() {
		return session.Output{}, failf("%s is not a folder. Use read.", visibleName(orDot(in.Path)))
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return session.Output{}, failf("%s cannot be listed: %v.", visibleName(orDot(in.Path)), plainError(err))
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for i, e := range entries {
		if i == maxEntries {
			fmt.Fprintf(&b, "[%d more; use glob]\n", len(entries)-i)
			break
		}
		size := ""
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size = fmt.Sprintf("\t%d", info.Size())
		}
		name := visibleName(e.Name())
		switch {
		case e.IsDir():
			name += "/"
		case e.Type()&fs.ModeSymlink != 0:
			if target, err := root.Readlink(filepath.Join(p.rel, e.Name())); err == nil {
				name += " -> " + visibleName(target)
			}
		case e.Type()&fs.ModeNamedPipe != 0:
			size = "\t[pipe]"
		case e.Type()&fs.ModeSocket != 0:
			size = "\t[socket]"
		case e.Type()&fs.ModeDevice != 0:
			size = "\t[device]"
		}
		b.WriteString(name + size + "\n")
	}
	if len(entries) == 0 {
		b.WriteString("[empty folder]")
	}
	return session.Output{Text: clip(strings.TrimSuffix(b.String(), "\n"), maxResult, "; use glob")}, nil
}
