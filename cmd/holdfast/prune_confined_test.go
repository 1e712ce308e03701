package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What nothing has touched for days goes; what is newer stays, wherever in the tree it lies, and so does everything that a link leads to.
func TestPruneConfined(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	old := time.Now().Add(-unusedFor - time.Hour)
	put := func(when time.Time, parts ...string) string {
		t.Helper()
		p := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for dir := p; dir != home && dir != outside; dir = filepath.Dir(dir) {
			if err := os.Chtimes(dir, when, when); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	tmp := filepath.Join(home, "confined", "tmp")
	gone := []string{put(old, tmp, "go-build1", "a", "b"), put(old, tmp, "file")}
	fresh := put(old, tmp, "half", "deep", "new")
	if err := os.Chtimes(fresh, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	kept := []string{fresh, put(old, home, "confined", "cache", "x"), put(old, outside, "theirs", "f"), put(old, home, "calls", "c")}
	if err := os.Symlink(filepath.Join(outside, "theirs"), filepath.Join(tmp, "link")); err != nil {
		t.Fatal(err)
	}
	if n, err := pruneConfined(home, time.Now()); err != nil || n != len(gone) {
		t.Errorf("%d removed, %v", n, err)
	}
	// A command has put a link in the place of the folder itself.
	if err := os.RemoveAll(tmp); err != nil {
		t.Fatal(err)
	}
	kept = kept[1:]
	for _, to := range []string{filepath.Join(outside, "theirs"), "../calls", "cache"} {
		if err := os.Symlink(to, tmp); err != nil {
			t.Fatal(err)
		}
		if n, _ := pruneConfined(home, time.Now()); n != 0 {
			t.Errorf("through a link to %s %d were removed", to, n)
		}
		if err := os.Remove(tmp); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range gone {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	for _, p := range kept {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("%s is gone", p)
		}
	}
}
