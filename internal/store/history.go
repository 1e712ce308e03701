package store

import (
	"errors"
	"fmt"

	"holdfast/session"
)

const itemPage = itemColumns + ` WHERE session = ? AND thread = ? AND seq > ? ORDER BY seq`

// Page lists the next items of a thread that together hold about so many bytes. It stops at the first that is beyond them, so that one
// large item is never joined by others.
func (t *Tx) Page(id session.SessionID, thread string, after int64, bytes int) ([]session.Item, error) {
	out, err := t.page(id, thread, after, bytes)
	if isBroken(unusable("items", id, err)) {
		return t.itemsOneByOne(id, thread, after, brokenPage)
	}
	return out, err
}

// brokenPage is how many entries are read at a time of a history in which something cannot be read.
const brokenPage = 50

func isBroken(err error) bool {
	var broken *session.RecordError
	return errors.As(err, &broken)
}

func (t *Tx) page(id session.SessionID, thread string, after int64, bytes int) (out []session.Item, err error) {
	rows, err := t.tx.Query(itemPage, id, thread, after)
	if err != nil {
		return nil, fmt.Errorf("list a page of items: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for size := 0; size < bytes && rows.Next(); {
		it, n, err := scanItemSize(rows)
		if err != nil {
			return nil, fmt.Errorf("list a page of items: %w", err)
		}
		out = append(out, it)
		size += n + itemCosts
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list a page of items: %w", err)
	}
	return out, nil
}

// itemCosts is what an item takes besides its body.
const itemCosts = 500

// What only a person is shown may be most of an item. It is left out before it is read, where that is worth the work: octet_length looks at
// the length of a value and not at the value.
const historyColumns = `SELECT id, session, seq, thread, run, attempt, kind, state,
	CASE WHEN octet_length(body) > 8192 AND json_valid(body) THEN json_remove(body, '$.blocks', '$.tool.files') ELSE body END, created_at FROM items`

const historyPage = historyColumns + ` WHERE session = ? AND thread = ? AND seq > ? ORDER BY seq LIMIT ?`

// History lists the items of a thread in order, from the place after, without what only a person is shown and with large
// results in their short form.
func (t *Tx) History(id session.SessionID, thread string, after int64, limit int) ([]session.Item, error) {
	if limit == 0 {
		limit = -1
	}
	all, err := list(t, "list the history", scanItem, historyPage, id, thread, after, limit)
	if isBroken(err) {
		return t.itemsOneByOne(id, thread, after, limit)
	}
	return all, err
}

const lastCompaction = itemColumns + ` WHERE session = ? AND thread = ? AND kind = 'compaction' ORDER BY seq DESC LIMIT 1`

// LastCompaction returns the newest compaction of a thread, or ErrNotFound.
func (t *Tx) LastCompaction(id session.SessionID, thread string) (session.Item, error) {
	return get(t, "load the last compaction", scanItem, lastCompaction, id, thread)
}

const latestItems = historyColumns + ` WHERE session = ?1 AND thread = ?2 AND (?3 = 0 OR seq < ?3) ORDER BY seq DESC LIMIT ?4`

// Latest lists the newest items of a thread before a place, newest first, without what only a person is shown.
func (t *Tx) Latest(id session.SessionID, thread string, before int64, limit int) ([]session.Item, error) {
	found, err := list(t, "list the latest items", scanItem, latestItems, id, thread, before, limit)
	if !isBroken(err) {
		return found, err
	}
	all, err := t.itemsOneByOne(id, thread, 0, -1)
	found = nil
	for i := len(all) - 1; i >= 0 && len(found) != limit; i-- {
		if before == 0 || all[i].Seq < before {
			found = append(found, all[i])
		}
	}
	return found, err
}
