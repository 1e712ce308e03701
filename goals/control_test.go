package goals

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/session"
)

// A file requirement cannot be met by a file outside the session's directories, however the path is spelt.
func TestInside_FollowsLinksAndDots(t *testing.T) {
	base := t.TempDir()
	work, other := filepath.Join(base, "work"), filepath.Join(base, "other")
	for _, dir := range []string{work, other} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(other, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, "f"), filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	s := session.Session{Cwd: work, Roots: []string{work}}
	for path, want := range map[string]bool{"a": true, "sub/b": true, work: true, "../other/f": false, "/etc/passwd": false, "link": false, "../worked": false} {
		if got := inside(s, absolute(s, path)); got != want {
			t.Errorf("%s: inside is %v", path, got)
		}
	}
}
