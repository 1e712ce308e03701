package session

import (
	"context"
	"errors"
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
	return errors.Join(err, t.fail(ctx, CodeModelFailed, safeText(err), nil))
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
