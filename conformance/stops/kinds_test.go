package stops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// goalID is the id of a session's goal.
func (w *world) goalID(a *harness.Agent, session string) string {
	w.t.Helper()
	var r struct{ Goal struct{ GoalID string } }
	a.Must("_holdfast/get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal.GoalID
}

// A cancel ends the turn and leaves what runs in the background; a stop ends both. Either holds over a restart, and the end of a background
// command wakes nobody.
func TestKinds_CancelAndStop(t *testing.T) {
	for _, kind := range []string{"cancel", "/stop"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch()
			session := a.NewSession(w.work)
			id := a.Prompt(session, "/goal "+do(background("echo run >> behind; while [ ! -e go ]; do sleep 0.05; done; echo end >> behind-end"), foreground(stays("front"))))
			w.begun("behind")
			w.begun("front")
			left := 0
			if kind == "cancel" {
				cancel(a, session)
				left = 1
			} else {
				a.Prompt(session, "/stop")
			}
			if got := ended(t, a, id); got != "cancelled" {
				t.Errorf("stopped with %s", got)
			}
			harness.Eventually(t, "the right ones run", func() bool { return len(w.running()) == left })
			asked := w.asked()
			a.Kill()
			b := w.launch()
			w.load(b, session)
			w.silent(asked, time.Second, "it came back")
			if n := len(w.running()); n != left {
				t.Errorf("after a restart %d commands run", n)
			}
			w.put("go")
			harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			if w.lines("behind-end") != left {
				t.Errorf("the end of the background command is written %d times", w.lines("behind-end"))
			}
			w.silent(asked, time.Second, "the end of a background command woke the agent")
			if status, code := w.goal(b, session); status != "paused" || code != "user_cancelled" {
				t.Errorf("the goal is %s (%s)", status, code)
			}
		})
	}
}

// A goal that was paused rests, however its session is opened again, and the user is told how it goes on.
func TestKinds_APausedGoalRests(t *testing.T) {
	for name, pause := range map[string]func(w *world, a *harness.Agent, session string){
		"/goal pause": func(w *world, a *harness.Agent, session string) { say(w.t, a, session, "/goal pause") },
		"update_goal": func(_ *world, a *harness.Agent, session string) {
			a.Must("update_goal", map[string]any{"sessionId": session, "action": "pause"}, nil)
		},
		"command line": func(w *world, a *harness.Agent, session string) {
			_, _, _ = w.cli("goals", "pause", w.goalID(a, session))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, "/goal "+do(foreground(stays("front"))))
			w.begun("front")
			pause(w, a, session)
			harness.Eventually(t, "it rests", func() bool { return len(w.running()) == 0 })
			asked := w.asked()
			a.Kill()
			for _, method := range []string{"session/load", "session/resume"} {
				b := w.launch()
				b.Must(method, w.params(session), nil)
				w.silent(asked, time.Second, "it came back when it was opened")
				if status, _ := w.goal(b, session); status != "paused" {
					t.Errorf("%s makes it %s", method, status)
				}
				say(t, b, session, "/status")
				if !strings.Contains(b.Text(session), "/goal resume") {
					t.Errorf("the user is told %q", b.Text(session))
				}
				b.Kill()
			}
		})
	}
}

// A stop right behind a cancel is a stop of its own: the prompt that follows gives the goal back after a cancel alone.
func TestKinds_AStopBehindACancelHolds(t *testing.T) {
	for name, second := range map[string]func(w *world, a, b *harness.Agent, session string) (gives bool){
		"nothing": func(*world, *harness.Agent, *harness.Agent, string) bool { return true },
		"the same cancel twice": func(_ *world, a, _ *harness.Agent, session string) bool {
			cancel(a, session)
			return true
		},
		"/stop": func(w *world, a, _ *harness.Agent, session string) bool { say(w.t, a, session, "/stop"); return false },
		"/goal pause": func(w *world, a, _ *harness.Agent, session string) bool {
			say(w.t, a, session, "/goal pause")
			return false
		},
		"goals pause": func(w *world, a, _ *harness.Agent, session string) bool {
			harness.Eventually(w.t, "the cancel is stored", func() bool { status, _ := w.goal(a, session); return status == "paused" })
			_, _, _ = w.cli("goals", "pause", w.goalID(a, session))
			return false
		},
		"a cancel in the other window": func(w *world, _, b *harness.Agent, session string) bool {
			cancel(b, session)
			say(w.t, b, session, "/status")
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.launch(), w.launch()
			session := a.NewSession(w.work)
			w.load(b, session)
			say(t, b, session, "/status") // its silence is over
			id := a.Prompt(session, "/goal "+do(foreground(stays("front"))))
			w.begun("front")
			cancel(a, session)
			gives := second(w, a, b, session)
			next := a.Prompt(session, do())
			_, _ = ended(t, a, id), ended(t, a, next)
			want := "paused"
			if gives {
				want = "active"
			}
			if status, _ := w.goal(a, session); status != want {
				t.Errorf("the goal is %s, want %s", status, want)
			}
		})
	}
}

// A stop while another process holds the store is not lost: it is tried again until it is stored, or refused in words.
func TestStop_WhileTheStoreIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.launch()
	session := a.NewSession(w.work)
	id := a.Prompt(session, do(foreground(stays("front"))))
	w.begun("front")
	gate, err := os.OpenFile(filepath.Join(w.home, "run", "gate.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(gate.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	cancel(a, session)
	out, errs, err := w.cli("stop", session)
	if err == nil || !strings.Contains(errs, "busy") && !strings.Contains(errs, "holds") {
		t.Errorf("a stop that was not stored says %q %q %v", out, errs, err)
	}
	if answered(a, id) {
		t.Error("a cancel that was not stored is confirmed")
	}
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, a, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
}

// After a death the list says of each session what it was in the middle of, the newest first.
func TestList_AfterADeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(w.plain(), map[string]any{}, func(params json.RawMessage) string {
		if strings.Contains(string(params), "ASK") {
			return ""
		}
		return "allow_once"
	})
	idle, asking, works := a.NewSession(w.work), a.NewSession(w.work), a.NewSession(w.work)
	say(t, a, idle, do())
	a.Prompt(asking, do(foreground("echo ASK")))
	message(t, a, "session/request_permission")
	a.Prompt(works, do(foreground(stays("front"))))
	w.begun("front")
	a.Kill()
	b := w.start(w.plain(), map[string]any{}, nil)
	type row struct{ SessionID, State, ReasonCode string }
	want := map[string][2]string{idle: {"idle", ""}, asking: {"waiting", "approval_pending"}, works: {"working", ""}}
	harness.Eventually(t, "each is listed as it is", func() bool {
		all := document[[]row](w, "sessions", "list")
		for _, r := range all {
			if want[r.SessionID] != [2]string{r.State, r.ReasonCode} {
				return false
			}
		}
		return len(all) == 3 && all[2].SessionID == idle
	})
	// A question that nobody could answer is in the list of what waits, and nothing counts as done.
	if open := document[[]any](w, "sessions", "approvals"); len(open) != 1 {
		t.Errorf("%d questions are open", len(open))
	}
	var r struct{ Sessions []struct{ SessionID string } }
	b.Must("session/list", map[string]any{}, &r)
	if len(r.Sessions) != 3 || r.Sessions[2].SessionID != idle {
		t.Errorf("the editor lists %+v", r.Sessions)
	}
	// What is replayed of a command is text: no terminal, no id of another connection.
	w.load(b, works)
	for _, u := range b.Updates(works) {
		if strings.Contains(string(u), "terminal") {
			t.Errorf("the replay names a terminal: %s", u)
		}
	}
}
