package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"holdfast/session"
)

const insertErasure = `INSERT INTO erasures (session, left_over, at) VALUES (?, ?, ?)`

// What a session names beside its own rows. A digest of an answer is named by the sends that got it, a recorded tree by what it was recorded for.
const (
	erasedCalls   = `SELECT id FROM effects WHERE session = ? ORDER BY rowid`
	erasedAnswers = `SELECT DISTINCT s.answer_digest FROM sends s JOIN effects e ON e.id = s.effect
		WHERE e.session = ?1 AND s.answer = '' AND s.answer_digest <> '' AND NOT EXISTS
		(SELECT 1 FROM sends o JOIN effects f ON f.id = o.effect WHERE o.answer = '' AND o.answer_digest = s.answer_digest AND f.session <> ?1)`
	erasedTrees = `SELECT a.entry_tree FROM attempts a JOIN runs r ON r.id = a.run WHERE r.session = ?1 AND a.entry_tree <> ''
		UNION SELECT t.before FROM effect_trees t JOIN runs r ON r.id = t.run WHERE r.session = ?1
		UNION SELECT t.after FROM effect_trees t JOIN runs r ON r.id = t.run WHERE r.session = ?1 AND t.after <> ''
		UNION SELECT saved FROM undos WHERE session = ?1 AND saved <> ''`
	// Contents are shared: one goes when the last entry or journal record that names it does.
	namedContents = `SELECT json_extract(body, '$.tool.output.kept') FROM items
			WHERE (session = ?1) = ?2 AND instr(body, '"kept":"sha256:') > 0 AND json_valid(body)
		UNION SELECT json_extract(f.value, '$.before') FROM effects, json_each(effects.plan, '$.files') f
			WHERE (effects.session = ?1) = ?2 AND instr(effects.plan, '"kept":true') > 0 AND json_extract(f.value, '$.kept')
		UNION SELECT json_extract(f.value, '$.after') FROM effects, json_each(effects.plan, '$.files') f
			WHERE (effects.session = ?1) = ?2 AND instr(effects.plan, '"kept":true') > 0 AND json_extract(f.value, '$.kept')
		UNION SELECT json_extract(i.value, '$.digest') FROM items, json_each(` + ofImages + `items.body ELSE '{}' END, '$.images') i WHERE (items.session = ?1) = ?2
		UNION SELECT json_extract(i.value, '$.digest') FROM items, json_each(` + ofImages + `items.body ELSE '{}' END, '$.tool.output.images') i
			WHERE (items.session = ?1) = ?2
		UNION SELECT json_extract(i.value, '$.digest') FROM runs, json_each(CASE WHEN instr(runs.input, '"images":[') > 0 AND json_valid(runs.input)
			THEN runs.input ELSE '{}' END, '$.images') i WHERE (runs.session = ?1) = ?2`
	// A record that cannot be read names nothing, and json_each would fail on it.
	ofImages    = `CASE WHEN instr(items.body, '"images":[') > 0 AND json_valid(items.body) THEN `
	dropContent = `DELETE FROM contents WHERE digest = ?`
	// An environment goes when nobody's work begins with it.
	namedEnvironments = `SELECT json_extract(profile, '$.env') FROM sessions WHERE id = ?1 UNION SELECT json_extract(profile, '$.env') FROM runs WHERE session = ?1`
	dropEnvironment   = `DELETE FROM environments WHERE digest = ?1
		AND NOT EXISTS (SELECT 1 FROM sessions WHERE json_extract(profile, '$.env') = ?1)
		AND NOT EXISTS (SELECT 1 FROM runs WHERE json_extract(profile, '$.env') = ?1)
		AND NOT EXISTS (SELECT 1 FROM attachments WHERE json_extract(profile, '$.env') = ?1)`
)

// eraseRows removes the rows of a session, what refers to others first.
var eraseRows = []string{
	`DELETE FROM settlements WHERE effect IN (SELECT id FROM effects WHERE session = ?1)`,
	`DELETE FROM sends WHERE effect IN (SELECT id FROM effects WHERE session = ?1)`,
	`DELETE FROM effect_trees WHERE run IN (SELECT id FROM runs WHERE session = ?1)`,
	`DELETE FROM backgrounds WHERE session = ?1`,
	`UPDATE rules SET approval = '' WHERE approval IN (SELECT id FROM approvals WHERE session = ?1)`,
	`DELETE FROM rules WHERE session = ?1`,
	`DELETE FROM approvals WHERE session = ?1`,
	`DELETE FROM undos WHERE session = ?1`,
	`DELETE FROM effects WHERE session = ?1`,
	`DELETE FROM requirements WHERE goal IN (SELECT id FROM goals WHERE session = ?1)`,
	`DELETE FROM todos WHERE goal IN (SELECT id FROM goals WHERE session = ?1)`,
	`DELETE FROM goals WHERE session = ?1`,
	`DELETE FROM requests WHERE session = ?1`,
	`DELETE FROM attempts WHERE run IN (SELECT id FROM runs WHERE session = ?1)`,
	`DELETE FROM queue WHERE session = ?1`,
	`DELETE FROM runs WHERE session = ?1`,
	`DELETE FROM items WHERE session = ?1`,
	`DELETE FROM events WHERE session = ?1`,
	`DELETE FROM commands WHERE session = ?1`,
	`DELETE FROM servers WHERE session = ?1`,
	`DELETE FROM plans WHERE session = ?1`,
	`DELETE FROM attachments WHERE session = ?1`,
	`UPDATE limits SET session = '' WHERE session = ?1`,
	`DELETE FROM sessions WHERE id = ?1`,
}

// Erase removes every row of a session and stores what else it had.
func (t *Tx) Erase(id session.SessionID, now time.Time) error {
	var left session.LeftOver
	var err error
	if left.Calls, err = list(t, "list the calls of a session", text[session.EffectID], erasedCalls, id); err != nil {
		return err
	}
	if left.Answers, err = list(t, "list the answers of a session", text[string], erasedAnswers, id); err != nil {
		return err
	}
	if left.Trees, err = list(t, "list the recorded trees of a session", text[string], erasedTrees, id); err != nil {
		return err
	}
	contents, err := list(t, "list the contents of a session", maybe, namedContents, id, true)
	if err != nil {
		return err
	}
	environments, err := list(t, "list the environments of a session", maybe, namedEnvironments, id)
	if err != nil {
		return err
	}
	others := map[string]bool{}
	if len(contents) > 0 {
		named, err := list(t, "list the contents of other sessions", maybe, namedContents, id, false)
		if err != nil {
			return err
		}
		for _, d := range named {
			others[d] = true
		}
	}
	if _, err := t.exec("store what is left of a session", insertErasure, id, enc(t, left), ms(now)); err != nil {
		return err
	}
	for _, query := range eraseRows {
		if _, err := t.exec("remove the records of session "+string(id), query, id); err != nil {
			return err
		}
	}
	for _, d := range contents {
		if others[d] {
			continue
		}
		if _, err := t.exec("remove a content", dropContent, d); err != nil {
			return err
		}
	}
	for _, d := range environments {
		if _, err := t.exec("remove an environment", dropEnvironment, d); err != nil {
			return err
		}
	}
	return nil
}

// maybe reads a text that may be missing.
func maybe(r scanner) (string, error) {
	var s sql.NullString
	err := r.Scan(&s)
	return s.String, err
}

// Erasures lists the deleted sessions of which something may be left, oldest first.
func (t *Tx) Erasures() ([]session.Erasure, error) {
	return list(t, "list erasures", func(r scanner) (x session.Erasure, err error) {
		var left string
		var when int64
		if err = r.Scan(&x.Session, &left, &when); err == nil {
			err = malformed("erasure "+string(x.Session), dec(left, &x.LeftOver))
		}
		x.At = at(when)
		return x, err
	}, `SELECT session, left_over, at FROM erasures ORDER BY at, session`)
}

// Erased forgets a deleted session of which nothing is left.
func (t *Tx) Erased(id session.SessionID) error {
	_, err := t.exec("forget an erasure", `DELETE FROM erasures WHERE session = ?`, id)
	return err
}

const lying = `SELECT s.id FROM sessions s WHERE s.updated_at < ?1
	AND NOT EXISTS (SELECT 1 FROM events v WHERE v.session = s.id AND v.seq = s.last_seq AND v.at >= ?1)
	AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.session = s.id)
	AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.id AND r.phase <> 'ended')
	AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.session = s.id AND e.state <> 'settled')
	AND NOT EXISTS (SELECT 1 FROM approvals p WHERE p.session = s.id AND p.state IN ('pending', 'answered'))
	AND NOT EXISTS (SELECT 1 FROM goals g WHERE g.session = s.id AND g.status IN ('active', 'paused', 'blocked', 'budget_exhausted'))
	AND NOT EXISTS (SELECT 1 FROM backgrounds b WHERE b.session = s.id AND b.state = 'running')
	AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.session = s.id AND u.state = 'accepted')
	ORDER BY s.updated_at, s.id LIMIT ?2`

// Lying lists the sessions that have lain still since a time, oldest first, and hold nothing open.
func (t *Tx) Lying(since time.Time, limit int) ([]session.SessionID, error) {
	return list(t, "list sessions that lie still", text[session.SessionID], lying, ms(since), limit)
}

// errRead: what was removed could not be taken out of the files now.
var errRead = errors.New("another process reads the store; what was removed is taken out of its files later")

// Scrub writes the store anew, so that nothing of what was removed from it is left in free space of its pages, and cuts the write-ahead log.
// Overwriting while removing is not enough: pages that were split or merged keep copies. Nobody writes meanwhile.
func (d *DB) Scrub(ctx context.Context) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.users.Done()
	if d.beside != nil {
		return d.beside
	}
	if err := d.gate.lock(ctx, d.o.OnBusy); err != nil {
		return fmt.Errorf("write the store anew: %w", err)
	}
	defer d.gate.unlock()
	if err := d.inPlace(); err != nil {
		return fmt.Errorf("write the store anew: %w", err)
	}
	safe := context.WithoutCancel(ctx)
	conn, err := d.writer.Conn(safe)
	if err != nil {
		return fmt.Errorf("write the store anew: %w", classifySQLite(err))
	}
	defer func() { _ = conn.Close() }()
	// The copy may be as large as the store: on disk, not in memory. It holds only what is still there.
	for _, s := range []string{"PRAGMA temp_store=FILE", "VACUUM"} {
		if _, err := conn.ExecContext(safe, s); err != nil {
			_, _ = conn.ExecContext(safe, "PRAGMA temp_store=MEMORY")
			return fmt.Errorf("write the store anew: %w", classifySQLite(err))
		}
	}
	if _, err := conn.ExecContext(safe, "PRAGMA temp_store=MEMORY"); err != nil {
		return fmt.Errorf("write the store anew: %w", classifySQLite(err))
	}
	return d.fold(ctx, conn)
}

// Fold brings everything that was committed into the store's file and cuts the write-ahead log.
func (d *DB) Fold(ctx context.Context) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.users.Done()
	if d.beside != nil {
		return d.beside
	}
	conn, err := d.writer.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("cut the log: %w", classifySQLite(err))
	}
	defer func() { _ = conn.Close() }()
	return d.fold(ctx, conn)
}

func (d *DB) fold(ctx context.Context, conn *sql.Conn) error {
	safe := context.WithoutCancel(ctx)
	for range 40 { // a reader holds the log for milliseconds
		var busy, inLog, folded int
		if err := conn.QueryRowContext(safe, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &inLog, &folded); err != nil {
			return fmt.Errorf("cut the log: %w", classifySQLite(err))
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errRead
}
