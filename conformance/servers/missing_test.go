package servers_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// pursuing is a model that works on a Goal with the tool of the server x: a call, and then words.
func pursuing(r fakemodel.Request) fakemodel.Reply {
	if !strings.Contains(r.Messages[0].Content, "The user has set a goal") {
		return fakemodel.Text("done ", r.LastUser(), "\n")
	}
	if len(r.Results()) > 0 {
		return fakemodel.Text("The tool was used.")
	}
	return fakemodel.Calls(tool("mcp__x__act", act("ok", 0, "acted")))
}

type goal struct{ Status, Phase, ReasonCode, Reason string }

func goalOf(t *testing.T, a *harness.Agent, session string) goal {
	t.Helper()
	var r struct{ Goal goal }
	a.Must("get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal
}

// interrupted is a Goal with a server of the editor's whose process dies at a point.
func interrupted(t *testing.T, point string) (*world, string) {
	t.Helper()
	w := newWorld(t, pursuing)
	w.hostile("x", nil)
	a := w.start(point)
	session := w.open(a)
	a.Begin("create_goal", map[string]any{"sessionId": session, "objective": "Use the tool.",
		"requirements": []any{map[string]any{"kind": "semantic", "text": "The tool was used."}}}) // the first request is the work's
	_ = a.Wait()
	w.fired(1, strings.Split(point, "/")[0])
	return w, session
}

// unopened launches a process in which nobody opens the session, and waits until the Goal does too.
func (w *world) unopened(session string) *harness.Agent {
	w.t.Helper()
	b := w.start("")
	harness.Eventually(w.t, "the goal waits for its server", func() bool { return goalOf(w.t, b, session).ReasonCode == "mcp_server_missing" })
	return b
}

// The moments at which the Goal's process dies: an answer is on its way, or the allowed call has not begun.
var interruptions = []string{"request.started:after", "effect.dispatched:before"}

func TestMissing_GoalWaitsForItsServer(t *testing.T) {
	for _, point := range interruptions {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, session := interrupted(t, point)
			before := len(w.lives("x"))
			b := w.unopened(session)
			if got := goalOf(t, b, session); !strings.Contains(got.Reason, "x") || got.Status != "active" {
				t.Errorf("the goal says %+v", got)
			}
			if !slices.Contains(w.offered(), "mcp__x__act") {
				t.Errorf("the model was offered %v", w.offered())
			}
			if n := len(w.lives("x")); n != before {
				t.Errorf("%d servers were started with nobody there", n-before)
			}
			if n := len(w.calls("x")); n != 0 {
				t.Errorf("the server received %d calls", n)
			}
			w.load(b, session)
			harness.Eventually(t, "the goal goes on", func() bool { return strings.Contains(w.result(), "acted") })
			if n := len(w.calls("x")); n != 1 {
				t.Errorf("the server received %d calls", n)
			}
			if n := len(w.asked()); n != 1 {
				t.Errorf("the user was asked %d times", n)
			}
		})
	}
}

func TestMissing_OpenedWithoutTheServer(t *testing.T) {
	for _, point := range interruptions {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, session := interrupted(t, point)
			b := w.unopened(session)
			w.servers = nil
			w.load(b, session)
			harness.Eventually(t, "the call is answered", func() bool { return strings.Contains(w.result(), "There is no tool named") })
			if slices.Contains(w.offered(), "mcp__x__act") {
				t.Error("the model is still offered the tool")
			}
			if n := len(w.calls("x")); n != 0 {
				t.Errorf("the server received %d calls", n)
			}
			if left, err := os.ReadFile(w.path("x.lives")); err != nil || strings.Count(string(left), "\n") != 1 {
				t.Errorf("the server was started again: %s", left)
			}
			idle(t, b, session)
		})
	}
}

// Another server of the same name is not the one that the call was allowed for.
func TestMissing_AnotherServerOfTheSameNameAsksAgain(t *testing.T) {
	t.Parallel()
	w, session := interrupted(t, "effect.dispatched:before")
	b := w.unopened(session)
	w.servers = nil
	w.hostile("x", plan{"say": "I am another one"})
	w.load(b, session)
	harness.Eventually(t, "the goal goes on", func() bool { return strings.Contains(w.result(), "acted") })
	if n := len(w.asked()); n != 2 {
		t.Errorf("the user was asked %d times", n)
	}
}

// Two sessions with a server of one name have a server each.
func TestScope_SessionsDoNotShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"first": {tool("mcp__x__act", act("ok", 0, "from the first"))}, "second": {tool("mcp__x__good", map[string]any{"do": "ok", "text": "from the second"})}}))
	a := w.start("")
	w.serve("x", hostileBinary(t), "-plan", w.planned("first", nil))
	one := w.open(a)
	w.servers = nil
	w.serve("x", hostileBinary(t), "-plan", w.planned("second", plan{"tools": []any{json.RawMessage(goodTool)}}))
	two := w.open(a)
	w.servers = nil
	none := w.open(a)
	check := func(session, prompt, result string, has, hasNot []string) {
		t.Helper()
		w.prompt(a, session, prompt)
		if got := w.result(); got != result {
			t.Errorf("the answer is %q, want %q", got, result)
		}
		for _, name := range has {
			if !slices.Contains(w.offered(), name) {
				t.Errorf("%s is not offered", name)
			}
		}
		for _, name := range hasNot {
			if slices.Contains(w.offered(), name) {
				t.Errorf("%s is offered", name)
			}
		}
	}
	check(one, "first", "from the first", []string{"mcp__x__act"}, []string{"mcp__x__good"})
	check(two, "second", "from the second", []string{"mcp__x__good"}, []string{"mcp__x__act"})
	check(none, "first", `There is no tool named "mcp__x__act" here.`, nil, []string{"mcp__x__act", "mcp__x__good"})
	if x, y := w.calls("first"), w.calls("second"); len(x) != 1 || len(y) != 1 {
		t.Errorf("the servers received %v and %v", x, y)
	}
	// Closing one ends its server alone.
	a.Must("session/close", map[string]any{"sessionId": one}, nil)
	w.allGone("first")
	if !alive(w.lives("second")[0]) {
		t.Error("the other session's server was ended")
	}
}
