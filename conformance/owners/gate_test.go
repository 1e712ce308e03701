package owners_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// stuckInGate is a store with one session that was talked in, open in a window; another process is suspended inside a write.
func stuckInGate(t *testing.T) (w *world, holder, window *harness.Agent, session string) {
	t.Helper()
	w = newWorld(t, talk)
	window = w.launch()
	session = window.NewSession(w.work)
	reply(t, window, window.Prompt(session, "hello"))
	holder = w.launch("HOLDFAST_CRASH=session.created:before/stop")
	holder.Begin("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}})
	stopped(t, holder)
	t.Cleanup(func() { _ = syscall.Kill(holder.PID(), syscall.SIGKILL) })
	return w, holder, window, session
}

// While a process is suspended inside a write, it is named, and everybody reads on.
func TestGate_OthersReadOn(t *testing.T) {
	t.Parallel()
	w, holder, window, session := stuckInGate(t)
	began := time.Now()
	id := window.Prompt(session, "and now?")
	told(t, window, "the prompt that waits", "store_busy: process "+pid(holder), "since", "kill -CONT "+pid(holder))
	if took := time.Since(began); took > 10*time.Second { // the promise is 2 s; the machine may be busy
		t.Errorf("it was named after %v", took)
	}
	// In the same window, beside the prompt.
	window.Must("session/list", map[string]any{}, nil)
	window.Must("get_goal", map[string]any{"sessionId": session}, nil)
	// On the command line, which says why it looks from aside.
	for _, c := range [][]string{{"sessions", "list"}, {"sessions", "show", session}, {"ps"}, {"goals"}, {"effects"}, {"doctor"}} {
		out, code := w.holdfast(nil, c...)
		if want := map[bool]int{true: 3}[c[0] == "doctor"]; code != want || !holds(out, "store_busy: process "+pid(holder), "kill -CONT "+pid(holder)) {
			t.Errorf("%v: %d %s", c, code, out)
		}
		if c[0] == "sessions" && !strings.Contains(out, session) {
			t.Errorf("%v shows nothing: %s", c, out)
		}
	}
	// A window that opens the session sees its history.
	window.Await(id) // answered with an error, or stored; see below
	window.Must("session/load", w.opening(session), nil)
	told(t, window, "the history", "finished well")
	told(t, window, "the opening", "store_busy: process "+pid(holder), "You see what is stored")
}

// A prompt that cannot be stored in time is refused with the name of the process; when that goes on, so does everything.
func TestGate_Continued(t *testing.T) {
	t.Parallel()
	w, holder, window, session := stuckInGate(t)
	refused(t, window, window.Prompt(session, "and now?"), holder)
	window.Must("session/load", w.opening(session), nil)
	holder.Signal(syscall.SIGCONT)
	if got := reply(t, window, window.Prompt(session, "and now?")); got != "end_turn" {
		t.Errorf("it ended with %s", got)
	}
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("%d requests: a prompt that was refused was worked on", n)
	}
	harness.Eventually(t, "the session that was being made is there", func() bool {
		var list []struct{}
		w.holdfast(&list, "sessions", "list", "--json")
		return len(list) == 2
	})
}

// The same when it is killed, for a window that was started meanwhile as well. Nothing of its write is stored.
func TestGate_Killed(t *testing.T) {
	t.Parallel()
	w, holder, window, session := stuckInGate(t)
	late := w.launch() // initialize is answered all the same
	refused(t, late, late.Begin("session/load", w.opening(session)), holder)
	refused(t, window, window.Prompt(session, "and now?"), holder)
	holder.Kill()
	harness.Eventually(t, "the late one opens the session", func() bool {
		_, e := late.Call("session/load", w.opening(session))
		return e == nil
	})
	if got := reply(t, late, late.Prompt(session, "and now?")); got != "end_turn" {
		t.Errorf("it ended with %s", got)
	}
	if n := w.number(`SELECT count(*) FROM sessions`); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A turn that runs when the store is kept loses nothing and repeats nothing: its result waits.
func TestGate_RunningTurnWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	a := w.launch()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	holder := w.launch("HOLDFAST_CRASH=session.created:before/stop")
	holder.Begin("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}})
	stopped(t, holder)
	t.Cleanup(func() { _ = syscall.Kill(holder.PID(), syscall.SIGKILL) })
	w.put("go")
	harness.Eventually(t, "the command has ended", func() bool { return w.lines("counter") == 2 })
	// Longer than any wait for the store: a prompt is refused after the longest, and the turn's own commit waited before it.
	refused(t, a, a.Begin("session/set_mode", map[string]any{"sessionId": session, "modeId": "plan"}), holder)
	refused(t, a, a.Begin("session/set_mode", map[string]any{"sessionId": session, "modeId": "plan"}), holder)
	holder.Signal(syscall.SIGCONT)
	if got := reply(t, a, id); got != "end_turn" || !strings.Contains(a.Text(session), "finished well") {
		t.Errorf("it ended with %s: %s", got, a.Text(session))
	}
	if n := len(w.model.Requests()); n != 2 || w.lines("counter") != 2 {
		t.Errorf("%d requests, %d lines in the counter", n, w.lines("counter"))
	}
	if n := w.number(`SELECT count(*) FROM attempts`); n != 1 {
		t.Errorf("%d attempts: it gave up and looked again what it had in its hands", n)
	}
}

// The process that keeps the store can be the owner of a session: taking over ends it, although nothing can be written before.
func TestGate_TakeoverOfTheHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	a := w.launch("HOLDFAST_CRASH=effect.settled:before/stop")
	session := a.NewSession(w.work)
	a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	w.put("go")
	stopped(t, a)
	t.Cleanup(func() { _ = syscall.Kill(a.PID(), syscall.SIGKILL) })
	out, code := w.holdfast(nil, "sessions", "takeover", session)
	if code != 0 || !holds(out, "ended process "+pid(a)) {
		t.Errorf("%d %s", code, out)
	}
	gone(t, a)
	b := w.launch()
	w.load(b, session)
	harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := w.lines("counter"); n != 2 {
		t.Errorf("%d lines in the counter", n)
	}
}

// refused waits for the answer to a request that could not be stored.
func refused(t *testing.T, a *harness.Agent, id string, holder *harness.Agent) {
	t.Helper()
	m := a.Await(id)
	var data struct {
		Code, Action, Since string
		PID                 int
	}
	if m.Error == nil || json.Unmarshal(m.Error.Data, &data) != nil || data.Code != "store_busy" || data.PID != holder.PID() || data.Since == "" ||
		!strings.Contains(data.Action, "kill -CONT") || !strings.Contains(m.Error.Message, pid(holder)) {
		t.Errorf("answered %s %v", m.Result, m.Error)
	}
}
