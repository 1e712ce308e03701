package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// Where the path of the state directory is too long for a socket nobody can be rung, and everybody looks instead: an agent with nothing to
// do takes up what another process has stored and left, and a command that runs is stopped.
func TestDeaf_LooksInstead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(held))
	w.home = filepath.Join(w.home, strings.Repeat("long", 30))
	w.env[0] = "HOLDFAST_HOME=" + w.home
	a := w.editor(allow)
	session := a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "edit"}, nil)
	id := one[goal](t, w.want(0, "goals", "create", "--session", session, "--json", "Produce out.txt.").out).GoalID
	w.begun()
	w.want(0, "stop", id)
	harness.Eventually(t, "the command has ended", func() bool { return !strings.Contains(w.want(0, "ps").out, held) })
	if g := w.goal(id); g.Status != "paused" || w.has("out.txt") {
		t.Errorf("it is %+v", g)
	}
}
