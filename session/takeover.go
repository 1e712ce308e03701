package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Errors of taking work away from another process. Each says what happens instead.
var (
	ErrNoOwner    = errors.New("no process has the session: it goes on by itself as soon as one that executes runs")
	ErrOwnerDead  = errors.New("the process that had the session is dead already: it goes on by itself as soon as one that executes runs")
	ErrOwnerHere  = errors.New("this process executes the session already")
	ErrOwnerElse  = errors.New("the session belongs to a process on another machine, which cannot be ended from here")
	ErrOwnerLocal = errors.New("the session belongs to a process of this machine")
)

// Holding is a session that a process has, with what is unfinished in it.
type Holding struct {
	Session  SessionID
	Title    string
	Cwd      string
	Runs     []Run // wanted and not ended
	Attached int   // windows that have it open
}

// HoldingsOf lists what a process has.
func HoldingsOf(tx Tx, owner InstanceID) (out []Holding, err error) {
	ids, err := tx.OwnedBy(owner)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		s, err := tx.Session(id)
		if err != nil {
			return nil, err
		}
		h := Holding{Session: id, Title: s.Title, Cwd: s.Cwd}
		runs, err := tx.OpenRuns(id)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if r.Desired == DesiredRun {
				h.Runs = append(h.Runs, r)
			}
		}
		at, err := tx.Attached(id)
		if err != nil {
			return nil, err
		}
		h.Attached = len(at)
		out = append(out, h)
	}
	return out, nil
}

// OwnerOf returns the process that has a session, or the reason why there is none to take it from.
func OwnerOf(tx Tx, id SessionID, self InstanceID) (InstanceRow, error) {
	s, err := tx.Session(id)
	switch {
	case err != nil:
		return InstanceRow{}, err
	case s.Owner == "":
		return InstanceRow{}, ErrNoOwner
	case s.Owner == self:
		return InstanceRow{}, ErrOwnerHere
	}
	row, err := tx.Instance(s.Owner)
	if errors.Is(err, ErrNotFound) {
		return row, ErrNoOwner
	}
	return row, err
}

// Disown frees the sessions of a dead process without executing them: whoever executes takes them, under the next generation. The caller
// has proven the death.
func (e *Engine) Disown(ctx context.Context, dead InstanceID) error {
	var ids []SessionID
	err := e.Store.Commit(ctx, "owner.disowned", func(tx Tx) (err error) {
		if ids, err = tx.OwnedBy(dead); err != nil {
			return err
		}
		return tx.DeleteInstance(dead)
	})
	if err != nil {
		return fmt.Errorf("free the sessions of %s: %w", dead, err)
	}
	e.changedAll(ids)
	return nil
}

// MoveHere frees the sessions of a process on another machine, which a person has said does not run there any more. What it had under way is
// closed first: nothing here can tell what became of its calls, so none of them is taken for made or for not made.
func (e *Engine) MoveHere(ctx context.Context, foreign InstanceID) ([]SessionID, error) {
	var ids []SessionID
	err := e.Store.Commit(ctx, "owner.moved", func(tx Tx) error {
		row, err := tx.Instance(foreign)
		if err != nil {
			return err
		}
		if row.Host == e.Self.Host {
			return ErrOwnerLocal
		}
		if ids, err = tx.OwnedBy(foreign); err != nil {
			return err
		}
		for _, id := range ids {
			if err := e.leaveUnseen(tx, id); err != nil {
				return fmt.Errorf("session %s: %w", id, err)
			}
		}
		return tx.DeleteInstance(foreign)
	})
	if err != nil {
		return nil, fmt.Errorf("move the sessions of %s here: %w", foreign, err)
	}
	e.changedAll(ids)
	return ids, nil
}

const unseenElsewhere = "It was under way in a process on another machine. Nothing here can tell what became of it."

// leaveUnseen ends what ran in a session elsewhere: calls that were made have an unknown outcome, calls that were not have none.
func (e *Engine) leaveUnseen(tx Tx, id SessionID) error {
	now := e.Now()
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return err
	}
	open, err := tx.OpenEffects(id)
	if err != nil {
		return err
	}
	for _, r := range runs {
		v := Verdict{CloseOpen: true, Findings: map[EffectID]Finding{}}
		for _, ef := range open {
			if ef.Run == r.ID && ef.State == EffectDispatched && ef.Fact != FactUnknown && ef.Class != ReadOnly {
				v.Findings[ef.ID] = Finding{Fact: FactUnknown, Lookup: LookupNothing, Note: unseenElsewhere}
			}
		}
		last, err := tx.LastAttempt(r.ID)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := v.apply(tx, r, last, now); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) changedAll(ids []SessionID) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		e.changed(id)
	}
}
