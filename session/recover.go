package session

import "time"

// Inherited is a run that this ownership did not begin, or that waited for something.
type Inherited struct {
	Engine  *Engine
	Session Session
	Run     Run
	Last    Attempt // zero when the run was never admitted
}

// Verdict is a recovery decision ready to be stored: it and the admission it leads to are one transaction.
type Verdict struct {
	Rule   string
	Mode   AttemptMode
	Wait   Code   // not CodeNone: the run waits and no attempt begins
	Reason string // for a person
	Died   bool   // the last owner died in the attempt, rather than letting go
	Note   string // what the next turn is told
	Shown  string // one line for the user
	// Findings settles the calls the lost owner had dispatched.
	Findings map[EffectID]Finding
	// Rollback puts back what the last turn changed before it begins again.
	Rollback bool
	// Entry is the work tree that the next attempt begins in, where it was recorded already.
	Entry Checkpoint
	// CloseOpen ends the old turn: planned calls are settled as never started. Without it they are run by the next attempt.
	CloseOpen bool
}

// apply stores what became of the lost attempt.
func (v Verdict) apply(tx Tx, r Run, last Attempt, now time.Time) error {
	run, err := tx.Run(r.ID)
	if err != nil {
		return err
	}
	s, err := tx.Session(run.Session)
	if err != nil {
		return err
	}
	for id, f := range v.Findings {
		if err := SettleFinding(tx, id, f, now); err != nil {
			return err
		}
	}
	if last.State != AttemptRunning {
		return nil
	}
	if err := loseRequests(tx, last.Run, now); err != nil {
		return err
	}
	if err := interrupt(tx, run.Session, last.Run, v.CloseOpen, now); err != nil {
		return err
	}
	// The last thing its owner committed bounds the time it worked; when the loss was noticed says nothing.
	last.State, last.EndedAt = AttemptInterrupted, s.UpdatedAt
	return tx.UpdateAttempt(last)
}

// loseRequests records that nobody will learn what became of the requests of a lost attempt.
func loseRequests(tx Tx, run RunID, now time.Time) error {
	reqs, err := tx.RequestsOf(run)
	if err != nil {
		return err
	}
	for _, r := range reqs {
		if r.State == RequestStarted {
			r.State, r.SettledAt = RequestUnknown, now
			if err := tx.UpdateRequest(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// interrupt closes streaming items, and with calls set also the calls that never began.
func interrupt(tx Tx, id SessionID, run RunID, calls bool, now time.Time) error {
	open, err := tx.OpenItems(id)
	if err != nil {
		return err
	}
	for _, it := range open {
		if it.Run != run {
			continue
		}
		if it.Kind == ItemTool {
			if !calls {
				continue
			}
			ef, err := tx.Effect(it.Body.Tool.Effect)
			if err != nil {
				return err
			}
			if ef.State == EffectPlanned {
				f := Finding{Fact: FactNotStarted, By: SettledByRecovery, Note: "The turn was interrupted before this call began."}
				if err := SettleFinding(tx, ef.ID, f, now); err != nil {
					return err
				}
			}
			continue
		}
		it.State = ItemInterrupted
		if err := tx.UpdateItem(it, now); err != nil {
			return err
		}
	}
	return voidSettled(tx, id, now)
}

// voidSettled closes questions about calls that will not happen any more.
func voidSettled(tx Tx, id SessionID, now time.Time) error {
	approvals, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range approvals {
		ef, err := tx.Effect(p.Effect)
		if err != nil {
			return err
		}
		if ef.State == EffectSettled {
			p.State = ApprovalVoid
			if err := tx.UpdateApproval(p, now); err != nil {
				return err
			}
		}
	}
	return nil
}
