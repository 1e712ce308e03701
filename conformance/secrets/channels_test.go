package secrets_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Keys come in by every channel; none goes out by any other than its own.
func TestSecrets_EveryChannel(t *testing.T) {
	w := newWorld(t)
	w.put("notes.txt", "first\naws = "+fileKey+"\ntoken: "+envKey+"\nlast\n")
	w.put("id_test", "-----BEGIN RSA PRIVATE KEY-----\n"+pemLine+"\nAbCdEf0123456789AbCdEf0123456789AbCdEf012345678\n-----END RSA PRIVATE KEY-----\n")
	w.put("half1", envKey[:9])
	w.put("half2", envKey[9:]+"\n")
	calls := []fakemodel.Call{
		call("read", m{"path": "notes.txt"}), call("read", m{"path": "id_test", "offset": 2, "limit": 1}), call("grep", m{"pattern": "MII|aws|token"}),
		call("shell", m{"command": "env; cat notes.txt id_test"}),
		call("shell", m{"command": "cat half1; sleep 1; cat half2; seq 1 200000 | head -c 300000 | tr -d '\\n'; cat notes.txt"}),
		call("shell", m{"command": "env | grep --color=always TOKEN; cat notes.txt", "pty": true}),
		call("shell", m{"command": "cat half1 half2 | tr -d '\\n'; sleep 1; env", "background": true}),
		call("shell_output", m{"id": "bg1", "wait_seconds": 20}), call("shell_output", m{"id": "bg1", "offset": 4}),
		call("shell", m{"command": "echo " + envKey}), call("write", m{"path": "made.txt", "content": "k=" + providerKey + "\n"}),
		call("mcp__x__act", m{"do": "env"}), call("mcp__x__act", m{"do": "echo", "text": envKey}),
		call("edit", m{"path": "notes.txt", "edits": []m{{"old": "first", "new": "1st"}}}),
	}
	last := fakemodel.Text("The key is ", providerKey[:5], providerKey[5:20], providerKey[20:], ", the token ", envKey[:3], envKey[3:], ".")
	last.Steps = append([]fakemodel.Step{{Reasoning: "I see " + pastedKey[:7]}, {Reasoning: pastedKey[7:] + "."}}, last.Steps...)
	w.calls(last, calls...)
	inner := w.reply
	w.reply = func(n int, r fakemodel.Request) fakemodel.Reply {
		switch n {
		case 2:
			return fakemodel.Error(503, "refused; you sent Authorization: Bearer "+providerKey+" and x-other: Bearer "+echoedKey, "overloaded").With("Retry-After", "0")
		case 3: // a stream that breaks off inside a key
			cut := fakemodel.Text("so far " + providerKey[:30])
			cut.Steps = append(cut.Steps, fakemodel.ErrorEvent("Bearer "+echoedKey+" / "+providerKey, "server_error", "x"))
			return cut
		}
		return inner(n, r)
	}
	a := w.launch()
	var s struct{ SessionID string }
	a.Must("session/new", m{"cwd": w.work, "mcpServers": []any{m{"name": "x", "command": serverBinary(t), "args": []string{"-plan", "{}"},
		"env": []m{{"name": "UPSTREAM_TOKEN", "value": mcpKey}}}}}, &s)
	res, rerr := a.Call("session/prompt", m{"sessionId": s.SessionID, "prompt": []m{{"type": "text", "text": "Use " + pastedKey + " and look around"}}})
	if rerr != nil || !strings.Contains(string(res), "end_turn") {
		t.Fatalf("the prompt ended with %s, %v", res, rerr)
	}
	if made := count(w, mask); made < 10 {
		t.Errorf("the model saw a mask %d times; the story did not happen", made)
	}
	if got := a.Text(s.SessionID); !strings.Contains(got, "The key is "+mask+", the token "+mask+".") {
		t.Errorf("the editor was shown %q", got)
	}
	b := w.launch()
	b.Must("session/load", m{"sessionId": s.SessionID, "cwd": w.work, "mcpServers": []any{}}, nil)
	for _, args := range [][]string{{"sessions", "show", s.SessionID, "--json"}, {"sessions", "show", s.SessionID}, {"sessions", "list", "--json"}, {"effects", "list", "--json"},
		{"ps", "--json"}, {"doctor", "--json"}, {"doctor"}, {"sessions", "diff", s.SessionID}, {"sessions", "diff", s.SessionID, "--json"}, {"goals", "list", "--json"}} {
		out, _ := w.holdfast("", args...)
		search(t, "the output of "+strings.Join(args, " "), out)
	}
	for _, g := range []*harness.Agent{a, b} {
		_ = g.CloseInput() // it may be gone
		_ = g.Wait()
	}
	w.searchHome()
	w.searchTraffic(a, b)
	if got := w.read("notes.txt"); got != "1st\naws = "+fileKey+"\ntoken: "+envKey+"\nlast\n" {
		t.Errorf("the file became %q", got)
	}
}

// count says how often a text is in what the model was last asked.
func count(w *world, text string) int {
	all := w.requests()
	body := all[len(all)-1].body
	var plain any
	if err := json.Unmarshal([]byte(body), &plain); err != nil {
		w.t.Fatal(err)
	}
	return strings.Count(body, text)
}

// A user who pastes a key is told so in the message, and the key goes nowhere.
func TestSecrets_PastedKeyIsSaidToBeHidden(t *testing.T) {
	w := newWorld(t)
	w.calls(fakemodel.Text("ok"))
	a := w.launch()
	a.Prompt(a.NewSession(w.work), "deploy with "+pastedKey)
	harness.Eventually(t, "the model is asked", func() bool { return len(w.requests()) > 0 })
	if body := w.requests()[0].body; !strings.Contains(body, "deploy with "+mask) || !strings.Contains(body, "A secret in this message was hidden") {
		t.Errorf("the model was asked %s", body)
	}
}
