package goals_test

import (
	"reflect"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A model that says nothing, says the same, or makes the same call again and again is asked a small number of times, and then a person is.
func TestFlow_Loops(t *testing.T) {
	for name, worker := range map[string]player{
		"empty answers":    func(fakemodel.Request) fakemodel.Reply { return fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 10}} },
		"the same words":   func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("I will do it now.") },
		"the same call":    func(fakemodel.Request) fakemodel.Reply { return call("list", map[string]string{"path": "."}) },
		"the same claim":   func(fakemodel.Request) fakemodel.Reply { return candidate() },
		"the same refusal": func(fakemodel.Request) fakemodel.Reply { return call("write", map[string]string{"path": "out.txt"}) },
		"evidence of the same": func(r fakemodel.Request) fakemodel.Reply {
			if id := made(r, "list"); id != "" {
				return call("update_goal", map[string]string{"action": "evidence", "requirementId": "objective", "callId": id})
			}
			return call("list", map[string]string{"path": "."})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worker, judge("out.txt", map[string]string{"objective": "unmet"}))
			a, s := w.start()
			create(a, s, "Produce out.txt.", nil)
			g := w.until(a, s, "blocked")
			if n := len(w.model.Requests()); g.ReasonCode != "no_progress" || n > 40 {
				t.Errorf("after %d requests the goal is %+v", n, g)
			}
			n := len(w.model.Requests())
			a.Kill()
			b := w.launch("", nil)
			w.load(b, s)
			b.Await(b.Prompt(s, "hello"))
			if got := len(w.model.Requests()); got != n+1 || get(b, s).Status != "blocked" {
				t.Errorf("after a restart it goes on: %d requests, %+v", got-n, get(b, s))
			}
		})
	}
}

func obstacle(text string) fakemodel.Reply {
	return call("update_goal", map[string]string{"action": "blocker", "text": text})
}

// The same obstacle three turns running blocks the goal while no item can be worked on, and is named. While one can, and is, the work goes on.
func TestFlow_Blocked(t *testing.T) {
	t.Parallel()
	stuck := todo(entry("deploy it", "pending", "blocked", true), entry("write it", "completed"))
	w := newWorld(t, script(
		turn(todo(entry("deploy it", "pending", "blocked", true), entry("write it", "pending")), obstacle("No access to the server.")),
		turn(writes("a.txt", "a\n"), obstacle("no access  to the Server.")),
		turn(writes("b.txt", "b\n"), obstacle("No access to the server.")),
		turn(writes("c.txt", "c\n"), obstacle("No access to the server.")),
		turn(stuck, writes("d.txt", "d\n"), obstacle("No access to the server.")),
		turn(writes("never.txt", "e\n")),
	), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	g := w.until(a, s, "blocked")
	if g.ReasonCode != "blocked_by_agent" || !strings.Contains(g.Reason, "No access to the server.") || g.NextAction.Owner != "user" {
		t.Errorf("the goal is %+v", g)
	}
	if w.lines("d.txt") != 1 || w.lines("never.txt") != 0 || w.requests("submit_review") != 0 {
		t.Error("it was not blocked after the fifth turn")
	}
}

// Other obstacles, or turns without one in between, are not the same three turns running.
func TestFlow_OtherObstacles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(
		turn(writes("a.txt", "a\n"), obstacle("one")), turn(writes("b.txt", "b\n"), obstacle("two")), turn(writes("c.txt", "c\n"), obstacle("one")),
		turn(writes("d.txt", "d\n")), turn(writes("e.txt", "e\n"), obstacle("one")), turn(writes("out.txt", "result\n"), candidate()),
	), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	w.until(a, s, "achieved")
}

// While only its own background command is to be waited for, a goal asks no model: not before a kill, not after the restart. The end of the
// command wakes it, once.
func TestFlow_WaitsForACommand(t *testing.T) {
	t.Parallel()
	start := call("shell", map[string]any{"command": "echo run >> counter; while [ ! -e go ]; do sleep 0.02; done; echo built > out.txt", "background": true})
	w := newWorld(t, script(turn(start), turn(), turn(call("read", map[string]string{"path": "out.txt"}), candidate())), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	waiting := func(a *harness.Agent) func() bool {
		return func() bool { g := get(a, s); return g.Phase == "waiting" && g.ReasonCode == "command_runs" }
	}
	harness.Eventually(t, "it waits for the command", waiting(a))
	if g := get(a, s); g.Status != "active" || g.NextAction.Owner != "holdfast" {
		t.Errorf("it is %+v", g)
	}
	a.Await(a.Prompt(s, "are you there?")) // the user goes first, and the wait stays
	harness.Eventually(t, "it still waits", waiting(a))
	a.Kill()
	b := w.launch("", nil)
	w.load(b, s)
	b.Await(b.Prompt(s, "still there?"))
	harness.Eventually(t, "it waits after the restart", waiting(b))
	if n := w.requests("update_goal"); n != 3 {
		t.Errorf("the worker was asked %d times before the command ended", n)
	}
	w.put("go")
	w.until(b, s, "achieved")
	if n := w.requests("update_goal"); n != 6 || w.lines("counter") != 1 {
		t.Errorf("the worker was asked %d times, the command ran %d times", n, w.lines("counter"))
	}
}

// What a goal has started and left running is told to its reviewer, and by its record: it may undo what was accepted.
func TestFlow_LeavesACommandRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(call("shell", map[string]any{"command": "while [ ! -e go ]; do sleep 0.02; done", "background": true}),
		writes("out.txt", "result\n"), candidate())), accepts)
	defer w.put("go")
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	const told = "Still running in the background: while [ ! -e go ]"
	if g := w.until(a, s, "achieved"); !strings.HasPrefix(g.Reason, told) {
		t.Errorf("the goal says %q", g.Reason)
	}
	harness.Eventually(t, "the record says so", func() bool { return strings.Contains(a.Text(s), told) })
	for _, r := range w.model.Requests() {
		if offers(r, "submit_review") && !strings.Contains(r.Messages[1].Content, "Still running in the background; what they go on to do may change what you see:\n- while [ ! -e go ]") {
			t.Errorf("the reviewer was told %s", r.Messages[1].Content)
		}
	}
}

// Two goals in two sessions have nothing in common: neither words nor todo nor evidence nor usage.
func TestFlow_TwoSessions(t *testing.T) {
	t.Parallel()
	other := script(turn(todo(entry("the other's item", "in_progress")), writes("other.txt", "other\n"), todo(entry("the other's item", "completed"))))
	mine := script(turn(todo(entry("my item", "in_progress")), writes("out.txt", "result\n"), todo(entry("my item", "completed"))))
	isOther := func(r fakemodel.Request) bool {
		return strings.Contains(r.Messages[0].Content+r.Messages[1].Content, "Produce other.txt.")
	}
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if isOther(r) {
			return other(r)
		}
		return mine(r)
	}, nil)
	w.review = func(r fakemodel.Request) fakemodel.Reply {
		if isOther(r) {
			return judge("other.txt", map[string]string{"objective": "met"})(r)
		}
		return accepts(r)
	}
	a, s := w.start()
	o := w.session(a)
	create(a, s, "Produce out.txt.", nil)
	create(a, o, "Produce other.txt.", nil)
	g, h := w.until(a, s, "achieved"), w.until(a, o, "achieved")
	if len(g.Todo) != 1 || g.Todo[0].Content != "my item" || len(h.Todo) != 1 || h.Todo[0].Content != "the other's item" {
		t.Errorf("the todos are %+v and %+v", g.Todo, h.Todo)
	}
	for _, r := range w.model.Requests() {
		var said strings.Builder
		for _, m := range r.Messages {
			said.WriteString(m.Content + encode(m.ToolCalls))
		}
		if strings.Contains(said.String(), "other.txt") && strings.Contains(said.String(), "out.txt") {
			t.Errorf("request %d speaks of both", r.N)
		}
	}
	if n := int64(len(w.model.Requests())); g.Usage.InputTokens+h.Usage.InputTokens != 10*n || g.Usage.InputTokens != h.Usage.InputTokens {
		t.Errorf("%d requests, usage %+v and %+v", n, g.Usage, h.Usage)
	}
	if reflect.DeepEqual(of(g, "objective").Evidence, of(h, "objective").Evidence) {
		t.Error("they have the same evidence")
	}
}

// A revision in the middle of a turn ends that turn at its next step. What the turn offers for the old words counts for nothing, and the next requests have
// the new ones.
func TestFlow_RevisedInMidTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, judge("new.txt", map[string]string{"objective": "met"}))
	w.worker = func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(r.Messages[0].Content, "Produce new.txt.") {
			if made(r, "write") == "w-new.txt" {
				return candidate()
			}
			return writes("new.txt", "new\n")
		}
		// One answer has both: the candidate is for the old words.
		return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": "echo run >> counter; while [ ! -e go ]; do sleep 0.02; done"})},
			fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"old"}`})
	}
	a, s := w.start()
	create(a, s, "Produce old.txt.", nil)
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	g := update(a, s, "revise", map[string]any{"objective": "Produce new.txt.", "reason": "a better idea"})
	if g.Revision != 2 || g.Status != "active" {
		t.Errorf("revised to %+v", g)
	}
	w.put("go")
	g = w.until(a, s, "achieved")
	old, refused := 0, false
	for _, r := range w.model.Requests() {
		if strings.Contains(r.Messages[0].Content+r.Messages[1].Content, "verbatim:\nProduce old.txt.") {
			old++
		}
		for _, m := range r.Results() {
			refused = refused || strings.Contains(m.Content, "the user revised the goal after this call was planned")
		}
	}
	if old != 1 || !refused {
		t.Errorf("%d requests with the old words; the old offer was refused: %v", old, refused)
	}
	if w.lines("counter") != 1 || g.Objective != "Produce new.txt." {
		t.Errorf("the goal is %+v", g)
	}
}

// The end of a goal is one record at its place. Later goals change neither that nor what is told of the goal, and nothing a reviewer says is chat.
func TestFlow_RecordsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.worker = func(r fakemodel.Request) fakemodel.Reply {
		name := "out.txt"
		if strings.Contains(r.Messages[0].Content, "third") {
			name = "third.txt"
		}
		switch _, step := at(r); step {
		case 0:
			return writes(name, "result\n")
		case 1:
			return candidate()
		}
		return fakemodel.Text(`{"a":"reply that is JSON"}`)
	}
	w.review = func(r fakemodel.Request) fakemodel.Reply {
		if made(r, "read") != "" {
			v := accepts(r)
			v.Steps = []fakemodel.Step{{Text: "SECRET-ASSESSMENT: it is fine."}}
			return v
		}
		v := accepts(r)
		v.Steps = []fakemodel.Step{{Text: "SECRET-ASSESSMENT: let me look."}}
		return v
	}
	a, s := w.start()
	first := create(a, s, "The first one.", nil)
	w.until(a, s, "achieved")
	a.Await(a.Prompt(s, "between"))
	hold := make(chan struct{})
	w.set(func() {
		worker := w.worker
		w.worker = func(r fakemodel.Request) fakemodel.Reply {
			if strings.Contains(r.Messages[0].Content, "The second one.") {
				return fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.Gate(hold)}}
			}
			return worker(r)
		}
	})
	create(a, s, "The second one.", nil)
	update(a, s, "end", map[string]any{"reason": "enough"})
	close(hold)
	a.Await(a.Prompt(s, "again"))
	var before struct{ Goal view }
	a.Must("get_goal", map[string]any{"goalId": first.GoalID, "history": true}, &before)
	create(a, s, "The third one.", nil)
	w.until(a, s, "achieved")
	var after struct{ Goal view }
	a.Must("get_goal", map[string]any{"goalId": first.GoalID, "history": true}, &after)
	if !reflect.DeepEqual(before, after) || after.Goal.Status != "achieved" {
		t.Errorf("the first goal was\n%+v\nand is\n%+v", before, after)
	}
	harness.Eventually(t, "the last record is shown", func() bool { return strings.Count(a.Text(s), "Goal achieved") == 2 })
	live := a.Text(s)
	a.Kill()
	b := w.launch("", nil)
	w.load(b, s)
	b.Await(b.Prompt(s, "at last"))
	for name, text := range map[string]string{"live": live, "loaded": b.Text(s)} {
		at := -1
		for _, part := range []string{"Goal achieved: The first one.", "You said: between", "Goal cancelled: The second one.", "You said: again", "Goal achieved: The third one."} {
			if i := strings.Index(text, part); i <= at || strings.Count(text, part) != 1 {
				t.Errorf("%s: %q is not once at its place in %q", name, part, text)
			} else {
				at = i
			}
		}
		if strings.Contains(text, "SECRET-ASSESSMENT") || strings.Contains(text, "submit_review") {
			t.Errorf("%s: the reviewer speaks: %q", name, text)
		}
		if strings.Count(text, `{"a":"reply that is JSON"}`) != 2 {
			t.Errorf("%s: ordinary replies are gone: %q", name, text)
		}
	}
	for _, raw := range b.Updates(s) {
		if strings.Contains(string(raw), "SECRET-ASSESSMENT") && !strings.Contains(string(raw), "session_info_update") {
			t.Errorf("an update has what the reviewer said: %s", raw)
		}
	}
}
