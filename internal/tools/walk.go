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
	"syscall"
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
	o      Options
	p      place
	closed []string // folders where no tool goes, links resolved

	mu      sync.Mutex
	more    *sync.Cond
	todo    []walkStep // the last one is next, so that few folders are open at a time
	busy    int
	folders []folderFiles
	err     error // why the walk ends early

	files  atomic.Int64
	repos  atomic.Int64
	denied atomic.Int64 // folders that cannot be read
	cut    atomic.Bool  // there are more than maxWalk
}

// walkStep is one folder to look at.
type walkStep struct {
	parent *opened
	name   string // in the parent
	dir    string // below the place
	depth  int
	rules  rules
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
	w := &walk{o: o, p: p, closed: o.closed()}
	w.more = sync.NewCond(&w.mu)
	top := &opened{root: root}
	top.uses.Store(1)
	first := walkStep{parent: top, name: p.rel, dir: ".", rules: rulesFor(ctx, root, p)}
	if err := w.run(ctx, first); err != nil {
		return nil, err
	}
	slices.SortFunc(w.folders, func(a, b folderFiles) int { return comparePaths(a.dir, b.dir) })
	return w, nil
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

func (w *walk) run(ctx context.Context, first walkStep) error {
	w.todo = []walkStep{first}
	stop := context.AfterFunc(ctx, func() { w.fail(context.Cause(ctx)) })
	defer stop()
	var wg sync.WaitGroup
	for range workers() {
		wg.Go(func() {
			for {
				s, ok := w.next()
				if !ok {
					return
				}
				w.finish(w.look(ctx, s))
			}
		})
	}
	wg.Wait()
	for _, s := range w.todo {
		s.parent.release()
	}
	return w.err
}

// next waits for a folder to look at; there is none any more when nobody works either.
func (w *walk) next() (walkStep, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.todo) == 0 && w.busy > 0 && w.err == nil {
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

func (w *walk) finish(f folderFiles, inside []walkStep) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.todo = append(w.todo, inside...)
	if len(f.names) > 0 {
		w.folders = append(w.folders, f)
	}
	w.more.Broadcast()
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
func (w *walk) look(ctx context.Context, s walkStep) (folderFiles, []walkStep) {
	defer s.parent.release()
	f := folderFiles{dir: s.dir}
	entries, err := readFolder(s.parent.root, s.name)
	if err != nil {
		if s.depth == 0 {
			w.fail(failf("%s cannot be searched: %v.", visibleName(w.p.rel), plainError(err)))
		}
		w.denied.Add(1)
		return f, nil
	}
	r := s.rules
	if s.depth > 0 && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }) && w.repos.Add(1) <= maxRepos {
		if of := askGit(ctx, filepath.Join(w.p.abs, filepath.FromSlash(s.dir)), s.dir); of != nil {
			r = of
		}
	}
	var inside []string
	r = r.enter(s.dir, entries, func(name string) ([]byte, error) { return readSmall(s.parent.root, filepath.Join(s.name, name)) })
	g, asked := r.(gitRules)
	all := asked && len(g) == 0 // nothing is ignored
	f.names = make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			if rel := path.Join(s.dir, name); name != ".git" && !r.ignored(rel, true) && !w.own(rel) {
				inside = append(inside, name)
			}
		case e.Type().IsRegular():
			if all || !r.ignored(path.Join(s.dir, name), false) {
				f.names = append(f.names, name)
			}
		}
	}
	if n := w.files.Add(int64(len(f.names))); n > maxWalk {
		f.names = f.names[:max(0, len(f.names)-int(n-maxWalk))]
		w.cut.Store(true)
	}
	slices.Sort(f.names)
	return f, w.steps(s, r, inside)
}

// steps are the folders inside one.
func (w *walk) steps(s walkStep, r rules, names []string) []walkStep {
	if len(names) == 0 || w.cut.Load() {
		return nil
	}
	root, err := s.parent.root.OpenRoot(s.name)
	if err != nil || s.depth == maxDepth {
		w.denied.Add(1)
		return nil
	}
	slices.Sort(names)
	slices.Reverse(names)
	at := &opened{root: root}
	at.uses.Store(int64(len(names)))
	out := make([]walkStep, len(names))
	for i, name := range names {
		out[i] = walkStep{parent: at, name: name, dir: path.Join(s.dir, name), depth: s.depth + 1, rules: r}
	}
	return out
}

// own tells whether a path is the state directory, or another folder where no tool goes.
func (w *walk) own(rel string) bool {
	return slices.ContainsFunc(w.closed, func(dir string) bool {
		return len(rel) <= len(dir) && strings.HasSuffix(dir, path.Base(rel)) && filepath.Join(w.p.abs, filepath.FromSlash(rel)) == dir
	})
}

func readFolder(root *os.Root, name string) ([]fs.DirEntry, error) {
	dir, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold it up
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Stat(); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return listFolder(dir)
}

// missing says that a search did not see every file.
func (w *walk) missing() string {
	out := ""
	if w.cut.Load() {
		out = fmt.Sprintf("\n[only %d files were looked at, there are more; name a folder]", maxWalk)
	}
	if n := w.denied.Load(); n > 0 {
		out += fmt.Sprintf("\n[%d folder(s) could not be read]", n)
	}
	return out
}
