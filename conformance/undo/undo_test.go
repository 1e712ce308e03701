package undo_test

import (
	"strings"
	"testing"
)

// The diff of a turn holds what tools and commands changed and nothing of the user's; undo takes it back, leaves what the user changed since,
// says which and why, and the model learns of it.
func TestUndo_LastTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write("users.txt", "from before\n")
	w.steps("change things", edit("edited.txt", "two", "TWO"), create("made.txt", "made\n"), shell("rm kept.txt; echo by command > new.txt; chmod +x edited.txt"),
		create("later.txt", "agent\n"))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "change things")
	w.write("later.txt", "agent and user\n")
	w.write("users.txt", "user\n")
	diff := w.say(a, s, "/diff")
	w.contains(diff, "-two\n+TWO\n", "+++ b/made.txt", "+by command", "-kept\n", "later.txt: it was changed since")
	if strings.Contains(diff, "users.txt") {
		t.Errorf("the user's own edit is shown as the agent's: %s", diff)
	}
	said := w.say(a, s, "/undo")
	w.contains(said, "Turn 1 is taken back", "edited.txt", "made.txt", "new.txt", "kept.txt", "later.txt (it was changed since)", "/undo u1")
	w.holds("edited.txt", "one\ntwo\nthree\n")
	w.holds("made.txt", "<absent>")
	w.holds("new.txt", "<absent>")
	w.holds("kept.txt", "kept\n")
	w.holds("later.txt", "agent and user\n")
	w.holds("users.txt", "user\n")
	if status := w.git("status", "--short"); strings.Contains(status, "edited.txt") || strings.Contains(status, "kept.txt") {
		t.Errorf("the executable bit or the deleted file is not back: %s", status)
	}
	w.contains(w.say(a, s, "/undo"), "There is nothing to take back.")
	w.say(a, s, "go on")
	reqs := w.model.Requests()
	last := reqs[len(reqs)-1]
	told := ""
	for _, m := range last.Messages {
		told += m.Content + "\n"
	}
	w.contains(told, "The user took back the file changes of an earlier turn", "later.txt (it was changed since)")

	w.contains(w.say(a, s, "/undo u1"), "Turn 1 is given again")
	w.holds("edited.txt", "one\nTWO\nthree\n")
	w.holds("made.txt", "made\n")
	w.holds("kept.txt", "<absent>")
	w.holds("later.txt", "agent and user\n")
	if status := w.git("diff", "--summary"); !strings.Contains(status, "mode change 100644 => 100755 edited.txt") {
		t.Errorf("the executable bit was not given again: %s", status)
	}
}
