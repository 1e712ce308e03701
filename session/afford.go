package session

import (
	"context"
	"errors"
)

// errSpent: a budget does not allow the next request. Nothing of it was stored.
var errSpent = errors.New("the budget does not allow the request")

// affords fails with errSpent when the budget of what a request is for does not allow it, and with a *usedUp when a limit of the provider does not.
func (t *turn) affords(tx Tx, req Request) error {
	if err := t.withinLimits(tx); err != nil || t.e.Hooks == nil || req.Goal == "" {
		return err
	}
	ok, err := t.e.Hooks.Affords(tx, req, t.e.Now())
	if err == nil && !ok {
		err = errSpent
	}
	return err
}

// spent stops what the request was for, and fails with ErrStopped. It is nil when the budget was raised meanwhile.
func (t *turn) spent(ctx context.Context, req Request) error {
	goesOn := false
	err := t.commit(ctx, "goal.exhausted", func(tx Tx) (err error) {
		goesOn, err = t.e.Hooks.Exhaust(tx, req, t.e.Now())
		return err
	})
	if err == nil && !goesOn {
		return ErrStopped
	}
	return err
}
