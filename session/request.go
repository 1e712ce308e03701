package session

import (
	"context"
	"errors"
	"slices"
)

// respond makes one model request. more tells that there are calls to run.
func (t *turn) respond(ctx context.Context) (more bool, finish Finish, err error) {
	t.pulse.beat()
	tools := t.offered(ctx) // may wait for a server, so before anything is stored
	if err := context.Cause(ctx); err != nil {
		return false, "", err
	}
	var items []Item
	req := t.newRequest(PurposeAnswer)
	t.lookAfter(ctx)
	err = t.commit(ctx, "request.started", func(tx Tx) error {
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		if run.Desired != DesiredRun { // a stop that is stored is obeyed, also by a process that slept meanwhile
			return ErrStopped
		}
		if run.Revision != t.began { // what it was to ask is no longer what is wanted
			return errYield
		}
		req.StartedAt = t.e.Now()
		if err := t.sayMode(tx, run); err != nil {
			return err
		}
		if err := t.tellEnds(tx, t.run, t.att); err != nil {
			return err
		}
		if items, err = current(tx, t.a.id, t.setup.Thread); err != nil {
			return err
		}
		if err := forModel(tx, items, t.resultsMost()); err != nil {
			return err
		}
		if err := t.fits(items, tools); err != nil {
			return err
		}
		t.reserve(&req, t.size)
		if err := t.affords(tx, req); err != nil {
			return err
		}
		return tx.InsertRequest(req)
	})
	if errors.Is(err, errSpent) {
		return true, "", t.spent(ctx, req)
	}
	if err != nil {
		return false, "", err
	}
	if err := intact(items); err != nil {
		return false, "", err
	}
	messages, err := Project(items, t.model.Identity())
	if err != nil {
		return false, "", err
	}
	t.answered = req.Revision
	mr := ModelRequest{System: t.setup.System, Messages: messages, Conversation: Digest("conversation", string(t.a.id), t.setup.Thread), Cwd: t.sess.Cwd,
		Faults: t.run.Faults, Effort: t.run.Profile.Effort}
	for _, tool := range tools {
		mr.Tools = append(mr.Tools, tool.Spec())
	}
	s := newStream(t, req)
	s.native = holdsNative(messages)
	resp, err := t.model.Stream(ctx, mr, s.delta)
	s.halt()
	if err != nil {
		if e := s.lost(ctx, err); e != nil {
			return false, "", errors.Join(err, e)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if s.refusedNative(err) {
			return true, "", nil
		}
		return false, "", err
	}
	return s.store(ctx, resp)
}

// sayMode has the model told the mode that its calls are judged by: a user may set another in the middle of a turn.
func (t *turn) sayMode(tx Tx, run Run) error {
	s, err := tx.Session(t.a.id)
	if err != nil || s.Mode == t.saidMode {
		return err
	}
	sess := t.sess
	sess.Mode = s.Mode
	setup, err := t.driver().Setup(tx, sess, run)
	if err != nil {
		return err
	}
	setup.Thread = t.setup.Thread
	t.sess, t.setup, t.saidMode = sess, setup, s.Mode
	return nil
}

// offered lists the tools of the next request. A review sees only what is built in.
func (t *turn) offered(ctx context.Context) []Tool {
	if t.e.Toolbox == nil || t.setup.Reviewer {
		return t.setup.Tools
	}
	return append(slices.Clip(t.setup.Tools), t.e.Toolbox.Offer(ctx, t.sess)...)
}

func (t *turn) modelName() string {
	id := t.model.Identity()
	return id.Provider + "/" + id.Name
}
