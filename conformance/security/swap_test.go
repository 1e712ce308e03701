package security_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lead replaces a folder of the workspace by a link to the outside.
func (w *world) lead() {
	w.t.Helper()
	sub := filepath.Join(w.work, "sub")
	if err := os.Rename(sub, filepath.Join(w.work, "kept")); err != nil {
		w.t.Error(err)
	}
	if err := os.Symlink(w.outside, sub); err != nil {
		w.t.Error(err)
	}
}

// While the user looks at a question, the folder it is about becomes a link: the answer is not good for where that leads.
func TestAttack_SwapDuringTheQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.work, "sub/secret.txt", "harmless\n")
	out := false
	w.choose = func(q ask) string {
		if !strings.Contains(q.Title, "secret.txt") && !strings.Contains(q.Title, "new.txt") || strings.Contains(q.Title, "outside") {
			return "reject_once"
		}
		if !out {
			out = true
			w.lead()
		}
		return "allow_once"
	}
	w.will(tool("edit", m{"path": "sub/secret.txt", "edits": []m{{"old": "harmless", "new": "taken"}}}))
	w.will(tool("write", m{"path": "sub/new.txt", "content": "taken\n"}), tool("read", m{"path": "sub/secret.txt"}))
	w.attack("ask")
	if !out {
		t.Error("the user was not asked")
	}
	w.safe()
	w.unchanged(filepath.Join(w.work, "kept", "secret.txt"), "harmless\n")
}

// A script that was shown is changed while the question stands: the changed one does not run by that answer.
func TestAttack_SwapOfAScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.put(w.work, "run.sh", "echo harmless\n")
	mark := filepath.Join(w.dir, "mark")
	asked := 0
	w.choose = func(ask) string {
		if asked++; asked > 1 {
			return "reject_once" // the user reads what stands there now
		}
		if err := os.WriteFile(script, []byte("touch "+mark+"\n"), 0o755); err != nil {
			t.Error(err)
		}
		return "allow_once"
	}
	w.will(tool("shell", m{"command": "sh run.sh"}))
	w.attack("ask")
	w.absent(mark, "a script that nobody has seen")
	if asked != 2 {
		t.Errorf("the user was asked %d times, want again after the change", asked)
	}
}
