package session

import (
	"context"
	"errors"
	"time"
)

// Enquiry is one request of its own that an attempt makes before its first step. Nothing of it is chat, and no call of its answer is executed.
type Enquiry struct {
	Purpose Purpose
	System  string
	Text    string
	Tool    ToolSpec // the only one that is offered: the answer is a call of it
	// Done stores what came of it, in the transaction that settles the request.
	Done func(tx Tx, a Answered) error
}

// Answered is what came of an Enquiry. Refused says why there is no answer.
type Answered struct {
	Request Request
	Calls   []Call
	Finish  Finish
	Refused string
	Now     time.Time
}

// before asks what the attempt asks before its first step. A fault that may pass ends the attempt as that of any other request does, and the next
// attempt asks again. Once an answer is stored, or there will be none, nobody asks any more.
func (t *turn) before(ctx context.Context) error {
	q := t.setup.Before
	if q == nil {
		return nil
	}
	resp, req, err := t.aside(ctx, q.Purpose, ModelRequest{System: q.System, Messages: []Message{{Role: RoleUser, Text: q.Text}}, Tools: []ToolSpec{q.Tool}})
	if err != nil && (req.ID == "" || !refusesOnly(err) || context.Cause(ctx) != nil) {
		return t.lose(ctx, req, err)
	}
	a := Answered{Request: req, Calls: resp.Calls, Finish: resp.Finish}
	if err != nil {
		a.Refused = safeText(err)
	}
	// Stored also when a stop came meanwhile: it was asked and paid for.
	return t.commit(ctx, "question.answered", func(tx Tx) error {
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		if err := tx.UpdateRequest(req); err != nil {
			return err
		}
		if a.Now = t.e.Now(); run.Desired == DesiredRun {
			run.CommitPoint++
			run.Faults = 0
		}
		if err := q.Done(tx, a); err != nil {
			return err
		}
		setup, err := t.driver().Setup(tx, t.sess, run) // the answer is part of what the attempt works with
		if err != nil {
			return err
		}
		setup.Thread, setup.Before = t.setup.Thread, nil
		t.run, t.setup = run, setup
		return tx.UpdateRun(run, a.Now)
	})
}

// refusesOnly tells whether an endpoint refused just this request: what is asked next may be answered all the same.
func refusesOnly(err error) bool {
	var me *ModelError
	return errors.As(err, &me) && (me.Kind == ModelBadRequest || me.Kind == ModelOverflow)
}
