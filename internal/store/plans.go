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

const putTodo = `INSERT INTO todos (goal, entries, at) VALUES (?, ?, ?)
	ON CONFLICT (goal) DO UPDATE SET entries = excluded.entries, at = excluded.at`

// PutTodo replaces the plan of a Goal and announces it.
func (t *Tx) PutTodo(goal string, id session.SessionID, plan []session.PlanEntry, now time.Time) error {
	if _, err := t.exec("store the todo", putTodo, goal, enc(t, append([]session.PlanEntry{}, plan...)), ms(now)); err != nil {
		return err
	}
	_, err := t.Announce(id, session.EventGoal, goal, now)
	return err
}

const todoOf = `SELECT entries FROM todos WHERE goal = ?`

// TodoOf returns the plan of a Goal; empty without one. What is open in it keeps the Goal open, so one that is not valid is an error.
func (t *Tx) TodoOf(goal string) (plan []session.PlanEntry, err error) {
	s, err := get(t, "load the todo", text[string], todoOf, goal)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := malformed("todo of goal "+goal, dec(s, &plan)); err != nil {
		return nil, err
	}
	return session.ValidPlan(plan), nil
}

const shownPlan = `SELECT entries FROM (SELECT entries, at, 0 AS todo FROM plans WHERE session = ?1 UNION ALL
	SELECT t.entries, t.at, 1 FROM todos t JOIN goals g ON g.id = t.goal
	WHERE g.session = ?1 AND g.status IN ('active', 'paused', 'blocked', 'budget_exhausted')) ORDER BY at DESC, todo DESC LIMIT 1`

// ShownPlan returns the last written one of a session's own plan and that of its open Goal, without what is not valid of it.
func (t *Tx) ShownPlan(id session.SessionID) ([]session.PlanEntry, error) {
	return t.plan(shownPlan, id)
}

const planOf = `SELECT entries FROM plans WHERE session = ?`

// PlanOf returns the plan of a session; empty without one, and without what is not valid of it.
func (t *Tx) PlanOf(id session.SessionID) ([]session.PlanEntry, error) { return t.plan(planOf, id) }

func (t *Tx) plan(query string, id session.SessionID) (plan []session.PlanEntry, err error) {
	s, err := get(t, "load the plan", text[string], query, id)
	var broken *session.RecordError
	if errors.Is(err, session.ErrNotFound) || errors.As(err, &broken) {
		return nil, nil // nothing depends on it
	}
	if err != nil || dec(s, &plan) != nil {
		return nil, err
	}
	return session.ValidPlan(plan), nil
}
