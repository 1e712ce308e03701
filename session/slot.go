package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// errQueued: the run waits in the queue, and its session is woken when it is its turn.
var errQueued = errors.New("waits for its turn")

// lateAfter is how long a slot is kept for who is next.
const lateAfter = 2 * time.Second

// Attended tells whether a client of a live process has the session open.
func Attended(tx Tx, id SessionID, self InstanceID) (bool, error) {
	at, err := tx.Attached(id)
	if err != nil || slices.Contains(at, self) {
		return err == nil, err
	}
	return slices.ContainsFunc(at, func(i InstanceID) bool { return !tx.Lost(i) }), nil
}

// placing is what the queue says about a run right now.
type placing struct {
	free  bool // it needs no slot: somebody watches
	held  bool // it has its slot already
	has   bool // it has its slot, or may take it
	mine  Slot
	same  bool // its place is in the store as it is here
	code  Code // why it waits
	shown bool // its row says so
}

// placing asks the queue. An attended run needs no slot and waits for nobody; a review always needs one: nobody asked for it to be quick.
func (t *turn) placing(tx Tx, run Run) (p placing, err error) {
	if run.Kind != RunVerification {
		if p.free, err = Attended(tx, t.a.id, t.e.Self.ID); err != nil || p.free {
			return p, err
		}
	}
	s, err := tx.Session(t.a.id)
	if err != nil {
		return p, err
	}
	places, err := tx.Queue()
	if err != nil {
		return p, err
	}
	p.mine = Slot{Session: t.a.id, Run: run.ID, Instance: t.e.Self.ID, State: SlotWaiting, Since: t.e.Now()}
	if s.Mode != ModePlan { // there it only reads
		p.mine.WorkTree = t.tree
	}
	i := slices.IndexFunc(places, func(o Slot) bool { return o.Session == t.a.id })
	if i < 0 {
		places = append(places, p.mine)
		i = len(places) - 1
		places[i].Served = s.Served
	} else {
		old := places[i]
		p.mine.Since, p.mine.Served = old.Since, old.Served
		if old.Run == run.ID {
			p.mine.Keeps = old.Keeps
			p.same = old.Instance == p.mine.Instance && old.WorkTree == p.mine.WorkTree
			p.held = p.same && old.State == SlotWorking
		}
		places[i] = p.mine
	}
	if p.held {
		p.has, p.mine.State = true, SlotWorking
		return p, nil
	}
	next := Next(t.e.Working, places, t.e.late)
	if p.has = slices.ContainsFunc(next, func(o Slot) bool { return o.Session == t.a.id }); p.has {
		p.mine.State, p.mine.Keeps = SlotWorking, false
		return p, nil
	}
	p.code, _ = Waiting(places, p.mine)
	// What waits for something else says so until it is looked at again, unless that is over: an answer is there, a time has come.
	p.shown = run.Phase == PhaseWaiting && run.ReasonCode != CodeApproval && !Timed(run.ReasonCode) ||
		run.Phase == PhaseQueued && run.ReasonCode == p.code
	return p, nil
}

// take stores what placing said. ok tells that the run has what it needs to go on.
func (t *turn) take(tx Tx, run Run, now time.Time) (ok bool, err error) {
	p, err := t.placing(tx, run)
	switch {
	case err != nil:
		return false, err
	case p.free:
		return true, tx.DropSlot(t.a.id)
	}
	if err := tx.PutSlot(p.mine); err != nil {
		return false, err
	}
	if t.slot = p.has; p.has {
		return true, nil
	}
	if p.shown {
		return false, nil
	}
	run.Phase, run.ReasonCode, run.Reason = PhaseQueued, p.code, ""
	return false, tx.UpdateRun(run, now)
}

// claim takes the slot before what is costly to find out about inherited work is looked at, or stores that the run waits. What is stored
// already is not stored again.
func (t *turn) claim(ctx context.Context) error {
	var p placing
	err := t.e.Store.Read(ctx, func(tx Tx) error {
		run, err := tx.Run(t.run.ID)
		if err == nil {
			p, err = t.placing(tx, run)
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("look at the queue: %w", err)
	case p.free:
		return nil
	case p.held:
		t.slot = true
		return nil
	case !p.has && p.same && p.shown:
		return errQueued
	}
	ok := false
	err = t.commit(ctx, "queue.joined", func(tx Tx) error {
		now := t.e.Now()
		run, err := tx.Run(t.run.ID)
		if err != nil || run.ControlVersion != t.run.ControlVersion || run.Desired != DesiredRun {
			ok = true // a control came first; the admission will see it
			return err
		}
		ok, err = t.take(tx, run, now)
		return err
	})
	if err == nil && !ok {
		err = errQueued
	}
	return err
}
