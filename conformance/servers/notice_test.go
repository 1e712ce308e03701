package servers_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// noticing are the capabilities of an editor that shows notices.
var noticing = map[string]any{"session": map[string]any{"notices": map[string]any{}}}

type raw = json.RawMessage

// notices are what the editor was told apart from the conversation.
func notices(a *harness.Agent, session string) []string {
	var out []string
	for _, b := range a.Updates(session) {
		var u struct{ SessionUpdate, Title string }
		if json.Unmarshal(b, &u) == nil && u.SessionUpdate == "notice" {
			out = append(out, u.Title)
		}
	}
	return out
}

func (w *world) noticed(a *harness.Agent, session, text string) {
	w.t.Helper()
	harness.Eventually(w.t, "a notice of "+text, func() bool { return strings.Contains(strings.Join(notices(a, session), "\n"), text) })
}

// broken are entries that cannot be used, each with what its notice says.
var broken = []struct {
	entry raw
	want  string
}{
	{raw(`{"type":"http","name":"web","url":"http://127.0.0.1:1/mcp","headers":[{"name":"Authorization","value":"Bearer header-secret-0"}]}`), `"web"`},
	{raw(`{"type":"sse","name":"stream","url":"http://127.0.0.1:1/sse","headers":[]}`), `"stream"`},
	{raw(`{"type":"carrier-pigeon","name":"bird"}`), "mcpServers[2]"},
	{raw(`{"name":"nothing"}`), "mcpServers[3]"},
	{raw(`"words"`), "mcpServers[4]"},
	{raw(`null`), "mcpServers[5]"},
	{raw(`{"name":"x","command":"/bin/cat","args":[],"env":[]}`), `the name "x" is used twice`},
	{raw(`{"name":"absent","command":"/nowhere/at/all","args":[],"env":[]}`), `"absent"`},
	{raw(`{"name":"unfound","command":"no-such-command-here","args":[],"env":[]}`), `"unfound"`},
	{raw(`{"name":"","command":"/bin/cat","args":[],"env":[]}`), "no name"},
}

func withBroken(w *world) {
	w.hostile("x", nil)
	for _, b := range broken {
		w.entries = append(w.entries, b.entry)
	}
}

func TestNotice_BrokenEntriesCostOnlyThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "here"))}}))
	w.capabilities = noticing
	withBroken(w)
	a := w.start("")
	session := w.open(a)
	for _, b := range broken {
		w.noticed(a, session, b.want)
	}
	w.prompt(a, session, "go")
	if got := w.result(); got != "here" {
		t.Errorf("the answer is %q", got)
	}
	for _, n := range notices(a, session) {
		if strings.Contains(n, "header-secret-0") {
			t.Errorf("a secret is shown: %s", n)
		}
	}
}

// An editor that does not show notices gets a line inside the next prompt, and nothing before it.
func TestNotice_WithoutTheCapability(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "here"))}, "next": nil}))
	withBroken(w)
	a := w.start("")
	session := w.open(a)
	harness.Eventually(t, "the servers start", func() bool { return len(w.lives("x")) > 0 })
	if got := a.Text(session) + strings.Join(notices(a, session), ""); got != "" {
		t.Errorf("the agent speaks unasked: %q", got)
	}
	w.prompt(a, session, "go")
	text := a.Text(session)
	for _, b := range broken {
		if !strings.Contains(text, b.want) {
			t.Errorf("%s is not named in %q", b.want, text)
		}
	}
	if n := len(notices(a, session)); n != 0 {
		t.Errorf("%d notices for an editor that shows none", n)
	}
	w.prompt(a, session, "next")
	if again := strings.TrimPrefix(a.Text(session), text); strings.Contains(again, "left out") {
		t.Errorf("said again: %q", again)
	}
}

// What becomes known between prompts waits for the next one.
func TestNotice_NeverOutOfTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": nil, "next": nil}))
	w.hostile("x", plan{"tools": []any{raw(goodTool)}, "change_when": w.path("change"), "changed_tools": []any{raw(goodTool), raw(badTool)}})
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "go")
	w.touch("change")
	harness.Eventually(t, "the bad tool is noticed", func() bool { return w.logged("its input schema") })
	a.Must("session/list", map[string]any{}, nil) // whatever is said at once comes before this answer
	if got := a.Text(session); got != "done go\n" {
		t.Errorf("the agent said %q", got)
	}
	w.prompt(a, session, "next")
	if got := a.Text(session); !strings.Contains(got, `"bad"`) {
		t.Errorf("the agent said %q", got)
	}
}

// logged tells whether the log holds a text.
func (w *world) logged(text string) bool {
	b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl"))
	return err == nil && strings.Contains(string(b), text)
}

// A server that ends at once is given up after a few starts, and named.
func TestNotice_ServerThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__y__act", act("ok", 0, "here"))}}))
	w.capabilities = noticing
	w.hostile("x", plan{"exit_at": "start"})
	w.hostile("y", nil)
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "go")
	if got := w.result(); got != "here" {
		t.Errorf("the answer is %q", got)
	}
	w.noticed(a, session, `"x" could not be started`)
	if n := len(w.lives("x")); n < 2 || n > 12 {
		t.Errorf("it was started %d times", n)
	}
}
