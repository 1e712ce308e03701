package session

import (
	"context"
	"errors"
	"time"
)

// Executing tells whether a call that is shown as running is being executed: by whom, and since when. An attempt whose owner has lost the
// session executes nothing.
func Executing(tx Tx, it Item) (owner InstanceID, runs bool, since time.Time, err error) {
	s, err := tx.Session(it.Session)
	if err != nil {
		return "", false, since, err
	}
	a, err := tx.LastAttempt(it.Run)
	if errors.Is(err, ErrNotFound) {
		return "", false, since, nil
	}
	if err != nil {
		return "", false, since, err
	}
	ef, err := tx.Effect(it.Body.Tool.Effect)
	return s.Owner, s.Owner != "" && a.State == AttemptRunning && a.Generation == s.Generation, ef.DispatchedAt, err
}

// Peek returns what the command of a running call has printed so far, whoever executes it.
func (e *Engine) Peek(ctx context.Context, it Item) (Output, bool) {
	var dir string
	err := e.Store.Read(ctx, func(tx Tx) error {
		ef, err := tx.Effect(it.Body.Tool.Effect)
		dir = ef.Dir
		return err
	})
	b := e.backgrounder()
	if err != nil || b == nil || dir == "" {
		return Output{}, false
	}
	return b.Peek(dir)
}
