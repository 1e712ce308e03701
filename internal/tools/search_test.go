//go:build unix

package tools

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func (b *bench) git(arguments ...string) {
	b.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, arguments...)...)
	cmd.Dir = b.env.Cwd
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
}

// Opening and closing a database file drops the locks that this process holds on it, so searches must not even open what is in there.
func TestSearch_StaysOutOfTheStateDirectory(t *testing.T) {
	for _, repo := range []bool{false, true} {
		b := newBench(t)
		if repo {
			b.git("init", "-q")
		}
		b.opt.StateDir = b.path(".state")
		b.put(".state/log", "needle\n")
		b.put("a.txt", "needle\n")
		if err := os.Symlink(".state/log", b.path("link")); err != nil {
			t.Fatal(err)
		}
		if out := b.must("grep", args{"pattern": "needle"}); out.Text != "a.txt:1: needle" {
			t.Errorf("grep (repository: %v): %s", repo, out.Text)
		}
		if out := b.must("glob", args{"pattern": "**"}); strings.Contains(out.Text, ".state") {
			t.Errorf("glob (repository: %v): %s", repo, out.Text)
		}
	}
}

func TestSearch_ListsWhatIsThere(t *testing.T) {
	b := newBench(t)
	b.git("init", "-q")
	b.put(".gitignore", "ignored/\n")
	b.put("gone.txt", "needle\n")
	b.put("kept.txt", "needle\n")
	b.git("add", ".")
	if err := os.Remove(b.path("gone.txt")); err != nil {
		t.Fatal(err)
	}
	b.put("nested/inner.txt", "needle\n")
	b.put("ignored/deep/x.txt", "needle\n")
	b.git("init", "-q", "nested")
	if out := b.must("glob", args{"pattern": "*.txt"}); out.Text != "kept.txt\nnested/inner.txt" {
		t.Errorf("glob: %s", out.Text)
	}
	if out := b.must("grep", args{"pattern": "needle"}); out.Text != "kept.txt:1: needle\nnested/inner.txt:1: needle" {
		t.Errorf("grep: %s", out.Text)
	}
	// Whoever names an ignored folder wants what is in it.
	if out := b.must("grep", args{"pattern": "needle", "path": "ignored"}); out.Text != "ignored/deep/x.txt:1: needle" {
		t.Errorf("grep in an ignored folder: %s", out.Text)
	}
}

// The paths that a search shows can be handed to read as they are.
func TestSearch_PathsAreRelativeToTheWorkingDirectory(t *testing.T) {
	b := newBench(t)
	b.put("dir/sub/a.txt", "needle\n")
	if out := b.must("glob", args{"pattern": "sub/*.txt", "path": "dir"}); out.Text != "dir/sub/a.txt" {
		t.Errorf("glob: %s", out.Text)
	}
	if out := b.must("grep", args{"pattern": "needle", "path": "dir"}); out.Text != "dir/sub/a.txt:1: needle" {
		t.Errorf("grep: %s", out.Text)
	}
}

func TestGrep_MarksMatchesGapsAndCuts(t *testing.T) {
	b := newBench(t)
	b.put("a", "x\nhit one\nhit two\ny\nz\nw\nhit three\n")
	want := "a-1- x\na:2: hit one\na:3: hit two\na-4- y\n--\na-6- w\na:7: hit three"
	if out := b.must("grep", args{"pattern": "hit", "context": 1}); out.Text != want {
		t.Errorf("got\n%s\nwant\n%s", out.Text, want)
	}
	if out := b.must("grep", args{"pattern": "^$"}); out.Text != "[no match]" {
		t.Errorf("there is no empty line: %s", out.Text)
	}
	b.put("many", strings.Repeat("found\n", maxMatches+5))
	if out := b.must("grep", args{"pattern": "found", "path": "many"}); !strings.Contains(out.Text, "more matches") {
		t.Errorf("a cut is not marked: %s", out.Text[len(out.Text)-60:])
	}
	b.put("many", strings.Repeat("found\n", maxMatches))
	if out := b.must("grep", args{"pattern": "found", "path": "many"}); strings.Contains(out.Text, "more matches") {
		t.Error("a cut is marked that is none")
	}
	b.put("dir/many", strings.Repeat("found\n", maxInFile+3)+"other\n")
	if out := b.must("grep", args{"pattern": "found", "path": "dir"}); !strings.Contains(out.Text, "[3 more matching line(s) in dir/many;") {
		t.Errorf("what is left out of one file is not told: %s", out.Text[len(out.Text)-100:])
	}
}

// A pipe that nobody writes to holds up whoever opens it.
func TestReaders_APipeHoldsNothingUp(t *testing.T) {
	b := newBench(t)
	if err := syscall.Mkfifo(b.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"list", "read", "grep", "glob"} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.call(name, args{"path": "pipe", "pattern": "x"})
			if name == "list" || name == "read" {
				_, err := b.call(name, args{"path": "pipe"})
				if err == nil {
					t.Errorf("%s of a pipe is no failure", name)
				}
			}
		}()
		select {
		case <-done:
		case <-t.Context().Done():
		case <-deadline():
			t.Fatalf("%s hangs", name)
		}
	}
}

func TestList_ShowsWhereLinksLead(t *testing.T) {
	b := newBench(t)
	if err := os.Symlink("nowhere", b.path("link")); err != nil {
		t.Fatal(err)
	}
	if out := b.must("list", args{}); out.Text != "link -> nowhere" {
		t.Error(out.Text)
	}
	for i := range maxEntries + 1 {
		b.put(fmt.Sprintf("many/%04d", i), "")
	}
	if out := b.must("list", args{"path": "many"}); !strings.Contains(out.Text, "[1 more; use glob]") {
		t.Error(out.Text[len(out.Text)-60:])
	}
}
