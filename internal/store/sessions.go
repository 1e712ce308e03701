package store

import (
	"errors"
	"fmt"
	"time"

	"holdfast/session"
)

const insertSession = `INSERT INTO sessions
	(id, cwd, roots, identity, title, mode, model, profile, owner, generation, closed, created_at, updated_at, work_tree)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertSession stores a new session with its first owner.
func (t *Tx) InsertSession(s session.Session) error {
	_, err := t.exec("insert session", insertSession, s.ID, place(s.Cwd), enc(t, places(s.Roots)), s.Identity, s.Title, s.Mode, s.Choice.String(), enc(t, s.Profile),
		s.Owner, s.Generation, s.Closed, ms(s.CreatedAt), ms(s.UpdatedAt), place(s.WorkTree))
	t.trace.note("create", s.ID, s.Owner, s.Generation, false)
	return err
}

const sessionColumns = `SELECT id, cwd, roots, identity, title, mode, model, profile, owner, generation, last_seq, closed,
	created_at, updated_at, work_tree, recovery, served_at FROM sessions`

func scanSession(r scanner) (s session.Session, err error) {
	var roots, choice, profile string
	var created, updated, served int64
	err = r.Scan(&s.ID, &s.Cwd, &roots, &s.Identity, &s.Title, &s.Mode, &choice, &profile, &s.Owner, &s.Generation, &s.LastSeq,
		&s.Closed, &created, &updated, &s.WorkTree, &s.Recovery, &served)
	if err == nil {
		var unread error
		s.Choice, unread = session.ParseChoice(choice)
		s.Broken = valid(errors.Join(unread, dec(roots, &s.Roots), dec(profile, &s.Profile)), among(s.Mode, session.Modes...), len(s.Roots) > 0)
		if s.Broken != session.CodeNone {
			s.Roots = []string{s.Cwd} // never written back
		}
	}
	s.CreatedAt, s.UpdatedAt, s.Served = at(created), at(updated), at(served)
	return s, err
}

// Session returns one session. One that cannot be read is returned as a mark with its id.
func (t *Tx) Session(id session.SessionID) (session.Session, error) {
	s, err := get(t, "load session "+string(id), scanSession, sessionColumns+` WHERE id = ?`, id)
	var broken *session.RecordError
	if errors.As(err, &broken) {
		return session.Session{ID: id, Roots: []string{""}, Broken: broken.Code}, nil
	}
	return s, err
}

const sessionPage = ` WHERE (?1 = '' OR cwd = ?1) AND (?2 = 0 OR (updated_at, id) < (?2, ?3)) ORDER BY updated_at DESC, id DESC LIMIT ?4`

// Sessions lists sessions, newest first, after the place (updated, id).
func (t *Tx) Sessions(cwd string, updated time.Time, id session.SessionID, limit int) ([]session.Session, error) {
	all, err := list(t, "list sessions", scanSession, sessionColumns+sessionPage, place(cwd), ms(updated), id, limit)
	var broken *session.RecordError
	if errors.As(err, &broken) {
		return t.sessionsOneByOne(cwd, updated, id, limit)
	}
	return all, err
}

const updateSession = `UPDATE sessions SET roots = ?, identity = ?, title = ?, mode = ?, model = ?, profile = ?, closed = ?, updated_at = ?,
	recovery = ? WHERE id = ?`

const updateBrokenSession = `UPDATE sessions SET closed = ?, updated_at = ? WHERE id = ?`

// UpdateSession writes everything but ownership and announces the change. Of a session that is not valid nothing is overwritten.
func (t *Tx) UpdateSession(s session.Session) error {
	if s.Broken != session.CodeNone {
		if err := t.one("update session", updateBrokenSession, s.Closed, ms(s.UpdatedAt), s.ID); err != nil {
			return err
		}
	} else if err := t.one("update session", updateSession, enc(t, places(s.Roots)), s.Identity, s.Title, s.Mode, s.Choice.String(), enc(t, s.Profile), s.Closed,
		ms(s.UpdatedAt), s.Recovery, s.ID); err != nil {
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
	t.trace.note("fence", id, owner, generation, n == 0)
	if n == 0 {
		return fmt.Errorf("session %s, generation %d: %w", id, generation, session.ErrFenced)
	}
	return nil
}

const own = `UPDATE sessions SET owner = ?1, generation = generation + (?1 <> '') WHERE id = ?2`

const leaveQueue = `DELETE FROM queue WHERE session = ? AND instance <> ?`

// Own makes owner the owner under the next generation and returns it. The place of another owner is not its own.
func (t *Tx) Own(id session.SessionID, owner session.InstanceID) (int64, error) {
	if _, err := t.exec("leave the queue", leaveQueue, id, owner); err != nil {
		return 0, err
	}
	if err := t.one("own session", own, owner, id); err != nil {
		return 0, err
	}
	s, err := t.Session(id)
	t.trace.note("own", id, owner, s.Generation, false)
	return s.Generation, err
}

const ownedBy = `SELECT id FROM sessions WHERE owner = ? ORDER BY updated_at DESC, id`

// OwnedBy lists the sessions an instance owns.
func (t *Tx) OwnedBy(i session.InstanceID) ([]session.SessionID, error) {
	return list(t, "list owned sessions", text[session.SessionID], ownedBy, i)
}

const unowned = `SELECT s.id FROM sessions s WHERE s.owner = '' AND EXISTS
	(SELECT 1 FROM runs r WHERE r.session = s.id AND r.phase <> 'ended'
		AND (r.desired = 'run' AND s.closed = 0 OR r.desired = 'cancelled' OR r.desired = 'paused' AND r.phase = 'working'))
	ORDER BY s.updated_at DESC, s.id`

// Unowned lists sessions nobody owns that hold work which is still wanted, unless the client closed them, or which was stopped and not yet
// ended.
func (t *Tx) Unowned() ([]session.SessionID, error) {
	return list(t, "list unowned sessions", text[session.SessionID], unowned)
}

const busy = `SELECT s.id FROM sessions s WHERE EXISTS
	(SELECT 1 FROM runs r WHERE r.session = s.id AND r.phase <> 'ended' AND r.desired = 'run') ORDER BY s.updated_at DESC, s.id`

// Busy lists the sessions that hold work which is wanted.
func (t *Tx) Busy() ([]session.SessionID, error) {
	return list(t, "list busy sessions", text[session.SessionID], busy)
}

// An attempt that recovery has admitted names its rule; the one before it had another owner. What the user has stopped meanwhile needs no word.
const recovered = `SELECT s.id FROM sessions s WHERE NOT EXISTS (SELECT 1 FROM attachments t WHERE t.session = s.id) AND (s.id IN
	(SELECT session FROM runs WHERE left_behind = 1 AND desired = 'run' AND phase = 'queued' AND reason_code IN ('waiting_for_slot', 'worktree_busy'))
	OR s.id IN (SELECT r.session FROM attempts a JOIN attempts p ON p.run = a.run AND p.number = a.number - 1 JOIN runs r ON r.id = a.run
		WHERE a.rule <> '' AND a.generation <> p.generation AND a.state <> 'cancelled' AND (a.state = 'running' OR a.started_at >= ?)
			AND r.desired IN ('run', 'done')))
	ORDER BY s.updated_at DESC, s.id`

// Recovered lists the sessions without a client in which work has been recovered, or has been taken up and waits for its turn.
func (t *Tx) Recovered(since time.Time) ([]session.SessionID, error) {
	return list(t, "list recovered sessions", text[session.SessionID], recovered, ms(since))
}

const nextSeq = `UPDATE sessions SET last_seq = last_seq + 1, updated_at = max(updated_at, ?) WHERE id = ? RETURNING last_seq`
const insertEvent = `INSERT INTO events (session, seq, kind, ref, at) VALUES (?, ?, ?, ?, ?)`

// Announce appends an event and returns its sequence number.
func (t *Tx) Announce(id session.SessionID, kind session.EventKind, ref string, now time.Time) (int64, error) {
	var seq int64
	if err := t.tx.QueryRow(nextSeq, ms(now), id).Scan(&seq); err != nil {
		return 0, fmt.Errorf("number an event of %s: %w", id, err)
	}
	t.trace.note("touch", id, "", seq, false)
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
