package tools

import (
	"os"
	"path"
	"path/filepath"
	"slices"
)

// maxAhead is how many entries a walk reads before git has said what it ignores: those of an ignored folder are read for nothing.
const maxAhead = 60_000

// ahead is the part of a walk that was done before its rules were known. Git takes as long for its answer as the walk does, so that both
// go on at the same time; what turns out to be ignored is dropped, as if nobody had looked there.
type ahead struct {
	on      bool
	most    int // entries
	known   bool
	rules   rules
	top     walkStep
	seen    []looked
	held    []walkStep // repositories inside: who asks about them depends on the rules
	entries int
	left    map[string]bool // folders that were seen ahead and are left out
}

// waits tells whether the walk has gone far enough ahead.
func (a *ahead) waits() bool {
	return !a.known && (a.entries >= a.most || len(a.held) >= maxRepos)
}

// underGit tells whether git may know a folder. Where it does not, what was done ahead would be lost.
func underGit(abs string) bool {
	for dir := abs; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// begin makes the first step. It is kept for the case that everything is looked at with the rules only.
func (w *walk) begin(root *os.Root, early bool) {
	top := &opened{root: root}
	top.uses.Store(1)
	a := &w.early
	a.on, a.top = early, walkStep{parent: top, name: w.p.rel, dir: "."}
	if early {
		top.uses.Add(1)
		s := a.top
		s.rules, s.early = gitRules{}, true
		w.todo = []walkStep{s}
	}
}

// keep remembers what was found ahead.
func (w *walk) keep(s walkStep, f looked) {
	a := &w.early
	if f.held {
		a.held = append(a.held, s)
		return
	}
	s.parent.release()
	a.entries += f.entries
	w.todo = append(w.todo, f.inside...)
	f.inside = nil
	a.seen = append(a.seen, f)
}

// decide goes on with the rules. With those of git everything holds that they do not leave out; others depend on files that lie in the
// folders, so that the walk starts again.
func (w *walk) decide(r rules) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &w.early
	a.known, a.rules = true, r
	todo, held, seen := w.todo, a.held, a.seen
	w.todo, a.held, a.seen = nil, nil, nil
	for _, f := range seen { // a folder comes before those in it
		w.admitAhead(f)
	}
	w.resume(held)
	w.resume(todo)
	if _, ok := r.(gitRules); ok && a.on {
		a.top.parent.release()
	} else {
		a.top.rules = r
		w.todo = append(w.todo, a.top)
	}
	w.more.Broadcast()
}

// settle takes what was found ahead when the rules became known in between.
func (w *walk) settle(s walkStep, f looked) {
	if f.held {
		w.resume([]walkStep{s})
		return
	}
	s.parent.release()
	inside := f.inside
	f.inside = nil
	w.admitAhead(f)
	w.resume(inside)
}

// resume goes on with steps that were made ahead, and drops those that the rules leave out.
func (w *walk) resume(steps []walkStep) {
	for _, s := range steps {
		if w.early.leaves(s.dir) {
			s.parent.release()
			continue
		}
		s.rules, s.early = w.early.rules, false
		w.todo = append(w.todo, s)
	}
}

// admitAhead adds what the rules leave of a folder that was seen ahead.
func (w *walk) admitAhead(f looked) {
	a := &w.early
	if a.leaves(f.dir) {
		if a.left == nil {
			a.left = map[string]bool{}
		}
		a.left[f.dir] = true
		return
	}
	if here := a.rules.(gitRules)[f.dir]; len(here) > 0 {
		out := func(name string) bool { return here[name] }
		f.names, f.shut = slices.DeleteFunc(f.names, out), slices.DeleteFunc(f.shut, out)
	}
	w.admit(f)
}

// leaves tells whether the rules leave out a folder that was found ahead, or one that it lies in.
func (a *ahead) leaves(dir string) bool {
	g, ok := a.rules.(gitRules)
	return !ok || len(g) > 0 && (g.ignored(dir, true) || a.left[path.Dir(dir)])
}
