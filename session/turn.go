package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// turn executes one attempt of one run. It belongs to the goroutine that runs main; yield and nudge are how the actor reaches it.
type turn struct {
	a     *actor
	e     *Engine
	run   Run
	began int64 // the revision of the run when it was picked
	att   Attempt
	sess  Session
	setup Setup
	model Model

	saidMode Mode // that setup tells the model

	against   map[string]bool // tools that a rule of the user stands against, as of the last look; nil to look
	reads     []finishedRead  // not stored yet
	readSince time.Time       // since when they may wait
	over      bool            // a call ended the turn, or the model goes in circles
	last      string          // digest of the last answer's calls
	same      int             // how often in a row it came
	asked     int             // model requests of this attempt
	refusal   *ModelError     // with which the endpoint ended it; nil for none
	answered  int64           // revision of the request whose answer is carried out; 0 before the first

	slot   bool   // it has one of the slots for unattended work
	queued bool   // it found none
	tree   string // the work tree that it may write

	size     int      // bytes of the last request, about
	counting counting // what the provider made of the one before

	pulse *pulse
	yield atomic.Bool
	// handing is set when another process is to go on, which happens at the next safe point.
	handing atomic.Pointer[Placement]
	environ []string      // for commands
	nudge   chan struct{} // an approval may have been answered
}

func (t *turn) poke() {
	select {
	case t.nudge <- struct{}{}:
	default:
	}
}

// commit runs one executor transaction: fenced, announced, and safe against a cancel that comes in the middle of it.
func (t *turn) commit(ctx context.Context, point string, fn func(Tx) error) error {
	return t.untilStored(func() error {
		return t.e.Commit(context.WithoutCancel(ctx), point, t.a.id, func(tx Tx) error {
			if err := tx.Fence(t.a.id, t.e.Self.ID, t.a.gen); err != nil {
				return err
			}
			return fn(tx)
		})
	})
}

// main decides how the run goes on, begins an attempt and works until the attempt ends.
func (t *turn) main(ctx context.Context) error {
	started, err := t.begin(ctx)
	if err != nil || !started {
		return t.broken(ctx, err)
	}
	finish, err := t.work(ctx)
	switch {
	case err == nil:
		return t.end(ctx, finish)
	case errors.Is(err, errEnded):
		return nil
	case errors.Is(err, errYield):
		return t.leave(ctx, AttemptCompleted, PhaseQueued, CodeNone, "")
	case errors.Is(err, ErrFenced), errors.Is(err, errHanded):
		return err
	case errors.Is(err, ErrStopped):
		return t.leave(ctx, AttemptCancelled, PhaseQueued, CodeNone, "")
	case ctx.Err() != nil:
		return t.stopped(ctx)
	}
	var broken *RecordError
	if errors.As(err, &broken) {
		err = &WaitError{Code: broken.Code, Message: broken.Reason()}
	}
	var we *WaitError
	if errors.As(err, &we) {
		return t.leave(ctx, AttemptCompleted, PhaseWaiting, we.Code, we.Message)
	}
	if e := heldByLimit(err); e != nil {
		return t.held(ctx, e)
	}
	var me *ModelError
	if errors.As(err, &me) {
		return t.fault(ctx, me)
	}
	return errors.Join(err, t.fail(ctx, CodeModelFailed, safeText(err)))
}

// maxSame is how often a model may make exactly the same calls in a row before its turn is ended.
const maxSame = 5

// maxReview is how many requests one review may make: it only reads and judges, and nobody watches it.
const maxReview = 50

// circling counts answers that repeat the one before.
func (t *turn) circling(calls []Call) {
	parts := []string{}
	for _, c := range calls {
		parts = append(parts, c.Name, c.Args)
	}
	key := Digest(parts...)
	if key != t.last {
		t.last, t.same = key, 0
	}
	t.same++
	t.over = t.over || t.same >= maxSame
}

// errEnded: the attempt's end is already committed.
var errEnded = errors.New("the attempt has ended")

// work is the loop: outstanding calls, then one model request, until the model wants nothing more.
func (t *turn) work(ctx context.Context) (Finish, error) {
	if in := compactionInput(t.run); in != nil {
		return t.byHand(ctx, in)
	}
	if err := t.before(ctx); err != nil {
		return "", err
	}
	for {
		if err := t.calls(ctx); errors.Is(err, errHand) {
			if err := t.handOver(ctx); err != nil {
				return "", err
			}
			continue
		} else if err != nil {
			return "", err
		}
		if t.over {
			return FinishStop, nil
		}
		if t.yield.Load() {
			return "", errYield
		}
		if err := t.handOver(ctx); err != nil {
			return "", err
		}
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		if t.asked++; t.setup.Reviewer && t.asked > maxReview {
			return FinishStop, nil // without a judgement
		}
		more, finish, err := t.respond(ctx)
		if why, too := t.overflow(err); too {
			if err := t.compact(ctx, why, ""); err != nil {
				return "", err
			}
			continue
		}
		if err != nil || !more {
			return finish, err
		}
	}
}

// respond makes one model request. more tells that there are calls to run.
func (t *turn) respond(ctx context.Context) (more bool, finish Finish, err error) {
	t.pulse.beat()
	tools := t.offered(ctx) // may wait for a server, so before anything is stored
	if err := context.Cause(ctx); err != nil {
		return false, "", err
	}
	var items []Item
	req := t.newRequest(PurposeAnswer)
	t.lookAfter(ctx)
	err = t.commit(ctx, "request.started", func(tx Tx) error {
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		if run.Desired != DesiredRun { // a stop that is stored is obeyed, also by a process that slept meanwhile
			return ErrStopped
		}
		if run.Revision != t.began { // what it was to ask is no longer what is wanted
			return errYield
		}
		req.StartedAt = t.e.Now()
		if err := t.sayMode(tx, run); err != nil {
			return err
		}
		if err := t.tellEnds(tx, t.run, t.att); err != nil {
			return err
		}
		if items, err = current(tx, t.a.id, t.setup.Thread); err != nil {
			return err
		}
		if err := forModel(tx, items, t.resultsMost()); err != nil {
			return err
		}
		if err := t.fits(items, tools); err != nil {
			return err
		}
		t.reserve(&req, t.size)
		if err := t.affords(tx, req); err != nil {
			return err
		}
		return tx.InsertRequest(req)
	})
	if errors.Is(err, errSpent) {
		return true, "", t.spent(ctx, req)
	}
	if err != nil {
		return false, "", err
	}
	if err := intact(items); err != nil {
		return false, "", err
	}
	messages, err := Project(items, t.model.Identity())
	if err != nil {
		return false, "", err
	}
	t.answered = req.Revision
	mr := ModelRequest{System: t.setup.System, Messages: messages, Conversation: Digest("conversation", string(t.a.id), t.setup.Thread), Cwd: t.sess.Cwd,
		Faults: t.run.Faults, Effort: t.run.Profile.Effort}
	for _, tool := range tools {
		mr.Tools = append(mr.Tools, tool.Spec())
	}
	s := newStream(t, req)
	s.native = holdsNative(messages)
	resp, err := t.model.Stream(ctx, mr, s.delta)
	s.halt()
	if err != nil {
		if e := s.lost(ctx, err); e != nil {
			return false, "", errors.Join(err, e)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if s.refusedNative(err) {
			return true, "", nil
		}
		return false, "", err
	}
	return s.store(ctx, resp)
}

// sayMode has the model told the mode that its calls are judged by: a user may set another in the middle of a turn.
func (t *turn) sayMode(tx Tx, run Run) error {
	s, err := tx.Session(t.a.id)
	if err != nil || s.Mode == t.saidMode {
		return err
	}
	sess := t.sess
	sess.Mode = s.Mode
	setup, err := t.driver().Setup(tx, sess, run)
	if err != nil {
		return err
	}
	setup.Thread = t.setup.Thread
	t.sess, t.setup, t.saidMode = sess, setup, s.Mode
	return nil
}

// offered lists the tools of the next request. A review sees only what is built in.
func (t *turn) offered(ctx context.Context) []Tool {
	if t.e.Toolbox == nil || t.setup.Reviewer {
		return t.setup.Tools
	}
	return append(slices.Clip(t.setup.Tools), t.e.Toolbox.Offer(ctx, t.sess)...)
}

func (t *turn) modelName() string {
	id := t.model.Identity()
	return id.Provider + "/" + id.Name
}

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
	now := t.e.Now()
	run, err := tx.Run(t.run.ID)
	if err != nil {
		return err
	}
	run.CommitPoint += progress
	t.att.State, t.att.EndedAt = AttemptCompleted, now
	if err := tx.UpdateAttempt(t.att); err != nil {
		return err
	}
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

// leave ends the attempt but not the run.
func (t *turn) leave(ctx context.Context, state AttemptState, phase Phase, code Code, reason string) error {
	return t.commit(ctx, "turn.left", func(tx Tx) error {
		now := t.e.Now()
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		t.att.State, t.att.EndedAt = state, now
		if err := tx.UpdateAttempt(t.att); err != nil {
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
		t.refusal = me
		return t.fail(ctx, CodeModelFailed, me.final())
	}
	first := t.run.Faults == 0
	err := t.commit(ctx, "model.retry", func(tx Tx) error {
		now := t.e.Now()
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		t.att.State, t.att.EndedAt = AttemptFailed, now
		if err := tx.UpdateAttempt(t.att); err != nil {
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

// fail ends an attempt that cannot go on without a person.
func (t *turn) fail(ctx context.Context, code Code, reason string) error {
	return t.commit(ctx, "turn.failed", func(tx Tx) error {
		now := t.e.Now()
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		t.att.State, t.att.EndedAt = AttemptFailed, now
		if err := tx.UpdateAttempt(t.att); err != nil {
			return err
		}
		if err := t.keepLimit(tx, t.refusal, now); err != nil {
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
