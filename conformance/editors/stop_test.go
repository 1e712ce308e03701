package editors_test

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/conformance/harness"
)

// An editor that stops a turn answers its open question as cancelled at once. The prompt ends as cancelled however long the stop takes on
// its way into the store, and the question does not come back.
func TestEditors_StopWithAnAnsweredQuestion(t *testing.T) {
	for _, name := range []string{"zed", "codecompanion"} { // the one answers the question, the other does not
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, resume := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "resume")
			failures := play(t, profileOf(name), func(s *story) {
				s.tagged = []string{"HOLDFAST_CRASH=cancel.accepted:before/1/pause", "HOLDFAST_CRASH_LOG=" + log, "HOLDFAST_CRASH_RESUME=" + resume}
				c := s.launch()
				c.initialize()
				session := c.newSession()
				c.hesitate(true)
				id := c.prompt(session, "please ask me", false)
				c.asked(stopsAsking, 1)
				c.cancel(session)
				harness.Eventually(t, "the stop is on its way", func() bool { _, err := os.Stat(log); return err == nil })
				c.must(noHang, "session/list", object{}) // whatever the answer to the question does is done
				if err := os.WriteFile(resume, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				c.ends(stopsAsking, id, "cancelled")
				c.hesitate(false)
				c.ends(stopsAsking, c.prompt(session, "please tell me", false), "end_turn")
				s.require(len(c.questions) == 1 && s.file("never.txt") == "", stopsAsking, "%d questions", len(c.questions))
			})
			for _, f := range failures {
				t.Errorf("%s: %s", f.check, f.what)
			}
		})
	}
}

// An editor that does not wait for the answer to its stop before it sends the next prompt: the stopped prompt ends as cancelled all the same,
// the next one is answered, and the goal is given back.
func TestEditors_PromptRightBehindAStop(t *testing.T) {
	for _, p := range profiles {
		if p.steers {
			continue // this one waits
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			failures := play(t, p, func(s *story) {
				c := s.launch()
				c.initialize()
				session := c.newSession()
				id := c.prompt(session, "/goal "+objective, true)
				s.goalStep(goalByCommand)
				c.sees(goalByCommand, "agent_message_chunk", "planning ")
				c.cancel(session)
				next := c.prompt(session, "please tell me", true)
				c.ends(cancelEnds, id, "cancelled")
				c.ends(promptWorks, next, "end_turn")
				s.goalStep(goalGivenBack)
				s.require(c.goal(session) == "active", goalGivenBack, "the goal is %s", c.goal(session))
			})
			for _, f := range failures {
				t.Errorf("%s: %s", f.check, f.what)
			}
		})
	}
}
