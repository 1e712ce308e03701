package session

import (
	"context"
	"fmt"
)

// Recovering tells whether this instance has not yet decided how the work goes on that it has found.
func (e *Engine) Recovering() bool {
	select {
	case <-e.admitted:
	default:
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, a := range e.actors {
		if _, waits := e.parked[id]; !waits && !a.settled.Load() { // what waits for its turn is decided
			return true
		}
	}
	return false
}

// Recovered lists the sessions, but for one, that no client has open and in which work went on by itself: now, or since this instance began.
func (e *Engine) Recovered(ctx context.Context, but SessionID) (out []Session, err error) {
	err = e.Store.Read(ctx, func(tx Tx) error {
		out = nil
		ids, err := tx.Recovered(e.Self.StartedAt)
		for _, id := range ids {
			if id == but || err != nil {
				continue
			}
			var s Session
			s, err = tx.Session(id)
			out = append(out, s)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for recovered work: %w", err)
	}
	return out, nil
}
