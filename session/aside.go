package session

import (
	"context"
	"errors"
)

// aside makes one request beside the conversation: nothing of it is chat, and no call of its answer is executed. It is stored before it is sent;
// what became of it is in the request that comes back, for the caller to store with what it makes of the answer, or by lose.
func (t *turn) aside(ctx context.Context, p Purpose, mr ModelRequest) (ModelResponse, Request, error) {
	t.pulse.beat()
	mr.Cwd, mr.Faults = t.sess.Cwd, t.run.Faults
	req := t.newRequest(p)
	t.reserve(&req, mr.bytes())
	err := t.commit(ctx, "request.started", func(tx Tx) error {
		run, err := tx.Run(t.run.ID)
		switch {
		case err != nil:
			return err
		case run.Desired != DesiredRun:
			return ErrStopped
		case run.Revision != t.began:
			return errYield
		}
		req.StartedAt = t.e.Now()
		if err := t.affords(tx, req); err != nil {
			return err
		}
		return tx.InsertRequest(req)
	})
	if errors.Is(err, errSpent) {
		if err = t.spent(ctx, req); err == nil { // the budget was raised meanwhile
			return t.aside(ctx, p, mr)
		}
	}
	if err != nil {
		return ModelResponse{}, Request{}, err
	}
	resp, err := t.model.Stream(ctx, mr, func(Delta) error { t.pulse.beat(); return nil })
	req.settle(resp, err, t.e.Now())
	return resp, req, err
}

// lose stores what is known of a request beside the conversation that came to nothing, and returns why: the stop, when there was one. One that
// was never sent is none.
func (t *turn) lose(ctx context.Context, req Request, cause error) error {
	if req.ID == "" {
		return cause
	}
	if err := t.commit(ctx, "response.lost", func(tx Tx) error { return tx.UpdateRequest(req) }); err != nil {
		return errors.Join(cause, err)
	}
	if stopped := context.Cause(ctx); stopped != nil {
		return stopped
	}
	return cause
}

// bytes is how long a request beside the conversation is, about.
func (r ModelRequest) bytes() int {
	n := len(r.System)
	for _, m := range r.Messages {
		n += len(m.Text)
	}
	for _, tool := range r.Tools {
		n += len(tool.Description) + len(tool.Schema)
	}
	return n
}
