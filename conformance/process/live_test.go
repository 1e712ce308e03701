package process_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// shownCall is an update about a tool call.
type shownCall struct {
	Kind    string `json:"sessionUpdate"`
	ID      string `json:"toolCallId"`
	Title   string
	Status  string
	Content []struct {
		Type    string
		Content struct{ Text string }
	}
}

func (c shownCall) text() string {
	var b strings.Builder
	for _, p := range c.Content {
		b.WriteString(p.Content.Text)
	}
	return b.String()
}

// shown lists what a client was told of tool calls.
func shown(a *harness.Agent, session string) (out []shownCall) {
	for _, u := range a.Updates(session) {
		var c shownCall
		if json.Unmarshal(u, &c) == nil && (c.Kind == "tool_call" || c.Kind == "tool_call_update") {
			out = append(out, c)
		}
	}
	return out
}

func sees(t *testing.T, what string, a *harness.Agent, session string, want func(shownCall) bool) shownCall {
	t.Helper()
	var got shownCall
	harness.Eventually(t, what, func() bool {
		for _, c := range shown(a, session) {
			if want(c) {
				got = c
				return true
			}
		}
		return false
	})
	return got
}

// A command that prints nothing is shown as running, with the time, to every client that has its session open; so is what it prints. What
// is shown of it is bounded, and a load holds its output as text.
func TestLive_RunningCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	a := w.launch()
	session := a.NewSession(w.work)
	b := w.launch()
	w.load(b, session)
	id := a.Prompt(session, do(foreground("echo begun; touch begun; "+until("more")+"; yes | head -c 3000000; "+until("go")+"; echo finished")))
	for name, c := range map[string]*harness.Agent{"owner": a, "other": b} {
		sees(t, "the "+name+" sees the command", c, session, func(s shownCall) bool { return strings.Contains(s.Title, "echo begun") })
		sees(t, "the "+name+" sees its output", c, session, func(s shownCall) bool {
			return s.Status == "in_progress" && strings.HasPrefix(s.text(), "begun\n")
		})
	}
	began := time.Now()
	for name, c := range map[string]*harness.Agent{"owner": a, "other": b} {
		sees(t, "the "+name+" sees how long it runs", c, session, func(s shownCall) bool {
			return s.Status == "in_progress" && strings.HasPrefix(s.text(), "begun\n[running for ")
		})
	}
	t.Logf("told after %v", time.Since(began))
	w.put("more")
	for name, c := range map[string]*harness.Agent{"owner": a, "other": b} {
		s := sees(t, "the "+name+" sees much output", c, session, func(s shownCall) bool { return strings.Contains(s.text(), "bytes cut here") })
		if n := len(s.text()); n > 10_000 {
			t.Errorf("an update to the %s has %d bytes", name, n)
		}
	}
	w.put("go")
	a.Await(id)
	w.load(b, session)
	last := shown(b, session)
	s := last[len(last)-1]
	if s.Kind != "tool_call" || s.Status != "completed" || !strings.HasPrefix(s.text(), "begun\n") || !strings.Contains(s.text(), "finished\n[exit code 0]") {
		t.Errorf("the replay holds %s %s: %.200s", s.Kind, s.Status, s.text())
	}
	for _, u := range b.Updates(session) {
		if bytes.Contains(u, []byte(`"terminal"`)) {
			t.Errorf("an update names a terminal: %.200s", u)
		}
	}
}

// A call whose executor is dead is not shown as running before somebody executes it again. Here nobody may: the model is another one.
func TestLive_DeadCallIsNotRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, do(foreground("echo run >> counter; "+until("go"))))
	w.counted()
	a.Kill()
	good := w.extra
	w.extra = append(append([]string{}, good...), "HOLDFAST_MODEL=openai/other", "OPENAI_API_KEY=another key", "OPENAI_BASE_URL="+w.model.URL())
	b := w.launch()
	w.load(b, session)
	s := sees(t, "the call is shown", b, session, func(s shownCall) bool { return s.Kind == "tool_call" })
	if s.Status != "pending" {
		t.Errorf("a dead one's call is shown as %s", s.Status)
	}
	b.Must("session/list", map[string]any{}, nil)
	for _, s := range shown(b, session) {
		if s.Status == "in_progress" {
			t.Errorf("a dead one's call is shown as running: %+v", s)
		}
	}
	if err := b.CloseInput(); err != nil {
		t.Fatal(err)
	}
	w.extra = good
	c := w.launch()
	w.load(c, session)
	sees(t, "it runs again once somebody executes it", c, session, func(s shownCall) bool { return s.Status == "in_progress" })
	w.put("go")
	sees(t, "it ends", c, session, func(s shownCall) bool { return s.Status == "completed" })
	if n := w.lines("counter"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

func (w *world) counted() {
	w.t.Helper()
	harness.Eventually(w.t, "the command runs", func() bool { return w.lines("counter") == 1 })
}
