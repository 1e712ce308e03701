package tools

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// repository makes one without running git.
func (b *bench) repository(dir string) {
	b.put(filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n")
	for _, name := range []string{"objects", "refs"} {
		if err := os.MkdirAll(b.path(filepath.Join(dir, ".git", name)), 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
}

// repositories counts what looks like one.
func (b *bench) repositories() (n int) {
	_ = filepath.WalkDir(b.env.Cwd, func(_ string, e os.DirEntry, _ error) error {
		if e != nil && e.Name() == ".git" {
			n++
		}
		return nil
	})
	return n
}

// grow makes a random tree with rules, repositories and what looks like one.
func (b *bench) grow(rnd *rand.Rand, dir string, depth int) {
	lines := []string{"build/", "*.log", "!keep.log", "/gen", "vendor", "!vendor/a", "a/b/", "**/x.go", "gen/*", "!gen/a/", "/*", "!/a/"}
	if rnd.IntN(3) == 0 || depth == 0 {
		var text strings.Builder
		for range 1 + rnd.IntN(4) {
			text.WriteString(lines[rnd.IntN(len(lines)-2*min(1, depth))] + "\n")
		}
		b.put(filepath.Join(dir, []string{".gitignore", ".gitignore", ".ignore"}[rnd.IntN(3)]), text.String())
	}
	for _, name := range []string{"x.go", "y.txt", "z.log", "keep.log", "c.tmp"} {
		if rnd.IntN(2) == 0 {
			b.put(filepath.Join(dir, name), name)
		}
	}
	switch n := rnd.IntN(14); {
	case depth == 0:
	case n == 0:
		b.repository(dir)
	case n == 1:
		b.put(filepath.Join(dir, ".git"), "gitdir: nowhere\n")
	case n == 2:
		b.put(filepath.Join(dir, ".git/x.go"), "")
	case n == 3:
		_ = os.Symlink("..", b.path(filepath.Join(dir, "up")))
	}
	for _, name := range []string{"a", "b", "build", "gen", "vendor", "ünï"} {
		if depth < 1 || depth < 4 && rnd.IntN(3) == 0 {
			b.grow(rnd, filepath.Join(dir, name), depth+1)
		}
	}
}

// view is what a search sees of a walk.
type view struct {
	Folders map[string][]string
	Files   int
	Missing string
}

// view walks with rules that come when the walk has seen some entries, or when it can go no further without them.
func (b *bench) view(path string, early bool, after, most int) view {
	b.t.Helper()
	p, err := b.opt.reach(b.env, path)
	if err != nil {
		b.t.Fatal(err)
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		b.t.Fatal(err)
	}
	w := newWalk(p, b.opt.closed())
	w.early.most = most
	ask := func(ctx context.Context) rules {
		r := rulesFor(ctx, root, p)
		w.comeTo(after)
		return r
	}
	if err := w.run(context.Background(), root, ask, early); err != nil {
		b.t.Fatal(err)
	}
	if _, err := root.Stat("."); err == nil {
		b.t.Error("the root is still open")
	}
	v := view{Folders: map[string][]string{}, Files: w.files, Missing: w.missing()}
	for _, f := range w.folders {
		if _, twice := v.Folders[f.dir]; twice {
			b.t.Errorf("%s was found twice", f.dir)
		}
		v.Folders[f.dir] = f.names
	}
	return v
}

// against says what differs.
func (v view) against(got view) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files, %q; want %d, %q", got.Files, got.Missing, v.Files, v.Missing)
	for _, dir := range slices.Sorted(maps.Keys(v.Folders)) {
		if !slices.Equal(got.Folders[dir], v.Folders[dir]) {
			fmt.Fprintf(&b, "\n%s: %v, want %v", dir, got.Folders[dir], v.Folders[dir])
		}
	}
	return b.String()
}

// comeTo waits for a walk to have seen some entries, or to stand still; it tells how many it has seen.
func (w *walk) comeTo(entries int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.early.entries < entries && (w.busy > 0 || len(w.todo) > 0 && !w.early.waits()) {
		w.more.Wait()
	}
	return w.early.entries
}

// Whenever the rules come, a walk finds what it finds when it has them before.
func TestWalk_AheadOfGitFindsTheSame(t *testing.T) {
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "git"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := newBench(t)
		b.repository(".")
		b.grow(rnd, ".", 0)
		b.put("a/b/own/x.go", "")
		if n := b.repositories(); n < 3 || n > maxRepos { // of more it is chance which are asked about
			t.Fatalf("%d repositories", n)
		}
		b.opt.Own = []string{b.path("a/b/own")}
		b.shut("locked/in", "build/locked/in")
		for _, how := range []string{os.Getenv("PATH"), broken, t.TempDir()} {
			if seed >= 4 && how != os.Getenv("PATH") {
				continue
			}
			t.Run(fmt.Sprintf("%d", seed), func(t *testing.T) {
				b.t = t
				t.Setenv("PATH", how)
				for _, path := range []string{".", "a"} {
					want := b.view(path, false, 0, maxAhead)
					for _, c := range [][2]int{{0, maxAhead}, {1 + rnd.IntN(20), maxAhead}, {20 + rnd.IntN(100), maxAhead}, {maxAhead, maxAhead}, {maxAhead, 1 + rnd.IntN(40)}} {
						if got := b.view(path, true, c[0], c[1]); !reflect.DeepEqual(got, want) {
							t.Errorf("%s, rules after %d, at most %d: %s", path, c[0], c[1], want.against(got))
						}
					}
				}
			})
		}
	}
}

// shut makes folders that cannot be read, for those to whom that applies.
func (b *bench) shut(names ...string) {
	for _, name := range names {
		b.put(name+"/x.go", "")
		dir := b.path(name)
		if err := os.Chmod(dir, 0); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	}
}

// Folders that are too deep are counted where they count only.
func TestWalk_AheadOfGitCountsWhatIsNotIgnored(t *testing.T) {
	b := newBench(t)
	b.repository(".")
	b.put(".gitignore", "/build\nlast\n")
	deep := strings.Repeat("d/", maxDepth)
	b.put("a/"+deep+"x.go", "")
	b.put("build/"+deep+"x.go", "")
	b.put("build/in/.gitignore", "d\n")
	b.put("b/"+strings.Repeat("d/", maxDepth-1)+"last/x.go", "")
	b.put("b/"+strings.Repeat("d/", maxDepth-1)+"y.go", "")
	want := b.view(".", false, 0, maxAhead)
	if want.Missing != "\n[1 folder(s) could not be read]" {
		t.Fatal(want.Missing)
	}
	for _, after := range []int{0, 100, maxAhead} {
		if got := b.view(".", true, after, maxAhead); !reflect.DeepEqual(got, want) {
			t.Errorf("after %d: %q, %d files, want %q, %d files", after, got.Missing, got.Files, want.Missing, want.Files)
		}
	}
}

// A walk that is not told what is ignored stands still, and does not go on in an ignored folder when it is.
func TestWalk_GoesAheadSoFarOnly(t *testing.T) {
	b := newBench(t)
	b.repository(".")
	b.put(".gitignore", "/huge\n")
	b.put("x.go", "")
	for i := range 300 {
		b.put(fmt.Sprintf("huge/d%03d/in/x.go", i), "")
	}
	p, err := b.opt.reach(b.env, ".")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		t.Fatal(err)
	}
	w := newWalk(p, nil)
	w.early.most = 350
	ahead, asked := 0, gitRules{}
	err = w.run(context.Background(), root, func(context.Context) rules {
		ahead = w.comeTo(maxAhead)
		asked.add("huge")
		return asked
	}, true)
	if err != nil || ahead < w.early.most || ahead > w.early.most+2*workers() {
		t.Errorf("%d entries ahead of the rules (%v)", ahead, err)
	}
	if len(w.folders) != 1 || !slices.Equal(w.folders[0].names, []string{".gitignore", "x.go"}) {
		t.Error(w.folders)
	}
}

// Only so many repositories inside are asked; those in ignored folders are not among them.
func TestWalk_AheadOfGitAsksNoIgnoredRepository(t *testing.T) {
	b := newBench(t)
	b.repository(".")
	b.put(".gitignore", "/huge\n")
	for i := range maxRepos + 20 {
		b.repository(fmt.Sprintf("huge/r%03d", i))
	}
	b.repository("z/kept")
	b.put("z/kept/.gitignore", "x.go\n/in/y.go\n")
	b.put("z/kept/x.go", "")
	b.put("z/kept/in/y.go", "")
	b.put("z/kept/in/z.go", "")
	want := map[string][]string{".": {".gitignore"}, "z/kept": {".gitignore"}, "z/kept/in": {"z.go"}}
	for _, early := range []bool{false, true} {
		if got := b.view(".", early, maxAhead, maxAhead).Folders; !reflect.DeepEqual(got, want) {
			t.Errorf("ahead: %v: %v", early, got)
		}
	}
}

// A search whose folder is gone, or that is given up, does not wait for git.
func TestWalk_EndsWithoutGit(t *testing.T) {
	b := newBench(t)
	b.repository(".")
	p, err := b.opt.reach(b.env, "gone")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		t.Fatal(err)
	}
	err = newWalk(p, nil).run(context.Background(), root, func(ctx context.Context) rules { <-ctx.Done(); return gitRules{} }, true)
	if err == nil || !strings.Contains(err.Error(), "gone cannot be searched") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if p, err = b.opt.reach(b.env, "."); err != nil {
		t.Fatal(err)
	}
	if root, err = os.OpenRoot(p.root); err != nil {
		t.Fatal(err)
	}
	err = newWalk(p, nil).run(ctx, root, func(ctx context.Context) rules { cancel(); <-ctx.Done(); return (*ignoreFile)(nil) }, true)
	if err != context.Canceled {
		t.Error(err)
	}
}
