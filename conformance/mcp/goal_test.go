package mcp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

// A goal that a client hands over is executed by the agent of an editor, which lists its session. Before, the answer says that nobody is
// there.
func TestGoal_ExecutedByAnEditor(t *testing.T) {
	w := newWorld(t, pursuing)
	c := w.serve("--authority", "full")
	r := c.create(object{"cwd": w.work, "mode": "edit"})
	if r.Executor.Alive || !strings.Contains(r.Executor.Hint, "holdfast acp") {
		t.Errorf("with nobody there: %+v", r.Executor)
	}
	if r.Goal.Status != "active" || r.Goal.Phase != "queued" {
		t.Errorf("created %+v", r.Goal)
	}
	a := w.editor(unanswered)
	var list struct {
		Sessions []struct{ SessionID, Cwd, Title string }
	}
	a.Must("session/list", object{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].SessionID != r.Goal.SessionID || list.Sessions[0].Cwd != w.work {
		t.Errorf("the editor lists %+v", list.Sessions)
	}
	c.achieved(r.Goal.GoalID)
	if w.file("out.txt") != "result\n" {
		t.Errorf("the work is %q", w.file("out.txt"))
	}
	if again := c.create(object{"cwd": w.work, "objective": "Another."}); !again.Executor.Alive || again.Executor.Hint != "" {
		t.Errorf("with an editor there: %+v", again.Executor)
	}
	var history struct {
		Goal struct{ History []struct{ What string } }
	}
	c.must("get_goal", object{"goalId": r.Goal.GoalID, "history": true}, &history)
	for _, what := range []string{"attempt", "request", "effect"} {
		if !slices.ContainsFunc(history.Goal.History, func(m struct{ What string }) bool { return m.What == what }) {
			t.Errorf("the history has no %s: %+v", what, history)
		}
	}
}

// An idle editor hears of a goal by its doorbell, also in a session that it owns.
func TestGoal_InAnEditorsSession(t *testing.T) {
	w := newWorld(t, pursuing)
	a := w.editor(nil)
	session := a.NewSession(w.work)
	c := w.serve()
	r := c.create(object{"sessionId": session})
	if r.Goal.SessionID != session || !r.Executor.Alive {
		t.Errorf("created %+v", r)
	}
	c.refused("a second goal", "create_goal", object{"sessionId": session, "objective": "x"}, "goal_exists", "replace")
	c.achieved(r.Goal.GoalID)
	if m, ok := a.Find(func(m harness.Message) bool { return strings.Contains(string(m.Raw), `"achieved"`) }); !ok {
		t.Errorf("the editor was not told; last %s", m.Raw)
	}
}

// With --work the server executes itself, and lets go of what is not done at the end of input.
func TestGoal_ExecutedByWork(t *testing.T) {
	for name, end := range map[string]func(*client) error{
		"end of input": func(c *client) error { return c.CloseInput() },
		"SIGTERM":      func(c *client) error { c.Signal(syscall.SIGTERM); return c.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pursuing)
			c := w.serve("--work", "--authority", "full")
			r := c.create(object{"cwd": w.work, "mode": "edit"})
			if !r.Executor.Alive {
				t.Errorf("it executes: %+v", r.Executor)
			}
			c.achieved(r.Goal.GoalID)
			if err := os.Remove(filepath.Join(w.work, "out.txt")); err != nil {
				t.Fatal(err)
			}
			asking := c.create(object{"cwd": w.work})
			var open struct{ Approvals []struct{ SessionID string } }
			harness.Eventually(t, "it asks", func() bool { c.must("list_approvals", object{}, &open); return len(open.Approvals) == 1 })
			if err := end(c); err != nil {
				t.Fatalf("it ended with %v", err)
			}
			next := w.serve()
			var s struct{ Session struct{ Owner string } }
			next.must("get_session", object{"sessionId": asking.Goal.SessionID}, &s)
			if s.Session.Owner != "" {
				t.Errorf("an ended process still owns the session: %+v", s)
			}
			a := w.editor(nil)
			a.Must("session/load", object{"sessionId": asking.Goal.SessionID, "cwd": w.work, "mcpServers": []any{}}, nil)
			next.achieved(asking.Goal.GoalID)
		})
	}
}

// The same key is the same goal, in every process, also after the process that stored it was killed. Another body is refused.
func TestGoal_IdempotencyKey(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	args := object{"cwd": w.work, "objective": "One.", "idempotencyKey": "k", "requirements": []any{object{"kind": "file", "path": "a"}}}
	first := c.create(args)
	if again := c.create(args); again.Goal.GoalID != first.Goal.GoalID {
		t.Errorf("a repeat made %s besides %s", again.Goal.GoalID, first.Goal.GoalID)
	}
	c.Kill()
	c.Kill()
	c = w.serve()
	if again := c.create(args); again.Goal.GoalID != first.Goal.GoalID {
		t.Errorf("a repeat after a kill made %s besides %s", again.Goal.GoalID, first.Goal.GoalID)
	}
	c.refused("another objective", "create_goal", object{"cwd": w.work, "objective": "Two.", "idempotencyKey": "k"}, "key_reused", "idempotencyKey")
	args["requirements"] = []any{object{"kind": "file", "path": "b"}}
	c.refused("another requirement", "create_goal", args, "key_reused")
	var all struct{ Goals []goal }
	if c.must("list_goals", object{}, &all); len(all.Goals) != 1 {
		t.Errorf("%d goals", len(all.Goals))
	}
	in := object{"sessionId": first.Goal.SessionID, "objective": "Three.", "idempotencyKey": "in", "replace": true}
	third := c.create(in)
	if again := c.create(in); again.Goal.GoalID != third.Goal.GoalID {
		t.Errorf("a repeat in a session made %s besides %s", again.Goal.GoalID, third.Goal.GoalID)
	}
	if g := c.goal(first.Goal.GoalID); g.Status != "cancelled" {
		t.Errorf("the replaced goal is %s", g.Status)
	}
}

// Controls are compare-and-set: who saw an old version changes nothing.
func TestGoal_Controls(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	g := c.create(object{"cwd": w.work}).Goal
	update := func(action string, more object) changed {
		t.Helper()
		args := object{"goalId": g.GoalID, "action": action}
		for k, v := range more {
			args[k] = v
		}
		var r changed
		c.must("update_goal", args, &r)
		return r
	}
	paused := update("pause", object{"expectedControlVersion": g.ControlVersion})
	if paused.Goal.Status != "paused" || paused.Goal.ControlVersion <= g.ControlVersion || paused.Executor.Alive {
		t.Errorf("paused: %+v", paused)
	}
	c.refused("a stale version", "update_goal", object{"goalId": g.GoalID, "action": "resume", "expectedControlVersion": g.ControlVersion}, "stale_version", "expectedControlVersion")
	c.refused("verify of a paused goal", "update_goal", object{"goalId": g.GoalID, "action": "verify"}, "not_allowed", "resume")
	c.refused("a revision without a reason", "update_goal", object{"goalId": g.GoalID, "action": "revise", "objective": "x"}, "invalid_argument", "reason")
	revised := update("revise", object{"objective": "Other.", "reason": "changed", "requirements": []any{object{"kind": "semantic", "text": "good"}}})
	if revised.Goal.Status != "paused" || revised.Goal.Revision != 2 || len(revised.Goal.Requirements) != 2 {
		t.Errorf("revised: %+v", revised)
	}
	if dropped := update("revise", object{"reason": "none", "requirements": []any{}}); len(dropped.Goal.Requirements) != 1 {
		t.Errorf("an empty list keeps %+v", dropped.Goal.Requirements)
	}
	if update("resume", nil).Goal.Status != "active" || update("end", nil).Goal.Status != "cancelled" {
		t.Errorf("resumed and ended: %+v", c.goal(g.GoalID))
	}
	c.refused("an ended goal", "update_goal", object{"goalId": g.GoalID, "action": "resume"}, "not_allowed")
}

// What a client gets wrong is named, with what to do.
func TestGoal_Arguments(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	for _, bad := range []struct {
		what, tool string
		args       any
		code       string
		words      []string
	}{
		{"no objective", "create_goal", object{"cwd": w.work}, "invalid_argument", []string{"objective", "missing"}},
		{"an empty objective", "create_goal", object{"cwd": w.work, "objective": " "}, "invalid_argument", []string{"objective"}},
		{"no place", "create_goal", object{"objective": "x"}, "invalid_argument", []string{"cwd", "session"}},
		{"two places", "create_goal", object{"objective": "x", "cwd": w.work, "sessionId": "s"}, "invalid_argument", []string{"cwd"}},
		{"a relative cwd", "create_goal", object{"objective": "x", "cwd": "work"}, "invalid_argument", []string{"cwd", "absolute"}},
		{"a missing cwd", "create_goal", object{"objective": "x", "cwd": w.work + "/none"}, "invalid_argument", []string{"cwd", "exist"}},
		{"an unknown member", "create_goal", object{"objective": "x", "cwd": w.work, "objectives": 1}, "invalid_argument", []string{"objectives", "idempotencyKey"}},
		{"another case", "get_goal", object{"goalid": "x"}, "invalid_argument", []string{"goalid", "goalId"}},
		{"a budget", "create_goal", object{"objective": "x", "cwd": w.work, "budget": "a lot"}, "invalid_argument", []string{"budget", "2.50 USD"}},
		{"a wrong mode", "create_goal", object{"objective": "x", "cwd": w.work, "mode": "free"}, "invalid_argument", []string{"mode", "ask, edit, auto, plan"}},
		{"a wrong type", "create_goal", object{"objective": 7, "cwd": w.work}, "invalid_argument", []string{"objective", "want a string, got the number 7"}},
		{"an unknown member deep", "create_goal", object{"objective": "x", "cwd": w.work, "requirements": []any{object{"kind": "file", "path": "a", "result": "met"}}},
			"invalid_argument", []string{"requirements[0].result"}},
		{"a wrong kind", "create_goal", object{"objective": "x", "cwd": w.work, "requirements": []any{object{"kind": "vibes"}}}, "invalid_argument", []string{"requirements[0].kind"}},
		{"no path", "create_goal", object{"objective": "x", "cwd": w.work, "requirements": []any{object{"kind": "file"}}}, "invalid_argument", []string{"requirements[0].path"}},
		{"no goal named", "get_goal", object{}, "invalid_argument", []string{"goalId"}},
		{"a goal that is not", "get_goal", object{"goalId": "x"}, "not_found", []string{"goalId", `"x"`}},
		{"a session that is not", "get_goal", object{"sessionId": "x"}, "not_found", []string{"sessionId"}},
		{"update of what is not", "update_goal", object{"goalId": "x", "action": "pause"}, "not_found", []string{"goalId"}},
		{"create in what is not", "create_goal", object{"sessionId": "x", "objective": "x"}, "not_found", []string{"sessionId"}},
		{"send to what is not", "send_message", object{"sessionId": "x", "text": "x"}, "not_found", []string{"sessionId"}},
		{"an unknown action", "update_goal", object{"goalId": "x", "action": "fly"}, "invalid_argument", []string{"action", "pause"}},
		{"a broken version", "update_goal", object{"goalId": "x", "action": "pause", "expectedControlVersion": 1.5}, "invalid_argument", []string{"expectedControlVersion", "whole"}},
		{"arguments that are none", "list_goals", "all", "invalid_argument", []string{"arguments", "object"}},
		{"too many", "list_goals", object{"limit": 1000}, "invalid_argument", []string{"limit", "200"}},
		{"a foreign cursor", "list_goals", object{"cursor": "abc"}, "bad_cursor", []string{"cursor"}},
		{"a cursor of a listing in a session", "get_session", object{"sessionId": "x", "cursor": "MTIgeA"}, "bad_cursor", []string{"cursor"}},
	} {
		c.refused(bad.what, bad.tool, bad.args, bad.code, bad.words...)
	}
	c.must("list_goals", nil, nil)
	c.must("list_goals", []any{}, nil)
	c.must("list_goals", object{"status": nil, "limit": nil}, nil)
	if _, e := c.Agent.Call("tools/call", object{"name": "rm", "arguments": object{}}); e == nil || e.Code != -32602 ||
		!strings.Contains(e.Message, "there is no tool 'rm'") {
		t.Errorf("an unknown tool: %v", e)
	}
	var all struct{ Goals []goal }
	if c.must("list_goals", object{}, &all); len(all.Goals) != 0 {
		t.Errorf("refusals made goals: %+v", all)
	}
}
