package secrets_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const privateKey = "-----BEGIN RSA PRIVATE KEY-----\n" + pemLine + "\nAbCdEf0123456789AbCdEf0123456789AbCdEf012345678\n-----END RSA PRIVATE KEY-----\n"

// wide is a text in UTF-16 with a mark.
func wide(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// long is a text that the journal keeps apart from its records, with keys at its beginning, in its middle and at its end.
func long() string {
	part := strings.Repeat("a line without anything in it\n", 1500)
	return "token = " + envKey + "\n" + part + "aws = " + fileKey + "\n" + part + privateKey + "last = " + envKey + "\n"
}

// searchWide looks for keys in UTF-16 in everything that is left.
func (w *world) searchWide() {
	w.t.Helper()
	err := filepath.WalkDir(w.home, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for name, key := range allKeys {
			if strings.Contains(string(b), wide(key[:len(key)*3/5])[2:]) {
				w.t.Errorf("the key of the channel %q is in %s in UTF-16", name, path)
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// Files of every size and encoding are edited beside their secrets: what is kept, shown and told of them has masks, the files have none, and an
// undo puts back the files themselves.
func TestSecrets_KeptContentsAndDiffs(t *testing.T) {
	w := newWorld(t)
	if out, err := git(w.work, "init", "-q"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	files := map[string]string{"long": long(), "wide": wide("token = " + envKey + "\ncolor = red\n"), "pem": privateKey + "color = red\n", "cmd": "old " + envKey + "\n"}
	for name, text := range files {
		w.put(name, text)
	}
	w.put("gone", "token = "+envKey+"\n"+strings.Repeat("x", 20<<10)+"\n")
	calls := []fakemodel.Call{
		call("read", m{"path": "long"}), call("read", m{"path": "wide"}), call("read", m{"path": "pem", "offset": 2, "limit": 1}),
		call("grep", m{"pattern": "MII|token|last", "context": 2}), call("grep", m{"pattern": pemLine[:6], "literal": true, "path": "pem"}),
		call("grep", m{"pattern": "env-7.*", "output": "count"}),
		call("edit", m{"path": "long", "edits": []m{{"old": "aws = ", "new": "AWS = "}}}),
		call("edit", m{"path": "wide", "edits": []m{{"old": "color = red", "new": "color = blue"}}}),
		call("edit", m{"path": "pem", "edits": []m{{"old": "color = red", "new": "color = blue"}}}),
		call("edit", m{"path": "pem", "edits": []m{{"old": "MIIEowIBAAKCAQEAx5555", "new": "x"}}}),
		call("apply_patch", m{"patch": "--- a/pem\n+++ b/pem\n@@ -1,2 +1,2 @@\n -----BEGIN RSA PRIVATE KEY-----\n-MIIE\n+MIIF\n"}),
		call("move", m{"from": "gone", "to": "moved"}), call("delete", m{"paths": []string{"moved"}}),
		call("shell", m{"command": "cp cmd made; sed -i s/old/new/ cmd; echo $MY_SERVICE_TOKEN | rev | rev | tee -a cmd"}),
		call("shell", m{"command": "cat long"}),
	}
	w.calls(fakemodel.Text("done"), calls...)
	a := w.launch()
	session := a.NewSession(w.work)
	res := a.Await(a.Prompt(session, "edit them"))
	if !strings.Contains(string(res.Raw), "end_turn") {
		t.Fatalf("the prompt ended with %s", res.Raw)
	}
	for name, want := range map[string]string{"long": strings.Replace(files["long"], "aws = ", "AWS = ", 1), "wide": wide("token = " + envKey + "\ncolor = blue\n"),
		"cmd": "new " + envKey + "\n" + envKey + "\n"} {
		if got := w.read(name); got != want {
			t.Errorf("%s became %.200q", name, got)
		}
	}
	results := w.lastResults()
	for i, want := range map[int]string{0: "token = " + mask, 1: "token = " + mask, 2: "2\t" + mask, 3: "long:1: token = " + mask, 4: "[no match]", 5: "[no match]"} {
		if !strings.Contains(results[i], want) {
			t.Errorf("call %d returned %.300q, without %q", i, results[i], want)
		}
	}
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	w.printed(session)
	w.searchHome()
	w.searchWide()
	w.searchTraffic(a)
	if out, code := w.holdfast("", "sessions", "undo", session); code != 0 {
		t.Fatalf("undo: %d %s", code, out)
	}
	for name, want := range files {
		if got := w.read(name); got != want {
			t.Errorf("after the undo %s is %.300q", name, got)
		}
	}
	w.searchHome()
	w.searchWide()
}

// lastResults are the results that the model was shown last, in order.
func (w *world) lastResults() (out []string) {
	reqs := w.model.Requests()
	for _, r := range reqs[len(reqs)-1].Results() {
		out = append(out, r.Content)
	}
	return out
}

// printed searches what the command line prints of a session and of each of its calls.
func (w *world) printed(session string) {
	w.t.Helper()
	var list []struct{ EffectID string }
	out, _ := w.holdfast("", "effects", "list", "--json")
	decode(w.t, out, &list)
	if len(list) < 4 {
		w.t.Errorf("there are %d calls in %.400s", len(list), out)
	}
	all := [][]string{{"sessions", "diff", session}, {"sessions", "diff", session, "--json"}, {"sessions", "show", session}, {"sessions", "show", session, "--json"},
		{"sessions", "list"}, {"doctor", "--deep"}}
	for _, e := range list {
		all = append(all, []string{"effects", "show", e.EffectID}, []string{"effects", "output", e.EffectID})
	}
	masks := 0
	for _, args := range all {
		out, _ := w.holdfast("", args...)
		search(w.t, "the output of "+strings.Join(args, " "), out)
		masks += strings.Count(out, mask)
	}
	if diff, _ := w.holdfast("", all[0]...); !strings.Contains(diff, "+new "+mask) || !strings.Contains(diff, "+AWS = "+mask) {
		w.t.Errorf("the diff is %.2000s", diff)
	}
	if masks < 10 {
		w.t.Errorf("%d masks were printed", masks)
	}
}

// No tool that changes anything takes a mask, whichever of its arguments holds it.
func TestSecrets_EveryWriterRefusesMasks(t *testing.T) {
	w := newWorld(t)
	w.put("conf", "token = "+envKey+"\n")
	calls := []fakemodel.Call{
		call("apply_patch", m{"patch": "--- a/conf\n+++ b/conf\n@@ -1 +1 @@\n-token = " + mask + "\n+token = " + mask + " # ours\n"}),
		call("apply_patch", m{"patch": "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+token = " + mask + "\n"}),
		call("write", m{"path": mask, "content": "x\n"}), call("move", m{"from": "conf", "to": mask}), call("delete", m{"paths": []string{mask}}),
		call("shell", m{"command": "echo '[SECRET hidden by Holdfast]'", "background": true}),
	}
	w.calls(fakemodel.Text("done"), calls...)
	a := w.launch()
	a.Await(a.Prompt(a.NewSession(w.work), "edit it"))
	for i, r := range w.lastResults() {
		if !strings.Contains(r, "stands for a secret") {
			t.Errorf("call %d returned %q", i, r)
		}
	}
	if got := w.read("conf"); got != "token = "+envKey+"\n" {
		t.Errorf("the file is %q", got)
	}
	if e, err := os.ReadDir(w.work); err != nil || len(e) != 1 {
		t.Errorf("%v is there, %v", e, err)
	}
}

// What a file holds in the editor is masked like what it holds on disk, and so is what an external server says while it works.
func TestSecrets_BuffersAndProgress(t *testing.T) {
	w := newWorld(t)
	w.put("conf", "on disk\n")
	w.calls(fakemodel.Text("done"), call("read", m{"path": "conf"}),
		call("mcp__x__act", m{"do": "progress", "n": 20, "text": strings.Repeat(".", 480) + "$UPSTREAM_TOKEN"}))
	a := harness.Start(t, harness.Options{Binary: builtBinary(t), Env: w.env, Incoming: func(a *harness.Agent, msg harness.Message) {
		switch msg.Method {
		case "fs/read_text_file":
			a.Answer(msg.ID, m{"content": "unsaved\ntoken = " + envKey + "\n"})
		case "session/request_permission":
			a.Answer(msg.ID, m{"outcome": m{"outcome": "selected", "optionId": "allow_once"}})
		}
	}})
	a.Must("initialize", m{"protocolVersion": 1, "clientCapabilities": m{"fs": m{"readTextFile": true}}}, nil)
	var s struct{ SessionID string }
	a.Must("session/new", m{"cwd": w.work, "mcpServers": []any{m{"name": "x", "command": serverBinary(t), "args": []string{"-plan", "{}"},
		"env": []m{{"name": "UPSTREAM_TOKEN", "value": mcpKey}}}}}, &s)
	a.Await(a.Prompt(s.SessionID, "look"))
	results := w.lastResults()
	if len(results) != 2 || !strings.Contains(results[0], "2\ttoken = "+mask) || !strings.Contains(results[1], "all done") {
		t.Errorf("the calls returned %q", results)
	}
	shown := ""
	for _, u := range a.Updates(s.SessionID) {
		shown += string(u)
	}
	if !strings.Contains(shown, "step 1...") {
		t.Errorf("no progress was shown")
	}
	if strings.Contains(shown, mcpKey[:8]) {
		t.Error("a part of the key is in what was shown")
	}
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	w.searchHome()
	w.searchTraffic(a)
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %.400s", err, text)
	}
}
