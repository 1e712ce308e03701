package undo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// soon makes an attempt stall after a second.
func (w *world) soon() {
	w.t.Helper()
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[recovery]\nstall_seconds = 1\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// silent is an answer that never goes on.
func silent() fakemodel.Reply {
	return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "Hm. "}}, End: fakemodel.EndStall}
}

// An attempt that falls silent is ended and begun again from its entry, once, because everything it changed is proven by digest. What the
// user did meanwhile stays.
func TestStall_RedoneOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.soon()
	w.play("make it", func(n int, _ fakemodel.Request) fakemodel.Reply {
		switch n {
		case 0:
			return fakemodel.Calls(edit("edited.txt", "two", "TWO"))
		case 1:
			w.write("users.txt", "user\n")
			return silent()
		case 2:
			w.holds("edited.txt", "one\ntwo\nthree\n") // it was put back before the model is asked again
			return fakemodel.Calls(edit("edited.txt", "two", "zwei"))
		}
		return fakemodel.Text("Done.")
	})
	a := w.launch("")
	s := a.NewSession(w.work)
	said := w.say(a, s, "make it")
	w.contains(said, "rolled back to its beginning", "edited.txt", "Done.")
	w.holds("edited.txt", "one\nzwei\nthree\n")
	w.holds("users.txt", "user\n")
	reqs := w.model.Requests()
	w.contains(reqs[2].LastUser(), "did nothing for 1s", "Begin again")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	all := w.attempts()
	if len(all) != 2 || all[0].State != "stalled" || all[1].Continued != 0 || !strings.HasPrefix(all[1].Rule, "R18 ") {
		t.Errorf("attempts: %+v", all)
	}
}

// After a command nobody can prove what was changed: a person sees the list and decides. Either word lets the work go on, in the same process or
// after a restart.
func TestStall_PersonDecides(t *testing.T) {
	for _, c := range []struct {
		name, word, edited, made string
		restart                  bool
	}{
		{"from the entry", "/redo", "one\ntwo\nthree\n", "<absent>", false},
		{"as it is", "/retry", "one\nTWO\nthree\n", "made\n", false},
		{"after a restart", "/redo", "one\ntwo\nthree\n", "<absent>", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.soon()
			w.play("make it", func(n int, _ fakemodel.Request) fakemodel.Reply {
				switch n {
				case 0:
					return fakemodel.Calls(edit("edited.txt", "two", "TWO"))
				case 1:
					return fakemodel.Calls(shell("echo made > made.txt"))
				case 2:
					return silent()
				}
				w.holds("edited.txt", c.edited)
				w.holds("made.txt", c.made)
				return fakemodel.Text("Done.")
			})
			a := w.launch("")
			s := a.NewSession(w.work)
			w.contains(w.say(a, s, "make it"), "It did nothing for 1s", "edited.txt, made.txt", "/redo", "/retry")
			w.holds("made.txt", "made\n")
			if n := w.asked("make it"); n != 3 {
				t.Errorf("it went on without a word: %d requests", n)
			}
			w.contains(w.command(0, "sessions", "show", s), "stalled")
			w.contains(w.command(3, "doctor"), "holdfast sessions redo "+s)
			if c.restart {
				a.Kill()
				a = w.launch("")
				w.load(a, s)
			}
			w.contains(w.say(a, s, c.word), "Done.")
			if err := a.CloseInput(); err != nil {
				t.Fatal(err)
			}
			all := w.attempts()
			want := 1
			if c.word == "/redo" {
				want = 0
			}
			if len(all) != 2 || all[1].Continued != want {
				t.Errorf("attempts: %+v", all)
			}
		})
	}
}

// A call or a question that is open is no silence, however long it takes, and neither is an answer that comes slowly.
func TestStall_OpenCallIsActivity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.soon()
	w.steps("make it", shell("sleep 3; echo slept"))
	a := w.launch("")
	s := a.NewSession(w.work)
	w.contains(w.say(a, s, "make it"), "Done.")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if all := w.attempts(); len(all) != 1 || all[0].State != "completed" {
		t.Errorf("attempts: %+v", all)
	}
}

// The word may come from the command line, and the process that has the session hears of it.
func TestStall_WordFromTheCommandLine(t *testing.T) {
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
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "make it")
	w.command(0, "sessions", "redo", s)
	harness.Eventually(t, "it goes on", func() bool { return strings.Contains(a.Text(s), "Done.") })
	w.holds("made.txt", "<absent>")
	w.command(1, "sessions", "redo", s)
}
