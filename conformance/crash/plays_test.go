package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// play is what a user does. It may be started again after any death, and does then what is left to do.
type play func(u *user) error

// create sets the Goal, again when that was not acknowledged: its key makes it one Goal.
func (u *user) create() error { return u.createWith(map[string]any{}) }

// createWith is create with limits.
func (u *user) createWith(budget map[string]any) error {
	if u.created {
		return nil
	}
	err := u.call("create_goal", map[string]any{"sessionId": u.session, "objective": "Produce out.txt with the command's help.", "idempotencyKey": "one",
		"budget": budget, "requirements": []any{map[string]any{"kind": "file", "path": written, "pattern": "result"}, map[string]any{"kind": "command", "command": evidence}}}, nil)
	u.created = u.created || err == nil
	return err
}

// end waits until the Goal has ended. A Goal that waits because of two deaths in a row is told to go on, as its view says.
func (u *user) end() error {
	return u.until("the goal ends", func() (bool, error) {
		g, err := u.goal()
		if err == nil && g.ReasonCode == "crash_loop" {
			u.retries++
			err = u.call("update_goal", map[string]any{"sessionId": u.session, "action": "retry"}, nil)
		}
		return g.Status != "" && g.Status != "active", err
	})
}

// goalPlay sets a Goal and waits for its end.
func goalPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if err := u.create(); err != nil {
		return err
	}
	return u.end()
}

// claimPlay goes on with a Goal whose session nobody opens before it is claimed: opening a session takes it over as well.
func claimPlay(u *user) error {
	err := u.until("the work goes on unopened", func() (bool, error) {
		if err := u.alive(); err != nil { // any session request lets recovery begin
			return false, err
		}
		g, err := u.goal()
		for _, m := range g.History {
			if m.Generation > 1 {
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		return err
	}
	return goalPlay(u)
}

// say prompts, unless it was done in an earlier life, and waits until the answer has been shown.
func (u *user) say(text, want string) error {
	if u.steps[text] {
		return nil
	}
	if u.sent != text || strings.HasPrefix(u.died, "prompt.accepted:before") {
		u.sent = text
		id := u.a.Prompt(u.session, text)
		if err := u.await(id, "session/prompt", nil); err != nil {
			return err
		}
	}
	err := u.until("the answer to "+text+" is shown", func() (bool, error) {
		return strings.Contains(u.a.Text(u.session), want), u.alive()
	})
	u.steps[text] = err == nil
	return err
}

// alive asks for something cheap.
func (u *user) alive() error { return u.call("session/list", map[string]any{}, nil) }

// says is a play of prompts and the words their answers end with.
func says(dialogue ...string) play {
	return func(u *user) error {
		if _, err := u.open(); err != nil {
			return err
		}
		for i := 0; i < len(dialogue); i += 2 {
			if err := u.say(dialogue[i], dialogue[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
}

// cancelPlay stops a prompt that is being answered and one that waits behind it. What comes after them is answered.
func cancelPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if !u.steps["cancel"] || u.died == "cancel.accepted:before" { // that one was not stored
		lives := 1
		var ids []string
		if u.sent == "" {
			ids = append(ids, u.a.Prompt(u.session, "please hang"))
		} else {
			lives = 2
		}
		u.sent = "please hang"
		if err := u.until("the prompt is being answered", func() (bool, error) { return u.w.seen("hang") >= lives, u.alive() }); err != nil {
			return err
		}
		if len(ids) > 0 {
			ids = append(ids, u.a.Prompt(u.session, "please wait behind it"))
		}
		u.steps["cancel"] = true // it is sent now; whether it was stored, the point of death says
		u.a.Notify("session/cancel", map[string]any{"sessionId": u.session})
		for _, id := range ids {
			var r struct{ StopReason string }
			if err := u.await(id, "session/prompt", &r); err != nil {
				return err
			}
			if r.StopReason != "cancelled" {
				return fmt.Errorf("a cancelled prompt ended with %q", r.StopReason)
			}
		}
	}
	return u.say("please go on", "So it goes.")
}

// modePlay lets file edits through without a question.
func modePlay(u *user) error {
	mode, err := u.open()
	if err != nil {
		return err
	}
	if u.died == "mode.set:after" && mode != "edit" {
		return fmt.Errorf("the mode that was stored is %q after the restart", mode)
	}
	if err := u.call("session/set_mode", map[string]any{"sessionId": u.session, "modeId": "edit"}, nil); err != nil {
		return err
	}
	return u.say("please write", "That is all.")
}

// remarkPlay asks Holdfast itself something, and then the model. The question is a prompt like any other: what was stored of it is there
// after the restart, once.
func remarkPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if u.sent == "" {
		u.sent = "/goal status"
		if err := u.await(u.a.Prompt(u.session, u.sent), "session/prompt", nil); errors.Is(err, errDied) {
			return err
		}
	}
	return u.say("please talk", "So it goes.")
}

// controlPlay pauses a Goal while it asks, and resumes it.
func controlPlay(u *user) error {
	u.choose = func(string) string {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.steps["resuming"] {
			return "allow_once"
		}
		return ""
	}
	if _, err := u.open(); err != nil {
		return err
	}
	if err := u.create(); err != nil {
		return err
	}
	if !u.steps["pause"] {
		err := u.until("the goal asks", func() (bool, error) {
			g, err := u.goal()
			if u.died == "goal.controlled:after" && g.Status == "active" {
				return false, fmt.Errorf("a goal whose pause was stored is active after the restart")
			}
			return g.ReasonCode == "approval_pending" || g.Status == "paused", err
		})
		if err != nil {
			return err
		}
		if err := u.control("pause"); err != nil {
			return err
		}
		u.steps["pause"] = true
	}
	u.mu.Lock()
	u.steps["resuming"] = true
	u.mu.Unlock()
	if !u.steps["resume"] {
		if err := u.control("resume"); err != nil {
			return err
		}
		u.steps["resume"] = true
	}
	return u.end()
}

// control is update_goal, which is refused when an earlier life has done it already.
func (u *user) control(action string) error {
	g, err := u.goal()
	if err != nil || action == "resume" && g.Status == "active" {
		return err
	}
	return u.call("update_goal", map[string]any{"sessionId": u.session, "action": action}, nil)
}

// closePlay closes the session while a Goal's command runs and opens it again.
func closePlay(u *user) error {
	if u.died == "" {
		u.w.put("hold")
	}
	if _, err := u.open(); err != nil {
		return err
	}
	if err := u.create(); err != nil {
		return err
	}
	if !u.steps["closed"] {
		if err := u.until("the command runs", func() (bool, error) { return u.w.lines("counter") == 1, u.alive() }); err != nil {
			return err
		}
		if err := u.call("session/close", map[string]any{"sessionId": u.session}, nil); err != nil {
			return err
		}
		u.steps["closed"] = true
		if _, err := u.open(); err != nil {
			return err
		}
	}
	u.w.remove("hold")
	return u.end()
}

// running is a life that ends while the Goal's command runs: killed, or in order.
func running(killed bool) func(*user) {
	return func(u *user) {
		u.w.put("hold")
		u.must(u.hello())
		_, err := u.open()
		u.must(err)
		u.must(u.create())
		harness.Eventually(u.w.t, "the command runs", func() bool { return u.w.lines("counter") == 1 })
		if killed {
			u.a.Kill()
		} else {
			u.must(u.leave())
		}
		u.w.remove("hold")
	}
}

// trial is a play in which the process dies at a point.
type trial struct {
	point   string
	again   string      // the point at which the next life dies, while it recovers
	prelude func(*user) // a life before
	play    play
	setup   func(*user)
	check   func(*user)
}

// dying is the trial at another point.
func (tr trial) dying(point string) trial {
	tr.point = point
	return tr
}

func (tr trial) run(t *testing.T) {
	w := newWorld(t)
	u := newUser(w)
	if tr.setup != nil {
		tr.setup(u)
	}
	if tr.prelude != nil {
		u.launch("")
		tr.prelude(u)
	}
	for _, point := range []string{tr.point, tr.again} {
		if point == "" {
			continue
		}
		u.launch(point, u.env...)
		u.env = nil
		u.dieIn(tr.play, point)
	}
	u.launch("")
	u.must(u.hello())
	u.alone()
	u.must(tr.play(u))
	u.must(u.leave())
	tr.check(u)
}

// dieIn plays until the process dies at its point.
func (u *user) dieIn(p play, point string) {
	t := u.w.t
	t.Helper()
	err := u.hello()
	if err == nil {
		err = p(u)
	}
	if err == nil && !strings.HasPrefix(point, "supervisor.") {
		err = u.leave()
	}
	if err != nil && !errors.Is(err, errDied) {
		t.Fatalf("%s: %v", point, err)
	}
	u.a.Kill()
	u.w.mustHaveFired(u.launches, point)
	u.died = point
	u.w.remove("hold")
	u.w.look()
}

// alone waits without opening the session, until nothing moves without a person.
func (u *user) alone() {
	u.w.t.Helper()
	u.must(u.alive())
	if !u.created {
		return
	}
	u.must(u.until("the goal goes on by itself as far as it can", func() (bool, error) {
		g, err := u.goal()
		return g.Status != "active" || g.ReasonCode == "approval_pending" || g.ReasonCode == "closed_by_client" || g.ReasonCode == "crash_loop", err
	}))
}
