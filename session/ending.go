package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// end commits what the driver makes of a turn that came to its own end.
func (t *turn) end(ctx context.Context, finish Finish) error {
	observed, err := t.driver().Observe(ctx, t.sess, t.run)
	if err != nil {
		if ctx.Err() != nil {
			return t.stopped(ctx)
		}
		return fmt.Errorf("look at the work tree: %w", err)
	}
	return t.commit(ctx, "turn.ended", func(tx Tx) error { return t.endIn(tx, finish, observed, 0) })
}

// endIn is end inside a transaction, which may bring progress of its own.
func (t *turn) endIn(tx Tx, finish Finish, observed any, progress int64) error {
	run, now, err := t.endAttempt(tx, AttemptCompleted)
	if err != nil {
		return err
	}
	run.CommitPoint += progress
	if run.Desired != DesiredRun {
		return t.closeIn(tx, run, now)
	}
	if t.same >= maxSame {
		it := Item{Kind: ItemMarker, State: ItemComplete, Body: ItemBody{Text: "The model made the same call again and again; its turn was ended."}}
		if err := t.insert(tx, &it, run, t.att); err != nil {
			return err
		}
	}
	run.ReasonCode, run.Reason, run.Deaths, run.Faults = CodeNone, "", 0, 0
	e := &End{Session: t.sess, Run: &run, Attempt: t.att, Observed: observed, Finish: finish, Now: now, NewID: t.e.NewID}
	if err := t.driver().End(tx, e); err != nil {
		return err
	}
	t.run = run
	return tx.UpdateRun(run, now)
}

// endAttempt stores the end of the attempt, and returns its run as it is stored.
func (t *turn) endAttempt(tx Tx, state AttemptState) (Run, time.Time, error) {
	now := t.e.Now()
	run, err := tx.Run(t.run.ID)
	if err != nil {
		return run, now, err
	}
	t.att.State, t.att.EndedAt = state, now
	return run, now, tx.UpdateAttempt(t.att)
}

// leave ends the attempt but not the run.
func (t *turn) leave(ctx context.Context, state AttemptState, phase Phase, code Code, reason string) error {
	return t.commit(ctx, "turn.left", func(tx Tx) error {
		run, now, err := t.endAttempt(tx, state)
		if err != nil {
			return err
		}
		if run.Desired != DesiredRun {
			return t.closeIn(tx, run, now)
		}
		run.Phase, run.ReasonCode, run.Reason = phase, code, reason
		return tx.UpdateRun(run, now)
	})
}

// stopped ends an attempt whose context ended: by the user, or because this process lets go.
func (t *turn) stopped(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrFenced) {
		return ErrFenced
	}
	if errors.Is(context.Cause(ctx), ErrStopped) {
		return t.leave(ctx, AttemptCancelled, PhaseQueued, CodeNone, "")
	}
	if errors.Is(context.Cause(ctx), ErrStalled) {
		return t.stall(ctx)
	}
	// The attempt stays running in the records: the next owner finds it as after a crash and goes on.
	return nil
}

// close ends a run that is no longer wanted and was not being executed here.
func (t *turn) close(ctx context.Context) error {
	killed, err := t.killOrphans(ctx)
	if err != nil {
		return err
	}
	err = t.commit(ctx, "run.closed", func(tx Tx) error {
		now := t.e.Now()
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		if run.Desired == DesiredRun {
			return nil
		}
		if last, err := tx.LastAttempt(run.ID); err == nil && last.State == AttemptRunning {
			last.State, last.EndedAt = AttemptInterrupted, now
			if err := tx.UpdateAttempt(last); err != nil {
				return err
			}
			if err := loseRequests(tx, run.ID, now); err != nil {
				return err
			}
		}
		for id, f := range killed {
			if err := SettleFinding(tx, id, f, now); err != nil {
				return err
			}
		}
		return t.closeIn(tx, run, now)
	})
	if err == nil {
		delete(t.a.inherited, t.run.ID)
	}
	return err
}

// closeIn closes what a stopped run left open and ends it when the stop is final.
func (t *turn) closeIn(tx Tx, run Run, now time.Time) error {
	if err := closeOpen(tx, t.a.id, run.ID, now, "The user stopped the work before this call began."); err != nil {
		return err
	}
	switch run.Desired {
	case DesiredCancelled:
		run.Phase, run.StopReason, run.EndedAt = PhaseEnded, "cancelled", now
	case DesiredPaused:
		run.Phase = PhaseQueued
	}
	t.run = run
	return tx.UpdateRun(run, now)
}

// closeOpen settles planned calls as not started, leaves dispatched ones unknown, voids questions and closes open items.
func closeOpen(tx Tx, id SessionID, run RunID, now time.Time, why string) error {
	effects, err := tx.OpenEffects(id)
	if err != nil {
		return err
	}
	for _, ef := range effects {
		if ef.Run != run {
			continue
		}
		f := Finding{Fact: FactUnknown, Note: "The work was stopped after the call was started and before its end was recorded."}
		if ef.State == EffectPlanned {
			f = Finding{Fact: FactNotStarted, By: SettledByRecovery, Note: why}
		} else if ef.Fact == FactUnknown {
			continue
		}
		if err := SettleFinding(tx, ef.ID, f, now); err != nil {
			return err
		}
	}
	approvals, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range approvals {
		if p.Run == run {
			p.State = ApprovalVoid
			if err := tx.UpdateApproval(p, now); err != nil {
				return err
			}
		}
	}
	open, err := tx.OpenItems(id)
	if err != nil {
		return err
	}
	for _, it := range open {
		if it.Run == run && it.Kind != ItemTool {
			it.State = ItemInterrupted
			if err := tx.UpdateItem(it, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// fault handles a failed provider request: a temporary one gets a stored time for the next try, a lasting one ends the attempt.
func (t *turn) fault(ctx context.Context, me *ModelError) error {
	next, ok := tryAgain(t.run.Faults, me)
	if !ok {
		return t.fail(ctx, CodeModelFailed, me.final(), me)
	}
	first := t.run.Faults == 0
	err := t.commit(ctx, "model.retry", func(tx Tx) error {
		run, now, err := t.endAttempt(tx, AttemptFailed)
		if err != nil {
			return err
		}
		run.Faults = next.faults
		run.Phase, run.ReasonCode, run.Reason, run.RetryAt = PhaseWaiting, CodeModelRetry, me.Message, now.Add(next.wait)
		run.RetryWait = next.wait
		if err := t.keepLimit(tx, me, now); err != nil {
			return err
		}
		if next.limit {
			run.Reason = strings.TrimSuffix(me.Message, ".") + "; not asked again before " + until(run.RetryAt)
			it := Item{Kind: ItemMarker, State: ItemComplete, Body: ItemBody{Text: limitNotice(me, run.RetryAt)}}
			if err := t.insert(tx, &it, run, t.att); err != nil {
				return err
			}
		}
		t.run = run
		return tx.UpdateRun(run, now)
	})
	if err == nil && first && !next.limit { // said once, however often it is tried
		t.e.bus.publish(t.a.id, Live{Item: ItemID(t.e.NewID()), Kind: ItemMarker, Run: t.run.ID, Thread: t.setup.Thread,
			Text: "\n[" + strings.TrimSuffix(me.Message, ".") + ". It is tried again by itself.]\n"})
	}
	return err
}

// fail ends an attempt that cannot go on without a person. me is with what the endpoint ended it, nil when that was something else.
func (t *turn) fail(ctx context.Context, code Code, reason string, me *ModelError) error {
	return t.commit(ctx, "turn.failed", func(tx Tx) error {
		run, now, err := t.endAttempt(tx, AttemptFailed)
		if err != nil {
			return err
		}
		if err := t.keepLimit(tx, me, now); err != nil {
			return err
		}
		if run.Desired != DesiredRun {
			return t.closeIn(tx, run, now)
		}
		if err := closeOpen(tx, t.a.id, run.ID, now, "The work failed before this call began."); err != nil {
			return err
		}
		e := &End{Session: t.sess, Run: &run, Attempt: t.att, Now: now, NewID: t.e.NewID}
		if err := t.driver().Failed(tx, e, code, reason); err != nil {
			return err
		}
		t.run = run
		return tx.UpdateRun(run, now)
	})
}

// safeText is one line for a person.
func safeText(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
