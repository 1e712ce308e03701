package store

import (
	"errors"
	"time"

	"holdfast/session"
)

const insertItem = `INSERT INTO items (id, session, seq, thread, run, attempt, kind, state, body, created_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertItem announces the item and stores it at the place of that event.
func (t *Tx) InsertItem(i *session.Item) error {
	seq, err := t.Announce(i.Session, session.EventItem, string(i.ID), i.CreatedAt)
	if err != nil {
		return err
	}
	i.Seq = seq
	_, err = t.exec("insert item", insertItem, i.ID, i.Session, i.Seq, i.Thread, i.Run, i.Attempt, i.Kind, i.State, enc(i.Body), ms(i.CreatedAt))
	return err
}

const updateItem = `UPDATE items SET state = ?1, body = CASE WHEN ?4 THEN body ELSE ?2 END WHERE id = ?3`

// UpdateItem writes an item's state and content and announces it; its place stays, and content that is not valid as well.
func (t *Tx) UpdateItem(i session.Item, now time.Time) error {
	if err := t.one("update item", updateItem, i.State, enc(i.Body), i.ID, i.Broken != session.CodeNone); err != nil {
		return err
	}
	_, err := t.Announce(i.Session, session.EventItem, string(i.ID), now)
	return err
}

const itemColumns = `SELECT id, session, seq, thread, run, attempt, kind, state, body, created_at FROM items`

func scanItem(r scanner) (i session.Item, err error) {
	var body string
	var created int64
	if err = r.Scan(&i.ID, &i.Session, &i.Seq, &i.Thread, &i.Run, &i.Attempt, &i.Kind, &i.State, &body, &created); err == nil {
		bad := dec(body, &i.Body)
		ok := among(i.Kind, session.ItemUser, session.ItemAgent, session.ItemThought, session.ItemTool, session.ItemNote, session.ItemMarker, session.ItemGoal)
		if code := valid(bad, ok, among(i.State, session.ItemOpen, session.ItemComplete, session.ItemInterrupted),
			i.Kind != session.ItemTool || i.Body.Tool != nil); code != session.CodeNone {
			i = brokenItem(i, code)
		}
	}
	i.CreatedAt = at(created)
	return i, err
}

// Item returns one item. One that cannot be read is returned as a mark with its id.
func (t *Tx) Item(id session.ItemID) (session.Item, error) {
	i, err := get(t, "load item "+string(id), scanItem, itemColumns+` WHERE id = ?`, id)
	var broken *session.RecordError
	if errors.As(err, &broken) {
		return brokenItem(session.Item{ID: id, State: session.ItemComplete}, broken.Code), nil
	}
	return i, err
}

// Items lists the items of a thread in order, from the place after.
func (t *Tx) Items(id session.SessionID, thread string, after int64, limit int) ([]session.Item, error) {
	if limit == 0 {
		limit = -1
	}
	all, err := list(t, "list items", scanItem, itemColumns+` WHERE session = ? AND thread = ? AND seq > ? ORDER BY seq LIMIT ?`, id, thread, after, limit)
	var broken *session.RecordError
	if errors.As(err, &broken) {
		return t.itemsOneByOne(id, thread, after, limit)
	}
	return all, err
}

// OpenItems lists the items that may still change.
func (t *Tx) OpenItems(id session.SessionID) ([]session.Item, error) {
	return list(t, "list open items", scanItem, itemColumns+` WHERE session = ? AND state = 'open' ORDER BY seq`, id)
}
