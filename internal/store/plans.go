package store

import (
	"errors"
	"time"

	"holdfast/session"
)

const putPlan = `INSERT INTO plans (session, entries, at) VALUES (?, ?, ?)
	ON CONFLICT (session) DO UPDATE SET entries = excluded.entries, at = excluded.at`

// PutPlan replaces the plan of a session and announces it.
func (t *Tx) PutPlan(id session.SessionID, plan []session.PlanEntry, now time.Time) error {
	if _, err := t.exec("store the plan", putPlan, id, enc(t, append([]session.PlanEntry{}, plan...)), ms(now)); err != nil {
		return err
	}
	_, err := t.Announce(id, session.EventSession, string(id), now)
	return err
}

const planOf = `SELECT entries FROM plans WHERE session = ?`

// PlanOf returns the plan of a session; empty without one, and without what is not valid of it.
func (t *Tx) PlanOf(id session.SessionID) (plan []session.PlanEntry, err error) {
	s, err := get(t, "load the plan", text[string], planOf, id)
	var broken *session.RecordError
	if errors.Is(err, session.ErrNotFound) || errors.As(err, &broken) {
		return nil, nil // nothing depends on it
	}
	if err != nil || dec(s, &plan) != nil {
		return nil, err
	}
	return session.ValidPlan(plan), nil
}
