package servers_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// configure writes the user's configuration.
func (w *world) configure(text string) {
	w.t.Helper()
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func TestConfig_ServersAreSharedInADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__mine__act", act("env", 0, ""))}, "stop": nil}))
	w.env = []string{"HANDED_ON=handed-on-value", "KEPT_BACK=kept-back-value"}
	w.configure(fmt.Sprintf(`
[mcp.servers.mine]
command = %q
args = ["-plan", %q]
env = { SET_HERE = "set-here-value" }
env_from = ["HANDED_ON", "NOT_THERE"]
[mcp.servers.off]
command = %q
args = ["-plan", %q]
disabled = true
`, hostileBinary(t), w.planned("mine", nil), hostileBinary(t), w.planned("off", nil)))
	a := w.start("")
	one, two := w.open(a), w.open(a)
	for _, session := range []string{one, two} {
		w.prompt(a, session, "go")
		got := w.result()
		for _, want := range []string{"SET_HERE=set-here-value", "HANDED_ON=handed-on-value"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in %q", want, got)
			}
		}
		for _, not := range []string{"kept-back-value", modelKey, "NOT_THERE"} {
			if strings.Contains(got, not) {
				t.Errorf("%s is in %q", not, got)
			}
		}
	}
	if n := len(w.lives("mine")); n != 1 {
		t.Errorf("%d processes for one directory", n)
	}
	if n := len(w.lives("off")); n != 0 {
		t.Errorf("%d processes of a server that is disabled", n)
	}
	a.Must("session/close", map[string]any{"sessionId": one}, nil)
	w.prompt(a, two, "go")
	if n := len(w.lives("mine")); n != 1 {
		t.Errorf("%d processes after one of two sessions was closed", n)
	}
	elsewhere := filepath.Join(w.dir, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	w.prompt(a, a.NewSession(elsewhere), "go")
	if n := len(w.lives("mine")); n != 2 {
		t.Errorf("%d processes for two directories", n)
	}
}

// What the editor supplies under a name wins over the configuration.
func TestConfig_TheEditorsServerWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "here"))}}))
	w.configure(fmt.Sprintf("[mcp.servers.x]\ncommand = %q\nargs = [\"-plan\", %q]\n", hostileBinary(t), w.planned("configured", nil)))
	w.hostile("x", nil)
	a := w.start("")
	w.prompt(a, w.open(a), "go")
	if n, m := len(w.calls("x")), len(w.lives("configured")); n != 1 || m != 0 {
		t.Errorf("%d calls of the editor's server, %d lives of the configured one", n, m)
	}
}

// A Goal goes on after a crash with a configured server, because it needs nobody.
func TestConfig_GoalGoesOnUnopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing)
	w.configure(fmt.Sprintf("[mcp.servers.x]\ncommand = %q\nargs = [\"-plan\", %q]\n", hostileBinary(t), w.planned("x", nil)))
	a := w.start("effect.dispatched:before")
	session := w.open(a)
	a.Begin("create_goal", map[string]any{"sessionId": session, "objective": "Use the tool."})
	_ = a.Wait()
	w.fired(1, "effect.dispatched:before")
	_ = w.start("")
	harness.Eventually(t, "the goal goes on", func() bool { return strings.Contains(w.result(), "acted") })
	if n := len(w.calls("x")); n != 1 {
		t.Errorf("the server received %d calls", n)
	}
}

func TestConfig_BrokenFileBreaksNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "here"))}, "next": nil}))
	w.configure("[mcp.servers.mine]\ncommand = \"/bin/cat\"\n\n[mcp.servers.other\n")
	w.hostile("x", nil)
	w.capabilities = noticing
	a := w.start("")
	session := w.open(a)
	w.noticed(a, session, "line 4")
	w.prompt(a, session, "go")
	if got := w.result(); got != "here" {
		t.Errorf("the answer is %q", got)
	}
	if slices.Contains(w.offered(), "mcp__mine__act") {
		t.Error("half of a broken file is used")
	}
	a.Kill()
	w.capabilities = nil // the same for an editor that shows no notices
	b := w.replay(session)
	w.prompt(b, session, "next")
	if got := b.Text(session); !strings.Contains(got, "line 4") {
		t.Errorf("the agent said %q", got)
	}
}

// Values that may be secret are in nothing that Holdfast keeps or says.
func TestSecrets_StayOut(t *testing.T) {
	t.Parallel()
	secrets := []string{"env-secret-1111", "arg-secret-2222", "url-secret-3333", "conf-secret-4444", "passed-secret-5555", "starts-secret-6666", modelKey}
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("stderr", 10, "")), tool("mcp__mine__act", act("exit", 3, ""))}, "next": nil}))
	w.capabilities = noticing
	w.env = []string{"PASSED=passed-secret-5555"}
	w.configure(fmt.Sprintf(`
[mcp.servers.mine]
command = "/bin/sh"
args = ["-c", 'exec "$0" -plan "$1"', %q, %q, "--api-key", "conf-secret-4444"]
env_from = ["PASSED"]
`, hostileBinary(t), w.planned("mine", plan{"say": "I know passed-secret-5555"})))
	w.serve("x", "/bin/sh", "-c", `echo "I know $TOKEN" >&2; exec "$0" -plan "$1"`, hostileBinary(t), w.planned("x", nil),
		"--token=arg-secret-2222", "https://user:url-secret-3333@example.org/")
	w.servers[0]["env"] = []any{map[string]string{"name": "TOKEN", "value": "env-secret-1111"}}
	w.serve("dies", "/bin/sh", "-c", `echo "no: $TOKEN" >&2; echo "$TOKEN"; exit 4`)
	w.servers[1]["env"] = []any{map[string]string{"name": "TOKEN", "value": "starts-secret-6666"}}
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "go")
	w.prompt(a, session, "next")
	if len(w.calls("x")) != 1 || len(w.calls("mine")) != 1 {
		t.Fatalf("the calls did not reach the servers: %v %v", w.calls("x"), w.calls("mine"))
	}
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	if err := a.CloseInput(); err != nil {
		t.Error(err)
	}
	said := a.Stderr()
	for _, m := range a.Log() {
		said += string(m.Raw)
	}
	for _, r := range w.model.Requests() {
		said += string(r.Body)
	}
	kept := 0
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() || filepath.Base(path) == "config.toml" {
			return err
		}
		b, err := os.ReadFile(path)
		kept += len(b)
		for _, s := range secrets {
			if strings.Contains(string(b), s) {
				t.Errorf("%s is in %s", s, path)
			}
		}
		return err
	})
	if err != nil || kept < 10_000 || !strings.Contains(said, "mcp__x__act") {
		t.Fatalf("nothing was looked at: %v, %d bytes", err, kept)
	}
	for _, s := range secrets {
		if strings.Contains(said, s) {
			t.Errorf("%s was said", s)
		}
	}
	if !w.logged("I know") {
		t.Error("the log does not have what the servers wrote")
	}
}
