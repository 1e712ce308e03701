package store

import (
	"time"

	"holdfast/session"
)

const placeColumns = `SELECT q.session, q.run, q.instance, q.work_tree, q.state, q.keeps, q.since, s.served_at
	FROM queue q JOIN sessions s ON s.id = q.session`

func scanSlot(r scanner) (p session.Slot, err error) {
	var since, served int64
	err = r.Scan(&p.Session, &p.Run, &p.Instance, &p.WorkTree, &p.State, &p.Keeps, &since, &served)
	p.Since, p.Served = at(since), at(served)
	return p, err
}

// Queue lists every place, of every process.
func (t *Tx) Queue() ([]session.Slot, error) {
	return list(t, "list the queue", scanSlot, placeColumns)
}

const held = ` WHERE q.state = 'working' OR q.keeps = 1 ORDER BY q.session`

// Holding lists the places that hold a slot or a work tree.
func (t *Tx) Holding() ([]session.Slot, error) {
	return list(t, "list who works", scanSlot, placeColumns+held)
}

// Slot is the place of a session.
func (t *Tx) Slot(id session.SessionID) (session.Slot, error) {
	return get(t, "load a place", scanSlot, placeColumns+` WHERE q.session = ?`, id)
}

const putSlot = `INSERT INTO queue (session, run, instance, work_tree, state, keeps, since) VALUES (?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (session) DO UPDATE SET run = excluded.run, instance = excluded.instance, work_tree = excluded.work_tree,
	state = excluded.state, keeps = excluded.keeps, since = excluded.since`

// PutSlot gives a session its place.
func (t *Tx) PutSlot(p session.Slot) error {
	_, err := t.exec("put a place", putSlot, p.Session, p.Run, p.Instance, place(p.WorkTree), p.State, p.Keeps, ms(p.Since))
	return err
}

const dropSlot = `DELETE FROM queue WHERE session = ?`

// DropSlot takes the place of a session away, if it has one.
func (t *Tx) DropSlot(id session.SessionID) error {
	_, err := t.exec("drop a place", dropSlot, id)
	return err
}

const serve = `UPDATE sessions SET served_at = ? WHERE id = ?`

// Serve records that work of the session begins.
func (t *Tx) Serve(id session.SessionID, now time.Time) error {
	return t.one("serve session", serve, ms(now), id)
}

const standings = `SELECT s.id, s.last_seq, (SELECT count(*) FROM attachments a WHERE a.session = s.id) FROM sessions s WHERE s.owner = ?`

// Standings says of every session of an instance whether anything about it has changed.
func (t *Tx) Standings(id session.InstanceID) ([]session.Standings, error) {
	return list(t, "look for changed sessions", func(r scanner) (s session.Standings, err error) {
		err = r.Scan(&s.Session, &s.Seq, &s.Attached)
		return s, err
	}, standings, id)
}
