package store

import (
	"errors"
	"time"

	"holdfast/internal/secret"
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
	body, err := t.short(i.Body)
	if err != nil {
		return err
	}
	_, err = t.exec("insert item", insertItem, i.ID, i.Session, i.Seq, i.Thread, i.Run, i.Attempt, i.Kind, i.State, enc(t, body), ms(i.CreatedAt))
	return err
}

const updateItem = `UPDATE items SET state = ?1, body = CASE WHEN ?4 THEN body ELSE ?2 END WHERE id = ?3`

// UpdateItem writes an item's state and content and announces it; its place stays, and content that is not valid as well.
func (t *Tx) UpdateItem(i session.Item, now time.Time) error {
	body, err := t.short(i.Body)
	if err != nil {
		return err
	}
	if err := t.one("update item", updateItem, i.State, enc(t, body), i.ID, i.Broken != session.CodeNone); err != nil {
		return err
	}
	_, err = t.Announce(i.Session, session.EventItem, string(i.ID), now)
	return err
}

const itemColumns = `SELECT id, session, seq, thread, run, attempt, kind, state, body, created_at FROM items`

func scanItem(r scanner) (session.Item, error) {
	i, _, err := scanItemSize(r)
	return i, err
}

// scanItemSize also tells how large the stored body is.
func scanItemSize(r scanner) (i session.Item, size int, err error) {
	var body string
	var created int64
	if err = r.Scan(&i.ID, &i.Session, &i.Seq, &i.Thread, &i.Run, &i.Attempt, &i.Kind, &i.State, &body, &created); err == nil {
		bad := dec(body, &i.Body)
		ok := among(i.Kind, session.ItemUser, session.ItemAgent, session.ItemThought, session.ItemTool, session.ItemNote, session.ItemMarker, session.ItemGoal, session.ItemCompaction)
		if code := valid(bad, ok, among(i.State, session.ItemOpen, session.ItemComplete, session.ItemInterrupted),
			i.Kind != session.ItemTool || i.Body.Tool != nil, i.Kind != session.ItemCompaction || i.Body.Compaction != nil); code != session.CodeNone {
			i = brokenItem(i, code)
		}
	}
	i.CreatedAt = at(created)
	return i, len(body), err
}

// Item returns one item. One that cannot be read is returned as a mark with its id.
func (t *Tx) Item(id session.ItemID) (session.Item, error) {
	i, err := get(t, "load item "+string(id), scanItem, itemColumns+` WHERE id = ?`, id)
	var broken *session.RecordError
	if errors.As(err, &broken) {
		return brokenItem(session.Item{ID: id, State: session.ItemComplete}, broken.Code), nil
	}
	if err != nil {
		return i, err
	}
	return i, session.Whole(t, &i)
}

// Items lists the items of a thread in order, from the place after.
func (t *Tx) Items(id session.SessionID, thread string, after int64, limit int) ([]session.Item, error) {
	if limit == 0 {
		limit = -1
	}
	all, err := t.whole("list items", itemColumns+` WHERE session = ? AND thread = ? AND seq > ? ORDER BY seq LIMIT ?`, id, thread, after, limit)
	if isBroken(err) {
		return t.itemsOneByOne(id, thread, after, limit)
	}
	return all, err
}

// OpenItems lists the items that may still change.
func (t *Tx) OpenItems(id session.SessionID) ([]session.Item, error) {
	return t.whole("list open items", itemColumns+` WHERE session = ? AND state = 'open' ORDER BY seq`, id)
}

// whole lists items with their results, however large.
func (t *Tx) whole(what, query string, args ...any) ([]session.Item, error) {
	items, err := list(t, what, scanItem, query, args...)
	for i := range items {
		if err == nil {
			err = session.Whole(t, &items[i])
		}
	}
	return items, err
}

// short keeps images and a large result apart and returns what the row holds.
func (t *Tx) short(b session.ItemBody) (session.ItemBody, error) {
	if err := t.KeepImages(b.NewImages()); err != nil {
		return b, err
	}
	b, digest, text := secret.Hide(t.mask, b).Apart()
	if digest == "" {
		return b, nil
	}
	_, err := t.exec("keep a result", insertContent, digest, []byte(text))
	return b, err
}
