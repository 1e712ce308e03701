package models_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A goal that runs keeps the model that it began with while its session has another one for what is said next, also over a crash; resumed by a
// person it takes the session's.
func TestSwitch_RunningGoalKeepsItsModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(figures)
	w.both()
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	n := 0
	isGoal := func(r fakemodel.Request) bool {
		return strings.Contains(string(r.Body), "write ten lines") && !r.Said("hello")
	}
	w.set(func() {
		w.answer = func(r fakemodel.Request) fakemodel.Reply {
			if !isGoal(r) {
				return said(r)
			}
			if n++; n == 2 || n == 3 { // the second request is cut off by a crash and comes again
				reply := fakemodel.Text("I think.")
				reply.Steps = append([]fakemodel.Step{fakemodel.Gate(gate)}, reply.Steps...)
				return reply
			}
			return fakemodel.Calls(fakemodel.Call{Name: "write", Args: fmt.Sprintf(`{"path":"f%d","content":"x"}`, n)})
		}
	})
	a := w.launch("")
	s := a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "edit"}, nil)
	a.Begin("_holdfast/create_goal", map[string]any{"sessionId": s, "objective": "write ten lines"})
	harness.Eventually(t, "the goal works", func() bool { return len(w.model.Requests()) >= 2 })
	w.choose(a, s, "model", "openai/gpt-fake")
	a.Kill()
	a = w.launch("")
	w.load(a, s)
	harness.Eventually(t, "the goal goes on", func() bool { return len(w.model.Requests()) >= 3 })
	open()
	harness.Eventually(t, "it works again", func() bool { return len(w.model.Requests()) >= 5 })
	a.Must("_holdfast/update_goal", map[string]any{"sessionId": s, "action": "pause"}, nil)
	before := len(w.since(0))
	for _, r := range w.since(0) {
		if r.Model != "claude-fake" {
			t.Errorf("request %d of the goal went to %s", r.N, r.Model)
		}
	}
	a.Must("_holdfast/update_goal", map[string]any{"sessionId": s, "action": "resume"}, nil)
	harness.Eventually(t, "it goes on by the other model", func() bool {
		all := w.model.Requests()
		return len(all) > before && all[len(all)-1].Model == "gpt-fake"
	})
	a.Must("_holdfast/update_goal", map[string]any{"sessionId": s, "action": "pause"}, nil)
	harness.Eventually(t, "that is said", func() bool { return strings.Contains(a.Text(s), "It goes on with openai/gpt-fake") })
	w.since(0)
}
