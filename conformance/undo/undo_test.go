package undo_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
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

// Without git the contents that file writes keep are enough: they are shown and taken back. What a command changed is not known, and is said so.
func TestUndo_WithoutGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("edited.txt", "one\r\ntwo\r\n")
	w.steps("change things", edit("edited.txt", "two", "TWO"), create("sub/made.txt", "made\n"), shell("echo x > unseen.txt"), edit("edited.txt", "TWO", "2"))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "change things")
	diff := w.say(a, s, "/diff")
	w.contains(diff, "-two\r\n+2\r\n", "+++ b/sub/made.txt", "What these calls changed is not recorded: echo x > unseen.txt")
	w.contains(w.say(a, s, "/undo"), "edited.txt, sub/made.txt")
	w.holds("edited.txt", "one\r\ntwo\r\n")
	w.holds("sub/made.txt", "<absent>")
	w.holds("unseen.txt", "x\n")
	w.contains(w.say(a, s, "/undo u1"), "Turn 1 is given again")
	w.holds("edited.txt", "one\r\n2\r\n")
	w.holds("sub/made.txt", "made\n")
}

// What the user changes between two calls of a turn is the user's: it is not shown, it stays, and a file that both changed in turns is left alone.
// A file that git ignores is the agent's only when it wrote it itself.
func TestUndo_UserWorksAlongside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write(".gitignore", "*.log\n")
	w.write("both.txt", "a\nb\n")
	w.write("command.log", "before\n")
	w.play("change things", func(n int, _ fakemodel.Request) fakemodel.Reply {
		switch n {
		case 0:
			return fakemodel.Calls(edit("both.txt", "a", "A"))
		case 1:
			w.write("both.txt", "A\nuser\n")
			w.write("users.txt", "user\n")
			return fakemodel.Calls(shell("echo 1 > first.txt; echo changed > command.log"))
		case 2:
			w.write("users.txt", "user again\n")
			w.write("kept.txt", "the user's\n")
			return fakemodel.Calls(shell("echo 2 > second.txt"))
		case 3:
			return fakemodel.Calls(edit("both.txt", "user", "USER"), create("agent.log", "agent\n"))
		}
		return fakemodel.Text("Done.")
	})
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "change things")
	diff := w.say(a, s, "/diff")
	w.contains(diff, "first.txt", "second.txt", "agent.log", "both.txt: somebody else changed it between two calls of the turn")
	for _, name := range []string{"users.txt", "kept.txt", "command.log"} {
		if strings.Contains(diff, name) {
			t.Errorf("%s is shown: %s", name, diff)
		}
	}
	w.contains(w.say(a, s, "/undo"), "both.txt (somebody else changed it between two calls of the turn)")
	w.holds("both.txt", "A\nUSER\n")
	w.holds("users.txt", "user again\n")
	w.holds("kept.txt", "the user's\n")
	w.holds("first.txt", "<absent>")
	w.holds("second.txt", "<absent>")
	w.holds("agent.log", "<absent>")
	w.holds("command.log", "changed\n")
}

// Nothing is put back while a turn runs or waits to run. Turns have numbers, and an earlier one is taken back as far as no later one changed it.
func TestUndo_TurnsAndRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	gate := make(chan struct{})
	w.steps("first", edit("edited.txt", "two", "TWO"), create("one.txt", "1\n"))
	w.steps("second", edit("edited.txt", "TWO", "zwei"))
	w.play("third", func(n int, _ fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "working "}, {Gate: gate, Text: "Done."}}}
	})
	a := w.launch("")
	s := a.NewSession(w.work)
	w.contains(w.say(a, s, "/diff"), "No turn has changed anything here.")
	w.contains(w.say(a, s, "/undo"), "There is nothing to take back.")
	w.steps("look", shell("ls"))
	w.say(a, s, "first")
	w.say(a, s, "second")
	w.say(a, s, "look") // a turn that changes nothing is not the last one that did
	id := a.Prompt(s, "third")
	harness.Eventually(t, "it works", func() bool { return strings.Contains(a.Text(s), "working") })
	w.contains(w.say(a, s, "/undo"), "The session is working")
	w.contains(w.command(1, "sessions", "undo", s), "the session is working")
	w.holds("edited.txt", "one\nzwei\nthree\n")
	close(gate)
	a.Await(id)
	w.contains(w.say(a, s, "/diff 1"), "+TWO", "edited.txt: it was changed since")
	w.contains(w.say(a, s, "/diff"), "Turn 2", "+zwei")
	w.contains(w.say(a, s, "/diff 9"), "There is no such turn.")
	w.contains(w.say(a, s, "/undo 9"), "There is no such turn.")
	w.contains(w.say(a, s, "/undo u9"), "There is no such step.")
	w.contains(w.say(a, s, "/undo the last thing"), "There is no such turn.")
	w.contains(w.say(a, s, "/undo 1"), "Turn 1 is taken back: one.txt.", "edited.txt (it was changed since)")
	w.holds("edited.txt", "one\nzwei\nthree\n")
	w.holds("one.txt", "<absent>")
	w.contains(w.say(a, s, "/undo 2"), "edited.txt")
	w.holds("edited.txt", "one\nTWO\nthree\n")
	w.contains(w.say(a, s, "/redo"), "Nothing here has stalled")
}

// The command line does the same, and the editor that has the session open is told.
func TestUndo_FromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.steps("change things", edit("edited.txt", "two", "TWO"), shell("rm kept.txt"))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "change things")
	w.contains(w.command(0, "sessions", "diff", s), "Turn 1 (change things) changed 2 file(s).", "-two\n+TWO\n", "-kept\n")
	w.contains(w.command(0, "sessions", "diff", s, "1", "--json"), `"path": "kept.txt"`, `"proven": true`, `"unseen": []`)
	w.command(2, "sessions", "diff", s, "x")
	w.command(2, "sessions", "undo", s, "7")
	w.contains(w.command(0, "sessions", "undo", s), "Turn 1 is taken back: edited.txt, kept.txt.")
	harness.Eventually(t, "the editor is told", func() bool { return strings.Contains(a.Text(s), "Turn 1 is taken back") })
	w.holds("edited.txt", "one\ntwo\nthree\n")
	w.contains(w.command(0, "sessions", "undo", s, "u1", "--json"), `"undo": "u2"`, `"kind": "again"`, `"done": true`)
	w.holds("kept.txt", "<absent>")
	w.command(1, "sessions", "undo", s, "u1") // it is given again already
}

// A command that outlives its process and is found again counts with everything it changed. One that ends while nobody looks does not: what it
// changed cannot be told from what the user did meanwhile, and that is said.
func TestUndo_CommandOutlivesTheProcess(t *testing.T) {
	for name, alone := range map[string]bool{"found again": false, "ends alone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.write(".gitignore", "supervisor\ngo\n")
			w.steps("change things", shell("echo $PPID > supervisor; while [ ! -e go ]; do sleep 0.02; done; echo by command > new.txt"))
			a := w.launch("")
			s := a.NewSession(w.work)
			a.Prompt(s, "change things")
			harness.Eventually(t, "the command runs", func() bool { return strings.HasSuffix(w.read("supervisor"), "\n") })
			a.Kill()
			var b *harness.Agent
			if alone {
				w.write("go", "")
				harness.Eventually(t, "the command has ended", func() bool { return w.gone("supervisor") })
				b = w.launch("")
				w.load(b, s)
			} else {
				b = w.launch("")
				w.load(b, s)
				b.Find(func(m harness.Message) bool { // found again: it is no longer shown as pending
					return strings.Contains(string(m.Params), "echo by command") && strings.Contains(string(m.Params), `"in_progress"`)
				})
				w.write("go", "")
			}
			harness.Eventually(t, "it is done", func() bool { return strings.Contains(b.Text(s), "Done.") })
			harness.Eventually(t, "it has ended", func() bool { return strings.Contains(w.command(0, "sessions", "show", s, "--json"), `"state": "idle"`) })
			if alone {
				w.contains(w.say(b, s, "/diff"), "What these calls changed is not recorded")
				w.contains(w.say(b, s, "/undo"), "There is nothing to take back.")
				w.holds("new.txt", "by command\n")
				return
			}
			w.contains(w.say(b, s, "/diff"), "+by command")
			w.say(b, s, "/undo")
			w.holds("new.txt", "<absent>")
		})
	}
}
