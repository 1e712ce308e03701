package windows_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// server is an MCP server of an editor with the tool act, which answers "acted".
func (w *world) server(name string) map[string]any {
	w.t.Helper()
	bin := filepath.Join(w.dir, "mcpserver")
	if _, err := os.Stat(bin); err != nil {
		if out, err := exec.Command("go", "build", "-o", bin, "holdfast/conformance/mcpserver").CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
	plan, err := json.Marshal(map[string]any{"log": filepath.Join(w.dir, name+".log"),
		"tools": []any{map[string]any{"name": "act", "description": "Acts.", "inputSchema": map[string]any{"type": "object"}}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return map[string]any{"name": name, "command": bin, "args": []string{"-plan", string(plan)}, "env": []any{}}
}

func (w *world) acted(name string) int {
	b, _ := os.ReadFile(filepath.Join(w.dir, name+".log")) // it may not have been called
	return strings.Count(string(b), "\n")
}

var acts = script{"act": {{Name: "mcp__x__act", Args: `{"text":"acted"}`}}, "two": {{Name: "mcp__y__act", Args: `{"text":"acted"}`}}}

// A second window that brings no servers, or others, takes none from the owner; what only one window has waits for that window.
func TestWindows_ServersStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.editor("ann", acts)
	b := a.like("bob")
	a.launch()
	var r struct{ SessionID string }
	a.Must("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{w.server("x")}}, &r)
	session := r.SessionID
	a.say(session, "act")
	b.launch().load(session, w.server("y"))
	a.say(session, "act")
	if n := w.acted("x"); n != 2 {
		t.Fatalf("ann's server was called %d times", n)
	}
	// Ann's window goes. The session comes to bob's, which has another server.
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	harness.Eventually(t, "bob's process has it", func() bool { return b.view(session).OwnerPid == b.PID() })
	b.say(session, "two")
	if n := w.acted("y"); n != 1 {
		t.Errorf("bob's server was called %d times", n)
	}
	b.Prompt(session, "act")
	if v := b.waits(session, "mcp_server_missing"); !strings.Contains(v.Reason, "(x)") {
		t.Errorf("it says %q", v.Reason)
	}
	// Whoever goes on after a crash knows both.
	b.Kill()
	c := a.like("cleo").launch()
	c.load(session, w.server("x"), w.server("y"))
	harness.Eventually(t, "it goes on where the server is", func() bool { return w.acted("x") == 3 })
	harness.Eventually(t, "it ends", func() bool { return c.view(session).State == "idle" })
	var offered []string
	for _, tool := range last(a).Tools {
		offered = append(offered, tool.Name)
	}
	if !strings.Contains(strings.Join(offered, " "), "mcp__y__act") {
		t.Errorf("the model was offered %v", offered)
	}
}

func last(e *editor) fakemodel.Request {
	all := e.model.Requests()
	return all[len(all)-1]
}
