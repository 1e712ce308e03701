package goals_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const wish = "Produce out.txt,\n  with the word result. Do not narrow this."

// list answers a request for requirements.
func list(reqs ...map[string]any) fakemodel.Reply {
	return call("submit_requirements", map[string]any{"requirements": append([]map[string]any{}, reqs...)})
}

// reads answers each request for requirements with the same.
func reads(r fakemodel.Reply) player { return func(fakemodel.Request) fakemodel.Reply { return r } }

var good = list(map[string]any{"kind": "file", "text": "out.txt holds the word", "path": "out.txt", "pattern": "result"},
	map[string]any{"kind": "semantic", "text": "The file reads well."})

// offering plays a worker that writes out.txt and offers it.
var offering = script(turn(writes("out.txt", "result\n"), candidate()), turn(candidate()))

// idsOf lists requirements as id, kind and origin.
func idsOf(g view) (out []string) {
	for _, q := range g.Requirements {
		out = append(out, q.ID+" "+q.Kind+" "+q.Origin)
	}
	return out
}

// Without requirements of the user's the model is asked once, before the first turn and with nothing but the tool for the answer. The words stay as
// they were and are a requirement themselves; the request counts as the goal's.
func TestExtract_AskedOnceAndKeptBesideTheWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, offering, judge("out.txt", map[string]string{"objective": "met", "r2": "met"})).holding("out.txt").extracting(reads(good))
	a, s := w.start()
	create(a, s, wish, nil)
	g := w.until(a, s, "achieved")
	if got := idsOf(g); !reflect.DeepEqual(got, []string{"objective semantic user", "r1 file model", "r2 semantic model"}) {
		t.Errorf("the requirements are %v", got)
	}
	if g.Objective != wish || g.Requirements[0].Text != wish || g.Extraction.State != "done" || g.Requirements[1].Confirmed || !g.Requirements[0].Confirmed {
		t.Errorf("the goal is %+v", g)
	}
	all := w.model.Requests()
	if first := all[0]; len(first.Tools) != 1 || !offers(first, "submit_requirements") || !strings.Contains(first.LastUser(), wish) {
		t.Errorf("the first request has the tools %v and says %q", first.Tools, first.LastUser())
	}
	if n := w.requests("submit_requirements"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if !strings.Contains(all[1].Messages[0].Content, "r2 (semantic): The file reads well. [read out of the objective") {
		t.Errorf("the worker does not know of it: %s", all[1].Messages[0].Content)
	}
	if text := a.Text(s); strings.Contains(text, "reads well") {
		t.Errorf("the answer is chat: %q", text)
	}
	asked := 0
	for _, h := range g.History {
		if h.What == "request" && h.Title == "requirements" {
			asked++
		}
	}
	if int64(len(all)*10) != g.Usage.InputTokens || asked != 1 {
		t.Errorf("%d requests, usage %+v, %d of them for requirements", len(all), g.Usage, asked)
	}
}

// Who gives requirements is not second-guessed.
func TestExtract_NotWhenTheUserGaveSome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, offering, accepts).holding("out.txt").extracting(reads(good))
	a, s := w.start()
	create(a, s, wish, map[string]any{"requirements": []any{map[string]any{"kind": "file", "path": "out.txt"}}})
	if g := w.until(a, s, "achieved"); g.Extraction.State != "none" || w.requests("submit_requirements") != 0 {
		t.Errorf("the goal is %+v", g)
	}
}

// Nonsense leaves the objective alone, says so, and holds nothing up.
func TestExtract_Nonsense(t *testing.T) {
	many := []map[string]any{}
	for range 21 {
		many = append(many, map[string]any{"kind": "semantic", "text": "one more"})
	}
	for name, reply := range map[string]fakemodel.Reply{
		"words":             fakemodel.Text("I would say it needs a file."),
		"nothing":           {Usage: &fakemodel.Usage{Prompt: 10}},
		"another tool":      call("write", map[string]string{"path": "out.txt", "content": "result\n"}),
		"no list":           call("submit_requirements", map[string]any{"requirements": "all of them"}),
		"too many":          list(many...),
		"too long":          list(map[string]any{"kind": "semantic", "text": strings.Repeat("long ", 500)}),
		"an unknown kind":   list(map[string]any{"kind": "vibes", "text": "good ones"}),
		"a bad pattern":     list(map[string]any{"kind": "file", "text": "x", "path": "out.txt", "pattern": "("}),
		"a file outside":    list(map[string]any{"kind": "file", "text": "x", "path": "../secret"}),
		"one bad among all": list(map[string]any{"kind": "file", "text": "x", "path": "out.txt"}, map[string]any{"kind": "command", "text": "y"}),
		"refused for good":  fakemodel.Error(400, "This tool is not supported.", "unsupported"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, offering, accepts).holding("out.txt").extracting(reads(reply))
			a, s := w.start()
			create(a, s, wish, nil)
			g := w.until(a, s, "achieved")
			if len(g.Requirements) != 1 || g.Extraction.State != "failed" || len(strings.Fields(g.Extraction.Note)) < 4 || w.requests("submit_requirements") != 1 {
				t.Errorf("%d requests, the goal is %+v", w.requests("submit_requirements"), g)
			}
		})
	}
}

// A fault of the endpoint is not an answer: it is asked again when the endpoint is back.
func TestExtract_AskedAgainAfterAFault(t *testing.T) {
	t.Parallel()
	n := 0
	w := newWorld(t, offering, judge("out.txt", map[string]string{"objective": "met", "r2": "met"})).holding("out.txt").extracting(func(fakemodel.Request) fakemodel.Reply {
		if n++; n == 1 {
			return fakemodel.Error(503, "Overloaded.", "overloaded")
		}
		return good
	})
	a, s := w.start()
	create(a, s, wish, nil)
	if g := w.until(a, s, "achieved"); len(g.Requirements) != 3 || w.requests("submit_requirements") != 2 {
		t.Errorf("the goal is %+v", g)
	}
}

// An endpoint that never answers this one thing is asked three times; then the work begins without.
func TestExtract_NeverAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, offering, accepts).holding("out.txt").extracting(reads(fakemodel.Error(503, "Overloaded.", "overloaded")))
	a, s := w.start()
	create(a, s, wish, nil)
	g := w.until(a, s, "achieved")
	if n := w.requests("submit_requirements"); n != 3 || g.Extraction.State != "failed" || !strings.Contains(g.Extraction.Note, "3 times") {
		t.Errorf("asked %d times, the goal is %+v", n, g)
	}
}

// What nobody confirmed sends the work back once and then no longer stands in the way; the goal's end says so. A command that nobody confirmed is
// never run.
func TestExtract_UnconfirmedSendsBackOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate()), turn(writes("more.txt", "more\n"), candidate())), accepts).extracting(reads(list(
		map[string]any{"kind": "file", "text": "never asked for", "path": "never.txt"},
		map[string]any{"kind": "command", "text": "never run", "command": "touch ran"})))
	a, s := w.start()
	create(a, s, wish, nil)
	g := w.until(a, s, "achieved")
	if g.Requirements[1].Result != "unmet" || g.Requirements[2].Result != "unknown" || !strings.Contains(g.Reason, "r1 is unmet, r2 is unknown") {
		t.Errorf("the goal is %+v", g)
	}
	if w.lines("more.txt") != 1 {
		t.Error("the work was not sent back")
	}
	if _, err := os.Stat(filepath.Join(w.work, "ran")); err == nil {
		t.Error("a command that nobody confirmed was run")
	}
	harness.Eventually(t, "the record says so", func() bool { return strings.Contains(a.Text(s), "r1 is unmet") })
}

// Confirmed, it binds like the user's own; what the user adds does from the start, and only the user takes it away again.
func TestExtract_ConfirmAddWaive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), shell("echo x >> counter; while [ ! -e go ]; do sleep 0.02; done"), candidate()), turn(candidate())), accepts).
		extracting(reads(list(map[string]any{"kind": "file", "text": "asked for", "path": "never.txt"})))
	a, s := w.start()
	first := create(a, s, wish, map[string]any{"idempotencyKey": "k"})
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	for _, bad := range []map[string]any{{"action": "confirm", "requirementId": "r9"}, {"action": "add"}, {"action": "add", "requirements": []any{map[string]any{"kind": "file"}}},
		{"action": "add", "requirements": []any{map[string]any{"id": "r1", "kind": "file", "path": "x"}}}} {
		bad["sessionId"] = s
		if _, e := a.Call("update_goal", bad); e == nil || e.Code != -32602 {
			t.Errorf("%v: %v", bad, e)
		}
	}
	g := update(a, s, "confirm", map[string]any{"requirementId": "r1"})
	if !g.Requirements[1].Confirmed || g.Requirements[1].Origin != "model" {
		t.Errorf("confirmed as %+v", g.Requirements[1])
	}
	g = update(a, s, "add", map[string]any{"requirements": []any{map[string]any{"id": "mine", "kind": "file", "path": "mine.txt"}}})
	if got := idsOf(g); !reflect.DeepEqual(got, []string{"objective semantic user", "r1 file model", "mine file added"}) {
		t.Errorf("the requirements are %v", got)
	}
	if again := create(a, s, wish, map[string]any{"idempotencyKey": "k"}); again.GoalID != first.GoalID {
		t.Error("the key made another goal")
	}
	w.put("go")
	g = w.until(a, s, "blocked")
	if g.ReasonCode != "no_progress" || !strings.Contains(g.Feedback, "r1 is unmet") || !strings.Contains(g.Feedback, "mine is unmet") {
		t.Errorf("the goal is %+v", g)
	}
	update(a, s, "waive", map[string]any{"requirementId": "r1", "reason": "not needed"})
	w.write("mine.txt", "x")
	update(a, s, "resume", nil)
	update(a, s, "verify", nil)
	w.until(a, s, "achieved")
}

// A revision of the words drops what was read out of the old ones and nobody confirmed, and the new ones are read; an answer to the old ones that
// comes late changes nothing.
func TestExtract_RevisedMeanwhile(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	w := newWorld(t, offering, judge("out.txt", map[string]string{"objective": "met"})).holding("out.txt").extracting(func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(r.LastUser(), wish) {
			late := list(map[string]any{"kind": "file", "text": "of the old words", "path": "old.txt"})
			late.Steps = []fakemodel.Step{fakemodel.Gate(gate)}
			return late
		}
		return list(map[string]any{"kind": "file", "text": "of the new words", "path": "out.txt"})
	})
	a, s := w.start()
	create(a, s, wish, nil)
	harness.Eventually(t, "it is asked", func() bool { return w.requests("submit_requirements") == 1 })
	update(a, s, "revise", map[string]any{"objective": "Produce out.txt after all.", "reason": "changed my mind"})
	close(gate)
	g := w.until(a, s, "achieved")
	if got := idsOf(g); !reflect.DeepEqual(got, []string{"objective semantic user", "r1 file model"}) || g.Requirements[1].Path != "out.txt" || g.Revision != 2 {
		t.Errorf("the goal is %+v", g)
	}
	if n := w.requests("submit_requirements"); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
}

// Paused or ended while the model is asked, nothing goes on; resumed, it is asked again and stored once.
func TestExtract_StoppedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"pause", "end", "cancel"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			held := good
			held.Steps = []fakemodel.Step{fakemodel.Gate(gate)}
			w := newWorld(t, offering, judge("out.txt", map[string]string{"objective": "met", "r2": "met"})).holding("out.txt").extracting(reads(held))
			a, s := w.start()
			create(a, s, wish, nil)
			harness.Eventually(t, "it is asked", func() bool { return w.requests("submit_requirements") == 1 })
			status := "paused"
			if action == "cancel" {
				a.Notify("session/cancel", map[string]any{"sessionId": s})
			} else {
				update(a, s, action, nil)
			}
			if action == "end" {
				status = "cancelled"
			}
			w.until(a, s, status)
			w.set(func() { w.extract = reads(good) })
			close(gate)
			if action == "end" {
				a.Await(a.Prompt(s, "hello")) // behind it nothing is left to do
				if n := w.requests("update_goal"); n != 0 {
					t.Errorf("the ended goal went on with %d requests", n)
				}
				return
			}
			update(a, s, "resume", nil)
			if g := w.until(a, s, "achieved"); len(g.Requirements) != 3 || g.Extraction.State != "done" {
				t.Errorf("the goal is %+v", g)
			}
		})
	}
}

// A death at any step of it: the goal goes on by itself, asks again at most once, and has its requirements once.
func TestExtract_Killed(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]int{"goal.created:after": 1, "run.admitted:after": 1, "request.started:before": 1, "request.started:after": 1, "question.answered:before": 2, "question.answered:after": 1} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, offering, judge("out.txt", map[string]string{"objective": "met", "r2": "met"})).holding("out.txt").extracting(reads(good))
			a := w.launch(point, nil)
			s := w.session(a)
			a.Begin("create_goal", map[string]any{"sessionId": s, "objective": wish})
			w.died(a, point)
			b := w.launch("", nil)
			w.load(b, s)
			g := w.until(b, s, "achieved")
			if len(g.Requirements) != 3 || g.Extraction.State != "done" || w.requests("submit_requirements") != want {
				t.Errorf("asked %d times, the goal is %+v", w.requests("submit_requirements"), g)
			}
		})
	}
}

// died waits until a process is gone, and fails when it was not at its point.
func (w *world) died(a *harness.Agent, point string) {
	w.t.Helper()
	select {
	case <-a.Ended():
	case <-time.After(harness.Limit):
	}
	b, _ := os.ReadFile(filepath.Join(w.dir, "fired")) // it is looked at
	name, _, _ := strings.Cut(point, "/")
	if !strings.HasPrefix(string(b), name+" kill ") {
		w.t.Fatalf("the crash point %s did not fire: %q", point, b)
	}
}
