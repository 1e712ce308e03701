package goals_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Items are done one by one, each with its evidence, and with the last the review begins: nobody offered anything.
func TestTodo_DoneBeginsAReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(
		todo(entry("write it", "in_progress"), entry("look at it", "pending"), entry("polish it", "pending", "optional", true)),
		writes("out.txt", "result\n"),
		todo(entry("write it", "completed", "evidence", []string{"w-out.txt"}), entry("look at it", "pending"), entry("polish it", "pending", "optional", true)),
		todo(entry("write it", "completed"), entry("look at it", "completed"), entry("polish it", "pending", "optional", true)),
	)), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	g := w.until(a, s, "achieved")
	if len(g.Todo) != 3 || g.Todo[0].Status != "completed" || !g.Todo[2].Optional || g.Todo[0].ID == g.Todo[1].ID {
		t.Errorf("the todo is %+v", g.Todo)
	}
	at := slices.IndexFunc(g.History, func(h struct{ What, Run, Kind, State, Title, Effect, Fact, Digest string }) bool {
		return h.Kind == "write"
	})
	if at < 0 || len(g.Todo[0].Evidence) != 1 || g.Todo[0].Evidence[0] != g.History[at].Effect {
		t.Errorf("the evidence %v is not the stored call", g.Todo[0].Evidence)
	}
	got := plans(t, a, s)
	want := []string{"1 write it completed", "2 look at it completed", "3 polish it pending"}
	if len(got) < 3 || !slices.ContainsFunc(got, func(p []string) bool { return reflect.DeepEqual(p, want) }) {
		t.Errorf("the plans were %v", got)
	}
	harness.Eventually(t, "the plan goes with its goal", func() bool {
		got = plans(t, a, s)
		return len(got[len(got)-1]) == 0
	})
	if n := w.requests("submit_review"); n != 2 {
		t.Errorf("the reviewer was asked %d times", n)
	}
}

// A result that is offered with open items is not even reviewed. Model and user are told why; the offer stands until they are done.
func TestTodo_OpenItemRefuses(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	second := todo(entry("write it", "completed"), entry("test it", "completed"))
	second.Steps = append(second.Steps, fakemodel.Gate(gate))
	w := newWorld(t, script(
		turn(todo(entry("write it", "completed"), entry("test it", "pending")), writes("out.txt", "result\n"), candidate()),
		turn(second),
	), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	harness.Eventually(t, "a second turn begins", func() bool {
		all := w.model.Requests()
		return len(all) > 0 && strings.Contains(all[len(all)-1].LastUser(), `"test it"`)
	})
	g := get(a, s)
	if g.Status != "active" || g.ReasonCode != "todo_open" || !strings.Contains(g.Feedback, `"test it"`) || strings.Contains(g.Feedback, `"write it"`) {
		t.Errorf("the goal is %+v", g)
	}
	if n := w.requests("submit_review"); n != 0 {
		t.Errorf("the reviewer was asked %d times", n)
	}
	close(gate)
	w.until(a, s, "achieved")
}

// Neither taking items away nor finishing them achieves anything, and writing about the work is no progress.
func TestTodo_AchievesNothing(t *testing.T) {
	t.Parallel()
	var turns [][]fakemodel.Reply
	for i := range 6 {
		turns = append(turns, turn(todo(entry("step "+strings.Repeat("i", i+1), "pending")), todo()))
	}
	w := newWorld(t, script(turns...), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	g := w.until(a, s, "blocked")
	if g.ReasonCode != "no_progress" || len(g.Todo) != 0 || w.requests("submit_review") != 0 {
		t.Errorf("the goal is %+v, with %d reviews", g, w.requests("submit_review"))
	}
	// All done, and the review disagrees: it is not asked again about the same result however often the todo is rewritten.
	w.set(func() {
		w.worker = func(r fakemodel.Request) fakemodel.Reply {
			if n, step := at(r); step == 0 {
				return todo(entry("step "+strings.Repeat("x", n), "completed"))
			}
			return fakemodel.Text("so it is")
		}
		w.review = judge("nothing.txt", map[string]string{"objective": "unmet"})
	})
	update(a, s, "resume", nil)
	harness.Eventually(t, "it is blocked again", func() bool { return w.requests("submit_review") > 0 && get(a, s).Status == "blocked" })
	if n := w.requests("submit_review"); n != 4 {
		t.Errorf("the reviewer was asked %d times in two reviews", n)
	}
}

// A goal's todo is its own: it outlives a kill with its ids, and what the user's prompts plan is another plan.
func TestTodo_SurvivesAndIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(
		turn(todo(entry("one", "completed"), entry("two", "in_progress")), shell("echo run >> counter; while [ ! -e go ]; do sleep 0.02; done")),
		turn(todo(entry("two", "completed"), entry("one", "completed")), writes("out.txt", "result\n")),
	), accepts)
	w.chat = func(r fakemodel.Request) fakemodel.Reply {
		if r.Messages[len(r.Messages)-1].Role == "user" {
			return todo(entry("a user's own", "pending"))
		}
		return fakemodel.Text("ok")
	}
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	want := get(a, s).Todo
	a.Kill()
	b := w.launch("", nil)
	if got := get(b, s).Todo; !reflect.DeepEqual(got, want) {
		t.Errorf("after the kill the todo is %+v, not %+v", got, want)
	}
	w.load(b, s)
	harness.Eventually(t, "it is shown again", func() bool {
		got := plans(t, b, s)
		return len(got) > 0 && reflect.DeepEqual(got[0], []string{"1 one completed", "2 two in_progress"})
	})
	update(b, s, "pause", nil)
	b.Await(b.Prompt(s, "plan something"))
	if got := get(b, s).Todo; !reflect.DeepEqual(got, want) {
		t.Errorf("a prompt has changed the goal's todo to %+v", got)
	}
	if got := plans(t, b, s); !reflect.DeepEqual(got[len(got)-1], []string{"1 a user's own pending"}) {
		t.Errorf("the prompt's plan is not shown: %v", got)
	}
	w.put("go")
	update(b, s, "resume", nil)
	g := w.until(b, s, "achieved")
	if len(g.Todo) != 2 || g.Todo[0].ID != "2" || g.Todo[1].ID != "1" {
		t.Errorf("the ids changed: %+v", g.Todo)
	}
}
