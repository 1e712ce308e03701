package store

import (
	"time"

	"holdfast/session"
)

const (
	pruneLimits = `DELETE FROM limits WHERE until <= ?`
	forgetLimit = `DELETE FROM limits WHERE provider = ? AND origin = ? AND credential = ? AND model = ?`
	insertLimit = `INSERT INTO limits (provider, origin, credential, model, session, message, learned_at, until, wait) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	limitsOf    = `SELECT id, provider, origin, credential, model, session, message, learned_at, until, wait, lifted FROM limits
	WHERE provider = ? AND origin = ? AND credential = ? AND model IN ('', ?) ORDER BY id`
	newestLimit = `SELECT coalesce(max(id), 0) FROM limits`
	liftLimits  = `UPDATE limits SET lifted = 1 WHERE provider = ? AND origin = ? AND credential = ? AND model IN ('', ?) AND id <= ? AND lifted = 0`
)

// PutLimit stores a limit in the place of what was known of the same one, and forgets those whose time has come.
func (t *Tx) PutLimit(l session.Limit) error {
	if _, err := t.exec("forget limits", pruneLimits, ms(l.Learned)); err != nil {
		return err
	}
	s := l.Scope
	if _, err := t.exec("forget a limit", forgetLimit, s.Provider, s.Origin, s.Credential, s.Model); err != nil {
		return err
	}
	_, err := t.exec("store a limit", insertLimit, s.Provider, s.Origin, s.Credential, s.Model, l.Session, l.Message, ms(l.Learned), ms(l.Until),
		l.Wait.Milliseconds())
	return err
}

// Limits lists what is known of what a request would meet: of its model, and of its account.
func (t *Tx) Limits(s session.LimitScope) ([]session.Limit, error) {
	return list(t, "look for limits", func(r scanner) (l session.Limit, err error) {
		var learned, until, wait int64
		err = r.Scan(&l.ID, &l.Scope.Provider, &l.Scope.Origin, &l.Scope.Credential, &l.Scope.Model, &l.Session, &l.Message, &learned, &until, &wait, &l.Lifted)
		l.Learned, l.Until, l.Wait = at(learned), at(until), time.Duration(wait)*time.Millisecond
		return l, err
	}, limitsOf, s.Provider, s.Origin, s.Credential, s.Model)
}

// NewestLimit is the id of the newest limit that is stored, 0 without any.
func (t *Tx) NewestLimit() (int64, error) {
	return get(t, "look for the newest limit", func(r scanner) (id int64, err error) { err = r.Scan(&id); return id, err }, newestLimit)
}

// LiftLimits marks what a request met in spite of limits up to that one. It returns how many were not lifted yet.
func (t *Tx) LiftLimits(s session.LimitScope, upTo int64) (int64, error) {
	return t.exec("lift limits", liftLimits, s.Provider, s.Origin, s.Credential, s.Model, upTo)
}

// PruneLimits forgets those whose time has come.
func (t *Tx) PruneLimits(now time.Time) error {
	_, err := t.exec("forget limits", pruneLimits, ms(now))
	return err
}
