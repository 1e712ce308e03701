package acp_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// grant is what was allowed when a goal was set, as every door shows it.
type grant struct {
	Kind, Path, Command, Covers string
	Revision                    int64
	InForce                     bool
}

func grantsOf(t testing.TB, a *harness.Agent, session string) []grant {
	t.Helper()
	var r struct{ Goal struct{ Grants []grant } }
	a.Must("get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal.Grants
}

var overnight = map[string]any{"grants": []any{map[string]any{"kind": "edit", "path": "."}, map[string]any{"kind": "command", "command": "test -s"}},
	"requirements": []any{map[string]any{"kind": "command", "command": "test -s out.txt"}}}

// A goal works on by itself within what was granted with it: its own work and the evidence of its review, over a kill. Nobody is asked.
func TestGrants_GoalWorksAlone(t *testing.T) { families(t, goalWorksAlone) }

func goalWorksAlone(t *testing.T, family string) {
	gate := make(chan struct{})
	w := newWorldOf(t, family, pursuing(gate))
	a := w.asking(unanswered)
	session := a.NewSession(w.work)
	createGoal(t, a, session, overnight)
	got := grantsOf(t, a, session)
	if len(got) != 2 || !got[0].InForce || got[0].Path != w.work || got[1].Covers != "commands that begin with test -s" {
		t.Errorf("granted %+v", got)
	}
	w.requests(1)
	a.Kill()
	close(gate)
	b := w.asking(unanswered)
	b.Must("session/list", map[string]any{}, nil) // nobody opens the session
	harness.Eventually(t, "the goal is achieved", func() bool { return getGoal(t, b, session).Status == "achieved" })
	if w.file("out.txt") != "result\n" {
		t.Errorf("it wrote %q", w.file("out.txt"))
	}
	for _, agent := range []*harness.Agent{a, b} {
		if position(agent, "session/request_permission") >= 0 {
			t.Errorf("it asked: %s", sent(agent))
		}
	}
	for _, g := range grantsOf(t, b, session) {
		if g.InForce {
			t.Errorf("the grant of an ended goal is in force: %+v", g)
		}
	}
}

// What was granted is for that goal: a prompt in the same session asks, while the goal rests and after it has ended.
func TestGrants_OnlyForTheGoal(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	goal := pursuing(gate)
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(string(r.Body), "The user has set a goal") {
			return goal(r)
		}
		return obeying(r)
	})
	q := &asks{answer: "reject_once"}
	a := w.asking(q.permission)
	session := a.NewSession(w.work)
	createGoal(t, a, session, map[string]any{"grants": []any{map[string]any{"kind": "edit"}}})
	w.requests(1)
	for i, action := range []string{"pause", "end"} {
		a.Must("update_goal", map[string]any{"sessionId": session, "action": action}, nil)
		if got := stop(t, a, a.Prompt(session, `write {"path":"prompt.txt","content":"x\n"}`)); got != "end_turn" || q.next("reject_once") != i+1 {
			t.Errorf("after %s a prompt stops with %s, and there were %d questions", action, got, q.next("reject_once"))
		}
	}
	if w.file("prompt.txt") != "" {
		t.Error("it wrote")
	}
}

// A revision voids what was granted: nothing was said about the new objective.
func TestGrants_RevisionVoids(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	q := &asks{answer: ""}
	a := w.asking(q.permission)
	session := a.NewSession(w.work)
	createGoal(t, a, session, map[string]any{"grants": []any{map[string]any{"kind": "edit"}}})
	w.requests(1)
	a.Must("update_goal", map[string]any{"sessionId": session, "action": "revise", "objective": "Something else.", "reason": "changed my mind"}, nil)
	if got := grantsOf(t, a, session); len(got) != 1 || got[0].InForce || got[0].Revision != 1 {
		t.Errorf("after the revision: %+v", got)
	}
	close(gate)
	message(t, a, "session/request_permission", "out.txt")
	if w.file("out.txt") != "" {
		t.Error("it wrote without asking")
	}
	_, e := a.Call("update_goal", map[string]any{"sessionId": session, "action": "resume", "grants": []any{map[string]any{"kind": "edit"}}})
	refused(t, "a grant later on", e, -32602, "grants")
}

// A goal that the model proposes is asked about with what it would be granted, in words, once.
func TestGrants_TheModelsProposalShowsThem(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 && !strings.Contains(string(r.Body), "The user has set a goal") {
			return fakemodel.Calls(fakemodel.Call{Name: "create_goal", Args: `{"objective":"Tidy up.","grants":[{"kind":"edit","path":"src"},{"kind":"command","command":"go test"}]}`})
		}
		return fakemodel.Text("as you like")
	})
	q := &asks{answer: "reject_once"}
	a := w.asking(q.permission)
	session := a.NewSession(w.work)
	stop(t, a, a.Prompt(session, "plan this"))
	if title := q.last(); !strings.Contains(title, "Tidy up.") || !strings.Contains(title, "without asking: file edits in "+w.path("src")+" and below; commands that begin with go test") {
		t.Errorf("it asks %q", title)
	}
	if ask := last(a, "session/request_permission"); strings.Contains(string(ask), "always") {
		t.Errorf("goals can be allowed for good: %s", ask)
	}
	if getGoal(t, a, session) != nil {
		t.Error("a refused goal exists")
	}
}
