package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Erasure is a session that was deleted, with what its records named outside the store. It is on record until nothing of that is left.
type Erasure struct {
	Session  SessionID
	LeftOver LeftOver
	At       time.Time
}

// LeftOver names what a session had beside the store.
type LeftOver struct {
	Calls   []EffectID `json:"calls"`   // each may have a folder of its own
	Answers []string   `json:"answers"` // digests of long answers that no other call got
	Trees   []string   `json:"trees"`   // recorded work trees
}

// ErrInUse: something of the session goes on or is open, so it is not deleted now. A *InUseError says what.
var ErrInUse = errors.New("the session is in use")

// InUseError says why a session is not deleted, and what to do first.
type InUseError struct{ Why string }

func (e *InUseError) Error() string { return e.Why }

func (e *InUseError) Unwrap() error { return ErrInUse }

// inUse says what keeps a session from being deleted; nil when nothing does. Clients and ownership of this instance do not.
func (e *Engine) inUse(tx Tx, id SessionID) error {
	at, err := tx.Attached(id)
	if err != nil {
		return err
	}
	for _, i := range at {
		if i == e.Self.ID || tx.Lost(i) {
			continue
		}
		row, err := tx.Instance(i)
		if err != nil {
			return err
		}
		return &InUseError{fmt.Sprintf("A client of process %d has the session open; close it there first.", row.PID)}
	}
	if err := idle(tx, id); errors.Is(err, ErrBusy) {
		return &InUseError{fmt.Sprintf("The session has work that has not ended; stop it first: holdfast stop %s. Where it is stopped already, an editor or 'holdfast work' brings it to its end", id)}
	} else if err != nil {
		return err
	}
	effects, err := tx.OpenEffects(id)
	if err != nil {
		return err
	}
	for _, ef := range effects {
		if ef.State == EffectDispatched && ef.Fact != FactUnknown {
			return &InUseError{fmt.Sprintf("It is not known yet what became of the call %s; it is found out by the next process that executes.", ef.ID)}
		}
	}
	all, err := tx.Backgrounds(id)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.State == BackgroundRunning {
			return &InUseError{fmt.Sprintf("A background command of the session runs; stop it first: holdfast stop %s", id)}
		}
	}
	open, err := tx.OpenUndos(id)
	if err == nil && len(open) > 0 {
		return &InUseError{"Files of the session are being put back; try again when that is done."}
	}
	return err
}

// DeleteSession removes every record of a session that nobody works in or has open elsewhere. What it had beside the store is named by the
// erasure that is stored in the same transaction, and is removed by who calls Erase.
func (e *Engine) DeleteSession(ctx context.Context, id SessionID) error {
	err := e.Store.Commit(ctx, "session.deleted", func(tx Tx) error {
		if _, err := tx.Session(id); err != nil {
			return err
		}
		if err := e.inUse(tx, id); err != nil {
			return err
		}
		return tx.Erase(id, e.Now())
	})
	if err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	e.release(id, ErrFenced)
	e.changed(id)
	return nil
}

// DeleteLying deletes sessions that have lain still since a time and hold nothing that anybody has still to do with: no work that has not
// ended, no call whose outcome is unknown, no open question or Goal, no client. It returns those it deleted, at most limit.
func (e *Engine) DeleteLying(ctx context.Context, since time.Time, limit int) ([]SessionID, error) {
	var gone []SessionID
	for len(gone) < limit && ctx.Err() == nil {
		var ids []SessionID
		err := e.Store.Commit(ctx, "session.deleted", func(tx Tx) (err error) {
			if ids, err = tx.Lying(since, 1); err != nil || len(ids) == 0 { // looked at in the transaction that deletes it
				return err
			}
			return tx.Erase(ids[0], e.Now())
		})
		if err != nil {
			return gone, fmt.Errorf("delete an old session: %w", err)
		}
		if len(ids) == 0 {
			break
		}
		e.release(ids[0], ErrFenced)
		gone = append(gone, ids[0])
	}
	return gone, nil
}
