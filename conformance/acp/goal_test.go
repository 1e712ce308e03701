package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// goal is the answer of every goal method, as far as it is looked at here.
type goal struct {
	GoalID, SessionID, Objective, Status, Phase, ReasonCode, Reason string
	ControlVersion, Revision                                        int64
	Requirements                                                    []struct{ ID, Kind, Text, Result string }
	NextAction                                                      struct {
		Owner   string
		Allowed []string
	}
}

// pursuing plays a worker that writes out.txt and offers it, and a reviewer that reads it and accepts. The worker's first answer waits for
// the gate.
func pursuing(gate <-chan struct{}) func(fakemodel.Request) fakemodel.Reply {
	return func(r fakemodel.Request) fakemodel.Reply {
		called := map[string]string{}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				called[c.Name] = c.ID
			}
			if m.Role == "tool" && m.ToolCallID == called["write"] && strings.HasPrefix(m.Content, "Not started") {
				delete(called, "write") // and it is made again
			}
		}
		for _, tool := range r.Tools {
			if tool.Name != "submit_review" {
				continue
			}
			if called["read"] == "" {
				return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`})
			}
			return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(map[string]any{"requirements": []any{
				map[string]any{"id": "objective", "result": "met", "evidence": []string{called["read"]}, "reason": "it was read"}}})})
		}
		switch {
		case called["write"] == "":
			reply := fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"out.txt","content":"result\n"}`})
			reply.Steps = []fakemodel.Step{{Text: "working "}, fakemodel.Gate(gate)}
			return reply
		case called["update_goal"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"out.txt is there"}`})
		}
		return fakemodel.Text("offered")
	}
}

func opened() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func getGoal(t testing.TB, a *harness.Agent, session string) *goal {
	t.Helper()
	var r struct{ Goal *goal }
	a.Must("get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal
}

func createGoal(t testing.TB, a *harness.Agent, session string, more map[string]any) goal {
	t.Helper()
	params := map[string]any{"sessionId": session, "objective": "Produce out.txt."}
	for k, v := range more {
		params[k] = v
	}
	var r struct{ Goal goal }
	a.Must("create_goal", params, &r)
	return r.Goal
}

// The methods have a conformant name, which is announced, and the plain one. Both do the same.
func TestGoal_Spellings(t *testing.T) {
	for _, prefix := range []string{"", "_holdfast/"} {
		t.Run(prefix+"create_goal", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pursuing(opened()))
			a := w.raw(nil)
			raw, e := a.Call("initialize", map[string]any{"protocolVersion": 1})
			if e != nil {
				t.Fatal(e)
			}
			for _, name := range []string{"create_goal", "get_goal", "update_goal"} {
				if !strings.Contains(string(raw), `"_holdfast/`+name+`"`) || strings.Contains(string(raw), `"`+name+`"`) {
					t.Errorf("announced: %s", raw)
				}
			}
			session := a.NewSession(w.work)
			var r struct{ Goal *goal }
			a.Must(prefix+"get_goal", map[string]any{"sessionId": session}, &r)
			if r.Goal != nil {
				t.Errorf("a session without a goal has %+v", r.Goal)
			}
			_, e = a.Call(prefix+"update_goal", map[string]any{"sessionId": session, "action": "pause"})
			refused(t, "update without a goal", e, -32002, "no_goal")
			a.Must(prefix+"create_goal", map[string]any{"sessionId": session, "objective": "Produce out.txt."}, &r)
			if r.Goal.Status != "active" || r.Goal.SessionID != session || r.Goal.Objective != "Produce out.txt." {
				t.Errorf("created %+v", r.Goal)
			}
			id := r.Goal.GoalID
			harness.Eventually(t, "the goal is achieved", func() bool {
				a.Must(prefix+"get_goal", map[string]any{"goalId": id}, &r)
				return r.Goal.Status == "achieved"
			})
			if r.Goal.NextAction.Owner != "nobody" || len(r.Goal.Requirements) != 1 || r.Goal.Requirements[0].Result != "met" {
				t.Errorf("achieved as %+v", r.Goal)
			}
			message(t, a, "session_info_update", `"goal"`, `"achieved"`)
		})
	}
}

// One unfinished goal per session: a second is refused, unless it replaces the first. The same key is the same goal.
func TestGoal_OnePerSession(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	first := createGoal(t, a, session, map[string]any{"idempotencyKey": "k1"})
	if again := createGoal(t, a, session, map[string]any{"idempotencyKey": "k1"}); again.GoalID != first.GoalID {
		t.Errorf("the same key made another goal: %s and %s", first.GoalID, again.GoalID)
	}
	_, e := a.Call("create_goal", map[string]any{"sessionId": session, "objective": "Something else."})
	refused(t, "a second goal", e, -32602, "goal_exists", "replace")
	if g := getGoal(t, a, session); g.GoalID != first.GoalID || g.Status != "active" {
		t.Errorf("the first is now %+v", g)
	}
	second := createGoal(t, a, session, map[string]any{"objective": "Something else.", "replace": true})
	if second.GoalID == first.GoalID || second.Status != "active" {
		t.Errorf("replaced by %+v", second)
	}
	var r struct{ Goal goal }
	a.Must("get_goal", map[string]any{"goalId": first.GoalID}, &r)
	if r.Goal.Status != "cancelled" {
		t.Errorf("the replaced goal is %s", r.Goal.Status)
	}
	if g := getGoal(t, a, session); g.GoalID != second.GoalID {
		t.Errorf("the session's goal is %+v", g)
	}
}

// Controls are compare-and-set: who saw an old version changes nothing.
func TestGoal_Controls(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	g := createGoal(t, a, session, nil)
	update := func(action string, more map[string]any) (goal, *harness.Error) {
		t.Helper()
		params := map[string]any{"goalId": g.GoalID, "action": action}
		for k, v := range more {
			params[k] = v
		}
		raw, e := a.Call("update_goal", params)
		if e != nil {
			return goal{}, e
		}
		return decode[struct{ Goal goal }](t, raw).Goal, nil
	}
	message(t, a, "working")

	_, e := update("pause", map[string]any{"expectedControlVersion": g.ControlVersion + 7})
	refused(t, "a version that never was", e, -32602, "stale_version")
	_, e = update("resume", nil)
	refused(t, "resume of a running goal", e, -32602, "not_allowed")
	_, e = update("fly", nil)
	refused(t, "an unknown action", e, -32602, "action", "pause")
	_, e = update("", nil)
	refused(t, "no action", e, -32602, "action")
	_, e = update("revise", map[string]any{"objective": "Other."})
	refused(t, "a revision without a reason", e, -32602, "reason")
	_, e = update("waive", map[string]any{"requirementId": "r9", "reason": "x"})
	refused(t, "a waiver of nothing", e, -32602, "requirementId")
	if now := getGoal(t, a, session); now.ControlVersion != g.ControlVersion || now.Status != "active" {
		t.Errorf("refusals changed the goal: %+v", now)
	}

	paused, e := update("pause", map[string]any{"expectedControlVersion": g.ControlVersion})
	if e != nil || paused.Status != "paused" || paused.ControlVersion <= g.ControlVersion {
		t.Fatalf("paused: %+v, %v", paused, e)
	}
	_, e = update("resume", map[string]any{"expectedControlVersion": g.ControlVersion})
	refused(t, "a stale version", e, -32602, "stale_version")
	message(t, a, "session_info_update", `"paused"`)
	close(gate)
	resumed, e := update("resume", map[string]any{"expectedControlVersion": paused.ControlVersion})
	if e != nil || resumed.Status != "active" {
		t.Fatalf("resumed: %+v, %v", resumed, e)
	}
	harness.Eventually(t, "the goal is achieved", func() bool { return getGoal(t, a, session).Status == "achieved" })
	for _, action := range []string{"pause", "resume", "retry", "verify", "end"} {
		_, e := update(action, nil)
		refused(t, action+" of an achieved goal", e, -32602, "not_allowed", "achieved")
	}
}

// End is final, and a new goal may follow.
func TestGoal_End(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	g := createGoal(t, a, session, nil)
	message(t, a, "working")
	var r struct{ Goal goal }
	a.Must("update_goal", map[string]any{"sessionId": session, "action": "end"}, &r)
	if r.Goal.Status != "cancelled" || r.Goal.GoalID != g.GoalID {
		t.Errorf("ended as %+v", r.Goal)
	}
	close(gate)
	if err := os.WriteFile(filepath.Join(w.work, "out.txt"), []byte("result\n"), 0o644); err != nil { // what the reviewer reads and cites
		t.Fatal(err)
	}
	if next := createGoal(t, a, session, nil); next.GoalID == g.GoalID {
		t.Error("the ended goal came back")
	}
	harness.Eventually(t, "the next goal is achieved", func() bool { return getGoal(t, a, session).Status == "achieved" })
}

// What this version cannot do is said, not ignored.
func TestGoal_UnsupportedIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	for member, value := range map[string]any{"mode": "edit"} {
		for _, method := range []string{"create_goal", "update_goal"} {
			_, e := a.Call(method, map[string]any{"sessionId": session, "objective": "x", "action": "resume", member: value})
			data := refused(t, method+" with "+member, e, -32602, "version")
			if data["member"] != member || len(strings.Fields(e.Message)) < 5 {
				t.Errorf("%s with %s: %v", method, member, e)
			}
		}
	}
	for name, more := range map[string]map[string]any{
		"no objective":         {"objective": ""},
		"a blank objective":    {"objective": "  \n"},
		"an unknown kind":      {"requirements": []any{map[string]any{"kind": "vibes"}}},
		"a command without it": {"requirements": []any{map[string]any{"kind": "command"}}},
		"a bad pattern":        {"requirements": []any{map[string]any{"kind": "file", "path": "x", "pattern": "("}}},
		"a grant of nothing":   {"grants": []any{map[string]any{"kind": "everything"}}},
		"an edit outside":      {"grants": []any{map[string]any{"kind": "edit", "path": "/etc"}}},
		"an edit above":        {"grants": []any{map[string]any{"kind": "edit", "path": "x/../.."}}},
		"no command":           {"grants": []any{map[string]any{"kind": "command", "command": " "}}},
		"an id twice":          {"requirements": []any{map[string]any{"id": "a", "kind": "semantic", "text": "x"}, map[string]any{"id": "a", "kind": "semantic", "text": "y"}}},
	} {
		params := map[string]any{"sessionId": session, "objective": "x"}
		for k, v := range more {
			params[k] = v
		}
		_, e := a.Call("create_goal", params)
		refused(t, name, e, -32602, "member")
	}
	if g := getGoal(t, a, session); g != nil {
		t.Errorf("a refused goal exists: %+v", g)
	}
}
