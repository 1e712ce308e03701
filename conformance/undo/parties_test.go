package undo_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

const many = 300

// appended is a work tree of many files, each of which a command of the agent has made longer.
func appended(t *testing.T) (*world, *harness.Agent, string) {
	t.Helper()
	w := newWorld(t)
	w.repository()
	for i := range many {
		w.write(fmt.Sprintf("f%03d", i), "x\n")
	}
	w.git("add", ".")
	w.git("commit", "-qm", "many")
	w.steps("make them longer", shell("for i in f*; do echo y >> $i; done"))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "make them longer")
	return w, a, s
}

// all checks that every file holds the same.
func (w *world) all(want string) {
	w.t.Helper()
	for i := range many {
		if got := w.read(fmt.Sprintf("f%03d", i)); got != want {
			w.t.Fatalf("f%03d holds %q, want %q", i, got, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.work, ".holdfast-tmp-*")); len(left) > 0 {
		w.t.Errorf("left over: %q", left)
	}
}

// A step is carried out by one process. Another that comes in the middle of it waits, and finds nothing to take back; what is reported is
// what happened, and the step can be taken back whole.
func TestUndo_TwoParties(t *testing.T) {
	t.Parallel()
	w, a, s := appended(t)
	id := a.Prompt(s, "/undo")
	harness.Eventually(t, "the first files are back", func() bool { return w.read("f003") == "x\n" })
	out := w.command(1, "sessions", "undo", s)
	w.contains(out, "nothing to take back")
	if m := a.Await(id); m.Error != nil {
		t.Fatal(m.Error)
	}
	w.all("x\n")
	if text := a.Text(s); strings.Contains(text, "Left as it is") {
		t.Errorf("a file that nobody touched is called changed: %s", text)
	}
	w.contains(w.say(a, s, "/undo u1"), "Turn 1 is given again")
	w.all("x\ny\n")
}

// Whoever comes right after a death finishes the step and leaves nothing beside the files, whether it was the launch or the user's own undo.
func TestUndo_DeathAndAgainAtOnce(t *testing.T) {
	t.Parallel()
	w, a, s := appended(t)
	a.Prompt(s, "/undo")
	harness.Eventually(t, "the first files are back", func() bool { return w.read("f003") == "x\n" })
	a.Kill()
	b := w.launch("")
	w.load(b, s)
	w.say(b, s, "/undo")
	w.all("x\n")
	if text := b.Text(s); strings.Contains(text, "Left as it is") {
		t.Errorf("a file that nobody touched is called changed: %s", text)
	}
	w.contains(w.say(b, s, "/undo u1"), "Turn 1 is given again")
	w.all("x\ny\n")
}
