package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// Every migration raises the lowest writer to its own number. A process below it must not write, whatever locks it holds.
const raiseWriter = `UPDATE meta SET value = CAST(?1 AS TEXT) WHERE key = 'min_writer' AND CAST(value AS INTEGER) < ?1`

const lastWriter = `SELECT applied_by FROM schema_migrations ORDER BY version DESC LIMIT 1`

// querier is a connection or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// lowestWriter reads the lowest schema number with which a process may write.
func lowestWriter(ctx context.Context, q querier) (int, error) {
	var text string
	if err := q.QueryRowContext(ctx, selectMeta, "min_writer").Scan(&text); err != nil {
		return 0, fmt.Errorf("read the lowest writer: %w", err)
	}
	lowest, err := strconv.Atoi(text)
	if err != nil {
		return 0, corrupt("The store's lowest writer is not a number.", err)
	}
	return lowest, nil
}

// writtenBy is the version of the program that made the newest step of the schema, "" when that cannot be read.
func writtenBy(ctx context.Context, q querier) (version string) {
	_ = q.QueryRowContext(ctx, lastWriter).Scan(&version) // it is for a sentence only
	return version
}

// mayWrite refuses to write when a newer program has said that ones like this must not. From then on the handle is outdated.
func (d *DB) mayWrite(ctx context.Context, q querier) error {
	lowest, err := lowestWriter(ctx, q)
	if err != nil || lowest <= len(d.schema) {
		return err
	}
	e := newer(lowest, len(d.schema), writtenBy(ctx, q))
	e.Message = "A newer Holdfast has taken the store over while this process ran: " + lowerFirst(e.Message)
	e.Action = "This process does no more work; commands it started go on and its work is taken over. " + e.Action
	d.outdate(e)
	return e
}

// CheckWriter looks whether this process may still write, for one that writes nothing for long.
func (d *DB) CheckWriter(ctx context.Context) error {
	return d.Read(ctx, func(tx *sql.Tx) error { return d.mayWrite(ctx, tx) })
}

func (d *DB) outdate(e *OpenError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outdatedBy == nil {
		d.outdatedBy = e
		close(d.outdated)
	}
}

// Outdated is closed once a newer program has forbidden this one to write. It never may again: the process lets go of its work and
// then closes the store.
func (d *DB) Outdated() <-chan struct{} { return d.outdated }

// OutdatedBy says why, or returns nil.
func (d *DB) OutdatedBy() *OpenError {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outdatedBy
}

func newer(has, knows int, by string) *OpenError {
	maker, use := "", fmt.Sprintf("a version of Holdfast that knows schema %d", has)
	if by != "" {
		maker, use = " (made by Holdfast "+by+")", fmt.Sprintf("Holdfast %s or newer (one that knows schema %d)", by, has)
	}
	return &OpenError{CodeNewer, fmt.Sprintf("The store has schema %d%s, this program knows up to %d.", has, maker, knows),
		"Nothing was changed. Use " + use + ": update it and restart the editor.", nil}
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]|0x20) + s[1:]
}

// RaiseWriter forbids every older program to write, without changing anything else: its processes let go of their work and of the
// store within seconds, and it can be migrated. It tells whether there was anything to raise. A store that was never made is left alone.
func RaiseWriter(ctx context.Context, o Options) (raised bool, err error) {
	d, err := prepare(o)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.release()) }()
	raised, err = d.raise(ctx)
	return raised, named(ctx, classify(err))
}

func (d *DB) raise(ctx context.Context) (raised bool, err error) {
	if d.gate, err = openGate(d.home.gate()); err != nil {
		return false, err
	}
	if err := d.gate.lock(ctx, d.o.OnBusy); err != nil {
		return false, err
	}
	defer d.gate.unlock()
	mark, err := readMarker(d.home.marker())
	if err != nil {
		return false, err
	}
	there, err := exists(d.home.db())
	if err != nil || !there {
		return false, err
	}
	d.writer, _ = newPool(d.home.db(), role{})
	err = patiently(ctx, func() error {
		conn, err := d.writer.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := identify(ctx, conn, mark); err != nil {
			return err
		}
		version, err := verify(ctx, conn, d.schema)
		if err != nil || version == len(d.schema) {
			return err
		}
		res, err := conn.ExecContext(ctx, raiseWriter, len(d.schema))
		if err != nil {
			return fmt.Errorf("raise the lowest writer: %w", err)
		}
		n, err := res.RowsAffected()
		raised = n > 0
		return err
	})
	return raised, err
}
