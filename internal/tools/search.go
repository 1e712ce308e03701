package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	return spec("glob", "Find files by name, for example **/*_test.go. Files that git ignores are left out. A pattern without a slash matches in any folder.",
		`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder to look in"}},"required":["pattern"],"additionalProperties":false}`)
}
func (globTool) Class() session.Class { return session.ReadOnly }
func (globTool) Kind() session.Kind   { return session.KindSearch }
func (globTool) Version() string      { return "1" }

func (t globTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in globArgs
	if err := decodeArgs("glob", args, &in, "pattern"); err != nil {
		return session.Plan{}, err
	}
	if !doublestar.ValidatePattern(in.Pattern) || in.Pattern == "" {
		return session.Plan{}, failf("%q is not a glob pattern. Example: **/*.go", in.Pattern)
	}
	p, err := t.o.locate(env, orDot(in.Path))
	if err != nil {
		return session.Plan{}, err
	}
	return plan(in, "Find "+in.Pattern, p.abs)
}

func (t globTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in globArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	p, err := t.o.locate(env, orDot(in.Path))
	if err != nil {
		return session.Output{}, err
	}
	w, err := t.o.files(ctx, p)
	if err != nil {
		return session.Output{}, err
	}
	var found []string
	for _, name := range w.names {
		if ok, _ := doublestar.Match(matchBase(in.Pattern), filepath.ToSlash(name)); ok { // validated in Plan
			found = append(found, shown(env, filepath.Join(p.abs, name)))
		}
	}
	more := w.cutMark()
	if len(found) == 0 {
		return session.Output{Text: "[no file matches]" + more}, nil
	}
	if len(found) > maxEntries {
		more += fmt.Sprintf("\n[%d more; narrow the pattern]", len(found)-maxEntries)
		found = found[:maxEntries]
	}
	return session.Output{Text: clip(strings.Join(found, "\n"), maxResult, "; narrow the pattern") + more}, nil
}

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Glob    string `json:"glob,omitempty"`
	Literal bool   `json:"literal,omitempty"`
	Context int    `json:"context,omitempty"`
}

const (
	maxMatches = 200
	maxGrep    = 4 << 20 // larger files are not searched
)

type grepTool struct{ o Options }

func (grepTool) Spec() session.ToolSpec {
	return spec("grep", "Search file contents with a regular expression (RE2), or literally. Shows path:line: text. Files that git ignores and binary files are left out.",
		`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder or file to look in"},`+
			`"glob":{"type":"string","description":"only files whose name matches"},"literal":{"type":"boolean"},`+
			`"context":{"type":"integer","description":"lines around each match, at most 5"}},"required":["pattern"],"additionalProperties":false}`)
}
func (grepTool) Class() session.Class { return session.ReadOnly }
func (grepTool) Kind() session.Kind   { return session.KindSearch }
func (grepTool) Version() string      { return "1" }

func (a grepArgs) regexp() (*regexp.Regexp, error) {
	pattern := a.Pattern
	if a.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failf("%q is not a regular expression (%v). Set literal to search for the text itself.", a.Pattern, err)
	}
	return re, nil
}

func (t grepTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in grepArgs
	if err := decodeArgs("grep", args, &in, "pattern"); err != nil {
		return session.Plan{}, err
	}
	if in.Pattern == "" {
		return session.Plan{}, failf("The pattern is empty. Say what to search for.")
	}
	if _, err := in.regexp(); err != nil {
		return session.Plan{}, err
	}
	if in.Glob != "" && !doublestar.ValidatePattern(in.Glob) {
		return session.Plan{}, failf("%q is not a glob pattern.", in.Glob)
	}
	in.Context = min(max(in.Context, 0), 5)
	p, err := t.o.locate(env, orDot(in.Path))
	if err != nil {
		return session.Plan{}, err
	}
	return plan(in, "Search for "+in.Pattern, p.abs)
}

func (t grepTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in grepArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	re, err := in.regexp()
	if err != nil {
		return session.Output{}, err
	}
	p, err := t.o.locate(env, orDot(in.Path))
	if err != nil {
		return session.Output{}, err
	}
	s := search{o: t.o, env: env, args: in, re: re}
	if info, err := os.Stat(p.abs); err == nil && info.Mode().IsRegular() {
		s.file(p, shown(env, p.abs))
	} else if err := s.folder(ctx, p); err != nil {
		return session.Output{}, err
	}
	return session.Output{Text: s.result()}, nil
}

// search collects matches.
type search struct {
	o       Options
	env     session.ToolEnv
	args    grepArgs
	re      *regexp.Regexp
	b       strings.Builder
	matches int
	more    bool   // a match was left out
	large   int    // files left out for their size
	note    string // what else is missing
}

// result is what was found, and what was not looked at.
func (s *search) result() string {
	text := clip(strings.TrimSuffix(s.b.String(), "\n"), maxResult, "; narrow the search")
	if s.matches == 0 {
		text = "[no match]"
	}
	if s.more {
		text += "\n[more matches are not shown; narrow the search]"
	}
	if s.large > 0 {
		text += fmt.Sprintf("\n[%d file(s) too large to search, over %d bytes; use a command]", s.large, maxGrep)
	}
	return text + s.note
}

func (s *search) folder(ctx context.Context, p place) error {
	w, err := s.o.files(ctx, p)
	if err != nil {
		return err
	}
	s.note = w.cutMark()
	for _, name := range w.names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.args.Glob != "" {
			if ok, _ := doublestar.Match(matchBase(s.args.Glob), filepath.ToSlash(name)); !ok { // validated in Plan
				continue
			}
		}
		if s.more || s.b.Len() > maxResult {
			s.more = true
			return nil
		}
		in := place{root: p.root, rel: filepath.Join(p.rel, name), abs: filepath.Join(p.abs, name)}
		s.file(in, shown(s.env, in.abs))
	}
	return nil
}

// file searches one file; one that cannot be read or is not text has no matches.
func (s *search) file(p place, name string) {
	f, info, err := p.openFile()
	if err != nil {
		return
	}
	_ = f.Close()
	if info.Size() > maxGrep {
		s.large++
		return
	}
	b, _, err := p.content()
	if err != nil || len(b) == 0 || binary(b) {
		return
	}
	lines := s.lines(b)
	to, last := -1, -1 // context is due up to line to; last was the last one shown
	for i := range lines {
		line := strings.TrimSuffix(lines[i], "\r")
		mark := "-"
		if s.re.MatchString(line) {
			if s.matches == maxMatches {
				s.more = true
				return
			}
			s.matches++
			mark, to = ":", i+s.args.Context
			s.before(name, lines, max(i-s.args.Context, last+1), i, last)
		}
		if i <= to {
			s.show(name, mark, i, line)
			last = i
		}
	}
}

// lines are the lines of a file with a match in it, without secrets: what is matched is what is shown, so a pattern cannot ask for a secret
// letter by letter.
func (s *search) lines(b []byte) []string {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return s.re.MatchString(strings.TrimSuffix(l, "\r")) }) {
		return nil
	}
	return strings.Split(s.o.Mask.Text(strings.Join(lines, "\n")), "\n")
}

// before shows the context ahead of a match, after a mark for the gap to what was shown last.
func (s *search) before(name string, lines []string, from, match, last int) {
	if s.args.Context > 0 && s.b.Len() > 0 && (last < 0 || from > last+1) {
		s.b.WriteString("--\n")
	}
	for i := from; i < match; i++ {
		s.show(name, "-", i, strings.TrimSuffix(lines[i], "\r"))
	}
}

func (s *search) show(name, mark string, i int, line string) {
	fmt.Fprintf(&s.b, "%s%s%d%s %s\n", name, mark, i+1, mark, clipLine(line))
}
