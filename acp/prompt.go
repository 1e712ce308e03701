package acp

import (
	"context"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/goals"
	"holdfast/internal/fault"
	"holdfast/session"
)

func (a *Agent) prompt(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.PromptRequest](req)
	if err != nil {
		return err
	}
	id := session.SessionID(p.SessionID)
	if _, err := a.stored(ctx, b, id); err != nil {
		return err
	}
	f := a.follower(id)
	if f == nil {
		return &invalid{"sessionId", "open the session with session/load or session/resume first"}
	}
	req.Params = nil // a prompt stays open for long, and its line may be large
	in, err := flatten(p.Prompt)
	if err != nil {
		return err
	}
	text := in.Text
	f.post(func() { // the user is here: silence and parked questions end
		if f.isQuiet() {
			f.wakeUp()
		}
	})
	if c, ok := command(text); ok && c.name == "/compact" {
		in.Compact, in.Keep, in.Images = true, c.rest, nil
	} else if ok && c.aboutFiles() {
		return a.filesPrompt(ctx, b, f, req, c, text)
	} else if ok {
		return a.slashPrompt(ctx, b, f, req, c, text)
	}
	if err := a.needModelOf(ctx, b, id); err != nil {
		return err
	}
	run := session.RunID(b.Engine.NewID())
	f.post(func() { f.own[run] = true }) // before its message can be in the log
	in.Run, in.Uncancel = run, f.steering()
	if _, err := b.Engine.Prompt(ctx, id, in); err != nil {
		return err
	}
	f.post(func() { f.admit(run, req) })
	return nil
}

// steering returns the cancel that a prompt sent right now belongs to.
func (f *follower) steering() string {
	out := make(chan string, 1)
	f.post(func() {
		if f.cancel.command != "" && !fault.Without("steering") && f.a.Now().Sub(f.cancel.answered) < steerWithin {
			out <- f.cancel.command
		} else {
			out <- ""
		}
		f.cancel = cancelled{}
	})
	select {
	case cmd := <-out:
		return cmd
	case <-f.gone:
		return ""
	}
}

// admit ties a prompt to its run. The run may have ended already.
func (f *follower) admit(run session.RunID, req *rpc.Request) {
	f.prompts[run] = &openPrompt{req: req}
	f.watchOwner(run, f.prompts[run])
	f.askAgainUnseen()
	f.tell()
	var r session.Run
	if err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { r, err = tx.Run(run); return err }); err != nil {
		f.fail(err, "reading a prompt's run failed")
		return
	}
	f.catchUp()
	f.run(r)
}

// askAgainUnseen raises questions once more that nobody answered, or that came while no prompt was open.
func (f *follower) askAgainUnseen() {
	for _, q := range f.asking {
		if (q.parked || q.stray) && !fault.Without("ask_again") {
			f.askAgain()
			return
		}
	}
}

// slashPrompt runs a command. A goal that starts to work keeps the prompt open for a while.
func (a *Agent) slashPrompt(ctx context.Context, b *Backend, f *follower, req *rpc.Request, c slash, text string) error {
	if c.action() == "add" {
		v, err := b.Goals.Get(ctx, "", f.id)
		if err != nil && !goals.NoGoal(err) {
			return err
		}
		c.fresh = err != nil || v.Status.Ended()
	}
	switch c.action() {
	case "", "resume", "verify", "retry", "redo", "revise": // what only looks or stops needs no model
		if err := a.needModelOf(ctx, b, f.id); err != nil {
			return err
		}
	}
	shown := session.ItemID(b.Engine.NewID())
	f.post(func() { f.shown(shown).closed = true }) // the client shows its own message itself
	hold, line, err := c.run(ctx, b, f.id, text, shown)
	if err != nil {
		e := f.a.toError(err, f.id)
		if e.Code == rpc.CodeInternalError || fault.Without("refusal_line") {
			return err
		}
		hold, line = "", refusal(err, e.Message) // a refusal is an answer, not a broken prompt
	}
	if err != nil || !c.sets() { // a goal that was set has stored the line that set it
		it := session.Item{ID: shown, Kind: session.ItemUser, Body: session.ItemBody{Text: text, Aside: true}}
		if err := b.Engine.Remark(ctx, f.id, it, session.Item{}); err != nil {
			return err
		}
	}
	f.post(func() {
		p := &openPrompt{req: req, goal: hold}
		if hold == "" {
			f.catchUp()
			f.line(line)
			p.answer(f, "end_turn")
			return
		}
		f.held = append(f.held, p)
		p.timers = append(p.timers, f.after(burst, func() { f.release(p) }))
		f.askAgainUnseen()
		f.goalMoved()
		f.catchUp()
	})
	return nil
}

// release answers a prompt whose goal goes on working.
func (f *follower) release(p *openPrompt) {
	for i, h := range f.held {
		if h == p {
			f.held = append(f.held[:i:i], f.held[i+1:]...)
			f.line("The goal goes on in the background; /goal status tells where it stands, /goal pause stops it.")
			p.answer(f, "end_turn")
			return
		}
	}
}
