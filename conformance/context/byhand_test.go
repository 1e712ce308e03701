package context_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// compactions are the compaction updates of a session, in order: "status" or "status: summary".
func compactions(a *harness.Agent, session string) (out []string) {
	ids := map[string]bool{}
	for _, raw := range a.Updates(session) {
		var u struct {
			SessionUpdate, CompactionID, Status string
			Summary                             []struct{ Text string }
		}
		if json.Unmarshal(raw, &u) != nil || u.SessionUpdate != "compaction_update" {
			continue
		}
		ids[u.CompactionID] = true
		if len(u.Summary) > 0 {
			u.Status += ": " + u.Summary[0].Text
		}
		out = append(out, u.Status)
	}
	if len(ids) > 1 {
		out = append(out, "several ids")
	}
	return out
}

var shows = map[string]any{"session": map[string]any{"compaction": map[string]any{}}}

// A compaction by hand asks for a summary that keeps what was named, without tools, and shows nothing of it as chat. A client that shows compactions
// gets its updates and no line; what follows begins with the summary.
func TestByHand(t *testing.T) { onEach(t, byHand) }

func byHand(t *testing.T, w *world) {
	a := w.launch("", shows)
	s := a.NewSession(w.work)
	w.say(a, s, "the first thing")
	w.say(a, s, "the second thing")
	if said := w.watched(a, s, "/compact the colour of the door"); said != "" {
		t.Errorf("something was said: %q", said)
	}
	if got := compactions(a, s); !slices.Equal(got, []string{"in_progress", "completed: " + summary}) {
		t.Errorf("the client was told %q", got)
	}
	w.mu.Lock()
	asked := w.asked[0]
	w.mu.Unlock()
	w.holds("the request for a summary", asked.LastUser(), "the colour of the door", "the first thing", "You said: the second thing")
	if strings.Contains(asked.LastUser(), "/compact") {
		t.Error("the command itself was told to the model")
	}
	w.say(a, s, "the third thing")
	got := everything(w.last())
	w.holds("what follows", got, summary, "verbatim", "the second thing", "the third thing")
	if strings.Contains(got, "the first thing") || strings.Contains(got, "/compact") {
		t.Errorf("what was covered, or the command, was sent: %s", got)
	}
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	again := w.launch("", shows)
	w.load(again, s)
	if got := compactions(again, s); !slices.Equal(got, []string{"completed: " + summary}) {
		t.Errorf("the replay tells %q", got)
	}
	old := w.launch("", nil)
	w.load(old, s)
	w.holds("a client that does not show compactions", old.Text(s), "The conversation was compacted: 4 entries became a summary.", "You said: the first thing")
	if got := compactions(old, s); len(got) != 0 {
		t.Errorf("it was sent updates all the same: %q", got)
	}
}

// With nothing to compact a line says so, and the model is not asked.
func TestByHand_NothingToCompact(t *testing.T) {
	w := newWorld(t)
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	w.holds("the answer", w.say(a, s, "/compact"), "Nothing was compacted. There is nothing yet that a summary could stand for.")
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// watched compacts by hand while a client looks on that shows compactions: the summary comes once it was told that one is made.
func (w *world) watched(a *harness.Agent, session, text string) string {
	w.t.Helper()
	gate := make(chan struct{})
	var was func(int, fakemodel.Request) fakemodel.Reply
	w.set(func() {
		was = w.summed
		w.summed = func(n int, r fakemodel.Request) fakemodel.Reply {
			reply := fakemodel.Text(summary)
			if was != nil {
				reply = was(n, r)
			}
			reply.Steps = append([]fakemodel.Step{fakemodel.Gate(gate)}, reply.Steps...)
			return reply
		}
	})
	before := len(compactions(a, session))
	shown := len(a.Text(session))
	id := a.Prompt(session, text)
	harness.Eventually(w.t, "the client is told", func() bool { return len(compactions(a, session)) > before })
	close(gate)
	if m := a.Await(id); m.Error != nil {
		w.t.Fatal(m.Error)
	}
	w.set(func() { w.summed = was })
	return a.Text(session)[shown:]
}

// gated makes summaries wait until the gate is opened.
func (w *world) gated() (open func()) {
	gate := make(chan struct{})
	w.set(func() {
		w.summed = func(int, fakemodel.Request) fakemodel.Reply {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "SUMMARY: "}, fakemodel.Gate(gate), {Text: "done."}}, Usage: &fakemodel.Usage{Prompt: 700, Completion: 70}}
		}
	})
	return func() { close(gate) }
}

// What is said while a compaction runs is worked on after it, in order.
func TestByHand_PromptsWaitInOrder(t *testing.T) {
	w := newWorld(t)
	open := w.gated()
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	w.say(a, s, "before")
	ids := []string{a.Prompt(s, "/compact")}
	harness.Eventually(t, "the summary is asked for", func() bool { return w.summaries() == 1 })
	for _, text := range []string{"one", "two", "three"} {
		ids = append(ids, a.Prompt(s, text))
	}
	a.Must("session/list", map[string]any{}, nil)
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("%d requests were made before the summary was there", n)
	}
	open()
	for _, id := range ids {
		if m := a.Await(id); m.Error != nil {
			t.Fatal(m.Error)
		}
	}
	var order []string
	for _, r := range w.model.Requests()[2:] {
		order = append(order, r.LastUser())
		w.holds("each request", everything(r), "SUMMARY: done.")
	}
	if !slices.Equal(order, []string{"one", "two", "three"}) {
		t.Errorf("the order was %q", order)
	}
}

// A stop while a compaction runs wins: nothing is compacted, then or later.
func TestByHand_StopWins(t *testing.T) {
	w := newWorld(t)
	open := w.gated()
	a := w.launch("", shows)
	s := a.NewSession(w.work)
	w.say(a, s, "before")
	id := a.Prompt(s, "/compact")
	harness.Eventually(t, "the summary is asked for", func() bool { return w.summaries() == 1 })
	a.Notify("session/cancel", map[string]any{"sessionId": s})
	var r struct{ StopReason string }
	if m := a.Await(id); m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.StopReason != "cancelled" {
		t.Errorf("it ended with %s %v", m.Result, m.Error)
	}
	open()
	w.set(func() { w.summed = nil })
	w.say(a, s, "after")
	w.holds("what follows", everything(w.last()), "before", "after")
	if kinds := w.entries(s); count(kinds, "compaction") != 0 || w.summaries() != 1 {
		t.Errorf("the history is %v after %d summaries", kinds, w.summaries())
	}
	if got := compactions(a, s); !slices.Equal(got, []string{"in_progress", "cancelled"}) {
		t.Errorf("the client was told %q", got)
	}
}

// A goal that is set while a compaction runs starts right after it.
func TestByHand_GoalSetMeanwhileStarts(t *testing.T) {
	w := newWorld(t)
	open := w.gated()
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	w.say(a, s, "before")
	id := a.Prompt(s, "/compact")
	harness.Eventually(t, "the summary is asked for", func() bool { return w.summaries() == 1 })
	a.Must("_holdfast/create_goal", map[string]any{"sessionId": s, "objective": "Paint the door green."}, nil)
	open()
	if m := a.Await(id); m.Error != nil {
		t.Fatal(m.Error)
	}
	harness.Eventually(t, "the goal's first turn begins", func() bool {
		return slices.ContainsFunc(w.model.Requests(), func(r fakemodel.Request) bool {
			return !isSummary(r) && strings.Contains(string(r.Body), "Paint the door green.") && strings.Contains(everything(r), "SUMMARY: done.")
		})
	})
}

// A process that is killed while the summary is written has changed nothing; the next one tries once more, and goes on.
func TestByHand_KilledInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.gated()
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	w.say(a, s, "before")
	a.Prompt(s, "/compact")
	harness.Eventually(t, "the summary is asked for", func() bool { return w.summaries() == 1 })
	a.Kill()
	if kinds := w.entries(s); count(kinds, "compaction") != 0 {
		t.Errorf("half a compaction is in the history: %v", kinds)
	}
	w.set(func() { w.summed = nil })
	b := w.launch("", nil)
	w.load(b, s)
	harness.Eventually(t, "it is compacted after all", func() bool { return strings.Contains(b.Text(s), "became a summary") })
	w.say(b, s, "after")
	w.holds("what follows", everything(w.last()), summary, "after")
	if n := w.summaries(); n != 2 {
		t.Errorf("a summary was asked for %d times, want 2", n)
	}
	for _, r := range w.model.Requests() {
		if strings.Contains(everything(r), "answer was cut off") {
			t.Error("the model was told that an answer was cut off; none was")
		}
	}
}

// The command line asks for a compaction as well; whoever executes carries it out.
func TestCommandLine(t *testing.T) {
	w := newWorld(t)
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	w.say(a, s, "before")
	w.holds("the command", w.command(0, "sessions", "compact", s, "the door"), "stored")
	harness.Eventually(t, "it is compacted", func() bool { return strings.Contains(a.Text(s), "became a summary") })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds("the request", w.asked[0].LastUser(), "keep in particular: the door")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
}

// What a summary costs is counted with the rest.
func TestUsageCounts(t *testing.T) {
	w := newWorld(t)
	open := w.gated()
	open()
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	w.say(a, s, "before")
	w.say(a, s, "/compact")
	var x struct {
		Usage struct{ Requests, InputTokens, OutputTokens, UnknownRequests int64 }
	}
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	out := w.command(0, "sessions", "export", "--format", "json", s)
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	if x.Usage.Requests != 2 || x.Usage.InputTokens != 710 || x.Usage.OutputTokens != 71 || x.Usage.UnknownRequests != 0 {
		t.Errorf("the usage is %+v; want two requests and 710 tokens in", x.Usage)
	}
}
