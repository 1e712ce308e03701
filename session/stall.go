package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrStalled: an attempt did nothing for too long.
var ErrStalled = errors.New("nothing happened for too long")

// StallAfter is how long an attempt may do nothing, unless the configuration says otherwise.
const StallAfter = 15 * time.Minute

// pulse is the activity of one attempt and of nothing else: pieces of an answer, output of a call, and every call or question that is open.
// Time is monotonic: neither a changed clock nor a suspended machine makes an attempt stall.
type pulse struct {
	base time.Time
	last atomic.Int64 // since base
	open atomic.Int32 // calls, with what is asked about them
}

func newPulse() *pulse { return &pulse{base: time.Now()} }

func (p *pulse) beat() { p.last.Store(int64(time.Since(p.base))) }

// enter begins an open call and returns what ends it.
func (p *pulse) enter() func() {
	p.open.Add(1)
	return func() {
		p.beat()
		p.open.Add(-1)
	}
}

// still tells whether nothing has happened for so long.
func (p *pulse) still(limit time.Duration) bool {
	return p.open.Load() == 0 && time.Since(p.base)-time.Duration(p.last.Load()) >= limit
}

// stall ends an attempt that did nothing for too long. What follows is decided like a recovery.
func (t *turn) stall(ctx context.Context) error {
	return t.commit(ctx, "turn.stalled", func(tx Tx) error {
		now := t.e.Now()
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		t.att.State, t.att.EndedAt = AttemptStalled, now
		if err := tx.UpdateAttempt(t.att); err != nil {
			return err
		}
		if run.Desired != DesiredRun {
			return t.closeIn(tx, run, now)
		}
		if err := closeOpen(tx, t.a.id, run.ID, now, "The attempt stalled before this call began."); err != nil {
			return err
		}
		run.Phase, run.ReasonCode, run.Reason = PhaseQueued, CodeNone, ""
		t.run = run
		return tx.UpdateRun(run, now)
	})
}

// Stalled is what there is to know about the last turn of a run before it may begin again from its entry.
type Stalled struct {
	Times   int // attempts of the turn that stalled
	Changes Changes
	// Safe: every change is proven by digest, and every path is as the agent left it or as it was before.
	Safe bool
	Cwd  string
}

// LastTurn looks at the last turn of a run.
func (e *Engine) LastTurn(ctx context.Context, r Run) (s Stalled, err error) {
	j, err := e.loadLast(ctx, r)
	if err != nil {
		return s, err
	}
	err = e.Store.Read(ctx, func(tx Tx) error {
		attempts, err := tx.Attempts(r.ID)
		for _, a := range attempts {
			for _, id := range j.turn.Attempts {
				if a.ID == id && a.State == AttemptStalled {
					s.Times++
				}
			}
		}
		return err
	})
	if err != nil {
		return s, err
	}
	s.Cwd = j.session.Cwd
	if s.Changes, err = e.changes(ctx, j); err != nil {
		return s, err
	}
	s.Safe = s.Changes.Provable()
	stands := []TurnChange{} // what a rollback put back is no change any more
	for _, p := range s.Changes.Paths {
		why := e.look(PathStep{Path: p.Path, From: p.After, To: p.Before})
		s.Safe = s.Safe && (why == "" || why == whyBefore)
		if why != whyBefore {
			stands = append(stands, p)
		}
	}
	s.Changes.Paths = stands
	return s, nil
}

// loadLast reads the journal of a run's last turn.
func (e *Engine) loadLast(ctx context.Context, r Run) (j journal, err error) {
	err = e.Store.Read(ctx, func(tx Tx) error {
		if j.session, err = tx.Session(r.Session); err != nil {
			return err
		}
		turns, err := Turns(tx, r.Session)
		if err != nil {
			return err
		}
		for i := len(turns) - 1; i >= 0; i-- {
			if turns[i].Run == r.ID {
				return j.load(tx, turns[i])
			}
		}
		return nil
	})
	return j, err
}

// List names what a turn changed, for a person who decides.
func (s Stalled) List() string {
	var names []string
	for _, p := range s.Changes.Paths {
		names = append(names, shorten(s.Cwd, p.Path))
	}
	text := ""
	if len(names) > 0 {
		text += " It changed " + listed(names, 20) + "."
	}
	if len(s.Changes.Unseen) > 0 {
		text += " What these calls changed is not recorded: " + listed(s.Changes.Unseen, 10) + "."
	}
	if len(s.Changes.Lost) > 0 {
		text += " The outcome of these calls is unknown: " + listed(s.Changes.Lost, 10) + "."
	}
	return text
}

// rollback puts back what the last turn of the run changed, before it begins again from its entry. It is a step like the user's own.
func (t *turn) rollback(ctx context.Context) error {
	j, err := t.e.loadLast(ctx, t.run)
	if err != nil || j.turn.Number == 0 {
		return err
	}
	c, err := t.e.changes(ctx, j)
	if err != nil {
		return err
	}
	u, err := t.e.planTurn(j, c, UndoRollback)
	if errors.Is(err, ErrNothingToUndo) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("plan the rollback: %w", err)
	}
	if !u.touches() {
		return nil // nothing can be put back, or it was and the process died before the next attempt
	}
	err = t.e.acceptUndo(ctx, &u, func(tx Tx) error {
		if err := tx.Fence(t.a.id, t.e.Self.ID, t.a.gen); err != nil {
			return err
		}
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		if run.ControlVersion != t.run.ControlVersion || run.Desired != DesiredRun {
			return ErrStale // a control came first; the actor looks again
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("accept the rollback: %w", err)
	}
	_, err = t.e.settleUndo(ctx, u)
	return err
}

// ErrNotWaiting: nothing of the session waits for this word.
var ErrNotWaiting = errors.New("nothing here has stalled, died in a circle or waits for that word; /undo takes back a turn that has ended")

// takesWord tells whether a person's word moves work that waits with the code: that it begins again, or that it goes on as things are.
func takesWord(c Code, how Redo) bool {
	switch c {
	case CodeStalled, CodeCrashLoop:
		return true
	case CodeWorkspaceChanged, CodeDirectoryMissing, CodeModelUnavailable, CodeRecoveryOff, CodeNotAttached, CodeContextOverflow, CodeModelRetry:
		return how == RedoKeep
	}
	return false
}

// Redo stores a person's word on work that waits for one: from its entry, or as it is. It returns the run it is about. A directory is
// taken as it is now, and everything that was left behind in the session goes on, in order.
func (e *Engine) Redo(ctx context.Context, id SessionID, how Redo) (RunID, error) {
	var about RunID
	identity := e.IdentityOf(ctx, id)
	err := e.Commit(ctx, "redo.accepted", id, func(tx Tx) error {
		now := e.Now()
		runs, err := tx.OpenRuns(id)
		if err != nil {
			return err
		}
		for _, r := range runs {
			elsewhere := r.ReasonCode == CodeEnvironment && how == RedoKeep && r.Kind == RunPrompt
			if r.Desired != DesiredRun || r.Phase != PhaseWaiting || !takesWord(r.ReasonCode, how) && !elsewhere {
				continue
			}
			about = r.ID
			if r.ReasonCode == CodeStalled || r.ReasonCode == CodeCrashLoop {
				r.Redo = how
			}
			if r.ReasonCode == CodeModelRetry {
				r.Faults, r.RetryAt, r.RetryWait = 0, time.Time{}, 0
				if err := r.PassLimits(tx); err != nil {
					return err
				}
			}
			r.Left, r.Phase, r.ReasonCode, r.Reason, r.Deaths = false, PhaseQueued, CodeNone, "", 0
			r.ControlVersion++
			if err := tx.UpdateRun(r, now); err != nil {
				return err
			}
			if err := e.GoOnHere(tx, r.ID, now); err != nil {
				return err
			}
			if err := Rebase(tx, id, identity, now); err != nil {
				return err
			}
			if _, err := lift(tx, id, now); err != nil {
				return err
			}
			return tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandGoal, Ref: string(r.ID), Instance: e.Self.ID, At: now})
		}
		return ErrNotWaiting
	})
	if err != nil {
		return "", fmt.Errorf("begin again: %w", err)
	}
	return about, e.Adopt(ctx, id)
}
