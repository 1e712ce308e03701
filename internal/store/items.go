package store

import (
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
	_, err = t.exec("insert item", insertItem, i.ID, i.Session, i.Seq, i.Thread, i.Run, i.Attempt, i.Kind, i.State, enc(t, i.Body), ms(i.CreatedAt))
	return err
}

const updateItem = `UPDATE items SET state = ?, body = ? WHERE id = ?`

// UpdateItem writes an item's state and content and announces it; its place stays.
func (t *Tx) UpdateItem(i session.Item, now time.Time) error {
	if err := t.one("update item", updateItem, i.State, enc(t, i.Body), i.ID); err != nil {
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
		err = dec(body, &i.Body)
	}
	i.CreatedAt = at(created)
	return i, err
}

// Item returns one item.
func (t *Tx) Item(id session.ItemID) (session.Item, error) {
	return get(t, "load item", scanItem, itemColumns+` WHERE id = ?`, id)
}

// Items lists the items of a thread in order, from the place after.
func (t *Tx) Items(id session.SessionID, thread string, after int64, limit int) ([]session.Item, error) {
	if limit == 0 {
		limit = -1
	}
	return list(t, "list items", scanItem, itemColumns+` WHERE session = ? AND thread = ? AND seq > ? ORDER BY seq LIMIT ?`, id, thread, after, limit)
}

// OpenItems lists the items that may still change.
func (t *Tx) OpenItems(id session.SessionID) ([]session.Item, error) {
	return list(t, "list open items", scanItem, itemColumns+` WHERE session = ? AND state = 'open' ORDER BY seq`, id)
}
