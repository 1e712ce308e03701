package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	if err := decodeArgs("glob", args, &in); err != nil {
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
	names, err := files(ctx, p)
	if err != nil {
		return session.Output{}, err
	}
	var found []string
	for _, name := range names {
		if ok, _ := doublestar.Match(matchBase(in.Pattern), filepath.ToSlash(name)); ok { // validated in Plan
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return session.Output{Text: "[no file matches]"}, nil
	}
	more := ""
	if len(found) > maxEntries {
		more = fmt.Sprintf("\n[%d more; narrow the pattern]", len(found)-maxEntries)
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
	if err := decodeArgs("grep", args, &in); err != nil {
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
	s := search{args: in, re: re}
	if info, err := os.Stat(p.abs); err == nil && info.Mode().IsRegular() {
		s.file(p, shown(env, p.abs))
	} else if err := s.folder(ctx, p); err != nil {
		return session.Output{}, err
	}
	if s.matches == 0 {
		return session.Output{Text: "[no match]"}, nil
	}
	return session.Output{Text: clip(strings.TrimSuffix(s.b.String(), "\n"), maxResult, "; narrow the search")}, nil
}

// search collects matches.
type search struct {
	args    grepArgs
	re      *regexp.Regexp
	b       strings.Builder
	matches int
}

func (s *search) folder(ctx context.Context, p place) error {
	names, err := files(ctx, p)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.args.Glob != "" {
			if ok, _ := doublestar.Match(matchBase(s.args.Glob), filepath.ToSlash(name)); !ok { // validated in Plan
				continue
			}
		}
		if s.matches >= maxMatches || s.b.Len() > maxResult {
			s.b.WriteString("[more matches are not shown; narrow the search]\n")
			return nil
		}
		s.file(place{root: p.root, rel: filepath.Join(p.rel, name), abs: filepath.Join(p.abs, name)}, name)
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
		return
	}
	b, _, err := p.content()
	if err != nil || binary(b) || !s.re.Match(b) && !bytes.Contains(b, []byte("\n")) {
		return
	}
	lines := strings.Split(string(b), "\n")
	shownTo := -1
	for i, line := range lines {
		if s.matches >= maxMatches || !s.re.MatchString(strings.TrimSuffix(line, "\r")) {
			continue
		}
		s.matches++
		for j := max(i-s.args.Context, shownTo+1); j <= min(i+s.args.Context, len(lines)-1); j++ {
			mark := ":"
			if j != i {
				mark = "-"
			}
			fmt.Fprintf(&s.b, "%s%s%d%s %s\n", name, mark, j+1, mark, clipLine(strings.TrimSuffix(lines[j], "\r")))
			shownTo = j
		}
	}
}
