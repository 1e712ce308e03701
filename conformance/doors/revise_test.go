package doors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// asking is an editor whose client leaves questions open.
func (w *world) asking() *harness.Agent {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	a := harness.Start(w.t, harness.Options{Binary: plain, Env: w.env, Permission: func(json.RawMessage) string { return "" }})
	a.Initialize()
	return a
}

// A revision in the middle of a turn takes the open question back, also for an answer that comes all the same; the next request is about the
// new words, and what an earlier revision's turn had planned is not done.
func TestRevise_VoidsTheQuestion(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(string(r.Body), "The objective, verbatim:\\nOld words.") {
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo ran >> ran.txt"}`})
		}
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}}, End: fakemodel.EndStall}
	})
	s := &scene{w, w.asking(), w.client()}
	session := s.a.NewSession(w.work)
	if r := byMethod("").do(s, act{name: "create", session: session, objective: "Old words."}); r != nil {
		t.Fatal(r)
	}
	asked := func(m harness.Message) bool { return m.Method == "session/request_permission" }
	question, ok := s.a.Find(asked)
	if !ok {
		t.Fatal("nothing was asked")
	}
	open := func() int { return w.number("SELECT count(*) FROM approvals WHERE state IN ('pending', 'answered')") }
	if open() != 1 {
		t.Fatalf("%d open questions", open())
	}
	g := s.goalOf(session)
	if r := byCommand.do(s, act{name: "revise", goal: g.GoalID, objective: "New words.", reason: "they are better", expected: g.ControlVersion}); r != nil {
		t.Fatal(r)
	}
	if open() != 0 {
		t.Error("the question is open after the revision was answered")
	}
	if _, ok := s.a.Find(func(m harness.Message) bool {
		return m.Method == "$/cancel_request" && strings.Contains(string(m.Params), string(question.ID))
	}); !ok {
		t.Error("the client was not told that the question is void")
	}
	s.a.Answer(question.ID, object{"outcome": object{"outcome": "selected", "optionId": "allow_once"}})
	harness.Eventually(t, "the new words are worked on", func() bool {
		return slices.ContainsFunc(w.model.Requests(), func(r fakemodel.Request) bool {
			return strings.Contains(string(r.Body), `The objective, verbatim:\nNew words.`)
		})
	})
	if _, err := os.Stat(filepath.Join(w.work, "ran.txt")); err == nil {
		t.Error("a call of the old revision was done")
	}
	for _, r := range w.model.Requests() {
		if strings.Contains(string(r.Body), `The objective, verbatim:\nNew words.`) && !strings.Contains(string(r.Body), "(revision 2)") {
			t.Errorf("the new words are of another revision: %s", r.Body)
		}
	}
	if n := w.number("SELECT count(*) FROM effects WHERE fact <> 'not_started'"); n != 0 {
		t.Errorf("%d calls were begun", n)
	}
}

// A blocked goal goes on after a revision, and what it has used is kept.
func TestRevise_KeepsUsage(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(string(r.Body), "Old words.") && !strings.Contains(string(r.Body), "New words.") {
			if r.Messages[len(r.Messages)-1].Role == "tool" {
				return fakemodel.Text("stuck")
			}
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"blocker","text":"no key"}`})
		}
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}}, End: fakemodel.EndStall}
	})
	s := &scene{w, w.editor(), w.client()}
	session := s.a.NewSession(w.work)
	if r := byMethod("").do(s, act{name: "create", session: session, objective: "Old words."}); r != nil {
		t.Fatal(r)
	}
	harness.Eventually(t, "it is blocked", func() bool { return s.goalOf(session).Status == "blocked" })
	before := s.goalOf(session)
	if r := byTool.do(s, act{name: "revise", goal: before.GoalID, objective: "New words.", reason: "better"}); r != nil {
		t.Fatal(r)
	}
	after := s.goalOf(session)
	if after.Status != "active" || after.Revision != 2 || after.Objective != "New words." {
		t.Errorf("revised as %v", after.all)
	}
	if a, b := fmt.Sprint(before.all["usage"].(object)["inputTokens"]), fmt.Sprint(after.all["usage"].(object)["inputTokens"]); a == "0" || a != b {
		t.Errorf("the usage was %s and is %s", a, b)
	}
}

// The same key makes one goal and one session: twice through one door, through three doors, at once from two processes, and over a kill.
func TestCreate_OneKey(t *testing.T) {
	w := newWorld(t, holding())
	s := &scene{w, w.editor(), w.client()}
	k := &track{t: t, scene: s}
	byCwd := object{"cwd": w.work, "objective": "Once.", "idempotencyKey": "k", "requirements": []any{object{"kind": "semantic", "text": "it reads well"}}}
	env, reached, release := k.armed("goal.created:before")
	first := w.start([]string{"mcp", "--authority", "full", "--trust", w.work}, env...)
	first.Must("initialize", object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "conformance", "version": "1"}}, nil)
	first.Notify("notifications/initialized", nil)
	one := first.Begin("tools/call", object{"name": "create_goal", "arguments": byCwd})
	reached()
	two := s.a.Begin("create_goal", byCwd) // while the first stands in its commit
	release()
	raw, r := result(t, first.Await(one).Result)
	if r != nil {
		t.Fatal(r)
	}
	g := inside(t, raw)
	same := func(what string, got *goal) {
		t.Helper()
		if got.GoalID != g.GoalID || got.SessionID != g.SessionID {
			t.Errorf("%s: %v, want %s", what, got.all, g.GoalID)
		}
	}
	m := s.a.Await(two)
	if m.Error != nil {
		t.Fatal(m.Error)
	}
	same("at once by another process", inside(t, m.Result))
	through := func(when string) {
		t.Helper()
		raw, r := method(t, s.a, "_holdfast/create_goal", byCwd)
		if r != nil {
			t.Fatal(r)
		}
		same(when+" by method", inside(t, raw))
		if raw, r = tool(t, s.c, "create_goal", byCwd); r != nil {
			t.Fatal(r)
		}
		same(when+" by tool", inside(t, raw))
		out, errs, code := w.cli("goals", "create", "Once.", "--require", "it reads well", "--idempotency-key", "k", "--json")
		if code != 0 {
			t.Fatal(errs)
		}
		same(when+" by command line", read(t, []byte(out)))
	}
	through("afterwards")
	s.a.Kill()
	s.a = w.editor()
	through("after a kill")
	if r := byCommand.do(s, act{name: "end", goal: g.GoalID}); r != nil {
		t.Fatal(r)
	}
	through("when it has ended")
	if n, m := w.number("SELECT count(*) FROM goals"), w.number("SELECT count(*) FROM sessions"); n != 1 || m != 1 {
		t.Errorf("%d goals in %d sessions", n, m)
	}
	byCwd["budget"] = object{"tokens": 5000}
	if _, r := method(t, s.a, "create_goal", byCwd); r == nil || r.code != "key_reused" {
		t.Errorf("another budget: %v", r)
	}
	delete(byCwd, "budget")
	byCwd["objective"] = "Something else."
	if _, r := method(t, s.a, "create_goal", byCwd); r == nil || r.code != "key_reused" {
		t.Errorf("another body: %v", r)
	}
	if _, r := method(t, s.a, "create_goal", object{"cwd": w.work, "objective": " "}); r == nil {
		t.Error("no objective is taken")
	}
	if n := w.number("SELECT count(*) FROM sessions"); n != 1 {
		t.Errorf("a refused goal left a session: %d", n)
	}
}

// A goal that replaces another is one step for everybody: the old one has its record in the transcript, at its place, and is never touched again.
func TestReplace_LeavesTheRecord(t *testing.T) {
	w := newWorld(t, holding())
	s := &scene{w, w.editor(), w.client()}
	g := s.begin(1, "active")
	for i := range 2 {
		if r := byMethod("").do(s, act{name: "replace", session: g.SessionID, goal: fmt.Sprint(i), objective: fmt.Sprint("Next ", i)}); r != nil {
			t.Fatal(r)
		}
	}
	want := "Goal cancelled: Hold-1  (Replaced by a new goal.)\n"
	records := func(a *harness.Agent) (n int) {
		harness.Eventually(t, "the records are shown", func() bool { n = strings.Count(a.Text(g.SessionID), "Goal cancelled: "); return n >= 2 })
		return n
	}
	if n := records(s.a); n != 2 || !strings.Contains(s.a.Text(g.SessionID)+"\n", strings.TrimSpace(want)) {
		t.Errorf("%d records: %q", n, s.a.Text(g.SessionID))
	}
	b := w.editor()
	b.Must("session/load", object{"sessionId": g.SessionID, "cwd": w.work, "mcpServers": []any{}}, nil)
	if n := records(b); n != 2 {
		t.Errorf("a replay has %d records: %q", n, b.Text(g.SessionID))
	}
	if old := byTool.look(s, g.GoalID); old.Status != "cancelled" || old.Objective != g.Objective {
		t.Errorf("the old one is %v", old.all)
	}
}

// A key stands for the budget that the goal was created with, also when the goal has another one by now.
func TestCreate_OneKeyOneBudget(t *testing.T) {
	w := newWorld(t, holding())
	s := &scene{w, w.editor(), w.client()}
	session := s.a.NewSession(w.work)
	asked := func(tokens int) object {
		return object{"sessionId": session, "objective": "Once.", "idempotencyKey": "k", "budget": object{"tokens": tokens}}
	}
	raw, r := method(t, s.a, "create_goal", asked(900000))
	if r != nil {
		t.Fatal(r)
	}
	g := inside(t, raw)
	if r := byCommand.do(s, act{name: "budget", goal: g.GoalID, tokens: 800000}); r != nil {
		t.Fatal(r)
	}
	if raw, r = method(t, s.a, "create_goal", asked(900000)); r != nil || inside(t, raw).GoalID != g.GoalID || inside(t, raw).limit() != 800000 {
		t.Errorf("the same request: %v %s", r, raw)
	}
	for door, r := range map[string]*refusal{
		"method": func() *refusal { _, r := method(t, s.a, "create_goal", asked(800000)); return r }(),
		"tool": func() *refusal {
			args := asked(0)
			args["budget"] = "800000 tokens"
			_, r := tool(t, s.c, "create_goal", args)
			return r
		}(),
	} {
		if r == nil || r.code != "key_reused" {
			t.Errorf("another budget by %s: %v", door, r)
		}
	}
	if now := s.goalOf(session); now.GoalID != g.GoalID || now.limit() != 800000 {
		t.Errorf("it is %v", now.all)
	}
}
