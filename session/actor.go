package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// actor executes one owned session. Its loop goroutine owns the session's live state; the engine waits for it.
type actor struct {
	e    *Engine
	id   SessionID
	gen  int64
	wake chan struct{}
	done chan struct{}

	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	recheck bool // waiting work is looked at once more

	settled atomic.Bool // it has decided how the work goes on that was there when this ownership began, or at least what goes on first
	rests   atomic.Bool // it has looked at all there is, and waits for somebody else or for a time

	// inherited holds the runs that were there when this ownership began and have not been decided on yet. Loop goroutine only.
	inherited map[RunID]bool
	started   bool
	begun     bool               // its goroutine runs; guarded by the engine
	anew      map[RunID]bool     // waiting runs that are to be looked at once more, each in its turn. Loop goroutine only.
	timers    map[RunID]sighting // waits for a time, since when this process has seen them. Loop goroutine only.
}

func newActor(e *Engine, id SessionID, gen int64) *actor {
	ctx, cancel := context.WithCancelCause(e.ctx)
	return &actor{e: e, id: id, gen: gen, wake: make(chan struct{}, 1), done: make(chan struct{}), ctx: ctx, cancel: cancel, recheck: true,
		inherited: map[RunID]bool{}, timers: map[RunID]sighting{}}
}

func (a *actor) ring() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *actor) stop(cause error) { a.cancel(cause) }

func (a *actor) askRecheck() {
	a.mu.Lock()
	a.recheck = true
	a.mu.Unlock()
	a.ring()
}

func (a *actor) takeRecheck() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.recheck
	a.recheck = false
	return r
}

func (a *actor) log(err error, what string) {
	a.e.Log.Error().Err(err).Str("session_id", string(a.id)).Int64("generation", a.gen).Msg(what)
}

func (a *actor) loop() {
	defer close(a.done)
	defer a.e.forget(a)
	select {
	case <-a.e.admitted:
	case <-a.ctx.Done():
		return
	}
	backoff := 50 * time.Millisecond
	for a.ctx.Err() == nil {
		a.e.unpark(a.id)
		run, due, err := a.pick()
		if err == nil {
			var gone bool
			if gone, err = a.settlePlace(run); gone {
				return
			}
		}
		if err == nil && run != nil {
			err = a.execute(*run)
		}
		if errors.Is(err, errClosed) {
			var left bool
			if left, err = a.leave(); left {
				return
			}
		}
		switch {
		case errors.Is(err, errHanded):
			return
		case errors.Is(err, errQueued):
			a.standInLine()
		case errors.Is(err, ErrFenced):
			a.e.Log.Warn().Str("session_id", string(a.id)).Msg("another owner has the session; stopping")
			return
		case err != nil && a.ctx.Err() == nil:
			a.log(err, "executing failed; trying again")
			var broken *RecordError
			if due = a.e.Now().Add(backoff); errors.As(err, &broken) {
				due = time.Time{} // a record does not mend itself; whoever mends it opens the session again
			}
			backoff = min(backoff*2, 5*time.Second)
		case err == nil:
			backoff = 50 * time.Millisecond
		}
		if run != nil && err == nil {
			continue
		}
		a.idle(due)
	}
}

// idle waits for a ring, for a due time, or for the end.
func (a *actor) idle(due time.Time) {
	a.settled.Store(true)
	a.rests.Store(true)
	defer a.rests.Store(false)
	var timer <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(min(max(due.Sub(a.e.Now()), time.Millisecond), clockCheck))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-a.wake:
	case <-timer:
	case <-a.ctx.Done():
	}
}

// standInLine parks the session. Whatever changed since it was put in line is noticed by the look that follows.
func (a *actor) standInLine() {
	at := Standings{Session: a.id}
	err := a.e.Store.Read(a.ctx, func(tx Tx) error {
		s, err := tx.Session(a.id)
		if err != nil {
			return err
		}
		if open, err := tx.OpenRuns(a.id); err != nil || slices.ContainsFunc(open, func(r Run) bool { return r.Desired == DesiredCancelled }) {
			return err // there is something to do: the look finds that it has changed
		}
		at.Seq = s.LastSeq
		all, err := tx.Attached(a.id)
		at.Attached = len(all)
		return err
	})
	if err == nil {
		a.e.park(a, at)
		a.e.serve(false)
	}
}

// pick returns the run to work on, or when to look again. User input goes before Goals.
func (a *actor) pick() (*Run, time.Time, error) {
	var runs []Run
	var approvals []Approval
	moved := map[RunID]bool{} // what held them is gone
	var there []Run           // held by the directory
	var s Session
	closed := false
	err := a.e.Store.Read(a.ctx, func(tx Tx) (err error) {
		if s, err = tx.Session(a.id); err != nil {
			return err
		}
		closed = s.Closed
		if runs, err = tx.OpenRuns(a.id); err != nil {
			return err
		}
		if there, err = a.look(tx, s, runs, moved); err != nil {
			return err
		}
		approvals, err = tx.OpenApprovals(a.id)
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("look for work: %w", err)
	}
	for _, r := range there {
		now, gone := a.e.Workspace.Identity(s.Cwd)
		moved[r.ID] = gone == nil && now == s.Identity
	}
	a.restate(runs)
	if a.takeRecheck() {
		a.anew = map[RunID]bool{}
		for _, r := range runs {
			a.anew[r.ID] = r.Phase == PhaseWaiting
		}
	}
	if !a.started {
		a.started = true
		for _, r := range runs {
			a.inherited[r.ID] = true
		}
	}
	// A run that waits for an answer goes on when there is one, and when nothing is asked any more.
	answered, asked := map[RunID]bool{}, map[RunID]bool{}
	for _, p := range approvals {
		asked[p.Run] = true
		answered[p.Run] = answered[p.Run] || p.State == ApprovalAnswered
	}
	for _, r := range runs {
		if r.Desired == DesiredCancelled {
			return &r, time.Time{}, nil // what the user stopped is closed first: work that waits for an answer must not hold that up
		}
	}
	if closed {
		return a.pickClosed(runs)
	}
	due := a.due(runs)
	limited := slices.ContainsFunc(runs, func(r Run) bool { return r.Desired == DesiredRun && r.limited() && a.left(r) > 0 && !moved[r.ID] })
	held := false // by a prompt in the middle of which a question is open: what came after it waits, as it did before a restart
	for _, kind := range []RunKind{RunPrompt, RunVerification, RunGoal} {
		for _, r := range runs {
			if r.Kind != kind || held && r.Desired == DesiredRun || limited && kind != RunPrompt && r.Desired == DesiredRun {
				continue // a prompt is the user's word and asks all the same
			}
			if a.ready(r, a.anew[r.ID], moved[r.ID], answered[r.ID] || !asked[r.ID]) {
				delete(a.anew, r.ID)
				return &r, due, nil
			}
			held = held || kind == RunPrompt && r.Phase == PhaseWaiting && r.ReasonCode == CodeApproval
		}
	}
	return nil, due, nil
}

// look finds the runs that were held up by what is no longer so, and those that wait for a directory.
func (a *actor) look(tx Tx, s Session, runs []Run, moved map[RunID]bool) (there []Run, err error) {
	for _, r := range runs {
		switch {
		case r.Desired == DesiredPaused && a.wasThere(r.ID): // its lost attempt is to be closed
			moved[r.ID], err = lostAttempt(tx, r.ID)
		case r.Desired != DesiredRun || r.Phase != PhaseWaiting:
		case heldBack(r.ReasonCode):
			var code Code
			code, err = a.e.HeldBack(tx, s, r)
			moved[r.ID] = code == CodeNone
		case r.limited():
			moved[r.ID], err = lifted(tx, r.Profile)
		case r.ReasonCode == CodeCommandRuns:
			var live []Background
			live, err = LiveCommands(tx, s.ID, r.ID)
			moved[r.ID] = len(live) == 0
		case r.ReasonCode == CodeEnvironment:
			moved[r.ID] = a.e.Fits(r.Profile.Or(s.Profile))
		case r.ReasonCode == CodeWorkspaceChanged, r.ReasonCode == CodeDirectoryMissing:
			there = append(there, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return there, nil
}

// wasThere tells whether a run is older than this ownership and has not been decided on.
func (a *actor) wasThere(id RunID) bool { return !a.started || a.inherited[id] }

// due is when the first of the waits for a time ends.
func (a *actor) due(runs []Run) (due time.Time) {
	for _, r := range runs {
		if r.Desired != DesiredRun || r.Phase != PhaseWaiting || !Timed(r.ReasonCode) {
			continue
		}
		left := a.left(r)
		if at := a.e.Now().Add(left); left > 0 && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// ready tells whether a run can be worked on now.
func (a *actor) ready(r Run, recheck, moved, answered bool) bool {
	switch {
	case r.Desired == DesiredPaused:
		return a.inherited[r.ID] && moved
	case r.Phase == PhaseQueued, r.Phase == PhaseWorking:
		return true
	case Timed(r.ReasonCode):
		return a.left(r) <= 0 || moved
	case r.ReasonCode == CodeApproval:
		return answered || a.inherited[r.ID]
	case r.ReasonCode == CodeVerifying:
		return false
	}
	return recheck || moved
}

// execute works on one run until its attempt ends, passing on what controls ask for meanwhile.
func (a *actor) execute(r Run) error {
	ctx, cancel := context.WithCancelCause(a.ctx)
	defer cancel(nil)
	t := &turn{a: a, e: a.e, run: r, began: r.Revision, nudge: make(chan struct{}, 1), pulse: newPulse()}
	errs := make(chan error, 1)
	go func() { errs <- t.main(ctx) }() // received below, always
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var seen int64 // the newest control, at the last look
	for {
		select {
		case err := <-errs:
			if errors.Is(err, errHanded) {
				return err
			}
			err = errors.Join(err, a.confirm(t))
			if t.slot {
				a.e.serve(true)
			}
			return err
		case <-a.wake:
		case <-tick.C:
			if t.pulse.still(a.e.Stall) {
				cancel(ErrStalled)
			}
			if !a.e.shared() && !a.controlled(&seen) { // somebody may have come, stored a control and gone between two looks for others
				continue
			}
		}
		if err := a.control(t, cancel); err != nil && a.ctx.Err() == nil {
			a.log(err, "reading controls failed")
		}
	}
}

// control passes what the records say now to the running turn.
func (a *actor) control(t *turn, cancel context.CancelCauseFunc) error {
	var run Run
	var s Session
	prompts := false
	var place Placement
	err := a.e.Store.Read(a.ctx, func(tx Tx) (err error) {
		if s, err = tx.Session(a.id); err != nil {
			return err
		}
		if run, err = tx.Run(t.run.ID); err != nil {
			return err
		}
		runs, err := tx.OpenRuns(a.id)
		for _, r := range runs {
			prompts = prompts || r.Kind == RunPrompt && r.Desired == DesiredRun && r.ID != t.run.ID && r.Phase == PhaseQueued
		}
		if err == nil {
			place, err = a.e.place(tx, s, &run)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case s.Owner != a.e.Self.ID || s.Generation != a.gen:
		cancel(ErrFenced)
	case run.Desired == DesiredCancelled || run.Desired == DesiredPaused:
		cancel(ErrStopped)
	case s.Closed:
		cancel(ErrDetach)
	}
	if place.Act == PlaceHandOver {
		t.handing.Store(&place)
	}
	t.yield.Store(prompts && t.run.Kind != RunPrompt || run.Revision != t.began) // what was revised is gone about anew
	t.poke()
	return nil
}

// confirm marks the controls that the end of the turn has fulfilled.
func (a *actor) confirm(t *turn) error {
	if a.ctx.Err() != nil {
		return nil
	}
	var open []Command
	if err := a.e.Store.Read(a.ctx, func(tx Tx) (err error) { open, err = tx.OpenCommands(a.id); return err }); err != nil {
		return err
	}
	var done []string
	for _, c := range open {
		if c.Kind != CommandPrompt {
			done = append(done, c.ID)
		}
	}
	if len(done) == 0 {
		return nil
	}
	return a.e.Commit(a.ctx, "command.consumed", a.id, func(tx Tx) error {
		if err := tx.Fence(a.id, a.e.Self.ID, a.gen); err != nil {
			return err
		}
		for _, id := range done {
			if _, err := tx.Consume(id, a.gen, a.e.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}
