package stops_test

import (
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// A client closes a session that another process executes: the work is interrupted there as well, and waits until the session is opened.
func TestClose_ExecutedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, do(foreground("echo run >> first; while [ ! -e go ]; do sleep 0.05; done"), foreground("echo run >> second")))
	w.begun("first")
	other := w.launch()
	other.NewSession(w.work)
	a.Kill()
	harness.Eventually(t, "the other takes over", func() bool {
		return document[struct{ Session struct{ OwnerPID int } }](w, "sessions", "show", session).Session.OwnerPID == other.PID()
	})
	b := w.launch()
	w.load(b, session)
	closeSession(b, session)
	harness.Eventually(t, "it waits", func() bool { return w.state(session) == "closed" })
	asked := w.asked()
	w.put("go")
	w.silent(asked, 3*time.Second, "a closed session went on elsewhere")
	if w.lines("second") != 0 {
		t.Error("the next call of a closed session was made")
	}
	w.load(b, session)
	harness.Eventually(t, "it goes on when it is opened", func() bool { return w.lines("second") == 1 })
	if w.lines("first") != 1 {
		t.Errorf("the command ran %d times", w.lines("first"))
	}
}

// A stop reaches the commands of a session that was closed, whoever says it.
func TestStop_OfAClosedSession(t *testing.T) {
	for name, stop := range map[string]func(w *world, a *harness.Agent){
		"in another session": func(w *world, a *harness.Agent) { say(w.t, a, a.NewSession(w.work), "/stop all") },
		"command line":       func(w *world, _ *harness.Agent) { _ = document[[]stopped](w, "stop", "--all") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, do(background(stays("behind")), foreground(stays("front"))))
			w.begun("behind")
			w.begun("front")
			closeSession(a, session)
			stop(w, a)
			harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			asked := w.asked()
			w.load(a, session)
			w.silent(asked, 2*time.Second, "it came back")
			if got := w.state(session); got != "idle" {
				t.Errorf("the session is %s", got)
			}
		})
	}
}
