package acp

import (
	"context"
	"errors"
	"time"

	"holdfast/session"
)

// reopenEvery is how often a store that will be free by itself is tried again while the client asks for nothing.
const reopenEvery = 5 * time.Second

// backend returns what is open. A store that could not be opened is tried again by each request, because the answer to its error is to
// repair something; one that this process must not use any more is not. While another process keeps it, whoever waits is told so.
func (a *Agent) backend(ctx context.Context) (*Backend, error) {
	a.mu.Lock()
	b, gone, stuck := a.back, a.retired, a.stuck
	a.mu.Unlock()
	if gone != nil {
		return nil, gone
	}
	if b != nil {
		return b, nil
	}
	select {
	case a.opening <- struct{}{}:
	case <-stuck:
		return nil, a.whyHeld()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	type opened struct {
		b   *Backend
		err error
	}
	done := make(chan opened, 1)
	a.wg.Go(func() {
		defer func() { <-a.opening }()
		b, err := a.openOnce()
		done <- opened{b, err}
	})
	select {
	case o := <-done:
		return o.b, o.err
	case <-stuck:
		return nil, a.whyHeld()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a *Agent) whyHeld() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		return &heldStore{} // the next try has just begun
	}
	return a.held
}

// openOnce is one try. The caller holds opening.
func (a *Agent) openOnce() (*Backend, error) {
	a.mu.Lock()
	b, gone := a.back, a.retired
	if gone == nil && b == nil && a.held != nil { // of the last try
		a.held, a.stuck = nil, make(chan struct{})
	}
	a.mu.Unlock()
	switch {
	case gone != nil:
		return nil, gone
	case b != nil:
		return b, nil
	}
	b, err := a.Backend(a.ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.retired != nil {
		return nil, a.retired
	}
	a.back = b
	return b, nil
}

// openStore opens the store beside initialize. While that waits for others to end it is tried again, so that work goes on without a request.
func (a *Agent) openStore() {
	for {
		a.opening <- struct{}{} // nobody holds it for longer than one try
		_, err := a.openOnce()
		<-a.opening
		var down *Unavailable
		if err == nil || a.ctx.Err() != nil || !session.IsBusy(err) && (!errors.As(err, &down) || !down.Passes) {
			return
		}
		if session.IsBusy(err) {
			continue // it has waited already
		}
		select {
		case <-time.After(reopenEvery):
		case <-a.ctx.Done():
			return
		}
	}
}

// Retire says in every open session, and from now on to every request, that this process does no more work. Open prompts end.
func (a *Agent) Retire(why *Unavailable) {
	a.mu.Lock()
	a.retired = why
	var open []*follower
	for _, f := range a.open {
		open = append(open, f)
	}
	a.mu.Unlock()
	for _, f := range open {
		f.post(func() { f.retire(why) })
	}
}

// retire tells the user and ends the following. What is said is no part of the history: nothing can be stored any more.
func (f *follower) retire(why *Unavailable) {
	if f.isQuiet() {
		f.after(f.quietTil.Sub(f.a.Now()), func() { f.retire(why) })
		return
	}
	f.send(textChunk(session.ItemMarker, session.ItemID(f.b.Engine.NewID()), why.Error()+"\n"))
	e := toError(why, f.id)
	for _, p := range f.prompts {
		p.fail(e)
	}
	for _, p := range f.held {
		p.fail(e)
	}
	f.prompts, f.held = map[session.RunID]*openPrompt{}, nil
	f.stop()
}

func (a *Agent) isRetired() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.retired != nil
}

// named is what a client is told of an error: what the store reports has a name.
func (a *Agent) named(err error) error {
	a.mu.Lock()
	gone := a.retired
	a.mu.Unlock()
	if gone != nil && !errors.Is(err, session.ErrNotFound) {
		return gone
	}
	if a.Diagnose == nil || session.IsBusy(err) { // that names who keeps it, and what to do
		return err
	}
	if down := a.Diagnose(err); down != nil {
		return down
	}
	return err
}
