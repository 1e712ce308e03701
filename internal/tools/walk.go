package tools

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	maxWalk  = 200_000 // files a search looks at
	maxDepth = 1_000   // folders inside folders
	maxRepos = 64      // repositories inside that git is asked about
)

// folderFiles is one folder that a walk came to and the regular files in it, sorted.
type folderFiles struct {
	dir   string // below the place, with slashes; "." is the place itself
	names []string
}

// walk finds the regular files below a place: everything that no rule ignores. Links are not followed, .git folders and the state directory
// are never entered (I2). Each folder is opened below the one that it was found in (I1), by several goroutines; run waits for them.
type walk struct {
	p      place
	closed []string // folders where no tool goes, links resolved

	mu      sync.Mutex
	more    *sync.Cond
	todo    []walkStep // the last one is next, so that few folders are open at a time
	busy    int
	folders []folderFiles
	files   int
	denied  int   // folders that cannot be read
	err     error // why the walk ends early
	early   ahead

	repos atomic.Int64
	cut   atomic.Bool // there are more than maxWalk
}

// walkStep is one folder to look at.
type walkStep struct {
	parent *opened
	name   string // in the parent
	dir    string // below the place
	depth  int
	rules  rules
	early  bool // the rules are not known yet, and these ignore nothing
}

// looked is what a look at a folder gave.
type looked struct {
	folderFiles
	inside  []walkStep
	shut    []string // folders inside that cannot be entered
	denied  bool     // it cannot be read
	held    bool     // what it holds depends on rules that are not known yet
	entries int
}

// opened is a folder that steps open others in. The last of them closes it.
type opened struct {
	root *os.Root
	uses atomic.Int64
}

func (o *opened) release() {
	if o.uses.Add(-1) == 0 {
		_ = o.root.Close()
	}
}

// files lists the files below a folder, folder by folder in order. A folder that is ignored but was named is listed whole.
func (o Options) files(ctx context.Context, p place) (*walk, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, failf("%s cannot be searched: %v.", visibleName(p.rel), plainError(err))
	}
	w := newWalk(p, o.closed())
	rules := func(ctx context.Context) rules { return rulesFor(ctx, root, p) }
	if err := w.run(ctx, root, rules, underGit(p.abs)); err != nil {
		return nil, err
	}
	slices.SortFunc(w.folders, func(a, b folderFiles) int { return comparePaths(a.dir, b.dir) })
	return w, nil
}

func newWalk(p place, closed []string) *walk {
	w := &walk{p: p, closed: closed, early: ahead{most: maxAhead}}
	w.more = sync.NewCond(&w.mu)
	return w
}

// closed lists the folders where no tool goes, as they really are.
func (o Options) closed() (dirs []string) {
	for _, dir := range append([]string{o.StateDir}, o.Own...) {
		if dir == "" {
			continue
		}
		if real, err := resolveLinks(dir); err == nil {
			dir = real
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// comparePaths orders folders so that what is inside one follows it directly.
func comparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// workers is how many goroutines a search uses.
func workers() int { return min(max(runtime.GOMAXPROCS(0), 2), 8) }

// run walks below a root, which it closes. early tells whether to start before the rules are known.
func (w *walk) run(ctx context.Context, root *os.Root, ask func(context.Context) rules, early bool) error {
	stop := context.AfterFunc(ctx, func() { w.fail(context.Cause(ctx)) })
	defer stop()
	asking, enough := context.WithCancel(ctx)
	defer enough()
	w.begin(root, early)
	var asked sync.WaitGroup
	asked.Go(func() { w.decide(ask(asking)) })
	var walkers sync.WaitGroup
	for range workers() {
		walkers.Go(func() {
			for {
				s, ok := w.next()
				if !ok {
					return
				}
				w.finish(s, w.look(ctx, s))
			}
		})
	}
	walkers.Wait()
	enough()
	asked.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.todo {
		s.parent.release()
	}
	if w.err == nil {
		w.err = context.Cause(ctx) // git may have been stopped before it answered
	}
	return w.err
}

// next waits for a folder to look at; there is none any more when nobody works either.
func (w *walk) next() (walkStep, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.cut.Load() && (w.early.waits() || len(w.todo) == 0 && (w.busy > 0 || !w.early.known)) {
		w.more.Wait()
	}
	if len(w.todo) == 0 || w.err != nil || w.cut.Load() {
		w.more.Broadcast()
		return walkStep{}, false
	}
	s := w.todo[len(w.todo)-1]
	w.todo = w.todo[:len(w.todo)-1]
	w.busy++
	return s, true
}

func (w *walk) finish(s walkStep, f looked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	switch {
	case !s.early:
		s.parent.release()
		w.admit(f)
	case w.early.known:
		w.settle(s, f)
	default:
		w.keep(s, f)
	}
	w.more.Broadcast()
}

// admit adds a folder to what was found.
func (w *walk) admit(f looked) {
	if f.denied || len(f.shut) > 0 {
		w.denied++
	}
	w.todo = append(w.todo, f.inside...)
	if w.files += len(f.names); w.files > maxWalk {
		f.names = f.names[:max(0, len(f.names)-(w.files-maxWalk))]
		w.cut.Store(true)
	}
	if len(f.names) > 0 {
		w.folders = append(w.folders, f.folderFiles)
	}
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.more.Broadcast()
}

// look reads one folder. One that cannot be read does not end the search, unless it is the one that was named.
func (w *walk) look(ctx context.Context, s walkStep) looked {
	f := looked{folderFiles: folderFiles{dir: s.dir}}
	entries, err := readFolder(s.parent.root, s.name)
	if err != nil {
		if s.depth == 0 {
			w.fail(failf("%s cannot be searched: %v.", visibleName(w.p.rel), plainError(err)))
		}
		f.denied = true
		return f
	}
	r := s.rules
	if s.depth > 0 && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }) {
		if f.held = s.early; f.held {
			return f
		}
		if w.repos.Add(1) <= maxRepos {
			if of := askGit(ctx, filepath.Join(w.p.abs, filepath.FromSlash(s.dir)), s.dir); of != nil {
				r = of
			}
		}
	}
	r = r.enter(s.dir, entries, func(name string) ([]byte, error) { return readSmall(s.parent.root, filepath.Join(s.name, name)) })
	inside := w.sortOut(&f, r, entries)
	f.entries = len(entries)
	w.steps(&f, s, r, inside)
	return f
}

// sortOut takes the files of a folder that no rule ignores, and gives the folders in it.
func (w *walk) sortOut(f *looked, r rules, entries []fs.DirEntry) (inside []string) {
	ignored := func(name string, dir bool) bool { return r.ignored(path.Join(f.dir, name), dir) }
	if g, ok := r.(gitRules); ok {
		here := g[f.dir]
		ignored = func(name string, _ bool) bool { return here[name] }
	}
	f.names = make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			if name != ".git" && !ignored(name, true) && !w.own(path.Join(f.dir, name)) {
				inside = append(inside, name)
			}
		case e.Type().IsRegular():
			if !ignored(name, false) {
				f.names = append(f.names, name)
			}
		}
	}
	slices.Sort(f.names)
	return inside
}

// steps are the folders inside one.
func (w *walk) steps(f *looked, s walkStep, r rules, names []string) {
	if len(names) == 0 || w.cut.Load() {
		return
	}
	root, err := s.parent.root.OpenRoot(s.name)
	if err == nil && s.depth == maxDepth {
		_ = root.Close()
	}
	if err != nil || s.depth == maxDepth {
		f.shut = names
		return
	}
	slices.Sort(names)
	slices.Reverse(names)
	at := &opened{root: root}
	at.uses.Store(int64(len(names)))
	f.inside = make([]walkStep, len(names))
	for i, name := range names {
		f.inside[i] = walkStep{parent: at, name: name, dir: path.Join(s.dir, name), depth: s.depth + 1, rules: r, early: s.early}
	}
}

// own tells whether a path is the state directory, or another folder where no tool goes.
func (w *walk) own(rel string) bool {
	return slices.ContainsFunc(w.closed, func(dir string) bool {
		return len(rel) <= len(dir) && strings.HasSuffix(dir, path.Base(rel)) && filepath.Join(w.p.abs, filepath.FromSlash(rel)) == dir
	})
}

// missing says that a search did not see every file.
func (w *walk) missing() string {
	out := ""
	if w.cut.Load() {
		out = fmt.Sprintf("\n[only %d files were looked at, there are more; name a folder]", maxWalk)
	}
	if w.denied > 0 {
		out += fmt.Sprintf("\n[%d folder(s) could not be read]", w.denied)
	}
	return out
}
