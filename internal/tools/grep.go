package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/session"
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty"`
	Glob       string `json:"glob,omitempty"`
	Literal    bool   `json:"literal,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Output     string `json:"output,omitempty"`
	Context    int    `json:"context,omitempty"`
}

// What a search shows.
const (
	outLines = "lines"
	outFiles = "files"
	outCount = "count"
)

const (
	maxMatches = 200 // lines of a result
	maxInFile  = 50  // of them from one file of a folder
	maxContext = 5
	grepLasts  = 60 * time.Second
)

type grepTool struct{ o Options }

func (grepTool) Spec() session.ToolSpec {
	return spec("grep", "Search the contents of files line by line, with a regular expression (RE2 syntax: no look-around, no back-references) or literally. "+
		"Shows path:line: text, and path-line- text for context. output \"files\" shows only the paths, \"count\" how many lines match in each file. "+
		"Files that git ignores (outside of a repository: that .gitignore or .ignore files name) and binary files are left out; name a file or an ignored folder to search it anyway. "+
		"At most 200 lines, 50 of one file unless path names it; lines in brackets say what is left out.",
		`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder or file to look in, the working directory unless told"},`+
			`"glob":{"type":"string","description":"only files whose path matches, for example *.go"},"literal":{"type":"boolean","description":"the pattern is the text itself"},`+
			`"ignore_case":{"type":"boolean"},"output":{"type":"string","enum":["lines","files","count"]},`+
			`"context":{"type":"integer","description":"lines around each match, at most 5"}},"required":["pattern"],"additionalProperties":false}`)
}
func (grepTool) Class() session.Class { return session.ReadOnly }
func (grepTool) Kind() session.Kind   { return session.KindSearch }
func (grepTool) Version() string      { return "2" }

func (t grepTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in grepArgs
	if err := decodeArgs("grep", args, &in, "pattern"); err != nil {
		return session.Plan{}, err
	}
	if _, err := newMatch(in); err != nil {
		return session.Plan{}, err
	}
	switch in.Output {
	case "", outLines, outFiles, outCount:
	default:
		return session.Plan{}, failf("output is lines, files or count, not %q.", in.Output)
	}
	if in.Glob != "" {
		if err := checkGlob(in.Glob); err != nil {
			return session.Plan{}, err
		}
	}
	in.Context = min(max(in.Context, 0), maxContext)
	p, err := t.o.reach(env, orDot(in.Path))
	if err != nil {
		return session.Plan{}, err
	}
	return readingPlan(p, in, "Search for "+titled(in.Pattern))
}

func (t grepTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in grepArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	m, err := newMatch(in)
	if err != nil {
		return session.Output{}, err
	}
	p, err := t.o.again(env, orDot(in.Path), pl)
	if err != nil {
		return session.Output{}, err
	}
	short, cancel := context.WithTimeout(ctx, grepLasts)
	defer cancel()
	s := &search{o: t.o, env: env, args: in, match: m, place: p}
	if info, statErr := os.Stat(p.abs); statErr == nil && info.Mode().IsRegular() {
		s.one(short)
	} else {
		err = s.all(short)
	}
	if cause := context.Cause(ctx); cause != nil {
		return session.Output{}, cause
	}
	if context.Cause(short) != nil {
		return session.Output{}, failf("The search took longer than %s. Name a smaller folder.", grepLasts)
	}
	return session.Output{Text: s.result()}, err
}

// search finds the lines in the files of a place. The result is the same as if one file after the other was searched in order, up to the cap.
type search struct {
	o     Options
	env   session.ToolEnv
	args  grepArgs
	match *match
	place place

	walked *walk
	hits   []hits // by folder, in order
	note   string
}

// hits is what one folder gave.
type hits struct {
	rows  []row
	size  int  // bytes of the rows
	lines int  // that match and are shown, or files
	total int  // lines that match, of those that were looked at
	files int  // with such lines
	full  bool // not every file was looked at, or not to its end
	long  int  // lines of which only the beginning was searched
	done  bool

	secrets int // files left out because they may hold secrets
}

// row is one line of a result.
type row struct {
	kind rowKind
	text string
}

type rowKind byte

const (
	rowMatch  rowKind = iota // counts
	rowAfter                 // context behind a match
	rowBefore                // context ahead of the next match
	rowGap                   // lines are missing between two matches
)

func (h *hits) add(kind rowKind, text string) {
	h.rows = append(h.rows, row{kind, text})
	h.size += len(text)
	if kind == rowMatch {
		h.lines++
	}
}

// most is how many lines or files a result shows.
func (s *search) most() int {
	if s.args.Output == outFiles || s.args.Output == outCount {
		return maxEntries
	}
	return maxMatches
}

// one searches the one file that was named.
func (s *search) one(ctx context.Context) {
	s.hits = []hits{{done: true}}
	f, _, err := s.place.openFile()
	if err != nil {
		s.note = "\n[it cannot be read: " + plainError(err).Error() + "]"
		return
	}
	defer func() { _ = f.Close() }()
	fs := s.o.newFileSearch(s.match, s.args, maxMatches)
	fs.out = &s.hits[0]
	if fs.run(ctx, f, func() string { return visibleName(shown(s.env, s.place.abs)) }) {
		s.note = "\n[binary file; not searched]"
	}
}

// all searches every file of a folder, several folders at a time.
func (s *search) all(ctx context.Context) (err error) {
	if s.walked, err = s.o.files(ctx, s.place); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.place.root)
	if err != nil {
		return failf("%s cannot be searched: %v.", visibleName(s.place.rel), plainError(err))
	}
	defer func() { _ = root.Close() }()
	s.hits = make([]hits, len(s.walked.folders))
	s.rounds(ctx, root)
	return nil
}

// some searches the folders of one round, and tells whether the result has all that it holds.
func (s *search) some(ctx context.Context, root *os.Root, r round, enough func(done int) bool) (full bool) {
	var next atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range workers() {
		wg.Go(func() {
			fs := s.o.newFileSearch(s.match, s.args, maxInFile)
			name, match, secret := namer(s.env, s.place), matcher(s.args.Glob), newSecretNames()
			for {
				i := r.from + int(next.Add(1)) - 1
				if i >= r.to || ctx.Err() != nil {
					return
				}
				fs.out = &s.hits[i]
				s.folder(ctx, root, s.walked.folders[i], fs, name, match, secret, r.without[s.walked.folders[i].dir])
				if enough(i) {
					stop.Store(true)
					return
				}
			}
		})
	}
	wg.Wait()
	return stop.Load()
}

// frontier tells, as folders get done, whether those at the beginning have given all that a result holds.
func (s *search) frontier() func(done int) bool {
	var mu sync.Mutex
	at, lines, size := 0, 0, 0
	through := make([]bool, len(s.hits)) // what others still work on is not looked at
	return func(done int) bool {
		mu.Lock()
		defer mu.Unlock()
		s.hits[done].done = true
		for through[done] = true; at < len(s.hits) && through[at]; at++ {
			lines += s.hits[at].lines
			size += s.hits[at].size
		}
		return lines > s.most() || size > maxResult
	}
}

// folder searches the files of one folder but those that are known to hold nothing. They are opened in it, and it below the root (I1).
func (s *search) folder(ctx context.Context, root *os.Root, in folderFiles, fs *fileSearch, name func(dir, base string) string, match func(dir, base string) bool,
	secret *secretNames, without map[string]bool) {
	path := s.below(in.dir)
	dir, err := openPlainFolder(root, path)
	if err != nil {
		return // it is gone
	}
	defer dir.close()
	secret.enter(path)
	for _, base := range in.names {
		if ctx.Err() != nil {
			return
		}
		if !match(in.dir, base) {
			continue
		}
		if secret.holds(base) {
			fs.out.secrets++
			continue
		}
		if fs.out.lines > s.most() || fs.out.size > maxResult {
			fs.out.full = true
			return
		}
		if without[base] {
			continue
		}
		f, err := dir.open(base)
		if err != nil {
			continue // it is gone, or nobody may read it
		}
		fs.run(ctx, f, func() string { return name(in.dir, base) })
		_ = f.Close()
	}
}

// below is a folder of the search as its root names it.
func (s *search) below(dir string) string { return filepath.Join(s.place.rel, filepath.FromSlash(dir)) }

// result is what was found, and what was not looked at.
func (s *search) result() string {
	var b strings.Builder
	sum := hits{}
	var ahead []row // what comes before the next match is shown with it or not at all
	for i := range s.hits {
		h := &s.hits[i]
		sum.total, sum.files, sum.long = sum.total+h.total, sum.files+h.files, sum.long+h.long
		sum.full = sum.full || h.full || !h.done
		sum.secrets += h.secrets
		for _, r := range h.rows {
			switch {
			case r.kind >= rowBefore:
				ahead = append(ahead, r)
				continue
			case r.kind == rowMatch && (sum.lines >= s.most() || b.Len() > maxResult):
				return s.told(b.String(), sum, true)
			case r.kind == rowMatch:
				sum.lines++
			}
			for _, a := range ahead {
				if a.kind != rowGap || b.Len() > 0 {
					b.WriteString(a.text)
				}
			}
			ahead = ahead[:0]
			b.WriteString(r.text)
		}
	}
	return s.told(b.String(), sum, sum.full)
}

func (s *search) told(text string, sum hits, more bool) string {
	text = clip(strings.TrimSuffix(text, "\n"), maxResult, "; narrow the search")
	if sum.lines == 0 {
		text = "[no match]"
	}
	switch {
	case more:
		text += "\n[more matches are not shown; narrow the search]"
	case s.args.Output == outCount && sum.files > 1:
		text += fmt.Sprintf("\n[%d lines in %d files]", sum.total, sum.files)
	}
	if sum.long > 0 {
		text += fmt.Sprintf("\n[%d line(s) longer than %d bytes were searched at their beginning only]", sum.long, maxScan)
	}
	if sum.secrets > 0 {
		text += fmt.Sprintf("\n[%d file(s) that may hold secrets were not searched; name one to ask the user]", sum.secrets)
	}
	if s.walked != nil {
		text += s.walked.missing()
	}
	return text + s.note
}
