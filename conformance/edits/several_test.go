package edits_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

const several = `diff --git a/a b/a
--- a/a
+++ b/a
@@ -1 +1 @@
-a
+A
diff --git a/old b/dir/new
rename from old
rename to dir/new
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/made b/made
new file mode 100755
--- /dev/null
+++ b/made
@@ -0,0 +1 @@
+made
\ No newline at end of file
`

func (w *world) several() {
	w.put("a", "a\n")
	w.put("old", "moved\n")
	w.put("gone", "gone\n")
}

func (w *world) before() {
	w.t.Helper()
	w.holds("a", "a\n")
	w.holds("old", "moved\n")
	w.holds("dir/new", "<absent>")
	w.holds("gone", "gone\n")
	w.holds("made", "<absent>")
}

func (w *world) after() {
	w.t.Helper()
	w.holds("a", "A\n")
	w.holds("old", "<absent>")
	w.holds("dir/new", "moved\n")
	w.holds("gone", "<absent>")
	w.holds("made", "made")
}

// The editor is shown one diff for each file, and the files come back with /undo.
func TestSeveral_DiffsAndUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several()
	w.on("go", patching(several))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "go")
	w.after()
	q := w.asked()[0]
	var shown []string
	for _, d := range q.Diffs {
		old := "none"
		if d.OldText != nil {
			old = *d.OldText
		}
		line := strings.TrimPrefix(d.Path, w.work+"/") + ": " + old + " > " + d.NewText
		if d.Meta["holdfast"]["deleted"] == true {
			line += " deleted"
		}
		if from, ok := d.Meta["holdfast"]["movedFrom"].(string); ok {
			line += " from " + strings.TrimPrefix(from, w.work+"/")
		}
		shown = append(shown, strings.ReplaceAll(line, "\n", "."))
	}
	if got, want := strings.Join(shown, "; "), "a: a. > A.; dir/new: moved. > moved. from old; gone: gone. >  deleted; made: none > made"; got != want {
		t.Errorf("shown: %s\nwant:  %s", got, want)
	}
	for _, what := range []string{"/undo", "/undo u1", "/undo"} {
		w.say(a, s, what)
		if what == "/undo u1" {
			w.after()
		} else {
			w.before()
		}
	}
}

// Deleted and moved files come back as they were, also those that are no text.
func TestSeveral_DeletedFilesComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("bin", "\x00\xff\x80")
	w.put("run.sh", "#!/bin/sh\n")
	w.must(os.Chmod(filepath.Join(w.work, "run.sh"), 0o755))
	w.put("m", "m\xe9\n")
	w.on("go", tool("delete", object{"paths": []string{"bin", "run.sh"}}), tool("move", object{"from": "m", "to": "n/m"}))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "go")
	w.holds("bin", "<absent>")
	w.holds("run.sh", "<absent>")
	w.holds("n/m", "m\xe9\n")
	w.say(a, s, "/undo")
	w.holds("bin", "\x00\xff\x80")
	w.holds("m", "m\xe9\n")
	w.holds("n/m", "<absent>")
	if st, err := os.Stat(filepath.Join(w.work, "run.sh")); err != nil || st.Mode()&0o100 == 0 {
		t.Errorf("run.sh is not back as it was: %v %v", st, err)
	}
}

// A death before the first file changed leaves all as it was; one in the middle is told file by file; nothing runs twice.
func TestSeveral_Death(t *testing.T) {
	t.Parallel()
	for point, fact := range map[string]string{"effect.dispatched:after": "not_started by probe", "tools.temp_written": "not_started by probe",
		"tools.renamed": "completed by probe", "effect.settled:before": "completed by probe"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.several()
			told := w.die(point, patching(several))
			if got := w.facts("apply_patch"); len(got) != 1 || got[0] != fact {
				t.Errorf("the journal says %q, want %s", got, fact)
			}
			switch point {
			case "tools.renamed": // behind the first file
				w.holds("a", "A\n")
				w.holds("gone", "gone\n")
				w.contains(told, "a: applied", "dir/new: not applied", "old: not applied", "gone: not applied", "made: not applied")
			case "effect.settled:before":
				w.after()
				w.contains(told, "Applied to every file")
			default:
				w.before()
				w.contains(told, "as they were before")
			}
		})
	}
}

// What a death in the middle has changed can be taken back, and nothing else is.
func TestSeveral_UndoAfterDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several()
	w.die("tools.renamed", patching(several))
	a := w.launch("")
	var sessions struct{ Sessions []struct{ SessionID string } }
	a.Must("session/list", object{}, &sessions)
	s := sessions.Sessions[0].SessionID
	a.Must("session/load", object{"sessionId": s, "cwd": w.work, "mcpServers": []any{}}, nil)
	harness.Eventually(t, "the files are back", func() bool {
		if m := a.Await(a.Prompt(s, "/undo")); m.Error != nil {
			return false
		}
		b, err := os.ReadFile(filepath.Join(w.work, "a"))
		return err == nil && string(b) == "a\n"
	})
	w.before()
}
