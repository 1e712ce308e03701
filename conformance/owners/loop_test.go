package owners_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Where the process is killed in these tests, at each launch again: the request is stored, and nothing came back.
const deadly = "HOLDFAST_CRASH=request.started:after/kill"

// dies waits for a process that its crash point ends.
func dies(t *testing.T, a *harness.Agent) {
	t.Helper()
	if err := a.Wait(); err == nil {
		t.Fatal("it did not die")
	}
}

// killedTwice is a session whose run has killed two processes at one place.
func killedTwice(t *testing.T, begin func(a *harness.Agent, session string)) (w *world, session string) {
	t.Helper()
	w = newWorld(t, talk)
	a := w.launch(deadly)
	session = a.NewSession(w.work)
	begin(a, session)
	dies(t, a)
	b := w.launch(deadly)
	b.Begin("session/list", map[string]any{})
	dies(t, b)
	return w, session
}

// A run that kills its process twice without progress is parked: the third process does not die of it, sends nothing, and every door says so
// and what to do. Other sessions go on meanwhile, in the very process that would die.
func TestCrashLoop_IsParked(t *testing.T) {
	t.Parallel()
	w, session := killedTwice(t, func(a *harness.Agent, session string) { a.Prompt(session, "hello") })
	c := w.launch()
	w.load(c, session)
	harness.Eventually(t, "it is parked", func() bool { return w.reason() == "crash_loop" })
	told(t, c, "the window", "Your request of", "crash_loop", "twice in a row", "/redo", "/retry", "/stop", "a new message")
	for _, cmd := range [][]string{{"sessions", "show", session}, {"sessions", "list"}, {"doctor"}} {
		out, code := w.holdfast(nil, cmd...)
		if !holds(out, "crash_loop") || len(cmd) == 3 && !holds(out, "twice in a row", "holdfast sessions retry "+session) {
			t.Errorf("%v: %s", cmd, out)
		}
		if cmd[0] == "doctor" && (code != 3 || !holds(out, "holdfast sessions redo "+session, "holdfast sessions retry "+session)) {
			t.Errorf("doctor: exit code %d\n%s", code, out)
		}
	}
	other := c.NewSession(w.work)
	if got := reply(t, c, c.Prompt(other, "and you?")); got != "end_turn" || len(w.model.Requests()) != 1 {
		t.Errorf("another session: %s, %d requests", got, len(w.model.Requests()))
	}
	w.must(c.CloseInput())

	// Launches alone change nothing, however many.
	for range 2 {
		d := w.launch(deadly)
		d.Must("session/list", map[string]any{}, nil)
		w.load(d, session)
		told(t, d, "a window that opens it later", "Your request of", "crash_loop", "/retry")
		w.must(d.CloseInput())
	}
	out, code := w.holdfast(nil, "work")
	if code != 3 || !holds(out, "crash_loop", "holdfast sessions retry") {
		t.Errorf("holdfast work: %d %s", code, out)
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}

	// A person's word moves it.
	if out, code := w.holdfast(nil, "sessions", "retry", session); code != 0 {
		t.Errorf("retry: %d %s", code, out)
	}
	e := w.launch()
	w.load(e, session)
	harness.Eventually(t, "it goes on", func() bool { return strings.Contains(e.Text(session), "finished well") })
}

func (w *world) reason() string {
	var list []struct{ ReasonCode string }
	w.holdfast(&list, "sessions", "list", "--json")
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].ReasonCode // the oldest
}

// A new message is new authority: it is worked on though an older one killed two processes, and that one stays parked.
func TestCrashLoop_NewMessageIsNewAuthority(t *testing.T) {
	t.Parallel()
	w, session := killedTwice(t, func(a *harness.Agent, session string) { a.Prompt(session, "hello") })
	c := w.launch()
	w.load(c, session)
	harness.Eventually(t, "it is parked", func() bool { return w.reason() == "crash_loop" })
	if got := reply(t, c, c.Prompt(session, "again, please")); got != "end_turn" {
		t.Errorf("it ended with %s", got)
	}
	reqs := w.model.Requests()
	if len(reqs) != 1 || reqs[0].LastUser() != "again, please" {
		t.Errorf("%d requests", len(reqs))
	}
}

// A person's retry of what kills again is parked again, after the same number of deaths at most.
func TestCrashLoop_RetryIsBounded(t *testing.T) {
	t.Parallel()
	w, session := killedTwice(t, func(a *harness.Agent, session string) { a.Prompt(session, "hello") })
	c := w.launch()
	w.load(c, session)
	harness.Eventually(t, "it is parked", func() bool { return w.reason() == "crash_loop" })
	w.must(c.CloseInput())
	if out, code := w.holdfast(nil, "sessions", "retry", session); code != 0 {
		t.Fatalf("retry: %d %s", code, out)
	}
	deaths := 0
	for range 4 {
		d := w.launch(deadly)
		d.Begin("session/load", w.opening(session))
		harness.Eventually(t, "it is parked, or dead", func() bool {
			select {
			case <-d.Ended():
				return true
			default:
				return w.reason() == "crash_loop"
			}
		})
		if w.reason() == "crash_loop" {
			break
		}
		deaths++
	}
	if deaths < 1 || deaths > 2 {
		t.Errorf("it died %d times after one word of a person", deaths)
	}
}

// Deaths with progress between them are not counted: a run may outlive many.
func TestCrashLoop_ProgressSpendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Results()); n < 4 {
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo run >> counter"}`})
		}
		return fakemodel.Text("finished well")
	})
	session := ""
	for i := range 5 {
		a := w.launch("HOLDFAST_CRASH=effect.settled:after/kill")
		if i == 0 {
			session = a.NewSession(w.work)
			a.Prompt(session, "hello")
		} else {
			a.Begin("session/load", w.opening(session))
		}
		if i < 4 {
			dies(t, a)
			continue
		}
		harness.Eventually(t, "it ends", func() bool { return strings.Contains(a.Text(session), "finished well") })
	}
	if n := w.lines("counter"); n != 4 {
		t.Errorf("%d calls", n)
	}
}

// An editor that is closed is no death, however often that happens before anything was stored.
func TestCrashLoop_LettingGoSpendsNothing(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply {
		r := fakemodel.Text("finished well")
		r.Steps = append([]fakemodel.Step{fakemodel.Gate(hold)}, r.Steps...)
		return r
	})
	session := ""
	for i := range 4 {
		a := w.launch()
		if i == 0 {
			session = a.NewSession(w.work)
			a.Prompt(session, "hello")
		} else {
			w.load(a, session)
		}
		harness.Eventually(t, "it is asked", func() bool { return len(w.model.Requests()) == i+1 })
		w.must(a.CloseInput())
	}
	close(hold)
	a := w.launch()
	w.load(a, session)
	harness.Eventually(t, "it ends", func() bool { return strings.Contains(a.Text(session), "finished well") })
}

// A goal is parked like a prompt, and its own retry moves it.
func TestCrashLoop_OfAGoal(t *testing.T) {
	t.Parallel()
	w, session := killedTwice(t, func(a *harness.Agent, session string) {
		a.Begin("create_goal", map[string]any{"sessionId": session, "objective": "say hello"})
	})
	c := w.launch()
	w.load(c, session)
	type view struct {
		Goal struct {
			GoalID, Status, Phase, ReasonCode string
			CanRetry                          bool
			NextAction                        struct{ Owner string }
		}
	}
	var v view
	harness.Eventually(t, "it is parked", func() bool {
		c.Must("get_goal", map[string]any{"sessionId": session}, &v)
		return v.Goal.ReasonCode == "crash_loop"
	})
	if v.Goal.Status != "active" || v.Goal.Phase != "waiting" || !v.Goal.CanRetry || v.Goal.NextAction.Owner != "user" {
		t.Errorf("%+v", v)
	}
	if out, code := w.holdfast(nil, "doctor"); code != 3 || !holds(out, "crash_loop", "holdfast goals retry "+v.Goal.GoalID) {
		t.Errorf("doctor: %d %s", code, out)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	c.Must("update_goal", map[string]any{"sessionId": session, "action": "retry"}, nil)
	w.wait(1)
}

// Two windows live when the first dies: the one that inherits dies too, and the third does not.
func TestCrashLoop_InheritorsDoNotAllDie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, talk)
	a := w.launch(deadly)
	session := a.NewSession(w.work)
	heirs := []*harness.Agent{w.launch(deadly), w.launch(deadly)}
	for _, h := range heirs {
		h.Must("session/list", map[string]any{}, nil)
	}
	a.Prompt(session, "hello")
	dies(t, a)
	harness.Eventually(t, "it is parked", func() bool { return w.reason() == "crash_loop" })
	left := 0
	for _, h := range heirs {
		select {
		case <-h.Ended():
		default:
			left++
		}
	}
	if left != 1 || len(w.model.Requests()) != 0 {
		t.Errorf("%d are left, %d requests", left, len(w.model.Requests()))
	}
}
