package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limit is one of a provider that is used up, as one session was told. It counts for all that ask the same.
type Limit struct {
	ID      int64 // rises with each that is stored
	Scope   LimitScope
	Session SessionID // that was told
	Message string    // what the provider said
	Learned time.Time
	Until   time.Time
	Wait    time.Duration // from Learned on, whatever the clock does
	Lifted  bool          // the endpoint has answered since, before its time
}

// LimitScope is what a limit is one of: a model at an address with a key. Another key and another address have limits of their own. Model is "" for
// one that the provider says to be the account's; where it says nothing, the limit is taken for that of the model that was asked.
type LimitScope struct{ Provider, Origin, Credential, Model string }

func scopeOf(id ModelIdentity) LimitScope {
	return LimitScope{id.Provider, id.Origin, id.Credential, id.Name}
}

// left is how long the limit still is. A clock that was put back makes it no longer than it was.
func (l Limit) left(now time.Time) time.Duration {
	if l.Lifted {
		return 0
	}
	return remaining(now, l.Until, l.Wait)
}

// usedUp is the error of a request that was not made because of a limit.
type usedUp struct {
	limit Limit
	wait  time.Duration
}

func (e *usedUp) Error() string {
	return "a limit of the provider is used up until " + until(e.limit.Until)
}

// withinLimits fails with a *usedUp when a limit holds that any session was told of. Two things go before it: a person's word on this very run, and a
// message in a session that waits for the limit already, because whoever wrote it was told.
func (t *turn) withinLimits(tx Tx) error {
	known, err := tx.Limits(scopeOf(t.model.Identity()))
	if err != nil || len(known) == 0 {
		return err
	}
	now, passed := t.e.Now(), false
	var worst usedUp
	for _, l := range known {
		left := l.left(now)
		passed = passed || !now.Before(l.Until)
		if l.ID > t.run.PastLimit && left > worst.wait {
			worst = usedUp{l, left}
		}
	}
	if passed {
		if err := tx.PruneLimits(now); err != nil {
			return err
		}
	}
	if worst.wait <= 0 {
		return nil
	}
	if told, err := t.told(tx); err != nil || told {
		return err
	}
	return &worst
}

// told tells whether the run is a message in a session that waits for a limit.
func (t *turn) told(tx Tx) (bool, error) {
	if t.run.Kind != RunPrompt {
		return false, nil
	}
	runs, err := tx.OpenRuns(t.a.id)
	for _, r := range runs {
		if r.ID != t.run.ID && r.Desired == DesiredRun && r.limited() {
			return true, err
		}
	}
	return false, err
}

// keepLimit stores what a refusal says of a limit, for everybody.
func (t *turn) keepLimit(tx Tx, me *ModelError, now time.Time) error {
	if me == nil || !me.Temporary() || me.RetryAfter < longLimit {
		return nil
	}
	l := Limit{Scope: scopeOf(t.model.Identity()), Session: t.a.id, Message: me.Message, Learned: now, Wait: min(me.RetryAfter, longestWait)}
	l.Until = now.Add(l.Wait)
	if me.Account {
		l.Scope.Model = ""
	}
	return tx.PutLimit(l)
}

// held ends an attempt whose next request is not made: it waits like the one that was told.
func (t *turn) held(ctx context.Context, e *usedUp) error {
	return t.commit(ctx, "model.retry", func(tx Tx) error {
		run, now, err := t.endAttempt(tx, AttemptFailed)
		if err != nil {
			return err
		}
		run.Faults = maxFaults
		run.Phase, run.ReasonCode, run.RetryAt, run.RetryWait = PhaseWaiting, CodeModelRetry, now.Add(e.wait), e.wait
		run.Reason = e.limit.reason(t.a.id, run.RetryAt)
		it := Item{Kind: ItemMarker, State: ItemComplete, Body: ItemBody{Text: e.limit.notice(t.a.id, run.RetryAt)}}
		if err := t.insert(tx, &it, run, t.att); err != nil {
			return err
		}
		t.run = run
		return tx.UpdateRun(run, now)
	})
}

// reason says why a run waits that has not asked itself.
func (l Limit) reason(own SessionID, at time.Time) string {
	return fmt.Sprintf("%s; %s; not asked again before %s", strings.TrimSuffix(l.Message, "."), l.source(own), until(at))
}

func (l Limit) notice(own SessionID, at time.Time) string {
	return limitNotice(&ModelError{Message: strings.TrimSuffix(l.Message, ".") + " (" + l.source(own) + ")"}, at)
}

func (l Limit) source(own SessionID) string {
	if l.Session == own {
		return "learned earlier in this session"
	}
	return "learned from another session"
}

// PassLimits marks that the limits that are stored now do not hold the run any more: a person said so, or it has waited for them.
func (r *Run) PassLimits(tx Tx) (err error) {
	r.PastLimit, err = tx.NewestLimit()
	return err
}

// lifts lifts the limits in spite of which the endpoint has answered: others wait for nothing then. It tells whether there were any.
func (t *turn) lifts(tx Tx) (bool, error) {
	if t.run.PastLimit == 0 {
		return false, nil
	}
	n, err := tx.LiftLimits(scopeOf(t.model.Identity()), t.run.PastLimit)
	return n > 0, err
}

// spread makes every session of every process look again: a limit was lifted.
func (t *turn) spread() {
	t.e.Ring()
	if t.e.Poke == nil {
		return
	}
	var ids []string
	_ = t.e.Store.Read(context.Background(), func(tx Tx) error { // a lost doorbell costs delay only
		all, err := everybody(tx)
		for _, i := range all {
			if i != t.e.Self.ID {
				ids = append(ids, string(i))
			}
		}
		return err
	})
	t.e.Poke(ids...)
}

// lifted tells whether the limits that a run waits for are no longer there, though their time has not come.
func lifted(tx Tx, p Profile) (bool, error) {
	known, err := tx.Limits(LimitScope{p.Provider, p.Origin, p.Credential, p.Name})
	any := false
	for _, l := range known {
		if !l.Lifted {
			return false, err
		}
		any = true
	}
	return any, err
}

// heldByLimit recognises the error of withinLimits.
func heldByLimit(err error) *usedUp {
	var e *usedUp
	errors.As(err, &e)
	return e
}
