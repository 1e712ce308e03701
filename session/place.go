package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// errHand: the session is to be handed over at this safe point. errHanded: it is, and nothing more may be done with it here.
var (
	errHand   = errors.New("another process is to go on")
	errHanded = errors.New("the session was handed over")
)

// place puts the facts of a session that this instance owns before Assign. about is the run that is to be worked on or is worked on; without
// one everything is meant that is wanted.
func (e *Engine) place(tx Tx, s Session, about *Run) (Placement, error) {
	windows, err := tx.Attachments(s.ID)
	if err != nil {
		return Placement{}, err
	}
	f := PlaceFacts{State: PlaceWorking, Other: OtherNone, Attached: slices.ContainsFunc(windows, func(w Attachment) bool { return w.Instance == e.Self.ID })}
	var wanted []Run
	if about != nil {
		wanted = []Run{*about}
	} else if f.State, wanted, err = wantedOf(tx, s.ID); err != nil {
		return Placement{}, err
	}
	mine := fitting(wanted, e.Fits)
	f.Fits = len(mine) > 0
	to := InstanceID("")
	if !f.Fits || !f.Attached { // else it stays, whoever else there is
		f.Other, to, err = e.other(tx, windows, wanted, mine)
	}
	p := Assign(f)
	if p.Act == PlaceHandOver {
		p.To = to
	}
	return p, err
}

// wantedOf lists what is wanted of a session, and says what it does meanwhile.
func wantedOf(tx Tx, id SessionID) (PlaceState, []Run, error) {
	runs, err := tx.OpenRuns(id)
	runs = slices.DeleteFunc(runs, func(r Run) bool { return r.Desired != DesiredRun })
	if err != nil || len(runs) == 0 {
		return PlaceIdle, nil, err
	}
	open, err := tx.OpenApprovals(id)
	if len(open) > 0 {
		return PlaceAsking, runs, err
	}
	return PlaceWaiting, runs, err
}

func fitting(runs []Run, fits func(Profile) bool) (out []Run) {
	for _, r := range runs {
		if fits(r.Profile) {
			out = append(out, r)
		}
	}
	return out
}

// other finds the process that could go on: the one whose client asked for the work, else the window that was opened first.
func (e *Engine) other(tx Tx, windows []Attachment, wanted, mine []Run) (PlaceOther, InstanceID, error) {
	found, to, asked := OtherNone, InstanceID(""), false
	for _, w := range windows {
		if w.Instance == e.Self.ID || w.Profile.Env == "" {
			continue
		}
		there, err := e.there(tx, w.Instance)
		if err != nil {
			return OtherNone, "", err
		}
		if !there {
			continue
		}
		can := func(p Profile) bool { return p.FitsThere(w.Profile) }
		fits := len(wanted) == 0 || len(fitting(wanted, can)) > 0
		if len(mine) > 0 {
			fits = len(fitting(mine, can)) == len(mine)
		}
		its := slices.ContainsFunc(wanted, func(r Run) bool { return r.Client == w.Instance })
		if !fits && found == OtherNone {
			found = OtherDiffers
		}
		if fits && (found != OtherFits || its && !asked) {
			found, to, asked = OtherFits, w.Instance, its
		}
	}
	for _, r := range wanted { // a process that asked for work has what it needs, also when its window is gone
		if found == OtherFits || len(mine) > 0 {
			break
		}
		if there, err := e.there(tx, r.Client); err != nil || there {
			return OtherFits, r.Client, err
		}
	}
	return found, to, nil
}

// there tells whether another process of this machine lives.
func (e *Engine) there(tx Tx, id InstanceID) (bool, error) {
	if id == "" || id == e.Self.ID {
		return false, nil
	}
	row, err := tx.Instance(id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && row.Host == e.Self.Host && !tx.Lost(id), err
}

// goesOn tells whether this instance has something to do in a session: work that it can go on with, or the end of what was stopped. So it
// takes what it would not let go of again.
func (e *Engine) goesOn(tx Tx, id SessionID) (ok bool, waiting []Run, err error) {
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return false, nil, err
	}
	for _, r := range runs {
		switch {
		case r.Desired == DesiredCancelled, r.Desired == DesiredPaused && r.Phase == PhaseWorking, r.Desired == DesiredRun && e.Fits(r.Profile):
			ok = true
		case r.Desired == DesiredRun:
			waiting = append(waiting, r)
		}
	}
	return ok || len(waiting) == 0, waiting, nil
}

// Takes tells whether this instance owns a session, or would when it is opened here, and whether it has work that clients of other living
// processes began.
func (e *Engine) Takes(ctx context.Context, id SessionID) (takes, others bool, err error) {
	err = e.Store.Read(ctx, func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		_, wanted, err := wantedOf(tx, id)
		if err != nil {
			return err
		}
		others = false
		for _, r := range wanted {
			there, err := e.there(tx, r.Client)
			if err != nil {
				return err
			}
			others = others || there
		}
		if takes = s.Owner == e.Self.ID; takes || s.Owner != "" || e.Passive {
			return nil
		}
		takes, _, err = e.goesOn(tx, id)
		return err
	})
	return takes, others, err
}

// shown tells whether it is on record already that a run waits for something.
func (r Run) shown() bool { return r.Phase == PhaseWaiting }

// setAside records of work that cannot go on here, and is in nobody's hands, for what it waits.
func (e *Engine) setAside(tx Tx, runs []Run, now time.Time) error {
	for _, r := range runs {
		if r.shown() {
			continue
		}
		here := e.HereFor(r.Profile.Choice())
		r.Phase, r.ReasonCode, r.Reason = PhaseWaiting, CodeEnvironment, Differs(r.Profile, here)
		if here.Provider == "" {
			r.ReasonCode, r.Reason = CodeModelUnavailable, e.noModel(r.Profile)
		}
		if err := tx.UpdateRun(r, now); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) noModel(p Profile) string {
	if _, err := e.ModelFor(p); err != nil {
		return safeText(err)
	}
	return Diagnostics[CodeModelUnavailable].Sentence
}

// settlePlace hands the session over or lets go of it when that is to be, and tells that this instance no longer has it.
func (a *actor) settlePlace(about *Run) (gone bool, err error) {
	var p Placement
	err = a.e.Store.Read(a.ctx, func(tx Tx) error {
		s, err := tx.Session(a.id)
		if err != nil {
			return err
		}
		if s.Owner != a.e.Self.ID || s.Generation != a.gen {
			return ErrFenced
		}
		if about != nil && about.Desired != DesiredRun {
			return nil // what the user stopped is closed by whoever has it
		}
		p, err = a.e.place(tx, s, about)
		return err
	})
	if err != nil || p.Act != PlaceHandOver && p.Act != PlaceLetGo {
		return false, err
	}
	return a.move(p, about, nil)
}

// move changes the owner, if the placement still holds in the transaction that does it. With an attempt, that ends between two steps.
func (a *actor) move(p Placement, about *Run, att *Attempt) (gone bool, err error) {
	point := "owner.handed_over"
	if p.Act == PlaceLetGo {
		point = "owner.released"
	}
	err = a.e.Commit(context.WithoutCancel(a.ctx), point, a.id, func(tx Tx) error {
		gone = false
		if err := tx.Fence(a.id, a.e.Self.ID, a.gen); err != nil {
			return err
		}
		s, err := tx.Session(a.id)
		if err != nil {
			return err
		}
		if about != nil {
			run, err := tx.Run(about.ID)
			if err != nil || run.Desired != DesiredRun {
				return err
			}
			about = &run
		}
		if now, err := a.e.place(tx, s, about); err != nil || now != p {
			return err
		}
		if att != nil {
			if err := handAttempt(tx, *about, *att, p.To, a.e.Now()); err != nil {
				return err
			}
		}
		_, err = tx.Own(a.id, p.To)
		gone = err == nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("hand the session over: %w", err)
	}
	if gone {
		a.e.Log.Info().Str("session_id", string(a.id)).Int64("generation", a.gen).Str("to", string(p.To)).Str("rule", p.Rule).Msg("handed over")
	}
	return gone, nil
}

// handAttempt ends an attempt whose run another process goes on with, from here.
func handAttempt(tx Tx, r Run, att Attempt, to InstanceID, now time.Time) error {
	att.State, att.EndedAt, att.HandedTo = AttemptInterrupted, now, to
	if err := tx.UpdateAttempt(att); err != nil {
		return err
	}
	r.Phase = PhaseQueued
	return tx.UpdateRun(r, now)
}

// handOver is move for a turn. It goes on when the placement no longer holds.
func (t *turn) handOver(ctx context.Context) error {
	p := t.handing.Swap(nil)
	if p == nil {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	gone, err := t.a.move(*p, &t.run, &t.att)
	if err == nil && gone {
		return errHanded
	}
	return err
}

// TakeHandedOver starts what another process has handed over to this one.
func (e *Engine) TakeHandedOver(ctx context.Context) error {
	if e.Passive {
		return nil
	}
	gens := map[SessionID]int64{}
	err := e.Store.Read(ctx, func(tx Tx) error {
		ids, err := tx.OwnedBy(e.Self.ID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if e.Owns(id) {
				continue
			}
			s, err := tx.Session(id)
			if err != nil {
				return err
			}
			gens[id] = s.Generation
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for what was handed over: %w", err)
	}
	for id, gen := range gens {
		e.Own(id, gen)
		e.bus.publish(id, Live{Wake: true})
	}
	return nil
}
