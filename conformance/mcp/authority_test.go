package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A setting changes what a call does, never which tools there are. A refused call says which setting allows it and changes nothing.
func TestAuthority_EveryTool(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply { return command("true") })
	a := w.editor(unanswered)
	session := a.NewSession(w.work)
	a.Prompt(session, "run")
	full := w.serve("--authority", "full")
	open := full.question(session, func(approval) bool { return true })
	g := full.create(object{"sessionId": session, "requirements": []any{object{"id": "r", "kind": "file", "path": "x"}}}).Goal
	editing := full.create(object{"cwd": w.work, "mode": "edit"}).Goal
	full.must("update_goal", object{"goalId": editing.GoalID, "action": "end"}, nil)
	decisions := map[string]bool{"settle_effect": true, "answer_approval": true} // whole tools; others name what they need first
	var list string
	for _, setting := range []string{"read", "", "goals", "full"} {
		var args []string
		if setting != "" {
			args = []string{"--authority", setting}
		}
		c := w.serve(args...)
		if now := encode(c.tools()); list == "" {
			list = now
		} else if now != list {
			t.Errorf("with %q the list of tools differs", setting)
		}
		try := func(least, tool string, args object) {
			t.Helper()
			rank := map[string]int{"read": 0, "": 1, "goals": 1, "full": 2}
			p := c.call(tool, args, nil)
			if refused := p != nil && p.Code == "no_authority"; refused != (rank[setting] < rank[least]) {
				t.Errorf("with %q, %s %v: %+v", setting, tool, args, p)
			} else if refused {
				c.refused("a refused call", tool, args, "no_authority", "--authority "+map[bool]string{true: least, false: "goals"}[setting != "read" || decisions[tool]])
			}
		}
		try("read", "list_goals", object{})
		try("read", "get_goal", object{"goalId": g.GoalID})
		try("read", "list_sessions", object{})
		try("read", "get_session", object{"sessionId": session})
		try("read", "list_effects", object{})
		try("read", "list_approvals", object{})
		try("goals", "create_goal", object{"cwd": w.work, "objective": "x", "idempotencyKey": "a"})
		try("goals", "create_goal", object{"cwd": w.work, "objective": "x", "mode": "plan", "idempotencyKey": "b"})
		try("full", "create_goal", object{"cwd": w.work, "objective": "x", "mode": "edit", "idempotencyKey": "c"})
		try("full", "create_goal", object{"sessionId": editing.SessionID, "objective": "x", "idempotencyKey": "d"})
		try("full", "create_goal", object{"cwd": w.work, "objective": "x", "grants": []any{object{"kind": "edit"}}, "idempotencyKey": "g"})
		try("goals", "send_message", object{"sessionId": session, "text": "x", "idempotencyKey": "e"})
		try("goals", "update_goal", object{"goalId": g.GoalID, "action": "revise", "reason": "x"})
		try("full", "update_goal", object{"goalId": g.GoalID, "action": "waive", "requirementId": "r", "reason": "x"})
		try("full", "update_goal", object{"goalId": g.GoalID, "action": "budget", "budget": "none"})
		try("full", "settle_effect", object{"effectId": open.Effect.EffectID, "happened": true})
		if setting != "full" {
			try("full", "answer_approval", object{"approvalId": open.ApprovalID, "option": "allow_once"})
			if p := c.approvals(session); len(p) != 1 || p[0].ApprovalID != open.ApprovalID {
				t.Errorf("with %q the question is now %+v", setting, p)
			}
		}
	}
}

// The setting comes from the environment too; a wrong one is a usage error, before anything is served.
func TestAuthority_Setting(t *testing.T) {
	w := newWorld(t, nil)
	c := launch(t, append(w.env(), "HOLDFAST_MCP_AUTHORITY=read", "HOLDFAST_MCP_TRUST="+w.work+string(filepath.ListSeparator)+"/none"))
	c.refused("create with read", "create_goal", object{"cwd": w.work, "objective": "x"}, "no_authority")
	c = launch(t, append(w.env(), "HOLDFAST_MCP_AUTHORITY=read", "HOLDFAST_MCP_TRUST="+w.work+string(filepath.ListSeparator)+"/none"), "--authority", "goals")
	c.create(object{"cwd": w.work})
	for _, args := range [][]string{{"--authority", "root"}, {"--trust", "here"}, {"--trust", ""}, {"more"}} {
		a := harness.Start(t, harness.Options{Binary: binary(t), Args: append([]string{"mcp"}, args...), Env: w.env(), Invalid: true})
		if err := a.Wait(); err == nil || err.Error() != "exit status 2" {
			t.Errorf("%v: ended with %v", args, err)
		}
		if a.Stderr() == "" || len(a.Log()) != 0 {
			t.Errorf("%v: it says %q and serves %v", args, a.Stderr(), a.Log())
		}
	}
}

// The user's configuration sets both as well; the command line and the environment are nearer. A file with a mistake is not passed over:
// it may hold the narrower setting.
func TestAuthority_Configuration(t *testing.T) {
	w := newWorld(t, nil)
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	configure := func(text string) {
		if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("[mcp]\nauthority = \"read\"\ntrusted = [" + strconv.Quote(w.work) + "]\n")
	c := launch(t, w.env())
	c.refused("create with read", "create_goal", object{"cwd": w.work, "objective": "x"}, "no_authority")
	c = launch(t, w.env(), "--authority", "goals")
	c.create(object{"cwd": w.work})
	configure("[mcp]\nauthority = \"everything\"\n")
	a := harness.Start(t, harness.Options{Binary: binary(t), Args: []string{"mcp"}, Env: w.env(), Invalid: true})
	if err := a.Wait(); err == nil || err.Error() != "exit status 1" || !strings.Contains(a.Stderr(), "config.toml") || len(a.Log()) != 0 {
		t.Errorf("ended with %v: %q", err, a.Stderr())
	}
}

// Work begins only in directories that the user trusts. Links do not lead around that.
func TestTrust_Directories(t *testing.T) {
	w := newWorld(t, nil)
	dir := filepath.Dir(w.work)
	for _, name := range []string{"work/sub", "workshop", "opened/sub", "extra", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"work/out": "other", "in": "work", "open-link": "opened"} {
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "work/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.serve()
	try := func(name string, trusted bool) {
		t.Helper()
		args := object{"cwd": filepath.Join(dir, name), "objective": "x"}
		if trusted {
			c.must("create_goal", args, nil)
		} else {
			c.refused(name, "create_goal", args, "untrusted_directory", "cwd", "--trust")
		}
	}
	try("work", true)
	try("work/sub", true)
	try("in", true)
	try("in/sub", true)
	try("work/out", false)
	try("workshop", false)
	try(".", false)
	try("opened", false)
	try("extra", false)
	c.refused("the whole disk", "create_goal", object{"cwd": "/", "objective": "x"}, "untrusted_directory")
	c.refused("a file", "create_goal", object{"cwd": filepath.Join(dir, "work/file"), "objective": "x"}, "invalid_argument", "not a directory")
	a := w.editor(nil)
	a.Must("session/new", object{"cwd": filepath.Join(dir, "open-link"), "additionalDirectories": []string{filepath.Join(dir, "extra")}, "mcpServers": []any{}}, nil)
	try("opened", true)
	try("opened/sub", true)
	try("extra", true)
	try("other", false)
	a.NewSession("/")
	try("other", false)
	try("workshop", false)
}

// A program finds other words for what it has set itself, and not for what the user has set, or has revised since.
func TestAuthority_SparesTheUsersWords(t *testing.T) {
	w := newWorld(t, nil)
	a := w.editor(func(json.RawMessage) string { return "" })
	session := a.NewSession(w.work)
	a.Must("create_goal", object{"sessionId": session, "objective": "Mine."}, nil)
	c := launch(t, w.env())
	weaker := object{"sessionId": session, "action": "revise", "objective": "Less.", "requirements": []any{}, "reason": "easier"}
	c.refused("revise", "update_goal", weaker, "no_authority", "full")
	var r struct{ Goal goal }
	c.must("get_goal", object{"sessionId": session}, &r)
	if r.Goal.Objective != "Mine." || r.Goal.Revision != 1 {
		t.Errorf("it is %+v", r.Goal)
	}
	launch(t, w.env(), "--authority", "full").must("update_goal", weaker, &r)
	a.Must("update_goal", object{"sessionId": session, "action": "end"}, nil)
	c.must("create_goal", object{"sessionId": session, "objective": "Its own."}, &r)
	c.must("update_goal", weaker, &r)
	if r.Goal.Objective != "Less." {
		t.Errorf("it is %+v", r.Goal)
	}
	a.Must("update_goal", object{"sessionId": session, "action": "revise", "objective": "More.", "reason": "it is mine now"}, nil)
	c.refused("revise what the user revised", "update_goal", weaker, "no_authority", "full")
}

// A program takes back its own pause, and not what the user has stopped.
func TestAuthority_SparesStops(t *testing.T) {
	w := newWorld(t, nil)
	a := w.editor(func(json.RawMessage) string { return "" })
	session := a.NewSession(w.work)
	a.Must("create_goal", object{"sessionId": session, "objective": "Stay stopped."}, nil)
	a.Must("update_goal", object{"sessionId": session, "action": "pause"}, nil)
	c := launch(t, w.env())
	c.refused("resume", "update_goal", object{"sessionId": session, "action": "resume"}, "no_authority", "full")
	c.refused("replace", "create_goal", object{"sessionId": session, "objective": "Another.", "replace": true}, "no_authority", "full")
	c.must("update_goal", object{"sessionId": session, "action": "pause"}, nil) // it does not become the client's pause
	c.refused("resume after a pause of its own", "update_goal", object{"sessionId": session, "action": "resume"}, "no_authority", "full")
	a.Must("update_goal", object{"sessionId": session, "action": "resume"}, nil)
	var r struct{ Goal goal }
	c.must("update_goal", object{"sessionId": session, "action": "pause"}, &r)
	if r.Goal.ReasonCode != "client_paused" {
		t.Errorf("it is %+v", r.Goal)
	}
	c.must("update_goal", object{"sessionId": session, "action": "resume"}, &r)
	if r.Goal.Status != "active" {
		t.Errorf("it is %+v", r.Goal)
	}
	a.Notify("session/cancel", object{"sessionId": session})
	harness.Eventually(t, "the stop is stored", func() bool { c.must("get_goal", object{"sessionId": session}, &r); return r.Goal.Status == "paused" })
	c.refused("resume after a cancel", "update_goal", object{"sessionId": session, "action": "resume"}, "no_authority", "full")
	full := launch(t, w.env(), "--authority", "full")
	full.must("update_goal", object{"sessionId": session, "action": "resume"}, &r)
	if r.Goal.Status != "active" {
		t.Errorf("with full it is %+v", r.Goal)
	}
}
