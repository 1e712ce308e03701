package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
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
	lowest, err := lowestWriter(ctx, conn)
	if err != nil {
		return err
	}
	if lowest > len(d.schema) { // the newer program has not come to migrate it yet
		return newer(lowest, len(d.schema), writtenBy(ctx, conn))
	}
	if version < len(d.schema) {
		if err := d.alone(ctx, conn); err != nil {
			return err
		}
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

// upgrade brings an existing store to this binary's schema. The caller has the schema lock alone.
func (d *DB) upgrade(ctx context.Context, conn *sql.Conn, version int) error {
	if version == len(d.schema) {
		return nil
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
	if err := pruneBackups(d.home.backups()); err != nil {
		d.o.Log.Warn().Err(err).Msg("removing old copies of the store failed")
	}
	// Nobody can slip in between the two locks: taking either needs the gate, which is ours.
	if ok, err := flockTry(d.schemaLock, false); err != nil || !ok {
		return errors.Join(inUse(d.usersOfLock()), err)
	}
	return nil
}

// alone turns the schema lock into one that nobody else holds.
func (d *DB) alone(ctx context.Context, conn *sql.Conn) error {
	ok, err := flockTry(d.schemaLock, true)
	if err == nil && ok {
		return nil
	}
	who := d.usersOfLock()
	for i, u := range who {
		_ = conn.QueryRowContext(ctx, kindOf, u.pid).Scan(&who[i].kind) // it is for a sentence only
	}
	return errors.Join(inUse(who), err)
}

// kindOf names what a process does. The newest row is its own, should an id have been used before.
const kindOf = `SELECT kind FROM instances WHERE pid = ? ORDER BY started_at DESC LIMIT 1`

// user is a process that has the store open.
type user struct {
	pid  int
	kind string // "" when unknown
}

func (d *DB) usersOfLock() (who []user) {
	for _, pid := range lockHolders(d.schemaLock) {
		who = append(who, user{pid: pid})
	}
	return who
}

// kinds says in words what a process is.
var kinds = map[string]string{"acp": "an editor's agent", "work": "holdfast work", "mcp": "an MCP server", "cli": "a command"}

func inUse(who []user) *OpenError {
	names := "other Holdfast processes"
	if len(who) > 0 {
		var each []string
		for _, u := range who {
			name := fmt.Sprint(u.pid)
			if u.kind != "" {
				name += " (" + cmp.Or(kinds[u.kind], u.kind) + ")"
			}
			each = append(each, name)
		}
		names = "older Holdfast processes: " + strings.Join(each, ", ")
	}
	return &OpenError{CodeInUse, "The store has to be brought to a new schema, which waits for " + names + ".",
		"Quit the editors that started them, or run 'holdfast upgrade' to make them let go; then it goes on by itself, without a restart here.", nil}
}
