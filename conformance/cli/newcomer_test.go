package cli_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// A key is the usual case: work begins with it, and the doctor finds the model.
func TestWork_WithAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	w.env = append(w.env, "OPENAI_API_KEY=sk-test-0123456789")
	g := one[goal](t, w.want(0, "goals", "create", "--mode", "edit", "--cwd", w.work, "--json", "Produce out.txt.").out)
	w.want(0, "work")
	if got := w.goal(g.GoalID); got.Status != "achieved" {
		t.Errorf("it is %+v", got)
	}
	if r := w.run("doctor"); !strings.Contains(r.out, "openai/fake") || strings.Contains(r.out, "sk-test") {
		t.Errorf("the doctor says %s", r.out)
	}
}

// A model that looks at its goal again and again is stopped like one that reads the same file again and again.
func TestWork_CirclesInGoalTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Calls(fakemodel.Call{Name: "get_goal", Args: "{}"})
	})
	g := one[goal](t, w.want(0, "goals", "create", "--cwd", w.work, "--json", "Look at yourself.").out)
	w.want(3, "work")
	if got := w.goal(g.GoalID); got.Status != "blocked" || got.ReasonCode != "no_progress" {
		t.Errorf("it is %+v", got)
	}
	if n := len(w.model.Requests()); n > 60 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A reviewer cannot cite its own words: a refused submission is a call like any other, and shows nothing of the work.
func TestReview_ItsOwnCallsAreNoEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		for _, tool := range r.Tools {
			if tool.Name == "submit_review" {
				cite := "call_1"
				for _, m := range r.Messages {
					for _, c := range m.ToolCalls {
						cite = c.ID
					}
				}
				return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(map[string]any{"requirements": []any{
					map[string]any{"id": "objective", "result": "met", "evidence": []string{cite}, "reason": "I say so"}}})})
			}
		}
		if len(r.Results()) > 0 {
			return fakemodel.Text("so it is")
		}
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"done"}`})
	})
	g := one[goal](t, w.want(0, "goals", "create", "--cwd", w.work, "--json", "Do something that can be seen.").out)
	w.want(3, "work")
	if got := w.goal(g.GoalID); got.Status == "achieved" {
		t.Errorf("it is %+v", got)
	}
}

// A goal that was ended does not keep `work` from ending, when a later prompt of its session waits for an answer.
func TestWork_EndedGoalAndAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply { return shell("echo ran > ran") })
	g := one[goal](t, w.want(0, "goals", "create", "--cwd", w.work, "--json", "Never begun.").out)
	w.want(0, "goals", "end", g.GoalID)
	w.want(0, "sessions", "send", g.SessionID, "run it")
	r := w.want(3, "work")
	if !strings.Contains(r.out, "approval") || w.has("ran") {
		t.Errorf("it says %s", r.out)
	}
	w.want(0, "stop", "--all")
	w.want(0, "work")
}
