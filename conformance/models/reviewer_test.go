package models_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const judgedByOther = figures + "[goals]\nreview_model = \"openai/gpt-fake\"\n"

// reviewing plays a worker that writes a file and offers it, and a reviewer that reads it and, once the gate is open, accepts.
func reviewing(gate <-chan struct{}) func(fakemodel.Request) fakemodel.Reply {
	return func(r fakemodel.Request) fakemodel.Reply {
		called := map[string]string{}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				called[c.Name] = c.ID
			}
		}
		switch {
		case isReview(r) && called["read"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`})
		case isReview(r):
			reply := fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: `{"requirements":[{"id":"objective","result":"met","evidence":["` + called["read"] + `"],"reason":"read"}]}`})
			reply.Steps = []fakemodel.Step{fakemodel.Gate(gate)}
			return reply
		case called["write"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"out.txt","content":"x\n"}`})
		case called["update_goal"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"it is there"}`})
		}
		return fakemodel.Text("offered")
	}
}

func isReview(r fakemodel.Request) bool {
	return slices.ContainsFunc(r.Tools, func(t fakemodel.Tool) bool { return t.Name == "submit_review" })
}

type reviewedGoal struct {
	Status, Phase, ReasonCode, Reason string
	Requirements                      []struct{ ID, Result, JudgedBy string }
	History                           []struct{ What, Run, Kind, State string }
}

func (w *world) goalOf(a *harness.Agent, session string) (g reviewedGoal) {
	w.t.Helper()
	raw, e := a.Call("_holdfast/get_goal", map[string]any{"sessionId": session, "history": true})
	if e != nil {
		w.t.Fatal(e)
	}
	if err := json.Unmarshal(raw, &struct{ Goal *reviewedGoal }{&g}); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// pursue begins a goal whose work needs no question.
func (w *world) pursue(a *harness.Agent) string {
	w.t.Helper()
	s := a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "edit"}, nil)
	a.Must("_holdfast/create_goal", map[string]any{"sessionId": s, "objective": "write out.txt"}, nil)
	return s
}

// judges are the models that reviews were asked of, in order, each once in a row; workers those of everything else.
func (w *world) judges() (judges, workers []string) {
	for _, r := range w.model.Requests() {
		if isReview(r) {
			judges = append(judges, r.Model)
		} else {
			workers = append(workers, r.Model)
		}
	}
	return slices.Compact(judges), slices.Compact(workers)
}

// A review is asked of the model that is set for it, at its own provider, and says who judged; the work stays with the session's. Killed in the
// middle and started with another setting, the review goes on with the judge that it began with; the next one has the new one.
func TestReviewer_ItsOwnModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(judgedByOther)
	w.both()
	gate := make(chan struct{})
	w.set(func() { w.answer = reviewing(gate) })
	a := w.launch("")
	s := w.pursue(a)
	inReview := func() bool { j, _ := w.judges(); return len(j) > 0 && w.goalOf(a, s).Phase == "verifying" }
	harness.Eventually(t, "the review is asked", inReview)
	a.Kill()
	w.configure(figures + "[goals]\nreview_model = \"openai/blind\"\n")
	n := len(w.model.Requests())
	a = w.launch("")
	w.load(a, s)
	harness.Eventually(t, "the review goes on", func() bool {
		return slices.ContainsFunc(w.model.Requests()[n:], isReview)
	})
	close(gate)
	harness.Eventually(t, "it is achieved", func() bool { return w.goalOf(a, s).Status == "achieved" })
	judges, workers := w.judges()
	if !slices.Equal(judges, []string{"gpt-fake"}) || !slices.Equal(workers, []string{"claude-fake"}) {
		t.Errorf("reviews were asked of %v, the rest of %v", judges, workers)
	}
	g := w.goalOf(a, s)
	if g.Requirements[0].JudgedBy != "openai/gpt-fake" {
		t.Errorf("judged by %q", g.Requirements[0].JudgedBy)
	}
	if !slices.ContainsFunc(g.History, func(m struct{ What, Run, Kind, State string }) bool {
		return m.What == "request" && strings.Contains(m.Kind, "gpt-fake")
	}) {
		t.Errorf("the timeline is %+v", g.History)
	}
	w.say(a, s, "and now?") // the session still has its own model
	all := w.model.Requests()
	if last := all[len(all)-1]; last.Model != "claude-fake" {
		t.Errorf("the session goes on with %s", last.Model)
	}
	w.pursueAgain(a, "openai/blind")
}

// pursueAgain reaches another goal, which that model judges.
func (w *world) pursueAgain(a *harness.Agent, judge string) {
	w.t.Helper()
	s := w.pursue(a)
	harness.Eventually(w.t, "another is achieved", func() bool { return w.goalOf(a, s).Status == "achieved" })
	if g := w.goalOf(a, s); g.Requirements[0].JudgedBy != judge {
		w.t.Errorf("judged by %q, want %s", g.Requirements[0].JudgedBy, judge)
	}
}

// Without a key for the model that is set nothing is reviewed and nothing is sent anywhere: the goal waits and says what is missing. With another
// setting it goes on by itself at the next start.
func TestReviewer_WithoutItsKeyItWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(judgedByOther)
	w.env = append(slices.DeleteFunc(w.model.Env("anthropic"), func(v string) bool { return strings.HasPrefix(v, "OPENAI") }), "OPENAI_API_KEY=")
	gate := make(chan struct{})
	close(gate)
	w.set(func() { w.answer = reviewing(gate) })
	a := w.launch("")
	s := w.pursue(a)
	harness.Eventually(t, "it waits", func() bool { return w.goalOf(a, s).ReasonCode == "model_unavailable" })
	if g := w.goalOf(a, s); g.Status != "active" || g.Phase != "waiting" && g.Phase != "verifying" || !strings.Contains(g.Reason, "OPENAI_API_KEY") {
		t.Errorf("it says %+v", g)
	}
	if judges, _ := w.judges(); len(judges) != 0 {
		t.Errorf("reviewed by %v", judges)
	}
	a.Kill()
	w.configure(figures)
	a = w.launch("")
	w.load(a, s)
	harness.Eventually(t, "it is achieved", func() bool { return w.goalOf(a, s).Status == "achieved" })
	if judges, _ := w.judges(); !slices.Equal(judges, []string{"claude-fake"}) {
		t.Errorf("reviewed by %v", judges)
	}
}
