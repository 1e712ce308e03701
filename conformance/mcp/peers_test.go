package mcp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// inspector runs the official Inspector without its window, and returns its output and exit code.
func (w *world) inspector(serverArgs []string, args ...string) (out, errs string, code int) {
	w.t.Helper()
	dir := harness.Peers(w.t, "@modelcontextprotocol/inspector")
	line := append([]string{filepath.Join(dir, "clients", "launcher", "build", "index.js"), "--cli", binary(w.t), "mcp"}, serverArgs...)
	for _, kv := range w.env() { // it does not pass its own environment on
		args = append(args, "-e", kv)
	}
	cmd := exec.Command("node", append(line, append(args, "--format", "json", "-q")...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.t.TempDir()}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

var eras = []string{"legacy", "auto", "modern"}

// The Inspector lists the tools in every era, and finds nothing in their schemas that some client could not use.
func TestInspector_Tools(t *testing.T) {
	w := newWorld(t, nil)
	for _, era := range eras {
		out, errs, code := w.inspector(nil, "--method", "tools/list", "--protocol-era", era, "--strict")
		if code != 0 || strings.TrimSpace(errs) != "" {
			t.Errorf("%s: exit %d, %s", era, code, errs)
		}
		var r struct {
			Result struct{ Tools []struct{ Name string } }
		}
		decode(t, json.RawMessage(out), &r)
		var names []string
		for _, tool := range r.Result.Tools {
			names = append(names, tool.Name)
		}
		if want := []string{"answer_approval", "create_goal", "get_goal", "get_session", "list_approvals", "list_effects", "list_goals", "list_sessions",
			"send_message", "settle_effect", "update_goal"}; !slices.Equal(names, want) {
			t.Errorf("%s: %v", era, names)
		}
	}
	if _, err := os.Stat(filepath.Join(w.home, "holdfast.db")); err == nil {
		t.Error("listing tools made a store")
	}
}

// It creates a goal in every era; the same key is the same goal in all of them. A refused call has an exit code of its own.
func TestInspector_Calls(t *testing.T) {
	w := newWorld(t, nil)
	ids := map[string]bool{}
	for _, era := range eras {
		args := encode(object{"cwd": w.work, "objective": "Produce out.txt.", "idempotencyKey": "k"})
		out, errs, code := w.inspector([]string{"--trust", w.work}, "--method", "tools/call", "--tool-name", "create_goal", "--tool-args-json", args, "--protocol-era", era)
		if code != 0 {
			t.Fatalf("%s: exit %d, %s %s", era, code, errs, out)
		}
		var r struct {
			Result struct{ StructuredContent changed }
		}
		decode(t, json.RawMessage(out), &r)
		ids[r.Result.StructuredContent.Goal.GoalID] = true
		out, _, code = w.inspector(nil, "--method", "tools/call", "--tool-name", "get_goal", "--tool-args-json", `{"goalId":"none"}`, "--protocol-era", era)
		if code != 5 || !strings.Contains(out, "not_found") {
			t.Errorf("%s: a refused call: exit %d, %s", era, code, out)
		}
	}
	if len(ids) != 1 {
		t.Errorf("one key is %d goals", len(ids))
	}
	if found := w.serve().collect("list_goals", object{}, 200); len(found) != 1 || !ids[found[0]] {
		t.Errorf("the store has %v, created was %v", found, ids)
	}
}

// checking plays a worker that only looks whether out.txt is there, and offers it.
func checking(r fakemodel.Request) fakemodel.Reply {
	reply := pursuing(r)
	for i, c := range reply.Calls {
		if c.Name == "write" {
			reply.Calls[i] = fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`}
		}
	}
	if len(r.Results()) == 1 && len(r.Tools) > 0 && !slices.ContainsFunc(r.Tools, func(t fakemodel.Tool) bool { return t.Name == "submit_review" }) {
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"out.txt is there"}`})
	}
	return reply
}

// The official clients of both lines hand over a goal in every era. An editor's agent executes it; the clients hold every result against
// its output schema.
func TestClients_TypeScript(t *testing.T) {
	harness.Peers(t, "@modelcontextprotocol/client")
	harness.Peers(t, "@modelcontextprotocol/sdk")
	w := newWorld(t, checking)
	if err := os.WriteFile(filepath.Join(w.work, "out.txt"), []byte("result\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.editor(nil)
	cmd := exec.Command("node", "clients.mjs", binary(t), w.work)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var all map[string]struct {
		Version, Goal, Again, Status, Stderr string
		Tools, Phases, Listed, Refused       []string
		Items, Sessions, Effects, Approvals  int
	}
	decode(t, out, &all)
	if len(all) != 4 {
		t.Fatalf("%s", out)
	}
	for name, r := range all {
		if r.Version != "holdfast" || len(r.Tools) != 11 || r.Stderr != "" {
			t.Errorf("%s: %+v", name, r)
		}
		if r.Status != "achieved" || r.Again != r.Goal || !slices.Contains(r.Listed, r.Goal) || r.Items == 0 || r.Sessions != 1 || r.Effects == 0 || r.Approvals != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if want := []string{"not_allowed", "not_found", "key_reused"}; !slices.Equal(r.Refused, want) {
			t.Errorf("%s: refused with %v", name, r.Refused)
		}
	}
	var list struct{ Sessions []any }
	if a.Must("session/list", object{}, &list); len(list.Sessions) != 4 {
		t.Errorf("the editor lists %d sessions", len(list.Sessions))
	}
}
