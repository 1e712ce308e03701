package secrets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// What has not passed any other border: names of folders and descriptions of tools go straight to the model and to the store, and an error about the configuration straight to the log and into the question.
func TestSecrets_EachBorderByItself(t *testing.T) {
	w := newWorld(t)
	w.work = filepath.Join(w.work, "sk-run-a1b2c3d4e5f6a7b8c9") // a name that looks like a key is a name all the same
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[recovery]\nauto = \""+pastedKey+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(w.dir, "of-"+envKey)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	w.calls(fakemodel.Text("done"), call("write", m{"path": "made", "content": "x\n"}), call("glob", m{"pattern": "**", "path": folder}))
	a := harness.Start(t, harness.Options{Binary: builtBinary(t), Env: w.env, Incoming: func(a *harness.Agent, msg harness.Message) {
		if msg.Method == "session/request_permission" {
			a.Answer(msg.ID, m{"outcome": m{"outcome": "selected", "optionId": "allow_once"}})
		}
	}})
	a.Must("initialize", m{"protocolVersion": 1, "clientCapabilities": m{}}, nil)
	var s struct{ SessionID string }
	a.Must("session/new", m{"cwd": w.work, "mcpServers": []any{m{"name": "x", "command": serverBinary(t),
		"args": []string{"-plan", `{"tools":[{"name":"act","description":"acts as ` + mcpKey + `","inputSchema":{"type":"object"}}]}`},
		"env":  []m{{"name": "UPSTREAM_TOKEN", "value": mcpKey}}}}}, &s)
	if res := a.Await(a.Prompt(s.SessionID, "look at "+folder)); !strings.Contains(string(res.Raw), "end_turn") {
		t.Fatalf("the prompt ended with %s", res.Raw)
	}
	if len(w.requests()) == 0 {
		t.Fatal("the model was asked nothing")
	}
	if body := w.requests()[0].body; !strings.Contains(body, "acts as "+mask) || strings.Contains(body, "sk-run-a1b2") {
		t.Errorf("the model was told %.3000s", body)
	}
	if w.read("made") != "x\n" {
		t.Error("nothing was written")
	}
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err != nil || !strings.Contains(string(b), `recovery.auto is`) {
		t.Errorf("the error is not in the log: %v %s", err, b)
	}
	for _, args := range [][]string{{"sessions", "show", s.SessionID, "--json"}, {"effects", "list", "--json"}, {"ps", "--json"}, {"doctor"}} {
		out, _ := w.holdfast("", args...)
		search(t, "the output of "+strings.Join(args, " "), out)
	}
	w.searchHome("config.toml")
	w.searchTraffic(a)
}
