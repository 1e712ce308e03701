package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"holdfast/internal/fault"
)

// Every migration raises the lowest writer to its own number. A process below it must not write, whatever locks it holds.
const raiseWriter = `UPDATE meta SET value = CAST(?1 AS TEXT) WHERE key = 'min_writer' AND CAST(value AS INTEGER) < ?1`

// nameWriter records the version of the program that raised it, for a sentence.
const nameWriter = `INSERT INTO meta (key, value) VALUES ('min_writer_by', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`

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

// raiseTo forbids programs below a schema number to write. It tells whether they were allowed to.
func raiseTo(ctx context.Context, tx *sql.Tx, version int, by string) (bool, error) {
	res, err := tx.ExecContext(ctx, raiseWriter, version)
	if err != nil {
		return false, fmt.Errorf("raise the lowest writer: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, nameWriter, by)
	return true, err
}

// writtenBy is the version of the program that raised the lowest writer, "" when that cannot be read.
func writtenBy(ctx context.Context, q querier) (version string) {
	_ = q.QueryRowContext(ctx, selectMeta, "min_writer_by").Scan(&version) // it is for a sentence only
	return version
}

// mayWrite refuses to write when a newer program has said that ones like this must not. From then on the handle is outdated.
func (d *DB) mayWrite(ctx context.Context, q querier) error {
	lowest, err := lowestWriter(ctx, q)
	if err != nil || lowest <= len(d.schema) {
		return err
	}
	e := newer(lowest, len(d.schema), writtenBy(ctx, q))
	e.Message = "A newer Holdfast has taken the store over while this process ran: it needs" + strings.TrimPrefix(e.Message, "The store has")
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
		maker, use = " (of Holdfast "+by+")", fmt.Sprintf("Holdfast %s or newer (one that knows schema %d)", by, has)
	}
	return &OpenError{CodeNewer, fmt.Sprintf("The store has schema %d%s, this program knows up to %d.", has, maker, knows),
		"Nothing was changed. Use " + use + ": update it and restart the editor.", nil}
}

// RaiseWriter forbids every older program to write, without changing anything else: its processes let go of their work and of the
// store within seconds, and it can be migrated. It tells whether there was anything to raise. A store that was never made is left alone.
func RaiseWriter(ctx context.Context, o Options) (raised bool, err error) {
	d, err := prepare(o)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.release()) }()
	if raised, err = d.raise(ctx); err != nil {
		return raised, named(ctx, classify(err))
	}
	return raised, nil
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
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		defer func() { _ = tx.Rollback() }() // no effect after Commit
		if raised, err = raiseTo(ctx, tx, len(d.schema), d.o.BinaryVersion); err != nil {
			return err
		}
		fault.Point("store.raised:before")
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		fault.Point("store.raised:after")
		return nil
	})
	return raised, err
}
