package goals

import (
	"errors"
	"time"

	"holdfast/session"
)

// Hooks ties a session's cancel to its Goal.
type Hooks struct{}

// Cancelled pauses an active Goal: otherwise it would start again under the user's hand.
func (Hooks) Cancelled(stx session.Tx, id session.SessionID, command string, now time.Time) error {
	tx := in(stx)
	g, err := tx.OpenGoal(id)
	if errors.Is(err, session.ErrNotFound) {
		return cancelBroken(tx, id, now)
	}
	if err != nil {
		return err
	}
	if g.Status == Paused && g.CancelCommand != "" { // stopped once more: a prompt behind the first stop does not undo this one
		first, err := tx.Command(g.CancelCommand)
		if err != nil {
			return err
		}
		again, err := tx.Command(command)
		if err != nil {
			return err
		}
		if g.CancelCommand, g.UpdatedAt = command, now; first.Instance != again.Instance {
			g.CancelCommand = "" // two windows have stopped it, in whatever order: neither gives it back alone
		}
		return tx.UpdateGoal(g, now)
	}
	if g.Status == Paused { // by a program, or for good by the user: there is nothing to give back
		g.UpdatedAt = now
		return pause(tx, g, session.CodeUserCancelled, "", now)
	}
	if g.Status != Active {
		return nil
	}
	g.ControlVersion++
	g.CancelCommand, g.UpdatedAt = command, now
	return pause(tx, g, session.CodeUserCancelled, "", now)
}

// cancelBroken ends the runs of Goals whose own record is not valid, so that it cannot be paused. It stays as it is.
func cancelBroken(tx Tx, id session.SessionID, now time.Time) error {
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Goal == "" || r.Desired != session.DesiredRun {
			continue
		}
		if g, err := tx.Goal(r.Goal); err != nil || g.Broken == session.CodeNone {
			continue
		}
		r.Desired, r.ReasonCode = session.DesiredCancelled, session.CodeUserCancelled
		r.ControlVersion++
		if err := tx.UpdateRun(r, now); err != nil {
			return err
		}
	}
	return nil
}

// Uncancelled lets the Goal go on that this cancel, and nothing since, has paused.
func (Hooks) Uncancelled(stx session.Tx, id session.SessionID, command string, now time.Time) error {
	tx := in(stx)
	g, err := tx.OpenGoal(id)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil || g.CancelCommand != command || g.Status != Paused {
		return err
	}
	g.ControlVersion++
	g.CancelCommand, g.UpdatedAt, g.Status, g.ReasonCode = "", now, Active, session.CodeNone
	return want(tx, g, session.DesiredRun, now)
}
