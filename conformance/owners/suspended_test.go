package owners_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

// suspendedOwner is a session whose command runs and whose process is suspended.
func suspendedOwner(t *testing.T) (w *world, a *harness.Agent, session string) {
	t.Helper()
	w = newWorld(t, once(held))
	a = w.launch()
	session = a.NewSession(w.work)
	a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	suspend(t, a)
	return w, a, session
}

type psView struct {
	Processes []struct {
		PID         int
		State, Host string
		Suspended   bool
		Since       *string
		Owns        []string
	}
}

// Every listing names a suspended owner, since when, and what can be done; nobody takes over from it.
func TestSuspended_IsShownEverywhere(t *testing.T) {
	t.Parallel()
	w, a, session := suspendedOwner(t)
	b := w.launch()
	w.load(b, session)
	told(t, b, "at the opening", "Process "+pid(a), "has not responded since", "suspended", "/takeover", "holdfast sessions takeover "+session)

	var ps psView
	w.holdfast(&ps, "ps", "--json")
	seen := false
	for _, p := range ps.Processes {
		seen = seen || p.PID == a.PID() && p.State == "not_responding" && p.Suspended && p.Since != nil && len(p.Owns) == 1
		if p.PID == b.PID() && p.State != "alive" {
			t.Errorf("the other one: %+v", p)
		}
	}
	if !seen {
		t.Errorf("holdfast ps: %+v", ps)
	}
	for _, c := range [][]string{{"ps"}, {"sessions", "show", session}, {"doctor"}} {
		out, code := w.holdfast(nil, c...)
		if !holds(out, pid(a), "suspended", "kill -CONT "+pid(a), "holdfast sessions takeover "+session) {
			t.Errorf("%v: %s", c, out)
		}
		if c[0] == "doctor" && code != 3 {
			t.Errorf("doctor: exit code %d\n%s", code, out)
		}
	}
	var list []struct{ State, ReasonCode, NextOwner string }
	w.holdfast(&list, "sessions", "list", "--json")
	if len(list) != 1 || list[0].State != "waiting" || list[0].ReasonCode != "owner_not_responding" || list[0].NextOwner != "user" {
		t.Errorf("sessions list: %+v", list)
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	// Continued, it is as if nothing had been.
	a.Signal(syscall.SIGCONT)
	harness.Eventually(t, "it is alive", func() bool {
		w.holdfast(&ps, "ps", "--json")
		for _, p := range ps.Processes {
			if p.PID == a.PID() {
				return p.State == "alive"
			}
		}
		return false
	})
	w.put("go")
	harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := w.lines("counter"); n != 2 {
		t.Errorf("%d lines in the counter", n)
	}
}

// A prompt that is not picked up because of it is told so, with the process and the command.
func TestSuspended_PromptInAnotherWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, talk)
	a := w.launch()
	session := a.NewSession(w.work)
	reply(t, a, a.Prompt(session, "hello"))
	b := w.launch()
	w.load(b, session)
	suspend(t, a)
	id := b.Prompt(session, "anybody there?")
	told(t, b, "the prompt", "Process "+pid(a), "has not responded since", "kill -CONT "+pid(a), "/takeover", "holdfast sessions takeover "+session)
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("somebody executed it: %d requests", n)
	}
	// The person takes over in this very window. The prompt that waits is answered by it.
	reply(t, b, b.Prompt(session, "/takeover"))
	told(t, b, "the takeover", "Process "+pid(a)+" was ended")
	if got := reply(t, b, id); got != "end_turn" {
		t.Errorf("the prompt ended with %s", got)
	}
	gone(t, a)
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func gone(t *testing.T, a *harness.Agent) {
	t.Helper()
	a.Kill() // it is a child of this test, which collects it
	if err := syscall.Kill(a.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", a.PID(), err)
	}
}

type takeover struct {
	SessionID string
	Ended     int
	Sessions  []string
	Commands  []struct{ PID int }
	Executors int
}

// The command line ends the suspended process, whose command goes on; another window finds the command again and goes on with the turn.
func TestTakeover_AnotherWindowGoesOn(t *testing.T) {
	t.Parallel()
	w, a, session := suspendedOwner(t)
	b := w.launch()
	w.load(b, session)
	var got takeover
	out, code := w.holdfast(&got, "sessions", "takeover", session, "--json")
	if code != 0 || got.Ended != a.PID() || len(got.Commands) != 1 || got.Executors != 1 || len(got.Sessions) != 1 || !strings.Contains(out, "suspended") {
		t.Errorf("%d %s", code, out)
	}
	gone(t, a)
	harness.Eventually(t, "the other has it", func() bool {
		var s struct{ Session struct{ OwnerPID int } }
		w.holdfast(&s, "sessions", "show", session, "--json")
		return s.Session.OwnerPID == b.PID()
	})
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	w.put("go")
	harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := w.lines("counter"); n != 2 {
		t.Errorf("%d lines in the counter", n)
	}
}

// With nobody to go on it says so, and the next process goes on.
func TestTakeover_NobodyExecutes(t *testing.T) {
	t.Parallel()
	w, a, session := suspendedOwner(t)
	out, code := w.holdfast(nil, "sessions", "takeover", session)
	if code != 0 || !holds(out, "ended process "+pid(a), "No Holdfast process that executes is running", "holdfast work", "still runs") {
		t.Errorf("%d %s", code, out)
	}
	w.put("go")
	b := w.launch()
	w.load(b, session)
	harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := w.lines("counter"); n != 2 {
		t.Errorf("%d lines in the counter", n)
	}
}

// What ends with the process is named, and more than the one session needs a word more.
func TestTakeover_MoreThanOneSession(t *testing.T) {
	t.Parallel()
	w, a, session := suspendedOwner(t)
	a.Signal(syscall.SIGCONT)
	other := a.NewSession(w.work)
	reply(t, a, a.Prompt(other, "hello"))
	suspend(t, a)
	out, code := w.holdfast(nil, "sessions", "takeover", session)
	if code != 1 || !holds(out, "--yes", session, other, "prompt working", "nothing unfinished") {
		t.Errorf("without a word: %d %s", code, out)
	}
	if syscall.Kill(a.PID(), 0) != nil {
		t.Fatal("it was ended all the same")
	}
	b := w.launch()
	w.load(b, session)
	reply(t, b, b.Prompt(session, "/takeover"))
	told(t, b, "in a window", "more than this session", other, "/takeover yes")
	if out, code := w.holdfast(nil, "sessions", "takeover", session, "--yes"); code != 0 {
		t.Errorf("with a word: %d %s", code, out)
	}
	gone(t, a)
}

// There is nothing to take over from the dead, and nothing from nobody.
func TestTakeover_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	a := w.launch()
	session := a.NewSession(w.work)
	if out, _ := w.holdfast(nil, "sessions", "takeover", "0123456789"); !strings.Contains(out, "no session") {
		t.Errorf("no session: %s", out)
	}
	a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	// The number of the row is not that of the process that holds the lock: nothing is signalled.
	w.edit(`UPDATE instances SET start_ticks = start_ticks + 1`)
	if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !strings.Contains(out, "is not the one that is recorded") {
		t.Errorf("another identity: %d %s", code, out)
	}
	if syscall.Kill(a.PID(), 0) != nil {
		t.Fatal("it was signalled")
	}
	a.Kill()
	if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !holds(out, "dead already", "goes on by itself") {
		t.Errorf("from the dead: %d %s", code, out)
	}
	if out, code := w.holdfast(nil, "sessions", "takeover", session, "--from-other-host"); code != 1 || !strings.Contains(out, "this machine") {
		t.Errorf("not elsewhere: %d %s", code, out)
	}
	w.put("go")
	b := w.launch()
	w.load(b, session)
	harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
	must := b.CloseInput()
	if must != nil {
		t.Error(must)
	}
	if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !holds(out, "no process has the session") {
		t.Errorf("from nobody: %d %s", code, out)
	}
}

// A lock file that names a live process that is none of ours keeps nobody from starting: the lock is the kernel's.
func TestLock_OfAReusedNumber(t *testing.T) {
	t.Parallel()
	w, a, session := suspendedOwner(t)
	a.Kill()
	w.edit(`UPDATE instances SET pid = ?`, os.Getpid())
	b := w.launch()
	w.load(b, session)
	w.put("go")
	harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := w.lines("counter"); n != 2 {
		t.Errorf("%d lines in the counter", n)
	}
}
