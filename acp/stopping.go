package acp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/acp/rpc"
	"holdfast/session"
)

// A stop of the client: session/cancel, or $/cancel_request for a prompt. It is put into the session's lane when it arrives, so it covers
// what was said before it and nothing that comes after.

// lastFor is how long a control that the client has sent before it left may still take to be stored.
const lastFor = time.Second

// lasting ends a moment after ctx.
func lasting(ctx context.Context) context.Context {
	last, end := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(lastFor, func() { end(context.Cause(ctx)) }) })
	return last
}

// controls are the methods that are carried out although the client has left behind them.
var controls = map[string]bool{"session/prompt": true, "session/close": true, "update_goal": true, "_holdfast/update_goal": true}

// control returns the context that a request is worked on under.
func (a *Agent) control(ctx context.Context, req *rpc.Request) context.Context {
	if req.Method == "session/prompt" {
		a.mu.Lock()
		a.prompting[req] = session.SessionID(laneOf(req.Params))
		a.mu.Unlock()
		context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), rpc.ErrCancelledByPeer) {
				return // Cancelled forgets it
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.prompting, req)
		})
	}
	if controls[req.Method] {
		return a.last
	}
	return ctx
}

// Cancelled implements rpc.Canceller: a prompt that the client cancels is a stop of its session.
func (a *Agent) Cancelled(req *rpc.Request) {
	a.mu.Lock()
	id, ok := a.prompting[req]
	delete(a.prompting, req)
	a.mu.Unlock()
	if ok {
		a.stopInLane(id, func(f *follower) bool { return f != nil && f.waits(req) })
	}
}

// waits tells whether a prompt has no answer yet.
func (f *follower) waits(req *rpc.Request) bool {
	out := make(chan bool, 1)
	f.post(func() {
		found := false
		for _, p := range f.prompts {
			found = found || p.req == req
		}
		for _, p := range f.held {
			found = found || p.req == req
		}
		out <- found
	})
	select {
	case found := <-out:
		return found
	case <-f.gone:
		return true // it ended with the connection, and the stop had come before
	}
}

// stopInLane stores a stop of a session after everything that was said before it. A stop must not be lost because the store is busy: it is
// tried again while the client is there, and for a moment after.
func (a *Agent) stopInLane(id session.SessionID, wanted func(*follower) bool) {
	f := a.follower(id)
	if f != nil {
		f.stops.Add(1) // from here on, not from when it is stored
	}
	a.inLane(string(id), func() {
		if f != nil {
			defer f.stops.Add(-1)
		}
		b, err := a.backend(a.last)
		if err != nil || id == "" || !wanted(a.follower(id)) {
			return
		}
		for a.last.Err() == nil {
			_, err := a.stored(a.last, b, id)
			if session.IsNotFound(err) {
				return // there is nothing to stop
			}
			if err == nil {
				err = a.cancelSession(b, id)
			}
			var down *Unavailable
			if err == nil || errors.As(a.named(err), &down) && down.Code == "store_newer" {
				return
			}
			a.Log.Error().Err(err).Msg("a cancel failed; trying again")
			select {
			case <-time.After(200 * time.Millisecond):
			case <-a.last.Done():
			}
		}
		a.Log.Error().Str("session_id", string(id)).Msg("a cancel could not be stored")
	})
}

// cancelSession stores the stop, then sees that every open prompt is answered as cancelled: when the owner has stopped, or after a
// second all the same.
func (a *Agent) cancelSession(b *Backend, id session.SessionID) error {
	cmd, err := b.Engine.Cancel(a.last, id)
	if err != nil {
		return fmt.Errorf("cancel session %s: %w", id, err)
	}
	f := a.follower(id)
	if f == nil {
		return nil
	}
	f.post(func() {
		f.cancel = cancelled{command: cmd, answered: f.a.Now()}
		for run, p := range f.prompts {
			f.confirmSoon(run, p)
		}
		for _, p := range f.held {
			p.cancelled = true
		}
		f.goalMoved()
		f.catchUp()
	})
	return nil
}

// confirmSoon answers the prompt of a run that was stopped, whoever stopped it, when its owner has not confirmed that in time. What it still
// says of the run is not shown, and what the client sends meanwhile waits until the run has ended.
func (f *follower) confirmSoon(run session.RunID, p *openPrompt) {
	if p.stopping {
		return
	}
	p.stopping = true
	p.timers = append(p.timers, f.after(confirmWithin, func() {
		if f.prompts[run] != p {
			return
		}
		f.sayStopping()
		f.b.Engine.EndCommandsSoon(f.id)
		f.muted[run] = true
		delete(f.prompts, run)
		p.answer(f, "cancelled")
	}))
}

// sayStopping tells that a stop is stored and not confirmed. It is true of this moment only and no part of the history.
func (f *follower) sayStopping() {
	pid := 0
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) error {
		s, err := tx.Session(f.id)
		if err != nil || s.Owner == "" {
			return err
		}
		row, err := tx.Instance(s.Owner)
		pid = row.PID
		return err
	})
	if err != nil && !session.IsNotFound(err) {
		f.fail(err, "looking who still stops failed")
	}
	who := "the process that executes it"
	if pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	f.send(textChunk(session.ItemMarker, session.ItemID(f.b.Engine.NewID()),
		"Stopping: the stop is stored, and "+who+" has not confirmed it yet. What you send now waits until it has.\n"))
}
