package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// begin admits the next attempt. started is false when the run must wait or was closed.
func (t *turn) begin(ctx context.Context) (started bool, err error) {
	if t.run.Desired != DesiredRun {
		return false, t.close(t.a.ctx) // not under the turn's own context, which the same stop cancels
	}
	if err := t.e.FinishUndo(ctx, t.a.id); err != nil {
		return false, err
	}
	var last Attempt
	err = t.e.Store.Read(ctx, func(tx Tx) error {
		if err := tx.Intact(t.a.id); err != nil {
			return err
		}
		if t.sess, err = tx.Session(t.a.id); err != nil {
			return err
		}
		t.run.Profile = t.run.Profile.Or(t.sess.Profile)
		if t.environ, err = t.e.CommandEnv(tx, t.run.Profile); err != nil {
			return err
		}
		last, err = tx.LastAttempt(t.run.ID)
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("load the run: %w", err)
	}
	if t.e.ownJudge(t.run, last) {
		t.run.Profile = t.e.judging(t.run.Profile)
	}
	t.tree = t.e.Workspace.Root(t.sess.Cwd)
	verdict := Verdict{Mode: ModeTurn}
	if last.ID == "" {
		verdict.Mode = ModeFirst
	}
	orphan := last.State == AttemptRunning
	if t.needsRecovery(orphan, last) {
		if err := t.claim(ctx); err != nil {
			return false, err
		}
	}
	if t.needsRecovery(orphan, last) {
		verdict, err = t.e.Recoverer.Recover(ctx, Inherited{Engine: t.e, Session: t.sess, Run: t.run, Last: last})
		if err != nil {
			return false, fmt.Errorf("decide recovery of run %s: %w", t.run.ID, err)
		}
	}
	if verdict.Wait == CodeNone && t.e.homeless(t.sess) {
		verdict.Wait, verdict.Reason = CodeDirectoryMissing, DirectoryMissing(t.sess.Cwd)
	}
	if verdict.Wait == CodeNone {
		if t.model, err = t.e.ModelFor(t.run.Profile); err != nil {
			verdict.Wait, verdict.Reason = CodeModelUnavailable, safeText(err)
		} else if here := t.e.HereFor(t.run.Profile.Choice()); !t.run.Profile.Fits(here) { // asked of every attempt, not only of what recovery looks at
			verdict.Wait, verdict.Reason = CodeEnvironment, Differs(t.run.Profile, here)
		}
	}
	if verdict.Wait == CodeNone && verdict.Rollback {
		if err := t.rollback(ctx); err != nil {
			return false, err
		}
	}
	observed, err := t.driver().Observe(ctx, t.sess, t.run)
	if err != nil {
		return false, fmt.Errorf("look at the work tree: %w", err)
	}
	t.lookAfter(ctx)
	point := "run.admitted"
	if orphan || verdict.Rule != "" && last.ID != "" { // a run that never began is admitted, whoever accepted it
		point = "recovery.decided"
	}
	if err := t.commit(ctx, point, func(tx Tx) error {
		if err := t.admit(tx, last, verdict, observed); err != nil || t.att.ID != "" || !t.slot {
			return err
		}
		return tx.DropSlot(t.a.id) // the slot came to nothing
	}); err != nil {
		return false, err
	}
	if t.queued {
		return false, errQueued
	}
	delete(t.a.inherited, t.run.ID)
	if t.att.ID != "" {
		t.a.settled.Store(true)
	}
	return t.att.ID != "", nil
}

// needsRecovery tells whether it has to be found out how the run goes on.
func (t *turn) needsRecovery(orphan bool, last Attempt) bool {
	return t.a.inherited[t.run.ID] || InLine(t.run) || orphan || t.run.Phase == PhaseWaiting || last.State == AttemptStalled || t.run.Redo != RedoNone
}

func (t *turn) driver() Driver {
	d := t.e.Drivers[t.run.Kind]
	if d == nil {
		panic(fmt.Sprintf("session: no driver for run kind %q", t.run.Kind))
	}
	return d
}

// admit stores one decision whole: what became of the lost attempt, and either the next attempt or the reason to wait. Its
// continuation key comes from the predecessor, so the same decision cannot admit twice.
func (t *turn) admit(tx Tx, last Attempt, v Verdict, observed any) error {
	now := t.e.Now()
	run, err := tx.Run(t.run.ID)
	if err != nil {
		return err
	}
	if run.ControlVersion != t.run.ControlVersion || run.Desired != DesiredRun {
		return nil // a control came first; the actor looks again
	}
	if heldBack(v.Wait) && !run.Left {
		return nil // a person's word came first; the actor looks again
	}
	if open, err := tx.OpenUndos(t.a.id); err != nil || len(open) > 0 {
		return err // files are being put back; the actor looks again
	}
	if v.Wait == CodeNone && !t.slot {
		if ok, err := t.take(tx, run, now); err != nil || !ok {
			t.queued = err == nil
			return err
		}
	}
	if err := v.apply(tx, run, last, now); err != nil {
		return err
	}
	if last.State == AttemptRunning {
		if run.CommitPoint > last.StartPoint {
			run.Deaths = 0
		} else if v.Died {
			run.Deaths++
		}
	}
	if v.Wait != CodeNone {
		run.Phase, run.ReasonCode, run.Reason = PhaseWaiting, v.Wait, v.Reason
		run.Profile = run.Profile.Or(t.sess.Profile)
		t.run = run
		return tx.UpdateRun(run, now)
	}
	if run.limited() {
		if err := run.PassLimits(tx); err != nil {
			return err
		}
		if moved := t.a.left(run) > 0; moved { // others were answered before its time: it has its tries still
			run.Faults = 0
		}
	}
	run.Phase, run.ReasonCode, run.Reason, run.RetryAt, run.RetryWait = PhaseWorking, CodeNone, "", time.Time{}, 0
	run.Redo, run.Left = RedoNone, false
	if err := tx.Serve(t.a.id, now); err != nil {
		return err
	}
	a := Attempt{
		ID: AttemptID(t.e.NewID()), Run: run.ID, Number: last.Number + 1, Generation: t.a.gen, Instance: t.e.Self.ID, PID: t.e.Self.PID,
		State: AttemptRunning, Mode: v.Mode, Rule: v.Rule, StartPoint: run.CommitPoint, StartedAt: now,
		ContinuationKey: Digest(string(run.ID), fmt.Sprint(run.ControlVersion), fmt.Sprint(run.CommitPoint), string(last.ID)),
		// What did not come to its end goes on in the work tree as it is, unless it was put back first.
		Continued: last.ID != "" && last.State != AttemptCompleted && !v.Rollback, EntryTree: v.Entry.Tree, Fingerprint: v.Entry.Fingerprint,
	}
	if err := tx.InsertAttempt(a); err != nil {
		return err
	}
	if err := t.wear(tx, &run, now); err != nil {
		return err
	}
	if err := t.judge(tx, &run, last, now); err != nil {
		return err
	}
	if t.setup, err = t.driver().Setup(tx, t.sess, run); err != nil {
		return err
	}
	t.saidMode = t.sess.Mode
	t.answered = 0
	if run.Kind == RunVerification {
		t.setup.Thread = string(run.ID) // never chat
	}
	b := &Begin{Session: t.sess, Run: &run, Attempt: a, Observed: observed}
	b.Add = func(it *Item) error { return t.insert(tx, it, run, a) }
	b.AddCalls = func(calls []Call) error { return t.plan(tx, run, a, t.e.NewID(), calls, true) }
	if v.Mode != ModeReconnect && v.Mode != ModeCheckpoint { // those go on in the middle of a turn
		if err := t.tellEnds(tx, run, a); err != nil {
			return err
		}
	}
	if v.Mode == ModeFirst || v.Mode == ModeTurn {
		if err := t.driver().Begin(tx, b); err != nil {
			return err
		}
	}
	if v.Note != "" {
		if err := b.Add(&Item{Kind: ItemNote, State: ItemComplete, Body: ItemBody{Text: v.Note}}); err != nil {
			return err
		}
	}
	if v.Shown != "" {
		if err := b.Add(&Item{Kind: ItemMarker, State: ItemComplete, Body: ItemBody{Text: v.Shown}}); err != nil {
			return err
		}
	}
	t.run, t.att = run, a
	return tx.UpdateRun(run, now)
}

// wear makes what the run goes on with that of its session. Work that was accepted by an instance which executes nothing gets it here.
func (t *turn) wear(tx Tx, run *Run, now time.Time) error {
	run.Profile = run.Profile.Or(t.sess.Profile)
	if run.Profile.Provider == "" || run.Profile.Env == "" {
		c := t.sess.Choice
		if run.Profile.Provider != "" { // only the environment is missing
			c = run.Profile.Choice()
		}
		here, err := t.e.Bring(tx, c, now)
		if err != nil {
			return err
		}
		run.Profile = run.Profile.Or(here)
	}
	s, err := tx.Session(t.a.id)
	if err != nil {
		return err
	}
	if run.Kind == RunVerification { // it may have a model of its own, which is not the session's
		return nil
	}
	if t.sess.Profile = run.Profile; s.Profile == run.Profile {
		return nil
	}
	s.Profile, s.UpdatedAt = run.Profile, now
	return tx.UpdateSession(s)
}

// insert adds an item that belongs to the attempt.
func (t *turn) insert(tx Tx, it *Item, run Run, a Attempt) error {
	if it.ID == "" {
		it.ID = ItemID(t.e.NewID())
	}
	it.Session, it.Run, it.Attempt, it.CreatedAt = t.a.id, run.ID, a.ID, t.e.Now()
	if it.Kind != ItemMarker && it.Kind != ItemGoal {
		it.Thread = t.setup.Thread
	}
	return tx.InsertItem(it)
}
