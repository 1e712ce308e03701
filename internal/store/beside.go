package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// readerWaits is how long a reader waits for the gate before it opens the store beside it: long enough to name who holds it.
const readerWaits = busyAfter + 200*time.Millisecond

// openBeside opens an existing store for reading without the gate, because one process keeps it: suspended, for example, in the middle of a
// write. The schema lock is taken all the same, so nobody migrates meanwhile. A store that would have to be made, brought to another
// schema or put right needs the gate, and the wait's own error is returned.
func (d *DB) openBeside(ctx context.Context, busy error) error {
	var held *BusyError
	if !errors.As(busy, &held) {
		return busy
	}
	if ok, err := flockTry(d.schemaLock, false); err != nil || !ok {
		return errors.Join(busy, err)
	}
	mark, err := readMarker(d.home.marker())
	if err != nil {
		return err
	}
	info, err := os.Stat(d.home.db())
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() == 0 || !mark.exists) {
		return busy
	}
	if err != nil {
		return fmt.Errorf("look for the store: %w", err)
	}
	if err := patiently(ctx, func() error { return d.look(ctx, mark) }); err != nil {
		return err
	}
	d.beside = busy
	return nil
}

// look opens the readers of a store that is as it should be.
func (d *DB) look(ctx context.Context, mark marker) error {
	if err := errors.Join(d.closePools(), d.openReaders(ctx)); err != nil {
		return err
	}
	conn, err := d.readers.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }() // returns it to its pool
	if d.id, err = identify(ctx, conn, mark); err != nil {
		return err
	}
	version, err := verify(ctx, conn, d.schema)
	if err == nil && version != len(d.schema) {
		err = &OpenError{CodeBusy, "The store has an older schema, and another process keeps it from being brought to this one.",
			"Continue or end that process, then try again.", nil}
	}
	return err
}

// Beside returns why the store was opened for reading only, nil when it was not.
func (d *DB) Beside() error { return d.beside }
