package servers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// ask is one permission question as the editor got it.
type ask struct {
	Title   string
	Text    string // of its content
	Options []string
}

func (w *world) permit(params json.RawMessage) string {
	var p struct {
		ToolCall struct {
			Title   string
			Content []struct{ Content struct{ Text string } }
		}
		Options []struct{ OptionID string }
	}
	if err := json.Unmarshal(params, &p); err != nil {
		w.t.Error(err)
	}
	q := ask{Title: p.ToolCall.Title}
	for _, c := range p.ToolCall.Content {
		q.Text += c.Content.Text
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, o.OptionID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks = append(w.asks, q)
	if w.choose != nil {
		return w.choose(q)
	}
	return "allow_once"
}

func (w *world) asked() []ask {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ask(nil), w.asks...)
}

// prompt asks and waits for the end of the turn.
func (w *world) prompt(a *harness.Agent, session, text string) {
	w.t.Helper()
	if got := stop(w.t, a, a.Prompt(session, text)); got != "end_turn" {
		w.t.Fatalf("the prompt %q stopped with %s", text, got)
	}
}

// results are what the model was told in its newest request.
func (w *world) results() []string {
	all := w.model.Requests()
	if len(all) == 0 {
		return nil
	}
	var out []string
	for _, m := range all[len(all)-1].Results() {
		out = append(out, m.Content)
	}
	return out
}

// result is the newest of the results.
func (w *world) result() string {
	r := w.results()
	if len(r) == 0 {
		return ""
	}
	return r[len(r)-1]
}

// offered are the names of the tools in the newest request.
func (w *world) offered() []string {
	all := w.model.Requests()
	if len(all) == 0 {
		return nil
	}
	var out []string
	for _, t := range all[len(all)-1].Tools {
		out = append(out, t.Name)
	}
	return out
}

// said waits for words of the agent.
func said(t testing.TB, a *harness.Agent, session, text string) {
	t.Helper()
	harness.Eventually(t, "the agent says "+text, func() bool { return strings.Contains(a.Text(session), text) })
}

// call is one call as the editor shows it.
type call struct{ id, title, status string }

// callsOf lists the calls of a session as they are shown now, in the order in which they came.
func callsOf(a *harness.Agent, session string) []call {
	var calls []call
	for _, b := range a.Updates(session) {
		var u struct{ SessionUpdate, ToolCallID, Title, Status string }
		if json.Unmarshal(b, &u) != nil || u.ToolCallID == "" {
			continue
		}
		i := slices.IndexFunc(calls, func(c call) bool { return c.id == u.ToolCallID })
		if i < 0 {
			i, calls = len(calls), append(calls, call{id: u.ToolCallID})
		}
		if u.Title != "" {
			calls[i].title = u.Title
		}
		if u.Status != "" {
			calls[i].status = u.Status
		}
	}
	return calls
}

// shown is the status of the one call that has a title.
func shown(a *harness.Agent, session, title string) string {
	var found []string
	for _, c := range callsOf(a, session) {
		if c.title == title || strings.HasPrefix(c.title, title+" {") { // a title may end in the arguments
			found = append(found, c.status)
		}
	}
	return strings.Join(found, " and ")
}

// idle waits until nothing is shown as going on. After a session was opened the agent is silent for a moment.
func idle(t testing.TB, a *harness.Agent, session string) {
	t.Helper()
	harness.Eventually(t, "no call is shown as going on", func() bool {
		for _, c := range callsOf(a, session) {
			if c.status != "completed" && c.status != "failed" {
				return false
			}
		}
		return true
	})
}

// replay opens the session in a process of its own, and says what it shows.
func (w *world) replay(session string) *harness.Agent {
	w.t.Helper()
	a := w.start("")
	w.load(a, session)
	return a
}

func stop(t testing.TB, a *harness.Agent, id string) string {
	t.Helper()
	m := a.Await(id)
	if m.Error != nil {
		t.Fatalf("the prompt failed: %v", m.Error)
	}
	var r struct{ StopReason string }
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r.StopReason
}
