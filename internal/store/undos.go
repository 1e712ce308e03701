package store

import (
	"holdfast/session"
)

const putTrees = `INSERT INTO effect_trees (effect, run, before, after) VALUES (?, ?, ?, ?)
	ON CONFLICT (effect) DO UPDATE SET before = excluded.before, after = excluded.after`

// PutTrees stores the work trees around a call.
func (t *Tx) PutTrees(e session.EffectTrees) error {
	_, err := t.exec("store the work trees of a call", putTrees, e.Effect, e.Run, e.Before, e.After)
	return err
}

// TreesOf lists the work trees around the calls of a run.
func (t *Tx) TreesOf(id session.RunID) ([]session.EffectTrees, error) {
	return list(t, "list work trees", func(r scanner) (e session.EffectTrees, err error) {
		err = r.Scan(&e.Effect, &e.Run, &e.Before, &e.After)
		return e, err
	}, `SELECT effect, run, before, after FROM effect_trees WHERE run = ?`, id)
}

const allTrees = `SELECT entry_tree FROM attempts WHERE entry_tree <> '' UNION SELECT before FROM effect_trees
	UNION SELECT after FROM effect_trees UNION SELECT saved FROM undos`

// Trees lists every recorded work tree that a record refers to.
func (t *Tx) Trees() ([]string, error) {
	return list(t, "list recorded work trees", func(r scanner) (s string, err error) { err = r.Scan(&s); return s, err }, allTrees)
}

const insertUndo = `INSERT INTO undos (id, session, number, kind, run, turn, of, saved, paths, state, instance, at)
	VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM undos WHERE session = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`

// InsertUndo stores a step that puts files back and gives it its number.
func (t *Tx) InsertUndo(u *session.Undo) error {
	if _, err := t.exec("insert undo", insertUndo, u.ID, u.Session, u.Kind, u.Run, u.Turn, u.Of, u.Saved, enc(t, u.Paths), u.State, u.Instance,
		ms(u.At)); err != nil {
		return err
	}
	stored, err := t.Undo(u.ID)
	u.Number = stored.Number
	return err
}

const updateUndo = `UPDATE undos SET paths = ?, state = ?, settled_at = ?, instance = ? WHERE id = ? AND state = 'accepted'`

// UpdateUndo settles a step, or gives it to another process; a settled one is never changed.
func (t *Tx) UpdateUndo(u session.Undo) error {
	return t.one("update undo", updateUndo, enc(t, u.Paths), u.State, ms(u.SettledAt), u.Instance, u.ID)
}

const undoColumns = `SELECT id, session, number, kind, run, turn, of, saved, paths, state, instance, at, settled_at FROM undos`

func scanUndo(r scanner) (u session.Undo, err error) {
	var paths string
	var when, settled int64
	if err = r.Scan(&u.ID, &u.Session, &u.Number, &u.Kind, &u.Run, &u.Turn, &u.Of, &u.Saved, &paths, &u.State, &u.Instance, &when, &settled); err == nil {
		err = malformed("undo "+u.ID, dec(paths, &u.Paths))
	}
	u.At, u.SettledAt = at(when), at(settled)
	return u, err
}

// Undo returns one step.
func (t *Tx) Undo(id string) (session.Undo, error) {
	return get(t, "load undo", scanUndo, undoColumns+` WHERE id = ?`, id)
}

// Undos lists the steps of a session in order.
func (t *Tx) Undos(id session.SessionID) ([]session.Undo, error) {
	return list(t, "list undos", scanUndo, undoColumns+` WHERE session = ? ORDER BY number`, id)
}

// OpenUndos lists the steps that are not settled, of one session or of all.
func (t *Tx) OpenUndos(id session.SessionID) ([]session.Undo, error) {
	return list(t, "list open undos", scanUndo, undoColumns+` WHERE state = 'accepted' AND (?1 = '' OR session = ?1)`, id)
}
