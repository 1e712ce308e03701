package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// checkBelow is the size up to which every open checks the whole file.
const checkBelow = 64 << 20

// admit connects, looks whether the file is the store it should be and sound, brings it to this binary's schema and only then lets
// readers in. It may be repeated from the start.
func (d *DB) admit(ctx context.Context, mark marker) error {
	_ = d.closePools()
	writer, recipe := newPool(d.home.db(), role{})
	d.writer = writer
	conn, err := writer.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }() // returns it to its pool of one
	if d.id, err = identify(ctx, conn, mark); err != nil {
		return err
	}
	version, err := verify(ctx, conn, d.schema)
	if err != nil {
		return err
	}
	if err := d.check(ctx, conn); err != nil {
		return err
	}
	if err := useWAL(ctx, conn); err != nil {
		return err
	}
	if err := d.upgrade(ctx, conn, version); err != nil {
		return err
	}
	recipe.strict.Store(true)
	if d.file, err = pathID(d.home.db()); err != nil {
		return err
	}
	if mark.id != d.id { // missing, or emptied by a power cut
		if err := writeMarker(d.home.marker(), d.id); err != nil {
			return err
		}
	}
	return d.openReaders(ctx)
}

func (d *DB) openReaders(ctx context.Context) error {
	readers, recipe := newPool(d.home.db(), role{reader: true})
	recipe.strict.Store(true)
	d.readers = readers
	if err := readers.PingContext(ctx); err != nil {
		return fmt.Errorf("connect a reader: %w", err)
	}
	return nil
}

// identify returns the id inside the store and compares it with the marker.
func identify(ctx context.Context, conn *sql.Conn, mark marker) (string, error) {
	var app int64
	if err := conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return "", fmt.Errorf("read the application id: %w", err)
	}
	var id string
	if app == applicationID {
		var tables int
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name='meta'").Scan(&tables); err != nil {
			return "", fmt.Errorf("look for the store's id: %w", err)
		}
		if tables > 0 {
			err := conn.QueryRowContext(ctx, "SELECT value FROM meta WHERE key='store_id'").Scan(&id)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return "", fmt.Errorf("read the store's id: %w", err)
			}
		}
	}
	switch {
	case id == "" && mark.exists:
		return "", lost("The file in the place of the store has lost its contents or is something else.")
	case id == "":
		return "", corrupt("The file in the place of the store is not a Holdfast store.", nil)
	case mark.id != "" && mark.id != id:
		return "", lost("The file in the place of the store is another store than this folder had.")
	}
	return id, nil
}

// check looks for damage in files small enough to look through at every start.
func (d *DB) check(ctx context.Context, conn *sql.Conn) error {
	info, err := os.Stat(d.home.db())
	if err != nil {
		return fmt.Errorf("look at the store: %w", err)
	}
	if info.Size() >= checkBelow {
		return nil
	}
	faults, err := checkFaults(ctx, conn, quickCheck)
	if err != nil {
		return fmt.Errorf("check the store: %w", err)
	}
	if worst(faults) == FaultIndex { // nothing in it is of its own
		d.o.Log.Error().Str("fault", faults[0].Text).Msg("an index is damaged; making it anew from the records")
		if faults, err = rebuild(ctx, conn, faults); err != nil {
			return corrupt("The store is damaged, and so that an index cannot be made anew.", err)
		}
	}
	if w := worst(faults); w != "" && w != FaultRow && w != FaultUnused {
		return corrupt("The store is damaged.", errors.New(faults[0].Text))
	}
	return nil
}

// upgrade brings an existing store to this binary's schema, alone.
func (d *DB) upgrade(ctx context.Context, conn *sql.Conn, version int) error {
	if version == len(d.schema) {
		return nil
	}
	alone, err := flockTry(d.schemaLock, true)
	if err != nil || !alone {
		return errors.Join(inUse(d.schemaLock), err)
	}
	m := migrator{conn, d.o.Now, d.o.BinaryVersion}
	if err := m.backup(ctx, d.home.backups(), version); err != nil {
		return err
	}
	if err := m.apply(ctx, d.schema, version); err != nil {
		if isFull(err) || isBusy(err) {
			return err
		}
		return &OpenError{CodeFailed, "The store could not be brought to the schema of this program.",
			"Nothing of the failed step was kept; report this, and go on with the version used before.", err}
	}
	// Nobody can slip in between the two locks: taking either needs the gate, which is ours.
	if ok, err := flockTry(d.schemaLock, false); err != nil || !ok {
		return errors.Join(inUse(d.schemaLock), err)
	}
	return nil
}

func inUse(lock *os.File) *OpenError {
	who := "other Holdfast processes"
	if pids := lockHolders(lock); len(pids) > 0 {
		who = fmt.Sprintf("older Holdfast processes (%v)", pids)
	}
	return &OpenError{CodeInUse, "The store has to be brought to a new schema, and " + who + " still use it.",
		"Close them (quit the editors or end the processes), then start again.", nil}
}
