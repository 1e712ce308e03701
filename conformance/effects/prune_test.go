package effects_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// kept lists what is on disk of calls.
func (w *world) kept(dir string) []string {
	all, err := os.ReadDir(w.path("home/" + dir))
	w.must(err)
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

const month = int64(31 * 24 * 60 * 60 * 1000)

// Files of calls that are long over are removed at a launch; those of what is unknown, running, young or of unfinished work are not.
func TestPrune_OnlyWhatIsOver(t *testing.T) {
	t.Parallel()
	big := tool("mcp__x__act", map[string]any{"do": "big", "n": 2 << 20, "text": ""})
	w := newWorld(t, map[string][]fakemodel.Call{
		"old":   {tool("shell", map[string]string{"command": "echo old"}), big},
		"young": {tool("shell", map[string]string{"command": "echo young"})},
		"lost":  {tool("shell", map[string]string{"command": "kill -9 $PPID"})},
		"asks":  {tool("shell", map[string]string{"command": "echo asks"}), tool("shell", map[string]string{"command": "echo never"})},
		"runs":  {tool("shell", map[string]string{"command": waits})},
	})
	w.choose = func(q string) string {
		if strings.Contains(q, "never") {
			return ""
		}
		return "allow_once"
	}
	a := w.launch("")
	session := w.open(a)
	w.prompt(a, session, "old")
	w.prompt(a, session, "young")
	other := w.open(a)
	w.prompt(a, other, "lost")
	unfinished := w.open(a)
	a.Prompt(unfinished, "asks")
	harness.Eventually(t, "the second question comes", func() bool { return len(w.asked()) == 6 })
	w.put("hold", "")
	running := w.open(a)
	a.Prompt(running, "runs")
	harness.Eventually(t, "a command runs", func() bool { return w.lines("counter") == 1 })
	a.Kill()
	shells := w.effects("shell")
	slices.Reverse(shells) // oldest first: old, young, lost, asks, never, runs
	if len(shells) != 6 || len(w.kept("calls")) != 5 || len(w.kept("answers")) != 1 {
		t.Fatalf("on disk are %v and %v, the journal has %d calls: %+v", w.kept("calls"), w.kept("answers"), len(shells), shells)
	}
	young := shells[1].EffectID
	w.edit("UPDATE effects SET settled_at = settled_at - ? WHERE state = 'settled' AND id <> ?", month, young)
	w.edit("UPDATE effects SET planned_at = planned_at - ?, dispatched_at = dispatched_at - ? WHERE id <> ?", month, month, young)
	w.must(os.Mkdir(w.path("home/calls/unexplained"), 0o700))
	b := w.launch("")
	b.Must("session/list", map[string]any{}, nil)
	harness.Eventually(t, "the old ones are removed", func() bool { return len(w.kept("answers")) == 0 })
	want := []string{shells[1].EffectID, shells[2].EffectID, shells[3].EffectID, shells[5].EffectID, "unexplained"}
	slices.Sort(want)
	if got := w.kept("calls"); !slices.Equal(got, want) {
		t.Errorf("on disk are %v, want %v", got, want)
	}
	w.must(os.Remove(w.path("hold")))
	b.Must("session/load", w.params(running), nil)
	said(t, b, running, "done runs")
}
