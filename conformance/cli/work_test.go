package cli_test

import (
	"strings"
	"testing"

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
