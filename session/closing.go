package session

import (
	"errors"
	"fmt"
	"time"
)

// What the owner does when a client has closed the session: it lets go of it, whichever process the client was in. The work waits without an
// owner until a client opens the session.

// errClosed: the session was closed, and nothing is left to do in it.
var errClosed = errors.New("the client closed the session")

// pickClosed picks what is still done in a closed session: work that was stopped is brought to its end. Cancelled work was picked before.
func (a *actor) pickClosed(runs []Run) (*Run, time.Time, error) {
	for _, r := range runs {
		if r.Desired == DesiredPaused && a.inherited[r.ID] && r.Phase == PhaseWorking {
			return &r, time.Time{}, nil
		}
	}
	return nil, time.Time{}, errClosed
}

// leave gives up a closed session; false when it was opened again meanwhile.
func (a *actor) leave() (left bool, err error) {
	err = a.e.Store.Commit(a.ctx, "owner.released", func(tx Tx) error {
		left = false
		if err := tx.Fence(a.id, a.e.Self.ID, a.gen); err != nil {
			return err
		}
		s, err := tx.Session(a.id)
		if err != nil || !s.Closed {
			return err
		}
		left = true
		_, err = tx.Own(a.id, "")
		return err
	})
	if err != nil {
		return false, fmt.Errorf("let go of a closed session: %w", err)
	}
	if left {
		a.e.forget(a) // before anybody is told: whoever opens it next becomes its owner, perhaps here
		a.e.changed(a.id)
	}
	return left, nil
}

// controlled tells whether a control was stored since the last look, in any session.
func (a *actor) controlled(last *int64) bool {
	var now int64
	if err := a.e.Store.Read(a.ctx, func(tx Tx) (err error) { now, err = tx.LastCommand(); return err }); err != nil {
		return false // looked at again
	}
	changed := now != *last
	*last = now
	return changed
}
