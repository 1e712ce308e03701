package undo_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// attempt is one row of the store.
type attempt struct {
	Number, Continued                          int
	State, Mode, Rule, Entry_tree, Fingerprint string
}

func (w *world) attempts() (all []attempt) {
	w.t.Helper()
	text := w.store("SELECT number, state, mode, rule, entry_tree, continued, fingerprint FROM attempts ORDER BY started_at")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	return all
}

// difference is a digest over what differs from the last commit, new files included, as git itself says.
func (w *world) difference() string {
	w.t.Helper()
	text := w.git("diff", "HEAD") + w.git("status", "--porcelain")
	for _, name := range strings.Fields(w.git("ls-files", "--others", "--exclude-standard")) {
		text += name + w.read(name)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

// An agent with uncommitted edits is killed in the middle of an answer. The next process continues by itself: nothing is rolled back, the new
// attempt is recorded as continued with the tree it began in, and the model is told to look at the real state.
func TestContinue_KilledWithUncommittedEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	gate := make(chan struct{})
	t.Cleanup(func() {
		select {
		case <-gate:
		default:
			close(gate)
		}
	})
	w.play("make it", func(n int, r fakemodel.Request) fakemodel.Reply {
		switch n {
		case 0:
			return fakemodel.Calls(edit("edited.txt", "two", "TWO"))
		case 1:
			return fakemodel.Calls(shell("echo new > new.txt"))
		case 2:
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "Now I will think about it "}, {Gate: gate, Text: "never sent"}}}
		}
		return fakemodel.Text("All is there.")
	})
	a := w.launch("")
	s := a.NewSession(w.work)
	a.Prompt(s, "make it")
	harness.Eventually(t, "the answer has begun", func() bool { return strings.Contains(a.Text(s), "Now I will think") })
	w.write("users.txt", "the user's own\n")
	a.Kill()
	before := w.difference()

	b := w.launch("") // no session is opened: the work goes on all the same
	b.Must("session/list", map[string]any{}, nil)
	harness.Eventually(t, "the work goes on by itself", func() bool { return w.asked("make it") == 4 })
	if now := w.difference(); now != before {
		t.Errorf("the work tree differs from what it was at the death:\n%s", w.git("diff"))
	}
	w.holds("edited.txt", "one\nTWO\nthree\n")
	w.holds("new.txt", "new\n")
	reqs := w.model.Requests()
	note := reqs[len(reqs)-1].LastUser()
	w.contains(note, "Look before you act", "git status --short", "M edited.txt", "?? new.txt", "Changed since the interrupted turn began", "cut off")
	harness.Eventually(t, "it has ended", func() bool {
		return strings.Contains(w.command(0, "sessions", "show", s, "--json"), `"state": "idle"`)
	})
	if err := b.CloseInput(); err != nil {
		t.Fatal(err)
	}
	all := w.attempts()
	if len(all) != 2 {
		t.Fatalf("attempts: %+v", all)
	}
	old, next := all[0], all[1]
	if old.State != "interrupted" || old.Continued != 0 || old.Entry_tree == "" {
		t.Errorf("the old attempt: %+v", old)
	}
	if next.Continued != 1 || next.Mode != "new_turn" || !strings.HasPrefix(next.Rule, "R13 ") || next.Entry_tree == "" || next.Entry_tree == old.Entry_tree {
		t.Errorf("the new attempt: %+v", next)
	}
	// Nothing but the user's own file was added between the old attempt's last look and the new one's first.
	tree := w.private("ls-tree", "-r", "--name-only", next.Entry_tree)
	if tree != "edited.txt\nkept.txt\nnew.txt\nusers.txt\n" {
		t.Errorf("the new attempt began in %q", tree)
	}
	if left := w.private("show", next.Entry_tree+":edited.txt"); left != "one\nTWO\nthree\n" {
		t.Errorf("the new attempt's entry holds %q", left)
	}
	if n := w.store("SELECT count(*) AS n FROM undos"); !strings.Contains(n, `"n":0`) {
		t.Errorf("something was put back: %s", n)
	}
}

// The fingerprint that the old attempt recorded last is the one the new attempt begins with: nothing was lost or put back in between.
func TestContinue_SameFingerprint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.play("make it", func(n int, _ fakemodel.Request) fakemodel.Reply {
		switch n {
		case 0:
			return fakemodel.Calls(shell("echo new > new.txt; echo more >> edited.txt"))
		case 1:
			return fakemodel.Calls(create("second.txt", "second\n"))
		}
		return fakemodel.Text("Done.")
	})
	a := w.launch("response.stored:before/2") // the second answer is on the wire
	s := a.NewSession(w.work)
	a.Prompt(s, "make it")
	<-ended(a)
	w.fired("response.stored:before")
	before := w.difference()
	b := w.launch("")
	w.load(b, s)
	harness.Eventually(t, "it is done", func() bool { return strings.Contains(b.Text(s), "Done.") })
	if err := b.CloseInput(); err != nil {
		t.Fatal(err)
	}
	all := w.attempts()
	if len(all) != 2 || all[1].Continued != 1 || all[0].Fingerprint == "" || all[0].Fingerprint != all[1].Fingerprint || all[0].Entry_tree == all[1].Entry_tree {
		t.Errorf("attempts: %+v; the difference was %s", all, before)
	}
}

// ended is closed when the agent is gone.
func ended(a *harness.Agent) chan struct{} {
	done := make(chan struct{})
	go func() {
		_ = a.Wait()
		close(done)
	}()
	return done
}

// private asks the private repository of the work tree.
func (w *world) private(args ...string) string {
	w.t.Helper()
	dirs, _ := filepath.Glob(filepath.Join(w.home, "trees", "*.git"))
	if len(dirs) != 1 {
		w.t.Fatalf("private repositories: %v", dirs)
	}
	return w.git(append([]string{"--git-dir=" + dirs[0]}, args...)...)
}
