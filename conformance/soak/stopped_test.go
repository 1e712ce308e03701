package soak_test

import (
	"testing"

	"holdfast/conformance/harness"
)

// The owner dies in the middle of a model request, and the user stops the work before anybody takes it over. Nobody will ever learn what that
// request cost: it is on record as unknown, not as open for good.
func TestStopped_WorkOfADeadOwner(t *testing.T) {
	w := newWorld(t, plan{windows: 1, sessions: 1}, 1)
	w.open()
	win := w.windows[0]
	s := win.sessions[0]
	w.say(win, s, "wait")
	harness.Eventually(t, "the model is asked", func() bool { return len(w.model.Requests()) == 1 })
	win.live.a.Kill()
	if !w.cli("stop", s.id) {
		t.Fatalf("the stop failed: %v", w.counts)
	}
	l := win.start()
	l.a.Initialize()
	l.with(s, func() {})
	if why := w.within(harness.Limit, w.moves); why != "" {
		t.Fatal(why)
	}
	for _, r := range w.query(`SELECT q.state, r.desired, r.phase FROM requests q JOIN runs r ON r.id = q.run`) {
		if r[0] != "unknown" || r[1] != "cancelled" || r[2] != "ended" {
			t.Errorf("the request is %s, its run %s %s", r[0], r[1], r[2])
		}
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}
