package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/secret"
	"holdfast/session"
)

// Store is the session and goal store on top of a DB.
type Store struct{ DB *DB }

// Commit runs fn in the one kind of write transaction there is; point names its crash point.
func (s Store) Commit(ctx context.Context, point string, fn func(session.Tx) error) error {
	t := traceBegin()
	err := s.DB.Commit(ctx, point, func(tx *sql.Tx) error {
		t = traceBegin() // the wait for the gate is no part of it
		err := fn(&Tx{tx: tx, dead: s.DB.o.Dead, condition: s.DB.o.Condition, mask: s.DB.o.Mask, trace: t})
		if err == nil {
			t.commits(point)
		}
		return err
	})
	t.ends(point, err)
	return err
}

// Read runs fn in a read transaction; rows are copied out before it returns.
func (s Store) Read(ctx context.Context, fn func(session.Tx) error) error {
	return s.DB.Read(ctx, func(tx *sql.Tx) error {
		return fn(&Tx{tx: tx, dead: s.DB.o.Dead, condition: s.DB.o.Condition, mask: s.DB.o.Mask})
	})
}

// Tx implements session.Tx and goals.Tx. It is valid only inside the function it was given to.
type Tx struct {
	tx   *sql.Tx
	dead func(session.InstanceRow) bool
	// condition is what is known of a process beyond that.
	condition func(session.InstanceRow) session.Condition
	mask      *secret.Masker
	trace     *trace
}

// scanner is a row or rows.
type scanner interface{ Scan(dest ...any) error }

// one changes exactly one row; none is ErrNotFound.
func (t *Tx) one(what, query string, args ...any) error {
	n, err := t.exec(what, query, args...)
	if err == nil && n == 0 {
		return fmt.Errorf("%s: %w", what, session.ErrNotFound)
	}
	return err
}

func (t *Tx) exec(what, query string, args ...any) (int64, error) {
	res, err := t.tx.Exec(query, t.hidden(args)...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return res.RowsAffected()
}

// get reads the one row of a query with scan.
func get[T any](t *Tx, what string, scan func(scanner) (T, error), query string, args ...any) (T, error) {
	v, err := scan(t.tx.QueryRow(query, t.hidden(args)...))
	if errors.Is(err, sql.ErrNoRows) {
		err = session.ErrNotFound
	}
	if err != nil {
		return v, unusable(what, "", fmt.Errorf("%s: %w", what, err))
	}
	return v, nil
}

// list reads every row of a query with scan.
func list[T any](t *Tx, what string, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := t.tx.Query(query, t.hidden(args)...)
	if err != nil {
		return nil, unusable(what, "", fmt.Errorf("%s: %w", what, err))
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, unusable(what, "", fmt.Errorf("%s: %w", what, err))
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, unusable(what, "", fmt.Errorf("%s: %w", what, err))
	}
	return out, nil
}

func text[T ~string](r scanner) (T, error) {
	var s string
	err := r.Scan(&s)
	return T(s), err
}

// ms and at convert times: milliseconds since 1970, 0 for none.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// encoded is JSON whose texts are masked already.
type encoded string

// place is the path of a folder that work happens in. It decides where, so that it is never masked.
type place string

func places(paths []string) []place {
	if paths == nil {
		return nil
	}
	out := make([]place, len(paths))
	for i, p := range paths {
		out[i] = place(p)
	}
	return out
}

// enc encodes a value without the secrets in its texts.
func enc[T any](t *Tx, v T) encoded {
	b, err := json.Marshal(secret.Hide(t.mask, v))
	if err != nil {
		panic(fmt.Sprintf("store: encode %T: %v", v, err))
	}
	return encoded(b)
}

// raw is JSON from outside without the secrets in its texts.
func (t *Tx) raw(b []byte) encoded { return encoded(t.mask.JSON(b)) }

// hidden masks what is text among the arguments of a statement. Queries get the same, so that what was stored is found again.
func (t *Tx) hidden(args []any) []any {
	var out []any
	for i, a := range args {
		s, ok := a.(string)
		if !ok {
			continue
		}
		if m := t.mask.Text(s); m != s {
			if out == nil {
				out = append([]any{}, args...)
			}
			out[i] = m
		}
	}
	if out == nil {
		return args
	}
	return out
}

func dec(s string, v any) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), v)
}
