package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t.invalid"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	git(t, dir, "add", "a.txt")
	git(t, dir, "commit", "-qm", "first")
	return dir
}

func TestTree_IdentityNamesTheDirectory(t *testing.T) {
	dir, tree := newRepo(t), New(t.TempDir())
	first, err := tree.Identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "b.txt"), "content says nothing about identity")
	if same, _ := tree.Identity(dir); same != first {
		t.Errorf("identity changed with content: %q, %q", first, same)
	}
	git(t, dir, "checkout", "-qb", "other")
	if other, _ := tree.Identity(dir); other == first {
		t.Error("another branch has the same identity")
	}
	if _, err := tree.Identity(filepath.Join(dir, "a.txt")); err == nil {
		t.Error("a file passes for a directory")
	}
	if _, err := tree.Identity(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestTree_WithoutGit(t *testing.T) {
	dir := t.TempDir()
	if got, err := New(t.TempDir()).Snapshot(t.Context(), dir); got.Tree != "" || err != nil {
		t.Errorf("snapshot without git: %q, %v", got, err)
	}
	if s, _ := New(t.TempDir()).Status(t.Context(), dir, ""); !strings.Contains(s, "not under git") {
		t.Errorf("status without git: %q", s)
	}
}

// many is a repository with 5,000 committed files in 100 folders.
func many(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := range 100 {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d", d))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for f := range 50 {
			text := strings.Repeat(fmt.Sprintf("line %d of %d\n", f, d), 60)
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%02d.txt", f)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "many")
	return dir
}
