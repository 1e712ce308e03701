package session

import (
	"context"
	"time"
)

// offer is since when a place could have had a slot.
type offer struct {
	run   RunID
	since time.Time // monotonic
}

// park lets the actor rest until it is its turn or something about its session changes. Nothing else wakes it: however many wait, a bell
// costs one look at the store.
func (e *Engine) park(a *actor, at Standings) {
	e.mu.Lock()
	if e.actors[a.id] == a {
		e.parked[a.id] = at
	}
	e.mu.Unlock()
}

// wake lets a parked session look for work.
func (e *Engine) wake(id SessionID) {
	e.mu.Lock()
	a := e.actors[id]
	_, rests := e.parked[id]
	delete(e.parked, id)
	if a != nil && rests {
		e.begin(a)
	}
	e.mu.Unlock()
	if a != nil {
		a.ring()
	}
}

// begin starts the actor's goroutine, once. The engine is locked.
func (e *Engine) begin(a *actor) {
	if !a.begun && !e.closed {
		a.begun = true
		e.wg.Go(a.loop)
	}
}

func (e *Engine) unpark(id SessionID) {
	e.mu.Lock()
	delete(e.parked, id)
	e.mu.Unlock()
}

func (e *Engine) isParked(id SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, parked := e.parked[id]
	return parked
}

// Serve wakes the sessions here whose turn it is, or whose records have changed. With nothing parked it looks at nothing.
func (e *Engine) Serve() { e.serve(false) }

// serve is one look at the queue, however many wait. With poke the processes are rung that have what is next: a slot was freed here.
func (e *Engine) serve(poke bool) {
	e.mu.Lock()
	none := len(e.parked) == 0
	e.mu.Unlock()
	if none && !poke {
		return
	}
	var places []Slot
	var now []Standings
	err := e.Store.Read(e.ctx, func(tx Tx) (err error) {
		if places, err = tx.Queue(); err != nil || none {
			return err
		}
		now, err = tx.Standings(e.Self.ID)
		return err
	})
	if err != nil {
		if e.ctx.Err() == nil {
			e.Log.Error().Err(err).Msg("looking at the queue failed")
		}
		return // the next look comes by itself
	}
	next := Next(e.Working, places, e.late)
	e.remember(next)
	for _, id := range e.moved(now) {
		e.wake(id)
	}
	var others []string
	for _, p := range next {
		if p.Instance != e.Self.ID {
			others = append(others, string(p.Instance))
		} else if e.isParked(p.Session) {
			e.wake(p.Session)
		}
	}
	if poke && len(others) > 0 && e.Poke != nil {
		e.Poke(others...)
	}
}

// moved lists the parked sessions about which something has changed.
func (e *Engine) moved(now []Standings) (ids []SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range now {
		if was, parked := e.parked[s.Session]; parked && was != s {
			ids = append(ids, s.Session)
		}
	}
	return ids
}

// remember notes since when each of the next could have had its slot.
func (e *Engine) remember(next []Slot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.offers
	e.offers = map[SessionID]offer{}
	for _, p := range next {
		o, ok := known[p.Session]
		if !ok || o.run != p.Run {
			o = offer{p.Run, time.Now()}
		}
		e.offers[p.Session] = o
	}
}

// late tells whether a place could have had a slot for a while and has not taken it.
func (e *Engine) late(p Slot) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	o, ok := e.offers[p.Session]
	return ok && o.run == p.Run && time.Since(o.since) >= lateAfter
}

// gained is a session that this instance has come to own, and where it stood then.
type gained struct {
	id     SessionID
	gen    int64
	starts bool // there is something to do that waits for no slot
	at     Standings
}

// gain makes this instance the owner of a session inside a transaction, and stores at once what is certain without a look at anything
// else: that its work waits for its turn, or for a person.
func (e *Engine) gain(tx Tx, id SessionID) (g gained, err error) {
	if g.gen, err = tx.Own(id, e.Self.ID); err != nil {
		return g, err
	}
	g.id = id
	if g.starts, err = e.lineUp(tx, id); err != nil {
		return g, err
	}
	s, err := tx.Session(id)
	if err != nil {
		return g, err
	}
	at, err := tx.Attached(id)
	g.at = Standings{id, s.LastSeq, len(at)}
	return g, err
}

// lineUp puts the next run of a session in the queue. starts tells that its actor has something to do before that.
func (e *Engine) lineUp(tx Tx, id SessionID) (starts bool, err error) {
	s, err := tx.Session(id)
	if err != nil {
		return false, err
	}
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return false, err
	}
	watched, err := Attended(tx, id, e.Self.ID)
	if err != nil || watched {
		return true, err
	}
	now := e.Now()
	var line []Run
	for _, r := range runs {
		switch {
		case r.Desired == DesiredPaused:
			lost, err := lostAttempt(tx, r.ID)
			if err != nil {
				return false, err
			}
			starts = starts || lost
			continue
		case r.Desired != DesiredRun:
			starts = true
			continue
		}
		code, err := e.HeldBack(tx, s, r)
		switch {
		case err != nil:
			return false, err
		case code != CodeNone && (r.Phase != PhaseWaiting || Timed(r.ReasonCode)):
			r.Phase, r.ReasonCode, r.Reason = PhaseWaiting, code, Diagnostics[code].Sentence
			if err := tx.UpdateRun(r, now); err != nil {
				return false, err
			}
		case code != CodeNone, r.ReasonCode == CodeVerifying:
		case Timed(r.ReasonCode):
			starts = true // it has a time
		default:
			line = append(line, r)
		}
	}
	if starts || len(line) == 0 {
		return starts, nil
	}
	return e.enter(tx, s, line, now)
}

// enter gives the first of the runs its place.
func (e *Engine) enter(tx Tx, s Session, runs []Run, now time.Time) (starts bool, err error) {
	approvals, err := tx.OpenApprovals(s.ID)
	if err != nil {
		return false, err
	}
	asks := func(r Run) bool { // it has ended its attempt for a question that nobody has answered
		open := false
		for _, p := range approvals {
			open = open || p.Run == r.ID && p.State == ApprovalPending
		}
		return open && r.Phase == PhaseWaiting
	}
	for _, kind := range []RunKind{RunPrompt, RunVerification, RunGoal} {
		for _, r := range runs {
			if r.Kind != kind {
				continue
			}
			if asks(r) {
				if kind == RunPrompt {
					return false, nil // what came after it waits behind it
				}
				continue
			}
			p := Slot{Session: s.ID, Run: r.ID, Instance: e.Self.ID, State: SlotWaiting, Since: now}
			if s.Mode != ModePlan {
				p.WorkTree = s.WorkTree
			}
			if err := tx.PutSlot(p); err != nil || r.Phase == PhaseWaiting && r.ReasonCode != CodeApproval {
				return false, err
			}
			r.Phase, r.ReasonCode, r.Reason = PhaseQueued, CodeSlot, ""
			return false, tx.UpdateRun(r, now)
		}
	}
	return false, nil
}

// lostAttempt tells whether the last attempt of a run has no recorded end.
func lostAttempt(tx Tx, id RunID) (bool, error) {
	last, err := tx.LastAttempt(id)
	if IsNotFound(err) {
		return false, nil
	}
	return last.State == AttemptRunning, err
}

// own starts what gain has found to start; everything else is parked without a goroutine until it is its turn.
func (e *Engine) own(all []gained) {
	for _, g := range all {
		if g.starts {
			e.Own(g.id, g.gen)
		} else {
			e.rest(g)
		}
		e.bus.publish(g.id, Live{Wake: true})
	}
	if len(all) > 0 && e.shared() && e.Poke != nil { // once for all of them
		var ids []string
		_ = e.Store.Read(context.Background(), func(tx Tx) error { // a lost doorbell costs delay only
			all, err := everybody(tx)
			for _, i := range all {
				if i != e.Self.ID {
					ids = append(ids, string(i))
				}
			}
			return err
		})
		if len(ids) > 0 {
			e.Poke(ids...)
		}
	}
	e.serve(true)
}

// rest makes a session this instance's own that has nothing to do before its turn.
func (e *Engine) rest(g gained) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if old := e.actors[g.id]; old != nil {
		if old.gen == g.gen {
			return
		}
		old.stop(ErrFenced)
	}
	e.actors[g.id] = newActor(e, g.id, g.gen)
	e.parked[g.id] = g.at
}
