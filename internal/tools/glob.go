package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"holdfast/session"
)

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
}

type globTool struct{ o Options }

func (globTool) Spec() session.ToolSpec {
	return spec("glob", "Find files by name, for example **/*_test.go or src/**/*.{ts,tsx}. A pattern without a slash matches in any folder. "+
		"Files that git ignores (outside of a repository: that .gitignore or .ignore files name) are left out, unless path names a folder that is ignored. "+
		"Links are not followed. At most 1000 paths, folder by folder; a last line in brackets says what is missing.",
		`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder to look in, the working directory unless told"}},`+
			`"required":["pattern"],"additionalProperties":false}`)
}
func (globTool) Class() session.Class { return session.ReadOnly }
func (globTool) Kind() session.Kind   { return session.KindSearch }
func (globTool) Version() string      { return "2" }

func (t globTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in globArgs
	if err := decodeArgs("glob", args, &in, "pattern"); err != nil {
		return session.Plan{}, err
	}
	if err := checkGlob(in.Pattern); err != nil {
		return session.Plan{}, err
	}
	p, err := t.o.reach(env, orDot(in.Path))
	if err != nil {
		return session.Plan{}, err
	}
	return readingPlan(p, in, "Find "+titled(in.Pattern))
}

// maxPattern keeps a pattern from costing more than the files it is held against.
const maxPattern = 4_000

func checkGlob(pattern string) error {
	if pattern == "" || len(pattern) > maxPattern || !doublestar.ValidatePattern(pattern) {
		return failf("%q is not a glob pattern. Example: **/*.go", clipLine(pattern))
	}
	return nil
}

// titled is a text of the model's for the one line that the user sees.
func titled(s string) string {
	const most = 200
	if s = visibleName(s); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func (t globTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in globArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	p, err := t.o.again(env, orDot(in.Path), pl)
	if err != nil {
		return session.Output{}, err
	}
	w, err := t.o.files(ctx, p)
	if err != nil {
		return session.Output{}, err
	}
	match, name := matcher(in.Pattern), namer(env, p)
	var b strings.Builder
	n := 0
	for _, f := range w.folders {
		for _, base := range f.names {
			if !match(f.dir, base) {
				continue
			}
			if n++; n <= maxEntries && b.Len() < maxResult {
				b.WriteString(name(f.dir, base) + "\n")
			} else if n <= maxEntries {
				n += maxEntries // the text is full before the count is
			}
		}
	}
	return session.Output{Text: globText(b.String(), n) + w.missing()}, nil
}

func globText(text string, n int) string {
	shown := strings.Count(text, "\n")
	text = strings.TrimSuffix(text, "\n")
	switch {
	case n == 0:
		return "[no file matches]"
	case n > maxEntries && shown < maxEntries:
		return text + "\n[more match; narrow the pattern]"
	case n > shown:
		return text + fmt.Sprintf("\n[%d more; narrow the pattern]", n-shown)
	}
	return text
}

// matcher tells whether a file below a folder matches a pattern. One without a slash is held against the name alone.
func matcher(pattern string) func(dir, base string) bool {
	if pattern == "" {
		return func(string, string) bool { return true }
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if rest, ok := strings.CutPrefix(pattern, "**/"); ok && !strings.Contains(rest, "/") {
		pattern = rest
	}
	if ext, ok := strings.CutPrefix(pattern, "*"); ok && !strings.ContainsAny(ext, `*?[]{}\/`) {
		return func(_, base string) bool { return strings.HasSuffix(base, ext) }
	}
	if !strings.Contains(pattern, "/") {
		if pattern == "**" {
			return func(string, string) bool { return true }
		}
		return func(_, base string) bool { ok, _ := doublestar.Match(pattern, base); return ok } // checked in Plan
	}
	return func(dir, base string) bool { ok, _ := doublestar.Match(pattern, path.Join(dir, base)); return ok }
}

// namer names the files below a place as a result does: relative to the working directory where that is shorter.
func namer(env session.ToolEnv, p place) func(dir, base string) string {
	top := shown(env, p.abs)
	dir, prefix := "", ""
	return func(d, base string) string {
		if d != dir || prefix == "" {
			dir = d
			prefix = visibleName(filepath.Join(top, filepath.FromSlash(d))) + string(filepath.Separator)
			if prefix == "."+string(filepath.Separator) {
				prefix = "./"
			}
		}
		if prefix == "./" {
			return visibleName(base)
		}
		return prefix + visibleName(base)
	}
}
