package secrets_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A rule cannot be about a secret, because none is stored: it would look as if it held, and cover nothing. One is refused by name, and a
// question about a command with a secret in it offers no answer for ever.
func TestSecrets_InNoRule(t *testing.T) {
	w := newWorld(t)
	out, code := w.holdfast("", "rules", "add", "deny", "--command", "curl -H Authorization:"+pastedKey)
	if search(t, "the refusal", out); code == 0 || !strings.Contains(out, "it holds a secret") {
		t.Errorf("a rule about a secret: %d %s", code, out)
	}
	if out, code = w.holdfast("", "rules", "add", "deny", "--prefix", "curl -H"); code != 0 {
		t.Errorf("a rule without one: %d %s", code, out)
	}
	w.calls(fakemodel.Text("done"), call("shell", m{"command": "echo " + madeUp}), call("shell", m{"command": "touch plain"}))
	var mu sync.Mutex
	var offered []string
	a := harness.Start(t, harness.Options{Binary: builtBinary(t), Env: w.env, Permission: func(params json.RawMessage) string {
		mu.Lock()
		defer mu.Unlock()
		offered = append(offered, string(params))
		return "allow_once"
	}})
	a.Initialize()
	a.Await(a.Prompt(a.NewSession(w.work), "go"))
	if len(offered) != 2 || strings.Contains(offered[0], "allow_always") || !strings.Contains(offered[1], "allow_always") {
		t.Errorf("offered: %v", offered)
	}
}

// madeUp has the shape of a key that nobody knows.
const madeUp = "ghp_MadeUpByTheModel0123456789abcdefABCDEF"
