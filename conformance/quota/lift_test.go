package quota_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

func (w *world) git(dir string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// A directory that is another one holds the work up and says what has changed; a person's word takes it as it is now, and work goes on by
// itself where the directory is again the one it began in.
func TestWorkspace_ChangedAndLifted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, cwd string)
		says   string
		lift   func(w *world, a *harness.Agent, l left)
	}{
		"replaced, the command line": {replace, "Another directory is in its place.", func(w *world, _ *harness.Agent, l left) { w.holdfast(0, nil, "sessions", "retry", l.id) }},
		"another branch, the editor": {branch, "It was on main and is on other now.", func(_ *world, a *harness.Agent, l left) { a.Prompt(l.id, "/retry") }},
		"another branch, and back": {branch, "It was on main and is on other now.", func(w *world, a *harness.Agent, l left) {
			w.git(l.cwd, "checkout", "-q", "main")
			w.load(a, l.id, l.cwd)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			repo := w.tree("repo")
			w.git(repo, "init", "-q", "-b", "main")
			w.git(repo, "commit", "-q", "--allow-empty", "-m", "one")
			l := w.interruptedIn("a", repo)[0]
			c.change(w, repo)
			a := w.launch("")
			a.Must("session/list", map[string]any{}, nil)
			if s := w.stands(l, "waiting", "workspace_changed"); !strings.Contains(s.Reason, c.says) {
				t.Errorf("it says %q", s.Reason)
			}
			if name != "another branch, and back" {
				w.load(a, l.id, l.cwd)
				w.aside(a)
			}
			if len(w.asked()) > 0 {
				t.Errorf("the model was asked %q", w.asked())
			}
			c.lift(w, a, l)
			w.await("it goes on", l.text)
			w.release(l.text)
			w.stands(l, "idle", "")
		})
	}
}

func replace(w *world, cwd string) {
	w.must(os.Rename(cwd, cwd+".old"))
	w.must(os.Mkdir(cwd, 0o755))
	w.must(os.Rename(filepath.Join(cwd+".old", ".git"), filepath.Join(cwd, ".git")))
}

func branch(w *world, cwd string) { w.git(cwd, "checkout", "-q", "-b", "other") }

// The same for a goal, from the outside.
func TestWorkspace_GoalRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	repo := w.tree("repo")
	w.git(repo, "init", "-q", "-b", "main")
	w.git(repo, "commit", "-q", "--allow-empty", "-m", "one")
	a := w.launch("")
	id := a.NewSession(repo)
	a.Must("_holdfast/create_goal", map[string]any{"sessionId": id, "objective": "g"}, nil)
	w.await("its first turn", "")
	a.Kill()
	w.forget()
	branch(w, repo)
	w.worker("")
	var all []struct{ GoalID, ReasonCode, Reason string }
	harness.Eventually(t, "it waits", func() bool {
		w.holdfast(0, &all, "goals", "list", "--json")
		return all[0].ReasonCode == "workspace_changed"
	})
	if !strings.Contains(all[0].Reason, "It was on main and is on other now.") {
		t.Errorf("it says %q", all[0].Reason)
	}
	w.holdfast(0, nil, "goals", "retry", all[0].GoalID)
	w.await("it goes on", "")
}

// A prompt whose process died twice without progress is parked until a person says to go on.
func TestCrashLoop_PromptRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	l := w.interrupted("a", 1)[0]
	p := w.worker("")
	w.await("it goes on once", l.text)
	w.kill(p, l)
	a := w.launch("")
	a.Must("session/list", map[string]any{}, nil)
	w.stands(l, "waiting", "crash_loop")
	w.aside(a)
	if len(w.asked()) > 0 {
		t.Errorf("the model was asked %q", w.asked())
	}
	w.holdfast(0, nil, "sessions", "retry", l.id)
	w.await("it goes on", l.text)
	w.release(l.text)
	w.stands(l, "idle", "")
}

// A question of unattended work holds no slot; the answer goes on with the call, in its turn.
func TestQuestion_HoldsNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[limits]\nworking = 1\n")
	all := w.interrupted("a", 2)
	w.ask(all[0].text)
	w.worker("")
	w.await("the other works", all[1].text)
	w.stands(all[0], "waiting", "approval_pending")
	var open []struct{ ApprovalID string }
	w.holdfast(0, &open, "sessions", "approvals", "--json")
	if len(open) != 1 {
		t.Fatalf("open questions: %+v", open)
	}
	w.holdfast(0, nil, "sessions", "answer", open[0].ApprovalID, "allow_once")
	w.stands(all[0], "queued", "waiting_for_slot")
	if _, err := os.Stat(filepath.Join(all[0].cwd, "made")); err == nil {
		t.Error("it ran before its turn")
	}
	w.release(all[1].text)
	w.await("it goes on", all[0].text)
	if b, err := os.ReadFile(filepath.Join(all[0].cwd, "made")); err != nil || string(b) != "x\n" {
		t.Errorf("the command left %q: %v", b, err)
	}
}
