package process_test

import (
	"strings"
	"testing"
)

// A command that asked for a terminal has one, and the command beside it has none. It outlives the agent like any other.
func TestTerminal_OnlyWhereAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	a := w.launch()
	session := a.NewSession(w.work)
	const look = "test -t 0 && test -t 1 && echo has one || echo has none"
	a.Await(a.Prompt(session, do("shell "+object(map[string]any{"command": look, "pty": true}), foreground(look))))
	got := shown(a, session)
	var texts []string
	for _, c := range got {
		if c.Status == "completed" {
			texts = append(texts, c.text())
		}
	}
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "has one") || !strings.HasPrefix(texts[1], "has none") {
		t.Errorf("they print %q", texts)
	}
	sees(t, "the title says it", a, session, func(c shownCall) bool { return strings.HasPrefix(c.Title, "In a terminal: ") })

	a.Prompt(session, do("shell "+object(map[string]any{"command": "echo run >> counter; " + until("go") + "; test -t 1 && echo still has one", "pty": true})))
	w.begun()
	a.Kill()
	b := w.launch()
	w.load(b, session)
	w.put("go")
	sees(t, "the command's end arrives in the next process", b, session, func(c shownCall) bool { return strings.HasPrefix(c.text(), "still has one") })
	if n := w.lines("counter"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
