package tools

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// rules tell what a search leaves out. Paths are below the place of the search, with slashes.
type rules interface {
	ignored(path string, dir bool) bool
	// enter is the rules inside a folder, which may hold some of its own.
	enter(dir string, entries []fs.DirEntry, read func(name string) ([]byte, error)) rules
}

// rulesFor finds the rules for a place: git's own where git knows the folder, and those of ignore files from the root down otherwise.
func rulesFor(ctx context.Context, root *os.Root, p place) rules {
	if of := askGit(ctx, p.abs, "."); of != nil {
		return of
	}
	var r rules = (*ignoreFile)(nil)
	names := strings.Split(filepath.ToSlash(p.rel), "/")
	for i := range names { // the folder itself is entered by the walk
		if p.rel == "." {
			break
		}
		dir := path.Join(names[:i]...)
		entries, err := readFolder(root, filepath.Join(".", filepath.FromSlash(dir)))
		if err != nil {
			break
		}
		// Seen from the place, the folders above have names that lead up.
		up := strings.TrimSuffix(strings.Repeat("../", len(names)-i), "/")
		r = r.enter(up, entries, func(name string) ([]byte, error) {
			return readSmall(root, filepath.Join(filepath.FromSlash(dir), name))
		})
	}
	if f, ok := r.(*ignoreFile); ok && f != nil {
		f.base(names)
	}
	return r
}

// gitRules is the set of paths that git ignores, by the folder that they lie in; of a folder that is ignored as a whole it holds the folder.
type gitRules map[string]map[string]bool

func (g gitRules) add(p string) {
	dir, base := path.Dir(p), path.Base(p)
	if g[dir] == nil {
		g[dir] = map[string]bool{}
	}
	g[dir][base] = true
}

func (g gitRules) ignored(p string, _ bool) bool { return len(g) > 0 && g[path.Dir(p)][path.Base(p)] }

func (g gitRules) enter(string, []fs.DirEntry, func(string) ([]byte, error)) rules { return g }

// ignoreFile is the patterns of one folder, behind those of the folders above. A nil one ignores nothing.
type ignoreFile struct {
	above    *ignoreFile
	dir      string // the folder, below the place or leading up from it
	prefix   string // of a folder above the place: the way down to the place
	patterns []pattern
}

// pattern is one line of an ignore file.
type pattern struct {
	glob    string
	name    bool // it is held against the last part of a path only
	plain   bool // it holds no special character
	negated bool
	dirOnly bool
}

const maxIgnoreFile = 1 << 20

func (f *ignoreFile) enter(dir string, entries []fs.DirEntry, read func(string) ([]byte, error)) rules {
	var own []pattern
	for _, name := range []string{".gitignore", ".ignore"} { // the last pattern that matches decides
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name && e.Type().IsRegular() }) {
			continue
		}
		if b, err := read(name); err == nil {
			own = append(own, patternsOf(string(b))...)
		}
	}
	if len(own) == 0 {
		return f
	}
	return &ignoreFile{above: f, dir: dir, patterns: own}
}

// base tells files above the place how to name what is below it.
func (f *ignoreFile) base(names []string) {
	for ; f != nil; f = f.above {
		f.prefix = path.Join(names[len(names)-strings.Count(f.dir, ".."):]...)
		f.dir = "."
	}
}

func (f *ignoreFile) ignored(p string, dir bool) bool {
	for ; f != nil; f = f.above {
		rel := p
		if f.dir != "." {
			rel = strings.TrimPrefix(p, f.dir+"/")
		}
		rel = path.Join(f.prefix, rel)
		for i := len(f.patterns) - 1; i >= 0; i-- {
			if f.patterns[i].matches(rel, dir) {
				return !f.patterns[i].negated
			}
		}
	}
	return false
}

func (p pattern) matches(rel string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	if p.name {
		rel = path.Base(rel)
	}
	if p.plain {
		return rel == p.glob
	}
	ok, _ := doublestar.Match(p.glob, rel) // a pattern that is none matches nothing
	return ok
}

func patternsOf(text string) (out []pattern) {
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if p, ok := patternOf(strings.TrimSuffix(line, "\r")); ok {
			out = append(out, p)
		}
	}
	return out
}

func patternOf(line string) (p pattern, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, strings.TrimSuffix(line, "/")
	}
	p.name = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	p.plain = !strings.ContainsAny(line, `*?[\`)
	if p.glob = line; p.plain {
		return p, true
	}
	if strings.HasSuffix(line, "/**") { // everything inside, not the folder itself
		p.glob += "/*"
	}
	p.glob = braces.Replace(p.glob) // they mean nothing here
	return p, true
}

var braces = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`)

// readSmall reads a file of rules.
func readSmall(root *os.Root, name string) ([]byte, error) {
	f, _, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxIgnoreFile))
}
