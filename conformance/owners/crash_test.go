package owners_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// deafOwner has a session whose command has ended, and hangs in the commit that follows: it does not end when it is asked to.
func deafOwner(t *testing.T) (w *world, a *harness.Agent, session string) {
	t.Helper()
	w = newWorld(t, once(held))
	a = w.launch("HOLDFAST_CRASH=effect.settled:before/pause", "HOLDFAST_CRASH_RESUME="+filepath.Join(w.work, "never"), "HOLDFAST_CRASH_LOG="+filepath.Join(w.work, "fired"))
	session = a.NewSession(w.work)
	a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	w.put("go")
	harness.Eventually(t, "it hangs", func() bool { return w.lines("fired") == 1 })
	return w, a, session
}

// died runs a command line that a crash point ends.
func (w *world) died(point string, args ...string) {
	w.t.Helper()
	log := filepath.Join(w.t.TempDir(), "fired")
	out, code := w.holdfastWith([]string{"HOLDFAST_CRASH=" + point, "HOLDFAST_CRASH_LOG=" + log}, nil, args...)
	if b, _ := os.ReadFile(log); code == 0 || !strings.Contains(string(b), point) {
		w.t.Fatalf("it did not die at %s: %d %s", point, code, out)
	}
}

// A process that does not end in time is killed, and its lock is waited for. The takeover itself may die around its commit: then it is as if the
// process had just died, or as if all had gone well; the work goes on once.
func TestTakeover_OfTheDeafAndItsDeath(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "owner.disowned:before", "owner.disowned:after"} {
		t.Run("dies at "+point, func(t *testing.T) {
			t.Parallel()
			w, a, session := deafOwner(t)
			if point == "" {
				if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 0 || !holds(out, "ended process "+pid(a)) {
					t.Fatalf("%d %s", code, out)
				}
			} else {
				w.died(point, "sessions", "takeover", session)
				if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !strings.Contains(out, "goes on by itself") {
					t.Errorf("once more: %d %s", code, out)
				}
			}
			gone(t, a)
			b := w.launch()
			w.load(b, session)
			harness.Eventually(t, "the turn ends", func() bool { return strings.Contains(b.Text(session), "finished well") })
			if n := w.lines("counter"); n != 2 {
				t.Errorf("%d lines in the counter", n)
			}
			if n := len(w.model.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Moving sessions from another machine is one commit: before it nothing is moved, after it everything is.
func TestOtherHost_MoveDies(t *testing.T) {
	t.Parallel()
	for _, instant := range []string{"before", "after"} {
		t.Run(instant, func(t *testing.T) {
			t.Parallel()
			w, session := elsewhere(t)
			w.died("owner.moved:"+instant, "sessions", "takeover", session, "--from-other-host")
			out, code := w.holdfast(nil, "sessions", "takeover", session, "--from-other-host")
			if instant == "before" && code != 0 || instant == "after" && (code != 1 || !strings.Contains(out, "goes on by itself")) {
				t.Errorf("once more: %d %s", code, out)
			}
			b := w.launch()
			w.load(b, session)
			w.wait(2)
			if n := w.number(`SELECT count(*) FROM effects WHERE fact = 'unknown' AND note LIKE '%another machine%'`); n != 1 || w.lines("counter") != 2 {
				t.Errorf("%d calls with unknown outcome, %d lines in the counter", n, w.lines("counter"))
			}
		})
	}
}
