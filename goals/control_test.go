package goals

import (
	"os"
	"path/filepath"
	"slices"
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

// What is allowed and the buttons agree: a blocked goal can be resumed, whatever blocked it.
func TestView_BlockedAllowsResume(t *testing.T) {
	for code := range session.Diagnostics {
		v := View{ReasonCode: code}
		v.place(Goal{Status: Blocked}, session.Session{}, []session.Run{{Phase: session.PhaseQueued}}, nil)
		if n := len(v.NextAction.Allowed) - len(slices.DeleteFunc(slices.Clone(v.NextAction.Allowed), func(a string) bool { return a == "resume" })); !v.CanResume || n != 1 {
			t.Errorf("%s: canResume %v, allowed %v", code, v.CanResume, v.NextAction.Allowed)
		}
	}
}
