package servers_test

import (
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// A standing answer for a server's tool covers every call of that tool, as server and tool were defined; another tool asks, and so does the
// same one once it is defined differently.
func TestRules_ToolOfAServer(t *testing.T) {
	t.Parallel()
	good := func(text string) map[string]any { return map[string]any{"do": "ok", "text": text} }
	w := newWorld(t, follow(turns{"one": {tool("mcp__x__good", good("1"))}, "two": {tool("mcp__x__good", good("2"))}, "three": {tool("mcp__y__good", good("3"))},
		"four": {tool("mcp__x__good", good("4"))}}))
	w.hostile("x", plan{"tools": []any{raw(goodTool)}, "change_when": w.path("change"), "changed_tools": []any{raw(changedTool)}})
	w.hostile("y", plan{"tools": []any{raw(goodTool)}})
	w.choose = func(ask) string { return "allow_always" }
	a := w.start("")
	session := w.open(a)
	for i, step := range []struct {
		prompt string
		asked  int
	}{{"one", 1}, {"two", 1}, {"three", 2}} {
		w.prompt(a, session, step.prompt)
		if n := len(w.asked()); n != step.asked {
			t.Errorf("after %d calls the user was asked %d times", i+1, n)
		}
	}
	if title := w.asked()[0].Title; !strings.Contains(title, "[always: every call of mcp__x__good as it is defined now, in sessions of "+w.work+"]") {
		t.Errorf("it asks %q", title)
	}
	w.touch("change")
	harness.Eventually(t, "the tools are listed again", func() bool { return len(w.lines("x.calls.lists")) >= 2 })
	w.prompt(a, session, "four")
	if n := len(w.asked()); n != 3 {
		t.Errorf("after the definition changed the user was asked %d times", n)
	}
}
