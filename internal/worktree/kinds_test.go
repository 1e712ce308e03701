package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/session"
)

// round changes things between two snapshots, checks what differs, puts it back and checks that the tree is the one it was.
func round(t *testing.T, tree *Tree, dir string, want []string, change func()) {
	t.Helper()
	before := snapshot(t, tree, dir)
	was := bytesOf(t, dir)
	change()
	after := snapshot(t, tree, dir)
	if got := changed(t, tree, dir, before, after); !slices.Equal(got, want) {
		t.Errorf("changed: %q, want %q", got, want)
	}
	back(t, tree, dir, before, after)
	if again := snapshot(t, tree, dir); again != before {
		t.Errorf("what was put back differs: %v", changed(t, tree, dir, before, again))
	}
	for path, b := range bytesOf(t, dir) {
		if w, ok := was[path]; ok && strings.HasPrefix(w, "-") && content(w) != content(b) {
			t.Errorf("%s has other bytes or another mode: %s, was %s", path, b, w)
		}
	}
}

// content is an entry of bytesOf without its time.
func content(entry string) string {
	f := strings.Split(entry, " ")
	return f[0] + f[len(f)-1]
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnapshot_BeforeTheFirstCommit(t *testing.T) {
	dir, tree := t.TempDir(), New(t.TempDir())
	git(t, dir, "init", "-q")
	write(t, filepath.Join(dir, "a"), "a\n")
	untouched(t, filepath.Join(dir, ".git"), func() {
		round(t, tree, dir, []string{"a file>absent", "b absent>file"}, func() {
			must(t, os.Remove(filepath.Join(dir, "a")))
			write(t, filepath.Join(dir, "b"), "b\n")
		})
	})
}

// Line ends, filters, keywords and encodings of the user's repository have no part in what is recorded and put back.
func TestSnapshot_BytesAsTheyAre(t *testing.T) {
	dir, tree := newRepo(t), New(t.TempDir())
	write(t, filepath.Join(dir, ".gitattributes"), "*.txt text eol=lf\n*.id ident\n*.lfs filter=shout diff=shout\n*.u16 text working-tree-encoding=UTF-16LE-BOM\n")
	git(t, dir, "config", "core.autocrlf", "true")
	git(t, dir, "config", "filter.shout.clean", "tr a-z A-Z")
	git(t, dir, "config", "filter.shout.smudge", "tr A-Z a-z")
	git(t, dir, "config", "filter.shout.required", "true")
	hook := filepath.Join(dir, ".git", "hooks", "post-index-change")
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+filepath.Join(dir, "hooked")+"\n"), 0o755))
	files := map[string]string{"crlf.txt": "one\r\ntwo\r\n", "mixed.txt": "one\r\ntwo\n", "k.id": "$Id: kept$\n", "big.lfs": "Mixed Case\n",
		"w.u16": "\xff\xfea\x00\r\x00\n\x00", "bom.txt": "\xef\xbb\xbfx\r\n", "none": "no newline"}
	var want []string
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
		want = append(want, name+" file>file")
	}
	slices.Sort(want)
	round(t, tree, dir, want, func() {
		for name := range files {
			write(t, filepath.Join(dir, name), "other\n")
		}
	})
	for name, text := range files {
		if b, _ := os.ReadFile(filepath.Join(dir, name)); string(b) != text {
			t.Errorf("%s is %q, was %q", name, b, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "hooked")); err == nil {
		t.Error("a hook of the user's ran")
	}
}

// What git ignores is neither recorded nor touched, wherever the user says so.
func TestSnapshot_LeavesIgnoredFilesAlone(t *testing.T) {
	dir, home := newRepo(t), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	must(t, os.MkdirAll(filepath.Join(home, ".config", "git"), 0o755))
	write(t, filepath.Join(home, ".config", "git", "ignore"), "*.global\n")
	write(t, filepath.Join(dir, ".gitignore"), "build/\n*.log\n")
	write(t, filepath.Join(dir, ".git", "info", "exclude"), "/mine.local\n")
	must(t, os.Mkdir(filepath.Join(dir, "build"), 0o755))
	state := filepath.Join(dir, ".state") // our own state in the tree is not the user's either
	tree := New(state)
	ignored := []string{"build/out.o", "x.log", "mine.local", "y.global"}
	for _, name := range ignored {
		write(t, filepath.Join(dir, name), "kept\n")
	}
	before := snapshot(t, tree, dir)
	for _, name := range ignored {
		write(t, filepath.Join(dir, name), "changed\n")
	}
	write(t, filepath.Join(dir, "a.txt"), "two\n")
	after := snapshot(t, tree, dir)
	if got := changed(t, tree, dir, before, after); !slices.Equal(got, []string{"a.txt file>file"}) {
		t.Errorf("changed: %v", got)
	}
	back(t, tree, dir, before, after)
	for _, name := range ignored {
		if b, _ := os.ReadFile(filepath.Join(dir, name)); string(b) != "changed\n" {
			t.Errorf("%s was touched: %q", name, b)
		}
	}
}

func TestSnapshot_LinksAndPermissions(t *testing.T) {
	dir, tree, outside := newRepo(t), New(t.TempDir()), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, filepath.Join(outside, "secret"), "outside\n")
	must(t, os.Symlink("a.txt", at("link")), os.Symlink(outside, at("away")), os.Symlink("nowhere", at("broken")), os.Mkdir(at("d"), 0o755))
	write(t, at("d/in"), "in\n")
	write(t, at("private"), "p\n")
	write(t, at("run"), "#!/bin/sh\n")
	must(t, os.Chmod(at("private"), 0o600), os.Chmod(at("run"), 0o750))
	want := []string{"a.txt file>link", "away link>file", "broken link>link", "d file>absent", "link link>absent", "private file>file", "run file>file"}
	want[3] = "d absent>link"
	want = slices.Insert(want, 4, "d/in file>absent")
	round(t, tree, dir, want, func() {
		must(t, os.Remove(at("a.txt")), os.Symlink("link", at("a.txt")), os.Remove(at("away")), os.Remove(at("broken")), os.Symlink("elsewhere", at("broken")),
			os.Remove(at("link")), os.RemoveAll(at("d")), os.Symlink(outside, at("d")), os.Chmod(at("run"), 0o640))
		write(t, at("away"), "file\n")
		write(t, at("private"), "changed\n")
	})
	if b, _ := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "outside\n" {
		t.Error("something was written through a link")
	}
	if all, _ := os.ReadDir(outside); len(all) != 1 {
		t.Errorf("something was put outside: %v", all)
	}
	for name, mode := range map[string]os.FileMode{"private": 0o600, "run": 0o750} {
		if st, err := os.Stat(at(name)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", name, st.Mode(), err, mode)
		}
	}
}

// Names that no sane person uses.
func TestSnapshot_OddNames(t *testing.T) {
	dir, tree := newRepo(t), New(t.TempDir())
	names := []string{"new\nline", "-dash", " spaces ", `quo"te`, `back\slash`, "umläut", "\xff\xfe", ":(top)magic", "star*", "#hash", "!bang", "tab\there"}
	var want []string
	for _, n := range names {
		write(t, filepath.Join(dir, n), "x")
		want = append(want, n+" file>absent")
	}
	slices.Sort(want)
	round(t, tree, dir, want, func() {
		for _, n := range names {
			must(t, os.Remove(filepath.Join(dir, n)))
		}
	})
}

// A submodule and a nested repository are recorded file by file, before their first commit too. A linked work tree inside is somebody's own.
func TestSnapshot_NestedRepositories(t *testing.T) {
	dir, tree, other := newRepo(t), New(t.TempDir()), newRepo(t)
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub")
	for _, n := range []string{"nested", "unborn", "nested/deeper"} {
		must(t, os.MkdirAll(filepath.Join(dir, n), 0o755))
		git(t, filepath.Join(dir, n), "init", "-q")
		write(t, filepath.Join(dir, n, "f"), "f\n")
	}
	git(t, filepath.Join(dir, "nested"), "add", "f")
	git(t, filepath.Join(dir, "nested"), "commit", "-qm", "n")
	git(t, dir, "worktree", "add", "-q", "linked")
	untouched(t, filepath.Join(dir, ".git"), func() {
		round(t, tree, dir, []string{"nested/deeper/f file>file", "nested/f file>file", "nested/new absent>file", "sub/a.txt file>absent", "unborn/f file>file"}, func() {
			for _, n := range []string{"nested", "unborn", "nested/deeper", "linked"} {
				write(t, filepath.Join(dir, n, "f"), "changed\n")
			}
			write(t, filepath.Join(dir, "nested", "new"), "new\n")
			must(t, os.Remove(filepath.Join(dir, "sub", "a.txt")))
		})
	})
	// One that appears later is seen as well.
	before := snapshot(t, tree, dir)
	must(t, os.Mkdir(filepath.Join(dir, "late"), 0o755))
	git(t, filepath.Join(dir, "late"), "init", "-q")
	write(t, filepath.Join(dir, "late", "f"), "f\n")
	if got := changed(t, tree, dir, before, snapshot(t, tree, dir)); !slices.Contains(got, "late/f absent>file") {
		t.Errorf("a repository that appeared: %v", got)
	}
}

// A linked work tree, and a folder inside one, are recorded like any other.
func TestSnapshot_LinkedWorkTree(t *testing.T) {
	main, tree := newRepo(t), New(t.TempDir())
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, main, "worktree", "add", "-q", linked)
	sub := filepath.Join(linked, "sub")
	must(t, os.Mkdir(sub, 0o755))
	write(t, filepath.Join(sub, "f"), "f\n")
	untouched(t, filepath.Join(main, ".git"), func() {
		round(t, tree, linked, []string{"a.txt file>file", "sub/f file>absent"}, func() {
			write(t, filepath.Join(linked, "a.txt"), "two\n")
			must(t, os.Remove(filepath.Join(sub, "f")))
		})
		before := snapshot(t, tree, sub)
		write(t, filepath.Join(linked, "a.txt"), "outside of the folder\n")
		write(t, filepath.Join(sub, "g"), "g\n")
		if got := changed(t, tree, sub, before, snapshot(t, tree, sub)); !slices.Equal(got, []string{"g absent>file"}) {
			t.Errorf("below a folder: %v", got)
		}
	})
	if a, b := must2(tree.Snapshot(t.Context(), linked)), must2(tree.Snapshot(t.Context(), linked)); a.Fingerprint != b.Fingerprint {
		t.Error("the same work tree has two fingerprints")
	}
	before := must2(tree.Snapshot(t.Context(), linked))
	git(t, linked, "commit", "-qm", "c", "--allow-empty")
	if now := must2(tree.Snapshot(t.Context(), linked)); now.Fingerprint == before.Fingerprint || now.Tree != before.Tree {
		t.Error("another commit under the same files has the same fingerprint")
	}
}

func must2(c session.Checkpoint, err error) session.Checkpoint {
	if err != nil {
		panic(err)
	}
	return c
}

// What the user's own garbage collection throws away is still here.
func TestSnapshot_SurvivesTheUsersGarbageCollection(t *testing.T) {
	dir, tree := newRepo(t), New(t.TempDir())
	write(t, filepath.Join(dir, "a.txt"), "staged once\n")
	git(t, dir, "add", "a.txt")
	before := snapshot(t, tree, dir) // the blob is the user's, and borrowed
	write(t, filepath.Join(dir, "a.txt"), "something else\n")
	git(t, dir, "add", "a.txt")
	git(t, dir, "gc", "-q", "--prune=now")
	after := snapshot(t, tree, dir)
	back(t, tree, dir, before, after)
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "staged once\n" {
		t.Errorf("a.txt is %q", b)
	}
}

// A file that takes long is left out, in the first snapshot and when it appears later.
func TestSnapshot_LeavesLargeFilesOut(t *testing.T) {
	dir, tree := newRepo(t), New(t.TempDir())
	large := filepath.Join(dir, "[large] *.bin")
	must(t, os.WriteFile(large, nil, 0o644), os.Truncate(large, largest+1))
	before := snapshot(t, tree, dir)
	must(t, os.Truncate(large, largest+2))
	write(t, filepath.Join(dir, "[large] x.bin"), "small\n")
	if got := changed(t, tree, dir, before, snapshot(t, tree, dir)); !slices.Equal(got, []string{"[large] x.bin absent>file"}) {
		t.Errorf("changed: %v", got)
	}
	if got := changed(t, New(tree.StateDir), dir, before, snapshot(t, New(tree.StateDir), dir)); !slices.Equal(got, []string{"[large] x.bin absent>file"}) {
		t.Errorf("in another process it is recorded: %v", got)
	}
}

// What a killed git command left is in nobody's way, and many may record at once.
func TestSnapshot_LeftoversAndCompany(t *testing.T) {
	dir, state := newRepo(t), t.TempDir()
	tree := New(state)
	first := snapshot(t, tree, dir)
	private := filepath.Join(state, "trees", keyOf(dir))
	for _, left := range []string{"index.lock", "index.first", "index.first.lock"} {
		write(t, filepath.Join(private, left), "half")
	}
	if again := snapshot(t, tree, dir); again != first {
		t.Errorf("the same files have another tree: %s, %s", first, again)
	}
	must(t, os.Remove(filepath.Join(private, "index"))) // it died before the first one had its name
	write(t, filepath.Join(private, "index.first"), "half")
	if again := snapshot(t, tree, dir); again != first {
		t.Errorf("the same files have another tree: %s, %s", first, again)
	}
	var wg sync.WaitGroup
	for range 6 {
		other := New(state) // as another process
		wg.Go(func() {
			if c, err := other.Snapshot(t.Context(), dir); err != nil || c.Tree != first {
				t.Errorf("at once: %+v, %v", c, err)
			}
		})
	}
	wg.Wait()
}

// Variables of a git hook or another tool that starts us lead nowhere else.
func TestSnapshot_IgnoresTheEnvironment(t *testing.T) {
	dir, tree, other := newRepo(t), New(t.TempDir()), newRepo(t)
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, "index"))
	t.Setenv("GIT_OBJECT_DIRECTORY", filepath.Join(other, "objects"))
	untouched(t, other, func() { snapshot(t, tree, dir) })
}

// I3: a path is left alone unless it holds what is expected.
func TestPut_OnlyWhatIsExpected(t *testing.T) {
	dir, tree := t.TempDir(), New(t.TempDir())
	path, elsewhere := filepath.Join(dir, "d", "f"), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	file := func(text string) session.PathState {
		return session.PathState{Kind: session.PathFile, Blob: session.BlobID([]byte(text))}
	}
	absent := session.PathState{Kind: session.PathAbsent}
	write(t, path, "user\n")
	for name, c := range map[string]struct {
		from, to session.PathState
		content  string
	}{
		"another content":      {file("agent\n"), file("old\n"), "old\n"},
		"not there":            {absent, file("old\n"), "old\n"},
		"to be removed":        {file("agent\n"), absent, ""},
		"content not recorded": {file("user\n"), file("old\n"), "forged\n"},
		"a folder":             {file("user\n"), session.PathState{Kind: session.PathOther}, ""},
	} {
		if err := tree.Put(session.PathStep{Path: path, From: c.from, To: c.to}, []byte(c.content)); err == nil {
			t.Errorf("%s: it was changed", name)
		}
		if b, _ := os.ReadFile(path); string(b) != "user\n" {
			t.Fatalf("%s: it holds %q", name, b)
		}
	}
	must(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")), os.Symlink(elsewhere, filepath.Join(dir, "d")))
	write(t, filepath.Join(elsewhere, "f"), "user\n")
	if err := tree.Put(session.PathStep{Path: path, From: file("user\n"), To: file("old\n")}, []byte("old\n")); err == nil {
		t.Error("it was written through a link")
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "*", ".holdfast*")); len(all) > 0 {
		t.Errorf("left over: %v", all)
	}
}

func TestPrune_KeepsWhatRecordsName(t *testing.T) {
	dir, state := newRepo(t), t.TempDir()
	tree := New(state)
	kept := snapshot(t, tree, dir)
	write(t, filepath.Join(dir, "a.txt"), "nobody's\n")
	lost := snapshot(t, tree, dir)
	write(t, filepath.Join(dir, "a.txt"), "young\n")
	fresh := snapshot(t, tree, dir)
	write(t, filepath.Join(dir, "a.txt"), "now\n")
	snapshot(t, tree, dir)
	private := filepath.Join(state, "trees", keyOf(dir))
	must(t, os.MkdirAll(filepath.Join(state, "trees", "some-session", "objects"), 0o700))
	old := time.Now().Add(-2 * time.Hour)
	must(t, filepath.WalkDir(private, func(path string, d os.DirEntry, err error) error {
		if err == nil && !strings.Contains(path, fresh) && !d.IsDir() {
			err = os.Chtimes(path, old, old)
		}
		return err
	}))
	names := func() (map[string]bool, error) { return map[string]bool{kept: true}, nil }
	must(t, tree.Prune(t.Context(), names))
	blob := func(text string) error {
		_, err := tree.Content(t.Context(), dir, session.BlobID([]byte(text)))
		return err
	}
	if err := blob("one\n"); err != nil {
		t.Errorf("what a record names is gone: %v", err)
	}
	if blob("nobody's\n") == nil {
		t.Error("what nobody names is still there")
	}
	if err := blob("young\n"); err != nil {
		t.Errorf("what is young is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Join(private, "refs", "holdfast", "tree", lost)); err == nil {
		t.Error("the name of what is gone is still there")
	}
	if _, err := os.Stat(filepath.Join(state, "trees", "some-session")); err == nil {
		t.Error("what an earlier version left is still there")
	}
	snapshot(t, tree, dir) // and it goes on
	if err := tree.Prune(t.Context(), func() (map[string]bool, error) { t.Error("it looks again on the same day"); return nil, nil }); err != nil {
		t.Error(err)
	}
}

// Five thousand files, and their tree is the one git itself would make.
func TestSnapshot_FiveThousandFiles(t *testing.T) {
	dir, tree := many(t), New(t.TempDir())
	before := snapshot(t, tree, dir)
	if want := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD^{tree}")); before != want {
		t.Errorf("the tree is %s, git's is %s", before, want)
	}
	write(t, filepath.Join(dir, "d07", "f03.txt"), "changed\n")
	if got := changed(t, tree, dir, before, snapshot(t, tree, dir)); !slices.Equal(got, []string{"d07/f03.txt file>file"}) {
		t.Errorf("changed: %v", got)
	}
}
