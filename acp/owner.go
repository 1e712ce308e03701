package acp

import (
	"context"
	"fmt"
	"time"

	"holdfast/session"
)

// lookForOwner is how often an open prompt is looked at whose session another process executes.
const lookForOwner = 3 * time.Second

// ownerSays is why work here does not move because of the process that has the session, and what a person can do; "" when it is not because
// of that.
func (f *follower) ownerSays() string {
	var code session.Code
	var why string
	var c session.Condition
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) error {
		s, err := tx.Session(f.id)
		if err != nil || s.Owner == "" || s.Owner == f.b.Engine.Self.ID {
			return err
		}
		c = tx.Condition(s.Owner)
		code, why = session.OwnerWait(tx, s.Owner)
		return nil
	})
	if err != nil {
		f.fail(err, "looking at the owner failed")
		return ""
	}
	switch code {
	case session.CodeOwnerSilent:
		return fmt.Sprintf("%s Continue it (kill -CONT %d), or /takeover ends it and goes on here (in a terminal: holdfast sessions takeover %s).", why, c.PID, f.id)
	case session.CodeOtherHost:
		return fmt.Sprintf("%s When it does not run there any more: holdfast sessions takeover %s --from-other-host", why, f.id)
	}
	return ""
}

// ownerAtOpen says it when a client opens the session.
func (f *follower) ownerAtOpen() {
	if s := f.ownerSays(); s != "" {
		f.toldOwner = s
		f.notice(s)
	}
}

// watchOwner says it while a prompt is open that nobody picks up, once for each thing there is to say.
func (f *follower) watchOwner(run session.RunID, p *openPrompt) {
	p.timers = append(p.timers, f.after(lookForOwner, func() {
		if f.prompts[run] != p {
			return
		}
		if s := f.ownerSays(); s != f.toldOwner {
			if f.toldOwner = s; s != "" {
				f.a.Notice(f.id, s)
			}
		}
		p.timers = nil
		f.watchOwner(run, p)
	}))
}

// takeoverCommand is /takeover: it ends the process that has the session, and goes on with it here.
func takeoverCommand(ctx context.Context, b *Backend, id session.SessionID, rest string) (string, error) {
	switch {
	case b.Takeover == nil:
		return "Taking over is not possible here.", nil
	case rest != "" && rest != "yes":
		return "Say /takeover, or /takeover yes when more than this session ends with that process.", nil
	}
	return b.Takeover(ctx, id, rest == "yes")
}
