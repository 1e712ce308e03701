package undo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A step that takes a turn back is killed at each of its instants. Stored before the death, the next process finishes it by itself, once, and
// nothing of the user's is touched; not stored, nothing has happened.
func TestCrash_Undo(t *testing.T) {
	for _, point := range []string{"undo.accepted:before", "undo.accepted:after", "tree.restoring", "tree.restoring/2", "tree.restoring/3",
		"undo.settled:before", "undo.settled:after"} {
		t.Run(strings.ReplaceAll(point, "/", " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.steps("change things", edit("edited.txt", "two", "TWO"), create("made.txt", "made\n"), shell("rm kept.txt; echo new > new.txt"))
			a := w.launch(point)
			s := a.NewSession(w.work)
			w.say(a, s, "change things")
			w.write("new.txt", "new and the user's\n")
			a.Prompt(s, "/undo")
			<-ended(a)
			w.fired(point)
			stored := point != "undo.accepted:before"

			b := w.launch("")
			b.Must("session/list", map[string]any{}, nil)
			if stored {
				harness.Eventually(t, "it is finished by itself", func() bool { return w.read("made.txt") == "<absent>" && w.read("kept.txt") == "kept\n" })
			} else {
				w.holds("made.txt", "made\n")
				w.load(b, s)
				w.contains(w.say(b, s, "/undo"), "Turn 1 is taken back")
			}
			w.load(b, s)
			w.contains(w.say(b, s, "/undo"), "There is nothing to take back.")
			w.holds("edited.txt", "one\ntwo\nthree\n")
			w.holds("new.txt", "new and the user's\n")
			w.say(b, s, "go on")
			told := 0
			for _, m := range last(w.model.Requests()).Messages {
				told += strings.Count(m.Content, "The user took back the file changes")
			}
			if told != 1 {
				t.Errorf("the model is told %d times", told)
			}
			if err := b.CloseInput(); err != nil {
				t.Fatal(err)
			}
			w.oneStep("undo")
		})
	}
}

func last(all []fakemodel.Request) fakemodel.Request { return all[len(all)-1] }

// oneStep checks that there is one settled step of a kind, whose paths each have their end.
func (w *world) oneStep(kind string) {
	w.t.Helper()
	var steps []struct {
		Number             int
		Kind, State, Paths string
	}
	text := w.store("SELECT number, kind, state, paths FROM undos")
	if err := json.Unmarshal([]byte(text), &steps); err != nil || len(steps) != 1 || steps[0].Kind != kind || steps[0].State != "settled" {
		w.t.Fatalf("steps: %v %s", err, text)
	}
	var paths []struct {
		Path, Why string
		Done      bool
	}
	if err := json.Unmarshal([]byte(steps[0].Paths), &paths); err != nil {
		w.t.Fatal(err)
	}
	for _, p := range paths {
		if p.Done == (p.Why != "") {
			w.t.Errorf("%s is neither put back nor left for a reason: %s", p.Path, steps[0].Paths)
		}
	}
}

// A stalled attempt is killed at each instant from its end to its next beginning. It is begun again once, and rolled back once.
func TestCrash_Stall(t *testing.T) {
	for _, point := range []string{"turn.stalled:before", "turn.stalled:after", "undo.accepted:before", "undo.accepted:after", "tree.restoring", "tree.restoring/2",
		"undo.settled:before", "undo.settled:after", "recovery.decided:before", "recovery.decided:after"} {
		t.Run(strings.ReplaceAll(point, "/", " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.soon()
			w.play("make it", func(n int, _ fakemodel.Request) fakemodel.Reply {
				switch n {
				case 0:
					return fakemodel.Calls(edit("edited.txt", "two", "TWO"))
				case 1:
					return fakemodel.Calls(create("made.txt", "made\n"))
				case 2:
					return silent()
				}
				return fakemodel.Text("Done.")
			})
			a := w.launch(point)
			s := a.NewSession(w.work)
			a.Prompt(s, "make it")
			<-ended(a)
			w.fired(point)
			b := w.launch("")
			b.Must("session/list", map[string]any{}, nil)
			harness.Eventually(t, "it goes on by itself", func() bool { return w.asked("make it") >= 4 })
			w.load(b, s)
			harness.Eventually(t, "it is done", func() bool { return strings.Contains(b.Text(s), "Done.") })
			if err := b.CloseInput(); err != nil {
				t.Fatal(err)
			}
			if point == "turn.stalled:before" { // that it stalled was not stored: it was cut off, and goes on in place
				w.holds("edited.txt", "one\nTWO\nthree\n")
				w.holds("made.txt", "made\n")
				return
			}
			w.holds("edited.txt", "one\ntwo\nthree\n")
			w.holds("made.txt", "<absent>")
			w.oneStep("rollback")
		})
	}
}

// A person's word on stalled work is acted on when it was stored, and else not.
func TestCrash_Redo(t *testing.T) {
	for _, point := range []string{"redo.accepted:before", "redo.accepted:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.soon()
			w.play("make it", func(n int, _ fakemodel.Request) fakemodel.Reply {
				switch n {
				case 0:
					return fakemodel.Calls(shell("echo made > made.txt"))
				case 1:
					return silent()
				}
				return fakemodel.Text("Done.")
			})
			a := w.launch(point)
			s := a.NewSession(w.work)
			w.say(a, s, "make it")
			a.Prompt(s, "/redo")
			<-ended(a)
			w.fired(point)
			b := w.launch("")
			w.load(b, s)
			if point == "redo.accepted:before" {
				w.holds("made.txt", "made\n")
				w.contains(w.command(0, "sessions", "show", s), "stalled")
				w.say(b, s, "/redo")
			}
			harness.Eventually(t, "it is done", func() bool { return strings.Contains(b.Text(s), "Done.") })
			w.holds("made.txt", "<absent>")
			if n := w.asked("make it"); n != 3 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
