package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const beginRead = `SELECT count(*) FROM meta WHERE key = 'store_id'`

// Read runs fn in a read transaction that sees the store as of its beginning. It never waits for a writer. fn copies rows out and
// is short, because an open read keeps the write-ahead log from being reused; it does not call Read.
func (d *DB) Read(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.users.Done()
	var tx *sql.Tx
	if err := patiently(ctx, func() (err error) {
		tx, err = d.snapshot(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("read: %w", classifySQLite(err))
	}
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		if ctx.Err() != nil && errors.Is(err, sql.ErrTxDone) {
			return fmt.Errorf("read: %w", ended(ctx))
		}
		return classifySQLite(err)
	}
	return nil
}

// snapshot begins a read transaction and makes SQLite take its snapshot at once, so that a wait happens here and not inside fn.
func (d *DB) snapshot(ctx context.Context) (*sql.Tx, error) {
	tx, err := d.readers.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	var n int
	if err := tx.QueryRowContext(ctx, beginRead).Scan(&n); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return tx, nil
}

// patiently repeats fn while SQLite's own locks are held by somebody who is not behind the gate: a recovery, a last close, another
// program. The driver waits a moment by itself; the rest of the wait is here, where ctx can end it.
func patiently(ctx context.Context, fn func() error) error {
	for start := time.Now(); ; {
		err := fn()
		if !isBusy(err) {
			return err
		}
		if ctx.Err() != nil || time.Since(start) > waitLimit {
			return &BusyError{Err: errors.Join(ended(ctx), err)}
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}
