package cli_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// rejected plays a reviewer that never accepts, and a worker that answers each refusal with a command.
func rejected(r fakemodel.Request) fakemodel.Reply {
	offers := func(name string) bool {
		return slices.ContainsFunc(r.Tools, func(t fakemodel.Tool) bool { return t.Name == name })
	}
	switch n := len(r.Results()); {
	case offers("submit_review"):
		return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(map[string]any{"requirements": []any{
			map[string]any{"id": "objective", "result": "unmet", "reason": "it does not rhyme"}}})})
	case n == 0:
		return fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"out.txt","content":"result\n"}`})
	case n == 1:
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"out.txt is there"}`})
	case n == 2 && !strings.Contains(r.LastUser(), "What is missing"):
		return fakemodel.Text("offered")
	default:
		return shell(fmt.Sprintf("echo boom %d; exit 3", n))
	}
}

// Why a review refused and why a call failed is told by the command line: the feedback, the stored output, and a timeline that can be read.
func TestShow_SaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, rejected)
	g := document[struct{ GoalID, Feedback string }](w, "goals", "create", "--mode", "edit", "Write a poem.")
	if g.Feedback != "" {
		t.Errorf("before any review: %q", g.Feedback)
	}
	w.want(3, "work")
	g = document[struct{ GoalID, Feedback string }](w, "goals", "show", g.GoalID)
	if !strings.Contains(g.Feedback, "it does not rhyme") {
		t.Errorf("the feedback is %q", g.Feedback)
	}
	if r := w.want(0, "goals", "show", g.GoalID); !strings.Contains(r.out, "feedback   - objective is unmet: it does not rhyme\n") ||
		!strings.Contains(r.out, "\nturns      2\n") || !strings.Contains(r.out, " objective semantic user  Write a poem.\n") {
		t.Errorf("shown as\n%s", r.out)
	}
	asked := document[[]struct {
		ApprovalID string
		Effect     effect
	}](w, "sessions", "approvals")
	if len(asked) != 1 {
		t.Fatalf("asked %+v", asked)
	}
	w.want(0, "sessions", "answer", asked[0].ApprovalID, "allow_once")
	w.want(3, "work")
	id := asked[0].Effect.EffectID
	if e := document[struct{ Output string }](w, "effects", "show", id); !strings.Contains(e.Output, "boom 2") {
		t.Errorf("the stored output is %q", e.Output)
	}
	if r := w.want(0, "effects", "show", id); !strings.Contains(r.out, "exit code  3\n") || !strings.Contains(r.out, "\nboom 2\n") {
		t.Errorf("shown as\n%s", r.out)
	}
	shown := w.want(0, "goals", "show", g.GoalID, "--history").out
	for _, want := range []string{
		`goal, attempt 1: \w+; first in process \d+, generation \d+`,
		`verification, attempt 1: \w+; first in process`,
		`  request to openai/fake; (\d+ tokens in, \d+ out|usage unknown)\n`,
		`  shell: echo boom 2; exit 3; exit code 3; settled by \w+; sha256:`,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("the timeline lacks %s:\n%s", want, shown)
		}
	}
}
