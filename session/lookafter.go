package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// lookAfter records what has ended, so that the transaction that follows can tell it.
func (t *turn) lookAfter(ctx context.Context) {
	if t.setup.Thread != "" {
		return
	}
	if err := t.e.LookAfterBackgrounds(ctx, t.a.id); err != nil && ctx.Err() == nil {
		t.a.log(err, "looking after background commands failed") // the next look tells
	}
}

func (e *Engine) backgrounder() Backgrounder {
	for _, t := range e.Tools {
		if b, ok := t.(Backgrounder); ok {
			return b
		}
	}
	return nil
}

// HasBackgrounds tells whether some background command may have no recorded end.
func (e *Engine) HasBackgrounds() bool { return e.backgrounds.Load() }

// endSoon ends what was just stopped, beside everything else. Close waits for it.
func (e *Engine) endSoon(id SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.Passive {
		return
	}
	e.wg.Go(func() {
		if err := e.LookAfterBackgrounds(e.ctx, id); err != nil && e.ctx.Err() == nil {
			e.Log.Error().Err(err).Str("session_id", string(id)).Msg("ending background commands failed")
		}
	})
}

// EndCommands ends the foreground commands of stopped work that has no owner, or one that does not respond. It settles nothing: what became of them is
// found by whoever executes the session, from their receipts.
func (e *Engine) EndCommands(ctx context.Context, id SessionID) error {
	var open []Effect
	err := e.Store.Read(ctx, func(tx Tx) error {
		open = nil
		s, err := tx.Session(id)
		if err != nil || tx.Condition(s.Owner).Life == LifeElsewhere {
			return err
		}
		all, err := tx.OpenEffects(id)
		if err != nil {
			return err
		}
		for _, ef := range all {
			r, err := tx.Run(ef.Run)
			if err != nil {
				return err
			}
			if ef.State == EffectDispatched && ef.Dir != "" && r.Desired != DesiredRun {
				open = append(open, ef)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for commands of stopped work: %w", err)
	}
	var errs []error
	for _, ef := range open {
		for _, tool := range e.Tools {
			if r, ok := tool.(Reattacher); ok && tool.Spec().Name == ef.Tool {
				_, err := r.Kill(ctx, ToolEnv{RunDir: ef.Dir})
				var lost *LostError
				var never *NotStartedError
				if !errors.As(err, &lost) && !errors.As(err, &never) { // there is nothing left to end
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// EndCommandsSoon is EndCommands beside everything else. Close waits for it.
func (e *Engine) EndCommandsSoon(id SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.wg.Go(func() {
		if err := e.EndCommands(e.ctx, id); err != nil && e.ctx.Err() == nil {
			e.Log.Error().Err(err).Str("session_id", string(id)).Msg("ending the commands of stopped work failed")
		}
	})
}

// Unconfirmed tells of stopped sessions whose owner, another process, has not let go yet, and of one such process.
func (e *Engine) Unconfirmed(ctx context.Context, ids []SessionID) (open []SessionID, pid int, err error) {
	err = e.Store.Read(ctx, func(tx Tx) error {
		open = nil
		for _, id := range ids {
			s, err := tx.Session(id)
			if err != nil || s.Owner == "" || s.Owner == e.Self.ID {
				continue // nothing runs there, or it is stopped here
			}
			runs, err := tx.OpenRuns(id)
			if err != nil {
				return err
			}
			row, err := tx.Instance(s.Owner)
			if IsNotFound(err) || err == nil && tx.Lost(s.Owner) {
				continue
			}
			if err != nil {
				return err
			}
			if slices.ContainsFunc(runs, func(r Run) bool { return r.Desired != DesiredRun && r.Phase == PhaseWorking }) {
				open, pid = append(open, id), row.PID
			}
		}
		return nil
	})
	return open, pid, err
}

// LookAfterBackgrounds records the background commands that have ended, of one session or, with "", of all, and ends those that somebody
// wants stopped. It makes no model request and wakes nobody's work.
func (e *Engine) LookAfterBackgrounds(ctx context.Context, id SessionID) error {
	tool := e.backgrounder()
	if tool == nil {
		return nil
	}
	var all []Background
	err := e.Store.Read(ctx, func(tx Tx) (err error) { all, err = watched(tx); return err })
	if err != nil {
		return fmt.Errorf("look for background commands: %w", err)
	}
	e.backgrounds.Store(len(all) > 0)
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, b := range all {
		if id == "" || b.Session == id {
			wg.Go(func() { errs[i] = e.lookAfter(ctx, tool, b) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// watched lists the commands whose start is settled and whose end is not. Whoever makes a start, or recovers it, says what became of it.
func watched(tx Tx) (out []Background, err error) {
	all, err := tx.RunningBackgrounds()
	for _, b := range all {
		ef, err := tx.Effect(b.Effect)
		var broken *RecordError
		if errors.As(err, &broken) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s, err := tx.Session(b.Session)
		if err != nil {
			return nil, err
		}
		if ef.State == EffectSettled && tx.Condition(s.Owner).Life != LifeElsewhere { // nothing here can tell of a command on another machine
			out = append(out, b)
		}
	}
	return out, err
}

// endWithin bounds one try to end a command that was stopped; its supervisor goes on by itself.
const endWithin = 2 * time.Second

func (e *Engine) lookAfter(ctx context.Context, tool Backgrounder, b Background) error {
	l, err := tool.Look(b.Dir)
	if err == nil && !l.Ended && b.Desired == DesiredStopped {
		short, cancel := context.WithTimeout(ctx, endWithin)
		defer cancel()
		if err = tool.End(short, b.Dir); short.Err() != nil {
			return nil // looked at again
		}
		if err == nil {
			l, err = tool.Look(b.Dir)
		}
	}
	if err != nil {
		return fmt.Errorf("look at background command %s: %w", b.Effect, err)
	}
	if !l.Ended {
		return nil
	}
	return e.settleBackground(ctx, b.Effect, l)
}

// settleBackground stores the end of a command, once, whoever sees it first.
func (e *Engine) settleBackground(ctx context.Context, id EffectID, l BackgroundLook) error {
	err := e.Store.Commit(ctx, "background.settled", func(tx Tx) error {
		b, err := tx.Background(id)
		if err != nil || b.State != BackgroundRunning {
			return err
		}
		return tx.UpdateBackground(b.ended(l, e.Now()))
	})
	if err != nil {
		return fmt.Errorf("store the end of background command %s: %w", id, err)
	}
	e.Log.Info().Str("effect_id", string(id)).Str("state", string(l.State)).Msg("a background command has ended")
	return nil
}

// Stoppable lists the sessions in which something is wanted or runs.
func (e *Engine) Stoppable(ctx context.Context) (out []SessionID, err error) {
	err = e.Store.Read(ctx, func(tx Tx) error {
		if out, err = tx.Busy(); err != nil {
			return err
		}
		running, err := tx.RunningBackgrounds()
		for _, b := range running {
			if !slices.Contains(out, b.Session) {
				out = append(out, b.Session)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for what runs: %w", err)
	}
	return out, nil
}
