package quota_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// goalHeld is a goal of which the model was told to wait: at its work, or, when it offers first, at its review.
type goalHeld struct {
	*world
	a        *harness.Agent
	l        left
	id       string
	reviewed bool
}

func offersReview(r fakemodel.Request) bool {
	return slices.ContainsFunc(r.Tools, func(t fakemodel.Tool) bool { return t.Name == "submit_review" })
}

func newGoalHeld(t *testing.T, reviewed bool) *goalHeld {
	w := newWorld(t, apart)
	w.plays[""] = func(r fakemodel.Request) fakemodel.Reply {
		switch {
		case reviewed && !offersReview(r) && r.Messages[len(r.Messages)-1].Role != "tool":
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"it is there"}`})
		case reviewed && !offersReview(r):
			return fakemodel.Text("offered")
		}
		return usedUp("Retry-After", "18000")
	}
	a := w.launch("")
	cwd := w.tree("t")
	h := &goalHeld{world: w, a: a, l: left{a.NewSession(cwd), cwd, ""}, reviewed: reviewed}
	var made struct{ Goal struct{ GoalID string } }
	a.Must("_holdfast/create_goal", map[string]any{"sessionId": h.l.id, "objective": "g",
		"requirements": []any{map[string]any{"kind": "semantic", "text": "it reads well"}}}, &made)
	h.id = made.Goal.GoalID
	harness.Eventually(t, "it waits", func() bool { return h.waits() })
	return h
}

func (h *goalHeld) goal() (v struct {
	Status, Phase, ReasonCode, Reason, Objective string
	ControlVersion                               int64
}) {
	h.t.Helper()
	var got struct {
		Goal *struct {
			Status, Phase, ReasonCode, Reason, Objective string
			ControlVersion                               int64
		}
	}
	h.a.Must("_holdfast/get_goal", map[string]any{"goalId": h.id}, &got)
	return *got.Goal
}

func (h *goalHeld) waits() bool {
	g := h.goal()
	return g.Status == "active" && g.ReasonCode == "model_retry" && strings.Contains(g.Reason, "not asked again before")
}

func (h *goalHeld) act(action string, more map[string]any) {
	h.t.Helper()
	p := map[string]any{"goalId": h.id, "action": action}
	for k, v := range more {
		p[k] = v
	}
	h.a.Must("_holdfast/update_goal", p, nil)
}

// quiet looks, over a launch, that nothing was asked since.
func (h *goalHeld) quiet(what string, asked int) {
	h.t.Helper()
	harness.Eventually(h.t, "it waits after "+what, h.waits) // a review that was cancelled is closed first
	ms, err := strconv.ParseInt(h.query("SELECT max(retry_at) FROM runs WHERE session = ? AND desired = 'run' AND reason_code = 'model_retry'", h.l.id), 10, 64)
	h.must(err)
	if d := time.Until(time.UnixMilli(ms)); d > 5*time.Hour || d < 4*time.Hour {
		h.t.Errorf("%s: it is asked again in %s", what, d)
	}
	h.apart(h.a)
	h.a.Kill()
	h.a = h.launch("")
	h.load(h.a, h.l.id, h.l.cwd)
	h.apart(h.a)
	if n := h.times(""); n != asked {
		h.t.Errorf("%s: the model was asked %d times for the goal, want %d", what, n, asked)
	}
}

// Whatever is done with a goal that waits for a provider's limit, nothing is asked before its time: only retry asks, once, and it waits anew.
func TestLimit_AGoalKeepsToIt(t *testing.T) {
	for name, reviewed := range map[string]bool{"at work": false, "in a review": true} {
		for what, do := range map[string]func(h *goalHeld){
			"revise": func(h *goalHeld) { h.act("revise", map[string]any{"objective": "better", "reason": "so"}) },
			"resume": func(h *goalHeld) { h.act("pause", nil); h.act("resume", nil) },
			"revise off": func(h *goalHeld) {
				h.act("pause", nil)
				h.act("revise", map[string]any{"objective": "better", "reason": "so"})
				h.act("resume", nil)
			},
			"verify": func(h *goalHeld) { h.act("verify", nil) },
			"waive":  func(h *goalHeld) { h.act("waive", map[string]any{"requirementId": "r1", "reason": "so"}) },
			"add": func(h *goalHeld) {
				h.act("add", map[string]any{"requirements": []any{map[string]any{"kind": "semantic", "text": "more"}}})
			},
			"budget": func(h *goalHeld) { h.act("budget", map[string]any{"budget": map[string]any{"tokens": 90000000}}) },
			"stop":   func(h *goalHeld) { h.holdfast(0, nil, "stop", h.l.id); h.act("resume", nil) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				h := newGoalHeld(t, reviewed)
				asked := h.times("")
				do(h)
				h.quiet(what, asked)
				if n := strings.Count(h.a.Text(h.l.id), notice); n != 1 {
					t.Errorf("it is said %d times", n)
				}
				h.act("retry", nil)
				harness.Eventually(t, "it is asked", func() bool { return h.times("") > asked })
				harness.Eventually(t, "it waits anew", h.waits)
				h.quiet("retry", h.times(""))
			})
		}
	}
}

// When the time has come there is one try, with the words of the revision.
func TestLimit_ARevisionIsAskedInItsTime(t *testing.T) {
	t.Parallel()
	h := newGoalHeld(t, false)
	h.act("revise", map[string]any{"objective": "better words", "reason": "so"})
	h.a.Kill()
	h.edit("UPDATE runs SET retry_at = 1000000 WHERE retry_at > 0")
	h.a = h.launch("")
	h.a.Must("session/list", map[string]any{}, nil)
	harness.Eventually(t, "it has had its try", func() bool { return h.goal().Status == "blocked" })
	all := h.model.Requests()
	if n := h.times(""); n != 2 || !strings.Contains(string(all[len(all)-1].Body), "better words") {
		t.Errorf("it was asked %d times, at last %s", n, all[len(all)-1].Body)
	}
}
