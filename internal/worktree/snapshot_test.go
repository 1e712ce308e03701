package worktree

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/session"
)

// bytesOf is every file of a folder with its content, mode and time of change, so that anything written there shows.
func bytesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		sum := ""
		if st.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = fmt.Sprintf("%x", sha256.Sum256(b))
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel] = fmt.Sprintf("%v %d %s", st.Mode(), st.ModTime().UnixNano(), sum)
		if strings.HasPrefix(rel, "objects") { // git renews the time of an object that it finds
			out[rel] = fmt.Sprintf("%v %s", st.Mode(), sum)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// untouched fails when anything of a folder differs after fn.
func untouched(t *testing.T, dir string, fn func()) {
	t.Helper()
	before := bytesOf(t, dir)
	fn()
	after := bytesOf(t, dir)
	for path, was := range before {
		if after[path] != was {
			t.Errorf("I1: %s changed: %s became %s", path, was, after[path])
		}
	}
	for path := range after {
		if _, was := before[path]; !was {
			t.Errorf("I1: %s appeared", path)
		}
	}
}

func snapshot(t *testing.T, tree *Tree, dir string) string {
	t.Helper()
	c, err := tree.Snapshot(t.Context(), dir)
	if err != nil || c.Tree == "" || c.Fingerprint == "" {
		t.Fatalf("snapshot: %+v, %v", c, err)
	}
	return c.Tree
}

// changed lists what differs, as words.
func changed(t *testing.T, tree *Tree, dir, before, after string) []string {
	t.Helper()
	all, err := tree.Changed(t.Context(), dir, before, after)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range all {
		rel, _ := filepath.Rel(dir, c.Path)
		out = append(out, fmt.Sprintf("%s %s>%s", rel, c.Before.Kind, c.After.Kind))
	}
	slices.Sort(out)
	return out
}

// back takes every change between two trees back and fails on any that cannot be.
func back(t *testing.T, tree *Tree, dir, before, after string) {
	t.Helper()
	all, err := tree.Changed(t.Context(), dir, before, after)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		var content []byte
		if c.Before.Kind != session.PathAbsent {
			if content, err = tree.Content(t.Context(), dir, c.Before.Blob); err != nil {
				t.Fatal(err)
			}
		}
		if err := tree.Put(session.PathStep{Path: c.Path, From: c.After, To: c.Before}, content); err != nil {
			t.Errorf("put %s back: %v", c.Path, err)
		}
	}
}

// The user's repository is the same, byte for byte, after everything there is to do: index, HEAD, stash, refs, objects, configuration.
func TestTree_UserRepositoryIsOnlyRead(t *testing.T) {
	dir, tree := newRepo(t), New(t.TempDir())
	write(t, filepath.Join(dir, "a.txt"), "stashed\n")
	git(t, dir, "stash")
	write(t, filepath.Join(dir, "a.txt"), "staged\n")
	git(t, dir, "add", "a.txt")
	write(t, filepath.Join(dir, "a.txt"), "in the tree\n")
	write(t, filepath.Join(dir, "new.txt"), "untracked\n")
	git(t, dir, "status")
	untouched(t, filepath.Join(dir, ".git"), func() {
		first := snapshot(t, tree, dir)
		write(t, filepath.Join(dir, "new.txt"), "changed\n")
		second := snapshot(t, tree, dir)
		if status, _ := tree.Status(t.Context(), dir, first); !strings.Contains(status, "new.txt | 2 +-") || !strings.Contains(status, "?? new.txt") {
			t.Errorf("status does not say what changed since the snapshot:\n%s", status)
		}
		if got := changed(t, tree, dir, first, second); !slices.Equal(got, []string{"new.txt file>file"}) {
			t.Errorf("changed: %v", got)
		}
		back(t, tree, dir, first, second)
		if third := snapshot(t, tree, dir); third != first {
			t.Errorf("the tree that was put back is %s, was %s", third, first)
		}
	})
}
