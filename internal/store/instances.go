package store

import (
	"time"

	"holdfast/session"
)

const insertInstance = `INSERT INTO instances (id, kind, host, boot, pid, start_ticks, started_at) VALUES (?, ?, ?, ?, ?, ?, ?)`

// InsertInstance records a process that already holds its lock.
func (t *Tx) InsertInstance(i session.InstanceRow) error {
	t.trace.note("join", "", i.ID, 0, false)
	_, err := t.exec("insert instance", insertInstance, i.ID, i.Kind, i.Host, i.Boot, i.PID, int64(i.Start), ms(i.StartedAt))
	return err
}

const instanceColumns = `SELECT id, kind, host, boot, pid, start_ticks, started_at FROM instances`

func scanInstance(r scanner) (i session.InstanceRow, err error) {
	var start, started int64
	err = r.Scan(&i.ID, &i.Kind, &i.Host, &i.Boot, &i.PID, &start, &started)
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

const disown = `UPDATE sessions SET owner = '' WHERE owner = ?`
const deleteInstance = `DELETE FROM instances WHERE id = ?`

// DeleteInstance removes the row, its attachments and its ownerships.
func (t *Tx) DeleteInstance(id session.InstanceID) error {
	t.trace.note("leave", "", id, 0, false)
	if _, err := t.exec("disown sessions", disown, id); err != nil {
		return err
	}
	_, err := t.exec("delete instance", deleteInstance, id)
	return err
}

const attach = `INSERT INTO attachments (instance, session, attached_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

// Attach records that a client of the instance has the session open.
func (t *Tx) Attach(i session.InstanceID, s session.SessionID, now time.Time) error {
	_, err := t.exec("attach", attach, i, s, ms(now))
	return err
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
