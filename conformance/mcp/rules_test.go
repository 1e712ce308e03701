package mcp_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// A standing answer may be given over MCP by whoever may answer at all. The same answer once more is the same outcome.
func TestApproval_StandingAnswer(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if r.Messages[len(r.Messages)-1].Role == "user" {
			return command("echo ran >> out")
		}
		return fakemodel.Text("done")
	})
	a := w.editor(unanswered)
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run")
	c := w.serve("--authority", "full")
	p := c.question(session, func(approval) bool { return true })
	for range 2 {
		c.must("answer_approval", object{"approvalId": p.ApprovalID, "option": "allow_always"}, nil)
	}
	a.Await(id)
	a.Await(a.Prompt(session, "run again"))
	if w.file("out") != "ran\nran\n" {
		t.Errorf("the command left %q", w.file("out"))
	}
	var e struct{ Effects []struct{ Permission string } }
	c.must("list_effects", object{"sessionId": session}, &e)
	if len(e.Effects) != 2 || !strings.HasPrefix(e.Effects[0].Permission, "P9 ") || !strings.Contains(e.Effects[1].Permission, "answered allow_always") {
		t.Errorf("the journal says %+v", e.Effects)
	}
}

// Grants over MCP are a person's word; the goal shows them.
func TestGoal_Grants(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve("--authority", "full", "--trust", w.work)
	var r struct {
		Goal struct {
			Grants []struct {
				Kind, Path, Command, Covers string
				InForce                     bool
			}
		}
	}
	c.must("create_goal", object{"cwd": w.work, "objective": "x", "grants": []any{object{"kind": "edit"}, object{"kind": "command", "command": "go test"}}}, &r)
	if g := r.Goal.Grants; len(g) != 2 || !g[0].InForce || g[1].Covers != "commands that begin with go test" || !strings.Contains(g[0].Covers, w.work) {
		t.Errorf("granted %+v", g)
	}
	c.refused("an edit outside", "create_goal", object{"cwd": w.work, "objective": "x", "grants": []any{object{"kind": "edit", "path": "/etc"}}}, "invalid_argument", "grants[0].path")
	c.refused("a grant of nothing", "create_goal", object{"cwd": w.work, "objective": "x", "grants": []any{object{"kind": "tool"}}}, "invalid_argument")
}
