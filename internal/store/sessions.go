package store

import (
	"fmt"
	"time"

	"holdfast/session"
)

const insertSession = `INSERT INTO sessions
	(id, cwd, roots, identity, title, mode, model, profile, owner, generation, closed, created_at, updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertSession stores a new session with its first owner.
func (t *Tx) InsertSession(s session.Session) error {
	_, err := t.exec("insert session", insertSession, s.ID, s.Cwd, enc(t, s.Roots), s.Identity, s.Title, s.Mode, s.Model, enc(t, s.Profile),
		s.Owner, s.Generation, s.Closed, ms(s.CreatedAt), ms(s.UpdatedAt))
	return err
}

const sessionColumns = `SELECT id, cwd, roots, identity, title, mode, model, profile, owner, generation, last_seq, closed,
	created_at, updated_at FROM sessions`

func scanSession(r scanner) (s session.Session, err error) {
	var roots, profile string
	var created, updated int64
	err = r.Scan(&s.ID, &s.Cwd, &roots, &s.Identity, &s.Title, &s.Mode, &s.Model, &profile, &s.Owner, &s.Generation, &s.LastSeq,
		&s.Closed, &created, &updated)
	if err == nil {
		err = dec(roots, &s.Roots)
	}
	if err == nil {
		err = dec(profile, &s.Profile)
	}
	s.CreatedAt, s.UpdatedAt = at(created), at(updated)
	return s, err
}

// Session returns one session.
func (t *Tx) Session(id session.SessionID) (session.Session, error) {
	return get(t, "load session "+string(id), scanSession, sessionColumns+` WHERE id = ?`, id)
}

const sessionPage = ` WHERE (?1 = '' OR cwd = ?1) AND (?2 = 0 OR (updated_at, id) < (?2, ?3)) ORDER BY updated_at DESC, id DESC LIMIT ?4`

// Sessions lists sessions, newest first, after the place (updated, id).
func (t *Tx) Sessions(cwd string, updated time.Time, id session.SessionID, limit int) ([]session.Session, error) {
	return list(t, "list sessions", scanSession, sessionColumns+sessionPage, cwd, ms(updated), id, limit)
}

const updateSession = `UPDATE sessions SET roots = ?, identity = ?, title = ?, mode = ?, model = ?, profile = ?, closed = ?, updated_at = ?
	WHERE id = ?`

// UpdateSession writes everything but ownership and announces the change.
func (t *Tx) UpdateSession(s session.Session) error {
	if err := t.one("update session", updateSession, enc(t, s.Roots), s.Identity, s.Title, s.Mode, s.Model, enc(t, s.Profile), s.Closed,
		ms(s.UpdatedAt), s.ID); err != nil {
		return err
	}
	_, err := t.Announce(s.ID, session.EventSession, string(s.ID), s.UpdatedAt)
	return err
}

const fence = `SELECT count(*) FROM sessions WHERE id = ? AND owner = ? AND generation = ?`

// Fence fails with ErrFenced unless owner holds the session under this generation. The transaction is a write one, so what holds
// here holds until its end.
func (t *Tx) Fence(id session.SessionID, owner session.InstanceID, generation int64) error {
	var n int
	if err := t.tx.QueryRow(fence, id, owner, generation).Scan(&n); err != nil {
		return fmt.Errorf("check ownership of %s: %w", id, err)
	}
	if n == 0 {
		return fmt.Errorf("session %s, generation %d: %w", id, generation, session.ErrFenced)
	}
	return nil
}

const own = `UPDATE sessions SET owner = ?1, generation = generation + (?1 <> '') WHERE id = ?2`

// Own makes owner the owner under the next generation and returns it.
func (t *Tx) Own(id session.SessionID, owner session.InstanceID) (int64, error) {
	if err := t.one("own session", own, owner, id); err != nil {
		return 0, err
	}
	s, err := t.Session(id)
	return s.Generation, err
}

const ownedBy = `SELECT id FROM sessions WHERE owner = ? ORDER BY updated_at DESC, id`

// OwnedBy lists the sessions an instance owns.
func (t *Tx) OwnedBy(i session.InstanceID) ([]session.SessionID, error) {
	return list(t, "list owned sessions", text[session.SessionID], ownedBy, i)
}

const unowned = `SELECT s.id FROM sessions s WHERE s.owner = '' AND s.closed = 0 AND EXISTS
	(SELECT 1 FROM runs r WHERE r.session = s.id AND r.phase <> 'ended' AND r.desired IN ('run', 'cancelled'))
	ORDER BY s.updated_at DESC, s.id`

// Unowned lists sessions nobody owns that hold work which is still wanted, or was cancelled and not yet ended.
func (t *Tx) Unowned() ([]session.SessionID, error) {
	return list(t, "list unowned sessions", text[session.SessionID], unowned)
}

const busy = `SELECT s.id FROM sessions s WHERE EXISTS
	(SELECT 1 FROM runs r WHERE r.session = s.id AND r.phase <> 'ended' AND r.desired = 'run') ORDER BY s.updated_at DESC, s.id`

// Busy lists the sessions that hold work which is wanted.
func (t *Tx) Busy() ([]session.SessionID, error) {
	return list(t, "list busy sessions", text[session.SessionID], busy)
}

const nextSeq = `UPDATE sessions SET last_seq = last_seq + 1, updated_at = max(updated_at, ?) WHERE id = ? RETURNING last_seq`
const insertEvent = `INSERT INTO events (session, seq, kind, ref, at) VALUES (?, ?, ?, ?, ?)`

// Announce appends an event and returns its sequence number.
func (t *Tx) Announce(id session.SessionID, kind session.EventKind, ref string, now time.Time) (int64, error) {
	var seq int64
	if err := t.tx.QueryRow(nextSeq, ms(now), id).Scan(&seq); err != nil {
		return 0, fmt.Errorf("number an event of %s: %w", id, err)
	}
	_, err := t.exec("append event", insertEvent, id, seq, kind, ref, ms(now))
	return seq, err
}

const events = `SELECT session, seq, kind, ref, at FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`

// Events lists events after a sequence number.
func (t *Tx) Events(id session.SessionID, after int64, limit int) ([]session.Event, error) {
	return list(t, "list events", func(r scanner) (e session.Event, err error) {
		var when int64
		err = r.Scan(&e.Session, &e.Seq, &e.Kind, &e.Ref, &when)
		e.At = at(when)
		return e, err
	}, events, id, after, limit)
}
