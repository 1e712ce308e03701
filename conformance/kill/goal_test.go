package kill_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Each point dies once; the next process goes on.
func TestGoal_SurvivesEachPoint(t *testing.T) {
	points := []string{
		"goal.created:after", "run.admitted:before", "run.admitted:after", "request.started:before", "request.started:after",
		"response.stored:before", "response.stored:after", "approval.raised:before", "approval.raised:after", "approval.answered:before",
		"approval.answered:after", "effect.dispatched:before", "effect.dispatched:after", "proc.claimed", "proc.spec", "proc.launched",
		"effect.settled:before", "effect.settled:after", "effect.dispatched:before/2", "effect.dispatched:after/2", "effect.settled:before/2",
		"effect.settled:after/2", "effect.settled:before/3", "effect.settled:after/3", "turn.ended:before", "turn.ended:after",
		"run.admitted:before/2", "run.admitted:after/2", "effect.dispatched:after/3", "effect.settled:after/4", "request.started:after/5",
		"response.stored:after/5", "turn.ended:before/2", "turn.ended:after/2",
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch(point, nil)
			session := w.create(a)
			if err := a.Wait(); err == nil {
				t.Fatal("the agent ended by itself")
			}
			w.mustHaveFired(point)
			b := w.launch("", nil)
			w.finish(b, session)
			w.check(b, session)
		})
	}
}

// The second death comes while the first is recovered from.
func TestGoal_SurvivesDeathInRecovery(t *testing.T) {
	for _, point := range []string{"owner.takeover:before", "owner.takeover:after", "recovery.decided:before", "recovery.decided:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch("effect.settled:after", nil)
			session := w.create(a)
			_ = a.Wait() // killed
			w.mustHaveFired("effect.settled:after")
			if err := os.Remove(w.fired); err != nil {
				t.Fatal(err)
			}
			b := w.launch(point, nil)
			b.Begin("session/list", map[string]any{})
			_ = b.Wait() // killed
			w.mustHaveFired(point)
			c := w.launch("", nil)
			w.finish(c, session)
			w.check(c, session)
		})
	}
}

// The process dies while the command runs. The command goes on, is found again, and its exit code is the real one.
func TestGoal_CommandIsReconnected(t *testing.T) {
	w := newWorld(t)
	hold := filepath.Join(w.work, "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.launch("", nil)
	session := w.create(a)
	harness.Eventually(t, "the command runs", func() bool { return w.count("counter") == 1 })
	a.Kill()
	b := w.launch("", nil)
	b.Must("session/list", map[string]any{}, nil) // nobody opens the session: the work goes on all the same
	harness.Eventually(t, "the command is reconnected", func() bool {
		for _, m := range w.goal(b, session).History {
			if m.Mode == "reconnect" {
				return true
			}
		}
		return false
	})
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the receipt settles the call", func() bool {
		for _, m := range w.goal(b, session).History {
			if m.Kind == "shell" && m.SettledBy == "receipt" && m.ExitCode != nil && *m.ExitCode == 0 {
				return true
			}
		}
		return false
	})
	w.finish(b, session)
	w.check(b, session)
}

// The command ends while no process is there: its receipt tells.
func TestGoal_CommandEndsInBetween(t *testing.T) {
	w := newWorld(t)
	hold := filepath.Join(w.work, "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.launch("", nil)
	session := w.create(a)
	harness.Eventually(t, "the command runs", func() bool { return w.count("counter") == 1 })
	a.Kill()
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the receipt is there", func() bool {
		found, err := filepath.Glob(filepath.Join(w.home, "calls", "*", "exit"))
		return err == nil && len(found) == 1
	})
	b := w.launch("", nil)
	w.finish(b, session)
	w.check(b, session)
}

// A question that was open when the process died is asked again, once, and the call runs once.
func TestGoal_QuestionIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	a := w.launch("", func(json.RawMessage) string { return "" })
	session := w.create(a)
	if _, ok := a.Find(func(m harness.Message) bool { return m.Method == "session/request_permission" }); !ok {
		t.Fatal("no question")
	}
	a.Kill()
	var asked atomic.Int32
	b := w.launch("", func(p json.RawMessage) string {
		if strings.Contains(string(p), "echo run") {
			asked.Add(1)
			if !strings.Contains(string(p), "asked at") {
				t.Errorf("the question does not say that it was asked before: %s", p)
			}
		}
		return "allow_once"
	})
	w.finish(b, session)
	w.check(b, session)
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times after the restart", n)
	}
}

// A command whose supervisor is lost with it has an unknown outcome: it is not repeated, and nothing else runs without a word.
func TestGoal_UnknownOutcomeIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	var named atomic.Bool
	a := w.launch("supervisor.running", func(p json.RawMessage) string {
		if named.Load() {
			return "" // each command of this agent loses its supervisor: nothing more is to run before it is gone
		}
		if strings.Contains(string(p), "outcome is unknown") {
			if !strings.Contains(string(p), "echo run") {
				t.Errorf("the question does not name the operation: %s", p)
			}
			named.Store(true)
			return "it_happened"
		}
		return "allow_once"
	})
	session := w.create(a)
	harness.Eventually(t, "the goal asks about the unknown outcome", named.Load)
	w.mustHaveFired("supervisor.running")
	a.Kill() // the next supervisors must not die
	b := w.launch("", nil)
	w.finish(b, session)
	w.check(b, session)
}

// A cancel is a stop: it pauses the Goal, and no restart makes a model request for it.
func TestGoal_CancelledStaysPaused(t *testing.T) {
	w := newWorld(t)
	hold := filepath.Join(w.work, "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.launch("", nil)
	session := w.create(a)
	harness.Eventually(t, "the command runs", func() bool { return w.count("counter") == 1 })
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	harness.Eventually(t, "the cancel is stored", func() bool { return w.goal(a, session).Status == "paused" })
	a.Kill()
	before := len(w.model.Requests())
	b := w.launch("", nil)
	b.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
	if g := w.goal(b, session); g.Status != "paused" || g.ReasonCode != "user_cancelled" {
		t.Errorf("after the restart the goal is %s (%s)", g.Status, g.ReasonCode)
	}
	// Other work is done in the same process meanwhile, so the engine has had its turn.
	other := b.NewSession(w.work)
	b.Must("session/prompt", map[string]any{"sessionId": other, "prompt": []any{map[string]any{"type": "text", "text": "tell a story, Once upon"}}}, nil)
	if n := len(w.model.Requests()) - before; n != 1 {
		t.Errorf("%d model requests were made, want the other session's one", n)
	}
	if g := w.goal(b, session); g.Status != "paused" {
		t.Errorf("the goal was revived: %s", g.Status)
	}
}

// A prompt right behind a cancel is one act with it: the Goal goes on after the answer.
func TestGoal_GoesOnAfterSteering(t *testing.T) {
	w := newWorld(t)
	hold := filepath.Join(w.work, "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.launch("", nil)
	session := w.create(a)
	harness.Eventually(t, "the command runs", func() bool { return w.count("counter") == 1 })
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	a.Await(a.Prompt(session, "and use the file out.txt"))
	harness.Eventually(t, "the goal ends", func() bool { return w.goal(a, session).Status == "achieved" })
	w.check(a, session)
}

// An answer that was cut off by the death keeps what was committed, marked, and the rest is requested again.
func TestPrompt_CutAnswerIsKeptAndMarked(t *testing.T) {
	w := newWorld(t)
	a := w.launch("text.flushed:after", nil)
	session := a.NewSession(w.work)
	a.Prompt(session, "tell a story")
	_ = a.Wait() // killed
	w.mustHaveFired("text.flushed:after")
	b := w.launch("", nil)
	b.Must("session/list", map[string]any{}, nil)
	reqs, err := w.model.Wait(within(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	if text := all(reqs[1]); !strings.Contains(text, "Once upon a time") || !strings.Contains(text, "interrupted") || strings.Count(text, "tell a story") != 1 {
		t.Errorf("the second request holds:\n%s", text)
	}
	harness.Eventually(t, "the answer is stored", func() bool { return strings.Contains(w.replay(session), "happily") })
	text := w.replay(session)
	if !strings.Contains(text, "Once upon a time") || !strings.Contains(text, "interrupted") || strings.Count(text, "Once upon") != 1 {
		t.Errorf("the transcript holds: %s", text)
	}
	if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
		t.Error(err)
	}
}

// An acknowledged prompt is worked on, once, whenever the process dies.
func TestPrompt_AcceptedIsNeverLost(t *testing.T) {
	for _, point := range []string{"prompt.accepted:after", "run.admitted:before", "run.admitted:after", "request.started:after", "turn.ended:before", "turn.ended:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch(point, nil)
			session := a.NewSession(w.work)
			a.Prompt(session, "tell a story, Once upon")
			_ = a.Wait() // killed
			w.mustHaveFired(point)
			b := w.launch("", nil)
			b.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
			harness.Eventually(t, "the prompt is answered", func() bool { return strings.Contains(b.Text(session), "happily") })
			users := 0
			for _, u := range b.Updates(session) {
				if strings.Contains(string(u), "user_message_chunk") {
					users++
				}
			}
			if users != 1 {
				t.Errorf("the user's message is there %d times", users)
			}
		})
	}
}
