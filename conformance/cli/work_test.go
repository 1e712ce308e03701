package cli_test

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A goal set on the command line is executed by 'work', with no editor anywhere.
func TestWork_Goal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	made := w.want(0, "goals", "create", "--cwd", w.work, "--mode", "edit", "--objective", "Produce out.txt.", "--json")
	g := one[goal](t, made.out)
	if g.Status != "active" || g.Objective != "Produce out.txt." {
		t.Errorf("made %+v", g)
	}
	if !strings.Contains(made.errs, "holdfast work") {
		t.Errorf("nobody executes, and it says %q", made.errs)
	}
	r := w.want(0, "work")
	if g = w.goal(g.GoalID); g.Status != "achieved" {
		t.Errorf("it is %+v; work said\n%s", g, r.out)
	}
	if strings.Contains(r.out, "Produce") {
		t.Errorf("a progress line tells what was asked for: %s", r.out)
	}
	if r := w.want(0, "work"); r.out != "" || r.errs != "" {
		t.Errorf("with nothing to do it says %q and %q", r.out, r.errs)
	}
}

// What an editor began is finished after the editor is gone, and an editor shows all of it.
func TestWork_AfterTheEditor(t *testing.T) {
	for name, end := range map[string]func(*harness.Agent){
		"killed": (*harness.Agent).Kill,
		"closed": func(a *harness.Agent) { _ = a.CloseInput() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pursuing(held))
			a := w.editor(allow)
			id := a.NewSession(w.work)
			a.Must("session/set_mode", map[string]any{"sessionId": id, "modeId": "edit"}, nil)
			var made struct{ Goal goal }
			a.Must("create_goal", map[string]any{"sessionId": id, "objective": "Produce out.txt."}, &made)
			w.begun()
			end(a)
			if got := document[struct{ Processes, Commands []any }](w, "ps"); len(got.Processes) != 0 || len(got.Commands) != 1 {
				t.Errorf("with the editor gone there are %+v", got) // and a look buries nobody: see below
			}
			p := w.start()
			harness.Eventually(t, "it is taken up", func() bool { return strings.Contains(p.said(), id) })
			w.put("go")
			if code := p.wait(); code != 0 {
				t.Fatalf("work ended with %d: %s %s", code, p.said(), p.errs.String())
			}
			if g := w.goal(made.Goal.GoalID); g.Status != "achieved" {
				t.Errorf("the goal is %+v", g)
			}
			if n := w.lines("counter"); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
			b := w.editor(nil)
			b.Must("session/load", map[string]any{"sessionId": id, "cwd": w.work, "mcpServers": []any{}}, nil)
			harness.Eventually(t, "the editor shows the end", func() bool { return strings.Contains(b.Text(id), "offered") })
		})
	}
}

// Each wait is named with its code and a command, and that command moves it.
func TestWork_NamesWhatMovesIt(t *testing.T) {
	for name, c := range map[string]struct {
		first fakemodel.Reply        // of the model, in place of its work
		spoil func(w *world, g goal) // before the first work
		code  string                 // of the wait
		says  string                 // of the line
		fix   func(w *world, g goal) // what the line says
	}{
		"another model": {code: "environment_differs", says: "holdfast work --model openai/fake",
			first: fakemodel.Error(401, "Incorrect API key provided.", "invalid_api_key"),
			spoil: func(w *world, g goal) {
				w.want(3, "work")
				w.want(0, "goals", "retry", g.GoalID)
				w.env = append(w.env, "HOLDFAST_MODEL=openai/other")
			},
			fix: func(w *world, _ goal) { w.env = append(w.env, "HOLDFAST_MODEL=openai/fake") }},
		"another API": {code: "environment_differs", says: "HOLDFAST_OPENAI_API=chat holdfast work --model openai/fake",
			first: fakemodel.Error(401, "Incorrect API key provided.", "invalid_api_key"),
			spoil: func(w *world, g goal) {
				w.want(3, "work")
				w.want(0, "goals", "retry", g.GoalID)
				w.configure("[model]\nopenai_api = \"responses\"\n")
			},
			fix: func(w *world, _ goal) { w.env = append(w.env, "HOLDFAST_OPENAI_API=chat") }},
		"no directory": {code: "directory_missing", says: "back, then holdfast work",
			spoil: func(w *world, _ goal) { move(w, w.work, w.work+"-away") }, fix: func(w *world, _ goal) { move(w, w.work+"-away", w.work) }},
		"a refusing endpoint": {code: "model_failed", says: "holdfast goals retry GOAL", first: fakemodel.Error(401, "Incorrect API key provided.", "invalid_api_key"),
			fix: func(w *world, g goal) { w.want(0, "goals", "retry", g.GoalID) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			work := pursuing("")
			w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
				if n := asked.Add(1); n == 1 && c.first.Status != 0 {
					return c.first
				}
				return work(r)
			})
			g := document[goal](w, "goals", "create", "--mode", "edit", "--cwd", w.work, "Produce out.txt.")
			if c.spoil != nil {
				c.spoil(w, g)
			}
			r := w.want(3, "work")
			if says := strings.ReplaceAll(c.says, "GOAL", g.GoalID); !strings.Contains(r.out, "("+c.code+")") || !strings.Contains(r.out, says) {
				t.Fatalf("work says %q", r.out)
			}
			c.fix(w, g)
			w.want(0, "work")
			if got := w.goal(g.GoalID); got.Status != "achieved" {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

func move(w *world, from, to string) {
	w.t.Helper()
	if err := os.Rename(from, to); err != nil {
		w.t.Fatal(err)
	}
}

// A temporary fault of the endpoint is waited for: its time is set, and nobody is needed.
func TestWork_WaitsForARetry(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	work := pursuing("")
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if asked.Add(1) == 1 {
			return fakemodel.Error(503, "Overloaded.", "overloaded")
		}
		return work(r)
	})
	g := document[goal](w, "goals", "create", "--mode", "edit", "Produce out.txt.")
	r := w.want(0, "work")
	if got := w.goal(g.GoalID); got.Status != "achieved" || !strings.Contains(r.out, "model_retry") {
		t.Errorf("it is %+v; work says %q", got, r.out)
	}
}

// A question holds up what was said after it, and ending in between changes no order.
func TestWork_QuestionHoldsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if r.LastUser() == "first" && len(r.Results()) == 0 {
			return shell("echo ran >> counter")
		}
		return fakemodel.Text("you said: " + r.LastUser())
	})
	a := w.editor(nil)
	id := a.NewSession(w.work)
	a.Kill()
	w.want(0, "sessions", "send", id, "first")
	w.want(0, "sessions", "send", id, "second")
	for range 2 {
		w.want(3, "work")
		if n := len(w.model.Requests()); n != 1 {
			t.Errorf("%d requests, though a question is open", n)
		}
	}
	asked := document[[]struct{ ApprovalID string }](w, "sessions", "approvals")
	if len(asked) != 1 {
		t.Fatalf("asked %+v", asked)
	}
	w.want(0, "sessions", "answer", asked[0].ApprovalID, "reject_once")
	w.want(0, "work")
	shown := w.want(0, "sessions", "show", id).out
	if i, j := strings.Index(shown, "you said: first"), strings.Index(shown, "you said: second"); i < 0 || j < i || w.lines("counter") != 0 {
		t.Errorf("shown as %s", shown)
	}
}

// A reader that goes away ends the lines, not the work.
func TestWork_WithoutAReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	g := document[goal](w, "goals", "create", "--mode", "edit", "Produce out.txt.")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("work")
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	if got := w.goal(g.GoalID); got.Status != "achieved" {
		t.Errorf("it is %+v", got)
	}
	_ = out.Close()
}
