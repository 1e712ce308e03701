package acp

import (
	"context"

	"holdfast/session"
)

// approval raises a question, or withdraws one that is no longer open.
func (f *follower) approval(p session.Approval, again bool) {
	q := f.asking[p.ID]
	if p.State != session.ApprovalPending {
		if q != nil {
			q.cancel()
			delete(f.asking, p.ID)
		}
		return
	}
	if q != nil || f.muted[p.Run] {
		return
	}
	params, err := f.questionParams(p, again)
	if err != nil {
		f.fail(err, "preparing a question failed")
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	f.asking[p.ID] = &question{cancel: cancel, stray: len(f.prompts) == 0 && len(f.held) == 0}
	f.a.wg.Go(func() {
		defer cancel()
		option, text, err := f.questioned(ctx, p, params)
		switch {
		case err == nil && option != "": // also when the question was withdrawn in that moment: the user has answered
			f.keepAnswer(p, option, text)
		case ctx.Err() != nil: // withdrawn, or the connection ended: the question stands
		default:
			f.post(func() { f.parkSoon(p) })
		}
	})
	f.after(f.b.parkAfter(), func() { f.park(p) })
}

// park ends the prompts that wait for a question nobody answers here. The question stays open, and a later answer continues the run.
func (f *follower) park(p session.Approval) {
	q := f.asking[p.ID]
	if q == nil || q.parked {
		return
	}
	q.parked = true
	var now session.Approval
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { now, err = tx.Approval(p.ID); return err })
	if err != nil || now.State != session.ApprovalPending {
		return
	}
	why := "Waiting for your permission; open the session again or send a message to be asked once more."
	if p.Question != "" {
		why = "Waiting for your answer: write it as a message, or open the session again to be asked once more. The question is: " + clip(p.Question, 300)
	}
	if o := f.prompts[p.Run]; o != nil {
		delete(f.prompts, p.Run)
		f.line(why)
		o.answer(f, "end_turn")
	}
	for _, o := range f.held {
		f.line(why)
		o.answer(f, "end_turn")
	}
	f.held = nil
}

// askAgain raises questions once more that nobody answered, or may have seen: the user is here.
func (f *follower) askAgain() {
	for id, q := range f.asking {
		if q.parked || q.stray {
			q.cancel()
			delete(f.asking, id)
		}
	}
	f.questions()
}
