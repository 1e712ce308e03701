package session

import (
	"cmp"
	"context"
	"errors"
	"time"
)

func (c *call) finish(ctx context.Context, out Output, err error, by SettledBy, p Prepared) error {
	record := func(tx Tx, _ *Finding) error { return p.Settle(tx, c.t.e.Now()) }
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrDetach) || errors.Is(context.Cause(ctx), ErrFenced) {
			return context.Cause(ctx) // it goes on outside, or its outcome belongs to the next owner
		}
		var lost *LostError
		if errors.As(err, &lost) {
			f := Finding{Fact: FactUnknown, By: SettledByResult, Note: lost.Message, Lookup: lost.Lookup}
			return c.settle(ctx, "effect.lost", f, record)
		}
		var never *NotStartedError
		if errors.As(err, &never) {
			return c.settle(ctx, "effect.settled", Finding{Fact: FactNotStarted, By: SettledByReceipt, Note: never.Message}, record)
		}
		var te *ToolError
		if !errors.As(err, &te) {
			c.t.a.log(err, "a tool failed")
		}
		out = Output{Text: safeText(err), IsError: true}
	}
	identity := c.t.e.IdentityOf(context.WithoutCancel(ctx), c.t.a.id) // "" when it went away; recovery will say so
	after := c.after(ctx)
	return c.settle(ctx, "effect.settled", Finding{Fact: FactCompleted, By: by, Output: &out}, func(tx Tx, f *Finding) error {
		if err := record(tx, f); err != nil {
			return err
		}
		if err := c.hear(tx, out.Heard, c.t.e.Now()); err != nil {
			return err
		}
		if err := after(tx); err != nil {
			return err
		}
		return Rebase(tx, c.t.a.id, identity, c.t.e.Now())
	})
}

// settle commits what is certain about the call. fill may complete the finding inside the transaction.
func (c *call) settle(ctx context.Context, point string, f Finding, fill func(Tx, *Finding) error) error {
	return c.t.commit(ctx, point, func(tx Tx) error {
		now := c.t.e.Now()
		if fill != nil {
			if err := fill(tx, &f); err != nil {
				return err
			}
		}
		if err := c.settleIn(tx, f, now); err != nil {
			return err
		}
		return c.t.progressed(tx, 1, now)
	})
}

// settleIn settles what this process holds of a call that was only planned: nobody else changes it. Title and paths come from the plan.
func (c *call) settleIn(tx Tx, f Finding, now time.Time) error {
	if c.effect.State == EffectPlanned {
		return settleLoaded(tx, c.effect, c.item, f, now)
	}
	if err := tx.UpdateItem(c.item, now); err != nil {
		return err
	}
	return SettleFinding(tx, c.effect.ID, f, now)
}

// progressed counts settled calls as progress of the run.
func (t *turn) progressed(tx Tx, calls int64, now time.Time) error {
	run, err := tx.Run(t.run.ID)
	if err != nil {
		return err
	}
	run.CommitPoint += calls
	t.run = run
	return tx.UpdateRun(run, now)
}

// SettleFinding appends what is certain about a call to its settlements and shows it in its journal record and its history entry. A settled
// call is left as it is, unless a person's word settled it and this is what really came of it.
func SettleFinding(tx Tx, id EffectID, f Finding, now time.Time) error {
	ef, err := tx.Effect(id)
	if err != nil {
		return err
	}
	if ef.State == EffectSettled && !overrules(ef, f) {
		return nil
	}
	it, err := tx.Item(ef.Item)
	if err != nil {
		return err
	}
	return settleLoaded(tx, ef, it, f, now)
}

func settleLoaded(tx Tx, ef Effect, it Item, f Finding, now time.Time) error {
	if err := settleStart(tx, ef, f, now); err != nil {
		return err
	}
	word, tc := ef, it.Body.Tool
	if tc == nil { // an entry that is not valid stays as it is; the journal says what is certain
		tc = &ToolCall{}
	}
	ef.Fact, tc.Fact = f.Fact, f.Fact
	ef.Lookup, tc.Lookup, tc.Why = "", "", ""
	if f.Note != "" {
		ef.Note = f.Note
	}
	switch f.Fact {
	case FactCompleted, FactNotStarted:
		ef.State, ef.SettledAt, ef.SettledBy = EffectSettled, now, f.By
		it.State = ItemComplete
		tc.Status = ToolCompleted
		if f.Fact == FactNotStarted || f.Output != nil && f.Output.IsError {
			tc.Status = ToolFailed
		}
	case FactUnknown:
		tc.Status = ToolFailed // never shown as running
		ef.Lookup = cmp.Or(f.Lookup, LookupNothing)
		tc.Lookup, tc.Why = ef.Lookup, f.Note
		if ef.Plan.External != nil {
			if err := lose(tx, ef.ID, f.Note, now); err != nil {
				return err
			}
		}
	case FactRunning:
		tc.Status = ToolInProgress
	}
	if f.Output != nil {
		tc.Output = f.Output.fetchable(ef.ID)
		ef.ExitCode, ef.ResultDigest = f.Output.ExitCode, f.Output.Digest
		if ef.ResultDigest == "" {
			ef.ResultDigest = Digest(f.Output.Text)
		}
	} else if f.Fact == FactNotStarted && f.Note != "" {
		tc.Output = &Output{Text: "[Not started. " + f.Note + "]", IsError: true}
	} else if f.Fact == FactCompleted && f.Note != "" {
		tc.Output = &Output{Text: "[" + f.Note + "]"}
	}
	if err := tx.UpdateItem(it, now); err != nil {
		return err
	}
	s, err := tx.Session(it.Session)
	if err != nil {
		return err
	}
	ef.SettledSeq = s.LastSeq // the event that announced it
	if err := tx.UpdateEffect(ef); err != nil {
		return err
	}
	found := settlement(ef, f, s, now)
	if word.Fact == FactNone {
		found.Seq = 1
	}
	if err := tx.AppendSettlement(found); err != nil || word.State != EffectSettled {
		return err
	}
	return tellOverruled(tx, word, ef, it, now)
}

// LostError says that a call was started and that its end was not seen. Lookup is what could still tell it.
type LostError struct {
	Message string
	Lookup  Lookup
}

func (e *LostError) Error() string { return e.Message }

// NotStartedError says that a dispatched call provably never began.
type NotStartedError struct{ Message string }

func (e *NotStartedError) Error() string { return e.Message }
