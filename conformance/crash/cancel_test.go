package crash_test

import (
	"testing"

	"holdfast/conformance/harness"
)

// A cancel pauses the Goal, and no later process makes a model request for it.
func TestCancel_StaysAfterAKill(t *testing.T) {
	u := begin(t, func(u *user) { u.w.put("hold") })
	u.commandRuns()
	u.a.Notify("session/cancel", map[string]any{"sessionId": u.session})
	u.must(u.until("the goal is paused", func() (bool, error) { g, err := u.goal(); return g.Status == "paused", err }))
	u.a.Kill()
	before := u.w.seen("goal")
	u.again()
	u.must(u.alive())
	// Another session's work passes through the same process, so the engine has had its turn.
	other := newUser(u.w)
	other.a = u.a
	other.launches = 50
	u.must(says("please talk", "So it goes.")(other))
	_, err := u.open()
	u.must(err)
	u.must(u.until("the session is quiet no more", func() (bool, error) { // what an opened session shows comes after its silence
		_, found := first(u.a.Log(), func(m harness.Message) bool {
			return m.Method == "session/update" && contains(m.Params, u.session, "available_commands_update")
		})
		return found, u.alive()
	}))
	g, err := u.goal()
	u.must(err)
	if g.Status != "paused" || g.ReasonCode != "user_cancelled" {
		t.Errorf("after the restart the goal is %s (%s)", g.Status, g.ReasonCode)
	}
	if n := u.w.seen("goal") - before; n != 0 {
		t.Errorf("%d model requests were made for the stopped goal", n)
	}
	if n := u.w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	// It goes on when the user says so.
	u.w.remove("hold")
	u.must(u.control("resume"))
	u.must(u.end())
	u.must(u.leave())
	u.achieved(0) // the stop has ended the command
}

// A cancel that was stored and not acted on when the process died is a stop all the same.
func TestCancel_StoredAndNotActedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("hold")
	u := newUser(w)
	u.launch("cancel.accepted:after")
	u.dieIn(func(u *user) error {
		if _, err := u.open(); err != nil {
			return err
		}
		if err := u.create(); err != nil {
			return err
		}
		u.commandRuns()
		u.a.Notify("session/cancel", map[string]any{"sessionId": u.session})
		return u.until("the agent dies", func() (bool, error) { return false, u.alive() })
	}, "cancel.accepted:after")
	before := w.seen("goal")
	u.again()
	u.must(u.alive())
	_, err := u.open()
	u.must(err)
	u.must(u.say("please talk", "So it goes.")) // the owner works through what it has found before it answers
	g, err := u.goal()
	u.must(err)
	if g.Status != "paused" || g.ReasonCode != "user_cancelled" {
		t.Errorf("after the restart the goal is %s (%s)", g.Status, g.ReasonCode)
	}
	if n := w.seen("goal") - before; n != 0 {
		t.Errorf("%d model requests were made for the stopped goal", n)
	}
}

// A prompt right behind a cancel is one act with it: the Goal goes on after the answer.
func TestCancel_ThenAPrompt(t *testing.T) {
	u := begin(t, func(u *user) { u.w.put("hold") })
	u.commandRuns()
	u.w.remove("hold")
	u.a.Notify("session/cancel", map[string]any{"sessionId": u.session})
	u.must(u.say("please talk", "So it goes."))
	u.must(u.end())
	u.must(u.leave())
	u.achieved(0) // the command may have been stopped
	_, person := u.transcript()
	if person != "please talk\n" {
		t.Errorf("the user's part of the transcript: %q", person)
	}
}
