package store

import (
	"errors"
	"time"

	"holdfast/session"
)

const insertInstance = `INSERT INTO instances (id, kind, host, boot, space, pid, start_ticks, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

// InsertInstance records a process that already holds its lock.
func (t *Tx) InsertInstance(i session.InstanceRow) error {
	t.trace.note("join", "", i.ID, 0, false)
	_, err := t.exec("insert instance", insertInstance, i.ID, i.Kind, i.Host, i.Boot, i.Space, i.PID, int64(i.Start), ms(i.StartedAt))
	return err
}

const instanceColumns = `SELECT id, kind, host, boot, space, pid, start_ticks, started_at FROM instances`

func scanInstance(r scanner) (i session.InstanceRow, err error) {
	var start, started int64
	err = r.Scan(&i.ID, &i.Kind, &i.Host, &i.Boot, &i.Space, &i.PID, &start, &started)
	i.Start, i.StartedAt = uint64(start), at(started)
	return i, err
}

// Instance returns one process.
func (t *Tx) Instance(id session.InstanceID) (session.InstanceRow, error) {
	return get(t, "load instance", scanInstance, instanceColumns+` WHERE id = ?`, id)
}

// Instances lists every process that has a row.
func (t *Tx) Instances() ([]session.InstanceRow, error) {
	return list(t, "list instances", scanInstance, instanceColumns+` ORDER BY started_at, id`)
}

const leaveBehind = `UPDATE runs SET left_behind = 1 WHERE phase <> 'ended' AND session IN (SELECT id FROM sessions WHERE owner = ?)`
const disown = `UPDATE sessions SET owner = '' WHERE owner = ?`
const deleteInstance = `DELETE FROM instances WHERE id = ?`

// DeleteInstance removes the row, its attachments, its places in the queue and its ownerships. What was not at its end is left behind.
func (t *Tx) DeleteInstance(id session.InstanceID) error {
	t.trace.note("leave", "", id, 0, false)
	if _, err := t.exec("leave work behind", leaveBehind, id); err != nil {
		return err
	}
	if _, err := t.exec("disown sessions", disown, id); err != nil {
		return err
	}
	_, err := t.exec("delete instance", deleteInstance, id)
	return err
}

const attach = `INSERT INTO attachments (instance, session, client, profile, attached_at) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (instance, session) DO UPDATE SET client = excluded.client, profile = excluded.profile`

// Attach records that a client of the instance has the session open.
func (t *Tx) Attach(a session.Attachment) error {
	_, err := t.exec("attach", attach, a.Instance, a.Session, enc(t, a.Client), enc(t, a.Profile), ms(a.At))
	return err
}

const attachments = `SELECT instance, session, client, profile, attached_at FROM attachments WHERE session = ? ORDER BY attached_at, instance`

// Attachments lists who has the session open, in the order in which they came.
func (t *Tx) Attachments(s session.SessionID) ([]session.Attachment, error) {
	return list(t, "list attachments", func(r scanner) (a session.Attachment, err error) {
		var client, profile string
		var when int64
		err = r.Scan(&a.Instance, &a.Session, &client, &profile, &when)
		if err == nil {
			err = errors.Join(dec(client, &a.Client), dec(profile, &a.Profile))
		}
		a.At = at(when)
		return a, err
	}, attachments, s)
}

const putEnvironment = `INSERT INTO environments (digest, vars, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

// PutEnvironment stores an environment unless it is there.
func (t *Tx) PutEnvironment(e session.Environment, now time.Time) error {
	_, err := t.exec("store an environment", putEnvironment, e.Digest, enc(t, e.Vars), ms(now))
	return err
}

const environment = `SELECT digest, vars FROM environments WHERE digest = ?`

// Environment returns an environment by its digest.
func (t *Tx) Environment(digest string) (session.Environment, error) {
	return get(t, "load environment "+digest, func(r scanner) (e session.Environment, err error) {
		var vars string
		if err = r.Scan(&e.Digest, &vars); err == nil {
			err = dec(vars, &e.Vars)
		}
		return e, err
	}, environment, digest)
}

const detach = `DELETE FROM attachments WHERE instance = ? AND session = ?`

// Detach records that the client closed the session.
func (t *Tx) Detach(i session.InstanceID, s session.SessionID) error {
	_, err := t.exec("detach", detach, i, s)
	return err
}

const attached = `SELECT instance FROM attachments WHERE session = ? ORDER BY attached_at, instance`

// Attached lists the instances that have the session open.
func (t *Tx) Attached(s session.SessionID) ([]session.InstanceID, error) {
	return list(t, "list attachments", text[session.InstanceID], attached, s)
}

// Lost tells whether an instance is provably dead and nobody has taken over from it yet.
func (t *Tx) Lost(id session.InstanceID) bool {
	if t.dead == nil || id == "" {
		return false
	}
	row, err := t.Instance(id)
	return err == nil && t.dead(row)
}

// Condition says what is known of an instance. Nobody, and one without a row, lets nobody wait.
func (t *Tx) Condition(id session.InstanceID) session.Condition {
	if t.condition == nil || id == "" {
		return session.Condition{}
	}
	row, err := t.Instance(id)
	if err != nil {
		return session.Condition{}
	}
	return t.condition(row)
}
