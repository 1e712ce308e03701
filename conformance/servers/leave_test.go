package servers_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Of three calls of one answer the first was made, the second is on its way and the third has not begun.
func TestCrash_InTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	three := []fakemodel.Call{tool("mcp__x__act", act("ok", 0, "one")), tool("mcp__x__act", act("ok", 0, "two")), tool("mcp__x__act", act("ok", 0, "three"))}
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(three...)
		}
		return fakemodel.Text("done go")
	})
	w.hostile("x", nil)
	a := w.start("mcp.answer_read/2")
	session := w.open(a)
	a.Prompt(session, "go")
	_ = a.Wait()
	w.fired(1, "mcp.answer_read")
	b := w.replay(session)
	said(t, b, session, "done go")
	r := w.results()
	if len(r) != 3 || r[0] != "one" || !strings.Contains(r[1], says["unknown"]) || !strings.Contains(r[2], "Not started") {
		t.Errorf("the model was told %q", r)
	}
	if n := len(w.calls("x")); n != 2 {
		t.Errorf("%d calls reached the server", n)
	}
	idle(t, b, session)
}

// underway begins a call and leaves it with the server.
func underway(t *testing.T, do string, n int) (*world, *harness.Agent, string, string) {
	t.Helper()
	w := newWorld(t, nil)
	w.answer = follow(turns{"go": {tool("mcp__x__act", act(do, n, w.path("release")))}, "next": nil})
	w.hostile("x", nil)
	a := w.start("")
	session := w.open(a)
	id := a.Prompt(session, "go")
	w.begun("x", 1)
	return w, a, session, id
}

// The editor goes while a call is on its way. An answer that comes at once is kept, nothing is called again.
func TestLeave_EndOfInputDuringACall(t *testing.T) {
	for name, c := range map[string]struct {
		do   string
		n    int
		want string
	}{"answered at once": {"sleep", 200, "slept"}, "not answered": {"held", 0, says["unknown"]}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a, session, _ := underway(t, c.do, c.n)
			if err := a.CloseInput(); err != nil {
				t.Errorf("%v: %s", err, a.Stderr())
			}
			w.allGone("x")
			b := w.replay(session)
			said(t, b, session, "done go")
			if r := w.results(); len(r) != 1 || !strings.Contains(r[0], c.want) {
				t.Errorf("the model was told %q, want %q", r, c.want)
			}
			if n := len(w.calls("x")); n != 1 {
				t.Errorf("the call reached the server %d times", n)
			}
			idle(t, b, session)
		})
	}
}

// Closing the session in the middle of a call ends its server; what became of the call is unknown.
func TestLeave_SessionClosedDuringACall(t *testing.T) {
	t.Parallel()
	w, a, session, id := underway(t, "held", 0)
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	if got := stop(t, a, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	w.allGone("x")
	w.load(a, session)
	w.prompt(a, session, "next")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], says["unknown"]) {
		t.Errorf("the model was told %q", r)
	}
	if n := len(w.calls("x")); n != 1 {
		t.Errorf("the call reached the server %d times", n)
	}
	idle(t, a, session)
}

// Work that does not let go in time is found by the next process all the same.
func TestLeave_WorkThatDoesNotLetGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("shell", map[string]string{"command": "echo once >> ran"})}}))
	a := w.start("proc.launched/1/pause")
	session := w.open(a)
	a.Prompt(session, "go")
	harness.Eventually(t, "the work hangs", func() bool { return len(w.lines("fired")) == 1 })
	_ = a.CloseInput() // it says that the work did not let go
	b := w.start("")
	b.Must("session/list", map[string]any{}, nil)
	w.load(b, session)
	said(t, b, session, "done go")
	if got := w.read("ran"); got != "once\n" {
		t.Errorf("the command left %q", got)
	}
}
