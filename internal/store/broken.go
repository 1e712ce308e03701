package store

import (
	"errors"
	"slices"
	"strings"
	"time"

	sqlite3 "holdfast/internal/sqlite"

	"holdfast/goals"
	"holdfast/session"
)

// What cannot be used of a row does not keep others from being read. A row that was read and is not valid is returned marked; one that
// could not be read is a [session.RecordError], and where a list must stay whole, a placeholder.

// valid marks a row whose content does not decode or has a word that nobody knows.
func valid(err error, known ...bool) session.Code {
	if err != nil || slices.Contains(known, false) {
		return session.CodeMalformed
	}
	return session.CodeNone
}

func among[T comparable](v T, words ...T) bool { return slices.Contains(words, v) }

// unusable names what is wrong with a record, when that is known to be about the record and not about the whole store.
func unusable(record string, id session.SessionID, err error) error {
	var broken *session.RecordError
	var lite sqlite3.Error
	switch {
	case err == nil, errors.As(err, &broken), isFull(err):
		return err
	case errors.As(err, &lite):
		if lite.Code == sqlite3.ErrCorrupt || lite.Code == sqlite3.ErrIoErr {
			return &session.RecordError{Code: session.CodeUnreadable, Session: id, Record: record, Err: err}
		}
	case strings.HasPrefix(err.Error(), "sql: Scan error"): // database/sql has no type for it: a column holds another kind of value
		return &session.RecordError{Code: session.CodeMalformed, Session: id, Record: record, Err: err}
	}
	return err
}

// malformed is the error of a record that was read and does not decode.
func malformed(record string, err error) error {
	if err == nil {
		return nil
	}
	return &session.RecordError{Code: session.CodeMalformed, Record: record, Err: err}
}

// brokenItem stands in the place of an entry that cannot be used.
func brokenItem(i session.Item, code session.Code) session.Item {
	i.Kind, i.Broken = session.ItemMarker, code
	i.Body = session.ItemBody{Text: session.BrokenText(code, "item "+string(i.ID))}
	return i
}

const itemEvents = `SELECT ref, min(seq) FROM events WHERE session = ? AND kind = 'item' AND seq > ? GROUP BY ref ORDER BY 2`

// itemsOneByOne reads a history entry by entry, from the log that announced them, when reading it in one go fails.
func (t *Tx) itemsOneByOne(id session.SessionID, thread string, after int64, limit int) ([]session.Item, error) {
	type place struct {
		ref session.ItemID
		seq int64
	}
	all, err := list(t, "list announced items", func(r scanner) (p place, err error) { err = r.Scan(&p.ref, &p.seq); return p, err }, itemEvents, id, after)
	if err != nil {
		return nil, err
	}
	var out []session.Item
	for _, p := range all {
		i, err := t.Item(p.ref)
		if errors.Is(err, session.ErrNotFound) {
			i = brokenItem(session.Item{ID: p.ref, State: session.ItemComplete}, session.CodeUnreadable)
		} else if err != nil {
			return nil, err
		}
		if i.Session == "" {
			i.Session, i.Seq, i.Thread = id, p.seq, ""
		}
		if i.Thread != thread || i.Seq <= after {
			continue
		}
		if out = append(out, i); len(out) == limit {
			break
		}
	}
	return out, nil
}

// sessionsOneByOne does the same for the list of sessions. What cannot be read comes first: it has no time.
func (t *Tx) sessionsOneByOne(cwd string, updated time.Time, id session.SessionID, limit int) ([]session.Session, error) {
	ids, err := list(t, "list session ids", text[session.SessionID], `SELECT id FROM sessions ORDER BY id`)
	if err != nil {
		return nil, err
	}
	var lost, out []session.Session
	for _, one := range ids {
		s, err := t.Session(one)
		switch {
		case err != nil:
			return nil, err
		case s.UpdatedAt.IsZero():
			lost = append(lost, s)
		case cwd != "" && s.Cwd != cwd:
		case !updated.IsZero() && (s.UpdatedAt.After(updated) || s.UpdatedAt.Equal(updated) && s.ID >= id):
		default:
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b session.Session) int {
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return strings.Compare(string(b.ID), string(a.ID))
	})
	if updated.IsZero() {
		out = append(lost, out...)
	}
	if limit >= 0 && len(out) > limit {
		out = out[:limit]
	}
	return out, nil
}

// Intact looks at everything that executing a session depends on.
func (t *Tx) Intact(id session.SessionID) error {
	looks := []func() error{
		func() error {
			s, err := t.Session(id)
			return marked("session "+string(id), s.Broken, err)
		},
		func() error {
			return each(t.OpenRuns, id, func(r session.Run) error {
				if r.Broken != "" {
					return marked("run "+string(r.ID), r.Broken, nil)
				}
				if r.Goal != "" {
					if err := t.intactGoal(r.Goal); err != nil {
						return err
					}
				}
				a, err := t.LastAttempt(r.ID)
				if errors.Is(err, session.ErrNotFound) {
					return nil
				}
				ok := among(a.State, session.AttemptRunning, session.AttemptCompleted, session.AttemptCancelled, session.AttemptInterrupted,
					session.AttemptStalled, session.AttemptFailed)
				return marked("attempt "+string(a.ID), valid(nil, ok), err)
			})
		},
		func() error {
			return each(t.OpenEffects, id, func(e session.Effect) error { return marked("call "+string(e.ID), e.Broken, nil) })
		},
		func() error {
			return each(t.OpenApprovals, id, func(a session.Approval) error { return marked("question "+string(a.ID), a.Broken, nil) })
		},
		func() error {
			return each(t.OpenItems, id, func(i session.Item) error { return marked("item "+string(i.ID), i.Broken, nil) })
		},
		func() error { _, err := t.Servers(id); return marked("servers", "", err) },
		func() error { _, err := t.OpenUndos(id); return marked("undo", "", err) },
	}
	for _, look := range looks {
		if err := look(); err != nil {
			var broken *session.RecordError
			if errors.As(err, &broken) && broken.Session == "" {
				broken.Session = id
			}
			return err
		}
	}
	return nil
}

func (t *Tx) intactGoal(id string) error {
	g, err := t.Goal(id)
	if err == nil && g.Broken == session.CodeNone {
		_, err = t.Requirements(g.ID, g.Revision)
	}
	return marked("goal "+id, g.Broken, err)
}

// each looks at every record of a list.
func each[T any](of func(session.SessionID) ([]T, error), id session.SessionID, look func(T) error) error {
	all, err := of(id)
	if err != nil {
		return err
	}
	for _, v := range all {
		if err := look(v); err != nil {
			return err
		}
	}
	return nil
}

// marked says which record it is.
func marked(record string, code session.Code, err error) error {
	if err == nil && code != session.CodeNone {
		return &session.RecordError{Code: code, Record: record}
	}
	return err
}

func knownGoal(s goals.Status) bool {
	return among(s, goals.Active, goals.Paused, goals.Blocked, goals.Achieved, goals.Cancelled, goals.Exhausted)
}
