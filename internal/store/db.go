package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/fault"
	sqlite3 "holdfast/internal/sqlite"
)

const (
	lookAtPath = time.Second // a moved store is noticed this late at most
	selectMeta = `SELECT value FROM meta WHERE key = ?`
)

// DB is an open store. Its methods may be called from any goroutine.
type DB struct {
	o          Options
	home       home
	schema     schema
	id         string
	gate       *gate
	schemaLock *os.File // locked shared for life
	writer     *sql.DB  // one connection
	readers    *sql.DB  // a few, query-only
	commits    atomic.Int64
	beside     error // set when it was opened without the gate: why nothing is written

	// guarded by the gate
	file    identity // what was opened
	looked  time.Time
	reserve reserve
	marked  bool // the mark of the log was set

	outdated chan struct{} // closed together with outdatedBy

	mu         sync.Mutex
	outdatedBy *OpenError // why this process may not write any more
	closed     bool
	users      sync.WaitGroup // calls in progress; Close waits for them
}

// StoreID returns the random id the store got when it was created.
func (d *DB) StoreID() string { return d.id }

// Stats returns how many transactions this handle has committed.
func (d *DB) Stats() (commits int64) { return d.commits.Load() }

// Commit runs fn in the one kind of write transaction there is and commits it. Nothing of fn is stored when an error is returned,
// except that an error wrapping [ErrCommitUnknown] leaves that open.
//
// ctx ends the wait for the gate, never the transaction. fn must be short, must copy rows out, must not call Commit, and must
// run its statements without a context that can be cancelled. It may run a second time, after a full disk, so it assigns
// results rather than appending to them. point names the crash points right before and right after the COMMIT.
func (d *DB) Commit(ctx context.Context, point string, fn func(tx *sql.Tx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.users.Done()
	if d.beside != nil {
		return fmt.Errorf("commit %s: %w", point, d.beside)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("commit %s: %w", point, ended(ctx))
	}
	if err := d.gate.lock(ctx, d.o.OnBusy); err != nil {
		return fmt.Errorf("commit %s: %w", point, err)
	}
	defer d.gate.unlock()
	if err := d.inPlace(); err != nil {
		return fmt.Errorf("commit %s: %w", point, err)
	}
	err := d.once(ctx, point, fn)
	if isFull(err) {
		err = d.onceMore(ctx, point, fn, err)
	}
	if err != nil {
		return fmt.Errorf("commit %s: %w", point, classifySQLite(err))
	}
	d.commits.Add(1)
	d.markLog()
	if err := d.reserve.restore(string(d.home)); err != nil {
		d.o.Log.Warn().Err(err).Msg("no reserve for a full disk")
	}
	return nil
}

// onceMore gives the reserve back to the disk and repeats a transaction that found it full. A full disk is the one failure of
// COMMIT whose outcome is known: the record that ends the transaction in the log was not written.
func (d *DB) onceMore(ctx context.Context, point string, fn func(tx *sql.Tx) error, cause error) error {
	d.o.Log.Warn().Err(cause).Msg("the disk is full, using the reserve")
	if err := d.reserve.release(); err != nil {
		return full(errors.Join(cause, err))
	}
	return d.once(ctx, point, fn)
}

// once is a single try. The caller holds the gate.
func (d *DB) once(ctx context.Context, point string, fn func(tx *sql.Tx) error) error {
	var tx *sql.Tx
	safe := context.WithoutCancel(ctx)
	foreign := false // another program has the store, and this process is not to be blamed for it
	if err := patiently(ctx, func() (err error) {
		tx, err = d.writer.BeginTx(safe, nil)
		if isBusy(err) && !foreign {
			foreign = true
			d.gate.note(0)
		}
		return err
	}); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if foreign {
		d.gate.note(os.Getpid())
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit; also runs when fn panics
	if err := d.mayWrite(safe, tx); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		d.distrust(safe, err, tx)
		return err
	}
	fault.Point(point + ":before")
	if err := tx.Commit(); err != nil {
		d.distrust(safe, err, tx)
		if isRefused(err) {
			return err
		}
		return errors.Join(ErrCommitUnknown, err)
	}
	fault.Point(point + ":after")
	return nil
}

// distrust replaces the writing connection after an I/O error: what it believes about its files may be wrong, and the kernel may
// have dropped what it could not write.
func (d *DB) distrust(ctx context.Context, err error, tx *sql.Tx) {
	var lite sqlite3.Error
	if !errors.As(err, &lite) || lite.Code != sqlite3.ErrIoErr {
		return
	}
	_ = tx.Rollback() // frees the connection
	d.looked = time.Time{}
	if conn, err := d.writer.Conn(ctx); err == nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // tells the pool to close it
		_ = conn.Close()
	}
	d.o.Log.Error().Err(lite).Msg("i/o error, connection replaced")
}

// inPlace notices a store that was moved away or replaced under us (I8).
func (d *DB) inPlace() error {
	if !d.looked.IsZero() && time.Since(d.looked) < lookAtPath {
		return nil
	}
	got, err := pathID(d.home.db())
	if err != nil || got != d.file {
		return moved(err)
	}
	d.looked = time.Now()
	return nil
}

// Close waits for calls in progress, sends waiting ones away with ErrClosed and lets every lock go. It may be called twice. SQLite
// itself folds the log in when the last process closes.
func (d *DB) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.gate.shut()
	d.users.Wait()
	err := d.release()
	d.unmarkLog()
	return err
}

func (d *DB) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.users.Add(1)
	return nil
}

// release closes what is open, locks last: until then nobody may change the schema.
func (d *DB) release() error {
	errs := []error{d.closePools()}
	if d.gate != nil {
		errs = append(errs, d.gate.close())
	}
	if d.schemaLock != nil {
		errs = append(errs, d.schemaLock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

func (d *DB) closePools() error {
	var errs []error
	for _, pool := range []*sql.DB{d.readers, d.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	d.readers, d.writer = nil, nil
	return errors.Join(errs...)
}
