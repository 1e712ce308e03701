package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sqlite3 "holdfast/internal/sqlite"
)

// FaultKind is what a fault that a check found means for the store.
type FaultKind string

const (
	FaultPage      FaultKind = "page"      // the file is damaged: what it holds cannot be trusted
	FaultIndex     FaultKind = "index"     // an index is damaged; it is made anew from the records
	FaultReference FaultKind = "reference" // a record refers to one that is not there
	FaultRecord    FaultKind = "record"    // records contradict each other
	FaultRow       FaultKind = "row"       // a record is not valid; its session alone is concerned
	FaultUnused    FaultKind = "unused"    // a page of the file is used by nothing; harmless
)

var gravity = []FaultKind{"", FaultUnused, FaultRow, FaultRecord, FaultReference, FaultIndex, FaultPage}

// Fault is one thing that a check found.
type Fault struct {
	Kind FaultKind
	Text string // as SQLite says it, or a sentence
	tree string // the index concerned
}

// worst is the gravest kind, "" when there is no fault.
func worst(faults []Fault) (w FaultKind) {
	for _, f := range faults {
		if slices.Index(gravity, f.Kind) > slices.Index(gravity, w) {
			w = f.Kind
		}
	}
	return w
}

const (
	quickCheck = `PRAGMA quick_check(1000)`
	fullCheck  = `PRAGMA integrity_check(1000)`
)

// Check looks through the whole store for damage, however large it is. Deep also compares every index with its table, follows every
// reference, and looks for records that contradict each other.
func (d *DB) Check(ctx context.Context, deep bool) (faults []Fault, err error) {
	err = d.Read(ctx, func(tx *sql.Tx) error {
		query := quickCheck
		if deep {
			query = fullCheck
		}
		if faults, err = checkFaults(ctx, tx, query); err != nil || !deep || worst(faults) == FaultPage {
			return err
		}
		more, err := references(ctx, tx)
		if err != nil {
			return err
		}
		records, err := contradictions(ctx, tx)
		faults = append(append(faults, more...), records...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look through the store: %w", err)
	}
	return faults, nil
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkFaults runs one of SQLite's own checks and sorts what it says.
func checkFaults(ctx context.Context, q querier, query string) ([]Fault, error) {
	said, err := column(ctx, q, query)
	var lite sqlite3.Error
	if errors.As(err, &lite) && lite.Code == sqlite3.ErrCorrupt {
		return []Fault{{Kind: FaultPage, Text: lite.Error()}}, nil // the check itself could not go on
	}
	if err != nil {
		return nil, err
	}
	if len(said) == 1 && said[0] == "ok" {
		return nil, nil
	}
	roots, err := indexRoots(ctx, q)
	if err != nil {
		return nil, err
	}
	var out []Fault
	for _, text := range said {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "***") {
				out = append(out, sortFault(line, roots))
			}
		}
	}
	return out, nil
}

// sortFault says what a line of a check means.
func sortFault(line string, roots map[int]string) Fault {
	f := Fault{Kind: FaultPage, Text: line}
	words := strings.Fields(line)
	switch {
	case strings.HasPrefix(line, "CHECK constraint failed in"), strings.HasPrefix(line, "NULL value in"), strings.Contains(line, " value in "):
		f.Kind = FaultRow
	case strings.HasSuffix(line, "never used"):
		f.Kind = FaultUnused
	case words[0] == "Tree" && len(words) > 1:
		root, _ := strconv.Atoi(strings.TrimSuffix(words[1], ":"))
		if f.tree = roots[root]; f.tree != "" {
			f.Kind = FaultIndex
		}
	default:
		for _, before := range []string{" missing from index ", "wrong # of entries in index ", "non-unique entry in index ", " of index "} {
			if _, name, ok := strings.Cut(line, before); ok {
				f.Kind, f.tree = FaultIndex, strings.TrimSpace(name)
			}
		}
	}
	return f
}

// indexRoots maps the first page of every index to its name.
func indexRoots(ctx context.Context, q querier) (map[int]string, error) {
	pairs, err := column(ctx, q, `SELECT rootpage || ' ' || name FROM sqlite_schema WHERE type = 'index'`)
	out := map[int]string{}
	for _, p := range pairs {
		root, name, _ := strings.Cut(p, " ")
		n, _ := strconv.Atoi(root)
		out[n] = name
	}
	return out, err
}

func column(ctx context.Context, q querier, query string, args ...any) (out []string, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// rebuild makes the damaged indexes anew from their tables. It is kept only when the store is whole afterwards, so that a wrong guess
// about what is damaged changes nothing.
func rebuild(ctx context.Context, conn *sql.Conn, faults []Fault) ([]Fault, error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	done := map[string]bool{"": true}
	for _, f := range faults {
		if done[f.tree] {
			continue
		}
		done[f.tree] = true
		if err := remake(ctx, tx, f.tree); err != nil {
			return nil, fmt.Errorf("make index %s anew: %w", f.tree, err)
		}
	}
	left, err := checkFaults(ctx, tx, fullCheck)
	if err != nil {
		return nil, fmt.Errorf("check what was made: %w", err)
	}
	if w := worst(left); w == FaultPage || w == FaultIndex {
		return nil, errors.New(left[0].Text)
	}
	return left, tx.Commit()
}

// remake makes one index anew. The pages of one that was made by a statement are given up, not freed: what they point at cannot be
// trusted.
func remake(ctx context.Context, tx *sql.Tx, name string) error {
	var text sql.NullString
	if err := tx.QueryRowContext(ctx, `SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?`, name).Scan(&text); err != nil {
		return err
	}
	if !text.Valid { // it belongs to a key
		_, err := tx.ExecContext(ctx, `REINDEX "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
		return err
	}
	for _, s := range []string{"PRAGMA writable_schema=ON", `DELETE FROM sqlite_schema WHERE type = 'index' AND name = '` + strings.ReplaceAll(name, "'", "''") + "'",
		"PRAGMA writable_schema=RESET", text.String} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Rebuild makes every index anew that a full check finds damaged, and returns the names of those it made.
func (d *DB) Rebuild(ctx context.Context) (names []string, err error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.users.Done()
	if err := d.gate.lock(ctx, d.o.OnBusy); err != nil {
		return nil, err
	}
	defer d.gate.unlock()
	ctx = context.WithoutCancel(ctx)
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	faults, err := checkFaults(ctx, conn, fullCheck)
	if err != nil || worst(faults) != FaultIndex {
		return nil, classifySQLite(err)
	}
	for _, f := range faults {
		if f.tree != "" && !slices.Contains(names, f.tree) {
			names = append(names, f.tree)
		}
	}
	if _, err := rebuild(ctx, conn, faults); err != nil {
		return nil, corrupt("The store is damaged, and so that an index cannot be made anew.", err)
	}
	return names, nil
}

func references(ctx context.Context, tx *sql.Tx) ([]Fault, error) {
	lines, err := column(ctx, tx, `SELECT "table" || ' refers to a missing row of ' || parent || ' (row ' || coalesce(rowid, '?') || ')' FROM pragma_foreign_key_check LIMIT 100`)
	var out []Fault
	for _, l := range lines {
		out = append(out, Fault{Kind: FaultReference, Text: l})
	}
	return out, err
}

// invariants are what is true of every history, however it came about.
var invariants = []struct{ says, query string }{
	{"run %s has more than one running attempt", `SELECT run FROM attempts WHERE state = 'running' GROUP BY run HAVING count(*) > 1`},
	{"call %s has no entry in the history", `SELECT e.id FROM effects e WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.id = e.item AND i.session = e.session)`},
	{"the log of session %s has a gap", `SELECT s.id FROM sessions s LEFT JOIN (SELECT session, count(*) n, max(seq) m FROM events GROUP BY session) e ON e.session = s.id
		WHERE coalesce(e.n, 0) <> s.last_seq OR coalesce(e.m, 0) <> s.last_seq`},
	{"run %s has ended and has a running attempt", `SELECT r.id FROM runs r JOIN attempts a ON a.run = r.id WHERE r.phase = 'ended' AND a.state = 'running'`},
	{"session %s belongs to a process that has no row", `SELECT id FROM sessions WHERE owner <> '' AND owner NOT IN (SELECT id FROM instances)`},
	{"entry %s stands in a place that the log does not have", `SELECT i.id FROM items i WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.session = i.session AND e.seq = i.seq)`},
	{"a settled call %s has an entry that is still open", `SELECT e.id FROM effects e JOIN items i ON i.id = e.item WHERE e.state = 'settled' AND i.state = 'open'`},
}

// contradictions looks for what cannot be, among stores of the embedded schema.
func contradictions(ctx context.Context, tx *sql.Tx) (out []Fault, err error) {
	tables, err := column(ctx, tx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'effects'`)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	for _, inv := range invariants {
		ids, err := column(ctx, tx, inv.query+` LIMIT 20`)
		if err != nil {
			return nil, fmt.Errorf("look for contradictions: %w", err)
		}
		for _, id := range ids {
			out = append(out, Fault{Kind: FaultRecord, Text: fmt.Sprintf(inv.says, id)})
		}
	}
	return out, nil
}
