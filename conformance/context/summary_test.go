package context_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// dies starts an agent that dies at a point, has it do something, and waits for its end.
func (w *world) dies(point, session string, do func(a *harness.Agent)) {
	w.t.Helper()
	_ = os.Remove(filepath.Join(w.dir, "fired"))
	a := w.launch(point, nil)
	if session != "" {
		a.Begin("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}})
	}
	do(a)
	select {
	case <-a.Ended():
	case <-time.After(harness.Limit):
	}
	b, _ := os.ReadFile(filepath.Join(w.dir, "fired"))
	name, _, _ := strings.Cut(point, "/")
	if !strings.HasPrefix(string(b), name+" kill ") {
		w.t.Fatalf("the crash point %s did not fire: %q", point, b)
	}
}

// A process that dies as it asks for a summary has changed nothing; two in a row do not make a third by themselves, and the user's word goes on.
func TestCompaction_DiesAskingForTheSummary(t *testing.T) {
	for _, point := range []string{"request.started:before", "request.started:after"} {
		t.Run(point, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				first := w.launch("", nil)
				s := first.NewSession(w.work)
				w.say(first, s, "before")
				first.Kill()
				w.dies(point, s, func(a *harness.Agent) { a.Prompt(s, "/compact") })
				if kinds := w.entries(s); count(kinds, "compaction") != 0 {
					t.Errorf("half a compaction is in the history: %v", kinds)
				}
				w.dies(point, "", func(a *harness.Agent) { a.Begin("session/list", map[string]any{}) })
				b := w.launch("", nil)
				w.load(b, s)
				harness.Eventually(t, "it waits for the user's word", func() bool { return strings.Contains(w.command(0, "sessions", "list"), "crash_loop") })
				if n := w.summaries(); n != 0 {
					t.Errorf("a summary was asked for %d times by processes that died before", n)
				}
				w.say(b, s, "/retry")
				w.say(b, s, "after")
				w.holds("what follows", everything(w.last()), summary, "after")
				if kinds := w.entries(s); count(kinds, "compaction") != 1 || w.summaries() != 1 {
					t.Errorf("the history is %v after %d summaries", kinds, w.summaries())
				}
			})
		})
	}
}

// One death there is made good without anybody: the automatic compaction is asked for again and the work goes on.
func TestCompaction_AutomaticDiesAndGoesOn(t *testing.T) {
	for _, point := range []string{"request.started:before/2", "request.started:after/2", "compaction.committed:before", "compaction.committed:after"} {
		t.Run(strings.ReplaceAll(point, "/", " "), func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				first := w.launch("", nil)
				s := first.NewSession(w.work)
				for _, name := range []string{"alpha", "beta", "gamma"} {
					w.say(first, s, filler(name, 40))
				}
				first.Kill()
				w.set(func() { w.window = 150 << 10 })
				w.dies(point, s, func(a *harness.Agent) { a.Prompt(s, filler("delta", 40)) })
				b := w.launch("", nil)
				w.load(b, s)
				harness.Eventually(t, "the work goes on", func() bool { return strings.Contains(b.Text(s), "You said: delta begins") })
				w.holds("the request", everything(w.last()), summary, "delta ends")
				if kinds := w.entries(s); count(kinds, "compaction") != 1 {
					t.Errorf("the history is %v", kinds)
				}
				want := 1
				if point == "compaction.committed:before" {
					want = 2 // the first answer was lost with the process
				}
				if n := w.summaries(); n != want {
					t.Errorf("a summary was asked for %d times, want %d", n, want)
				}
			})
		})
	}
}

// What comes instead of a summary: nothing of it is run or taken for one, nothing goes in circles, and the history stays as it was.
func TestSummary_ThatIsNone(t *testing.T) {
	length := fakemodel.Text("SUMMARY: it breaks off in the mid")
	length.Finish = "length"
	refused := fakemodel.Text("I cannot help with that.")
	refused.Finish = "content_filter"
	cut := fakemodel.Text("SUMMARY: half of")
	cut.End = fakemodel.EndCut
	write := fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"made","content":"x"}`}, fakemodel.Call{Name: "shell", Args: `{"command":"touch made"}`})
	both := write
	both.Steps = []fakemodel.Step{{Text: "SUMMARY: and now I write."}}
	for name, c := range map[string]struct {
		reply fakemodel.Reply
		asked int  // for a summary, until it is given up or taken
		taken bool // as a summary
	}{
		"calls":                {write, 1, false},
		"text and calls":       {both, 1, false},
		"nothing":              {fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 5}}, 1, false},
		"white space":          {fakemodel.Text(" \n"), 1, false},
		"refused":              {refused, 1, false},
		"cut at the limit":     {length, 1, true},
		"refused as a request": {fakemodel.Error(400, "the transcript is not wanted here", "invalid"), 1, false},
		"longer than it all":   {fakemodel.Text(filler("SUMMARY", 300)), 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				a := w.launch("", nil)
				s := a.NewSession(w.work)
				a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "auto"}, nil)
				for _, name := range []string{"alpha", "beta", "gamma"} {
					w.say(a, s, filler(name, 40))
				}
				w.set(func() {
					w.window = 150 << 10
					w.summed = func(int, fakemodel.Request) fakemodel.Reply { return c.reply }
				})
				before := len(w.model.Requests())
				m := a.Await(a.Prompt(s, filler("delta", 40)))
				if got := strings.Contains(a.Text(s), "You said: delta begins"); got != c.taken {
					t.Errorf("it was taken for a summary: %v (%s %v)", got, m.Result, m.Error)
				}
				if n := w.summaries(); n > c.asked {
					t.Errorf("a summary was asked for %d times, want %d", n, c.asked)
				}
				if n := len(w.model.Requests()) - before; n > 6 {
					t.Errorf("%d requests were made", n)
				}
				if _, err := os.Stat(filepath.Join(w.work, "made")); err == nil {
					t.Error("a call of a summary was run")
				}
				kinds := w.entries(s)
				if slices.Contains(kinds, "tool") {
					t.Errorf("a call of a summary is in the history: %v", kinds)
				}
				if got := count(kinds, "compaction") > 0; got != c.taken && name != "longer than it all" {
					t.Errorf("the history is %v", kinds)
				}
				if c.taken {
					return
				}
				w.set(func() { w.window, w.summed = 0, nil })
				w.say(a, s, "all of it fits now")
				if got := everything(w.last()); name != "longer than it all" {
					w.holds("the history as it was", got, "alpha ends", "delta ends")
				}
			})
		})
	}
}

// An answer that breaks off is tried again, as any other.
func TestSummary_BrokenOffIsTriedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		cut := fakemodel.Text("SUMMARY: half of")
		cut.End = fakemodel.EndCut
		w.set(func() {
			w.summed = func(n int, _ fakemodel.Request) fakemodel.Reply {
				if n == 1 {
					return cut
				}
				return fakemodel.Text(summary)
			}
		})
		a := w.launch("", nil)
		s := a.NewSession(w.work)
		w.say(a, s, "before")
		w.say(a, s, "/compact")
		w.say(a, s, "after")
		got := everything(w.last())
		w.holds("what follows", got, summary, "after")
		if strings.Contains(got, "half of") || w.summaries() != 2 {
			t.Errorf("after %d summaries it is sent\n%s", w.summaries(), got)
		}
	})
}

// The editor is sent exactly what the protocol has for a compaction.
func TestCompaction_Updates(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		a := w.launch("", shows)
		s := a.NewSession(w.work)
		w.say(a, s, "before")
		w.watched(a, s, "/compact")
		w.set(func() {
			w.summed = func(int, fakemodel.Request) fakemodel.Reply {
				return fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 5}}
			}
		})
		w.say(a, s, "between")
		w.watched(a, s, "/compact")
		var got []string
		for _, raw := range a.Updates(s) {
			var u map[string]any
			if json.Unmarshal(raw, &u) != nil || u["sessionUpdate"] != "compaction_update" {
				continue
			}
			if id, ok := u["compactionId"].(string); !ok || id == "" {
				t.Errorf("an update without an id: %s", raw)
			}
			delete(u, "compactionId")
			delete(u, "sessionUpdate")
			b, err := json.Marshal(u)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(b))
		}
		want := []string{`{"status":"in_progress"}`, `{"status":"completed","summary":[{"text":"` + summary + `","type":"text"}]}`, `{"status":"in_progress"}`}
		if len(got) != 4 || !slices.Equal(got[:3], want) || !strings.Contains(got[3], `"status":"failed"`) {
			t.Errorf("the updates are\n%s", strings.Join(got, "\n"))
		}
	})
}
