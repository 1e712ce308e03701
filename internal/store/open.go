package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rs/zerolog"

	"holdfast/internal/fault"
	"holdfast/internal/secret"
	"holdfast/session"
)

// Options say where the store is and with what to work. Only Home is required.
type Options struct {
	Home          string           // the state folder
	Now           func() time.Time // the clock of stored times
	NewID         func() string    // makes the id of a new store
	Log           zerolog.Logger   // gets causes; never contents
	BinaryVersion string           // recorded with each schema step
	// Dead tells whether an instance is provably dead; nil knows of none. It must not block.
	Dead func(session.InstanceRow) bool
	// Condition says what is known of an instance; nil knows nothing. It must not block.
	Condition func(session.InstanceRow) session.Condition
	// OnBusy is called once per wait when one process has held the gate for two seconds; it must not block.
	OnBusy func(pid int, since time.Time)
	// Mask hides secrets in everything that is stored; nil knows no values.
	Mask *secret.Masker
	// Reading opens a store that is only looked at. While another process keeps the gate, an existing one is opened without it; every
	// Commit then fails with that *BusyError.
	Reading bool

	migrations fs.FS                        // the schema; nil means the embedded one
	fsType     func(string) (string, error) // names a network file system; nil means the real question
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string {
			b := make([]byte, 16)
			_, _ = rand.Read(b) // never fails
			return hex.EncodeToString(b)
		}
	}
	if o.migrations == nil {
		o.migrations = embedded
	}
	if o.fsType == nil {
		o.fsType = remoteFS
		if name := fault.Pretend("fs"); name != "" {
			o.fsType = func(string) (string, error) { return name, nil }
		}
	}
	return o
}

// Open opens the store of a home, creating it when there has never been one. Errors are *OpenError or *BusyError, except when ctx
// ends first.
func Open(ctx context.Context, o Options) (*DB, error) {
	d, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := d.open(ctx); err != nil {
		_ = d.release()
		return nil, named(ctx, classify(err))
	}
	return d, nil
}

// prepare makes a handle on a home, with nothing open yet.
func prepare(o Options) (*DB, error) {
	o = o.withDefaults()
	if err := checkLibrary(); err != nil {
		return nil, err
	}
	ladder, err := loadSchema(o.migrations)
	if err != nil {
		return nil, err
	}
	h, err := prepareHome(o.Home, o.fsType)
	if err != nil {
		return nil, classify(err)
	}
	return &DB{o: o, home: h, schema: ladder, reserve: reserve{path: h.reserve()}, outdated: make(chan struct{})}, nil
}

// named gives an error that nothing recognised the shape that callers show to people.
func named(ctx context.Context, err error) error {
	var open *OpenError
	var busy *BusyError
	if errors.As(err, &open) || errors.As(err, &busy) || ctx.Err() != nil {
		return err
	}
	return &OpenError{CodeFailed, "The store could not be opened.", "See the log for the cause, then try again.", err}
}

func (d *DB) open(ctx context.Context) (err error) {
	if d.gate, err = openGate(d.home.gate()); err != nil {
		return err
	}
	if d.schemaLock, err = os.OpenFile(d.home.schemaLock(), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("open the schema lock: %w", err)
	}
	if d.o.Reading {
		d.gate.limit = readerWaits
	}
	if err := d.gate.lock(ctx, d.o.OnBusy); err != nil {
		if d.o.Reading {
			return d.openBeside(ctx, err)
		}
		return err
	}
	defer d.gate.unlock()
	d.gate.limit = waitLimit
	ctx = context.WithoutCancel(ctx) // from here on nothing is left half done
	if ok, err := flockTry(d.schemaLock, false); err != nil || !ok {
		return errors.Join(inUse(d.usersOfLock()), err)
	}
	mark, err := readMarker(d.home.marker())
	if err != nil {
		return err
	}
	if err := d.findOrCreate(ctx, mark); err != nil {
		return err
	}
	if err := d.missLog(); err != nil {
		return err
	}
	if err := patiently(ctx, func() error {
		err := d.admit(ctx, mark)
		if isBusy(err) {
			d.gate.note(0) // another program is in the way, not this process
		}
		return err
	}); err != nil {
		return err
	}
	if err := d.reserve.ensure(); err != nil {
		d.o.Log.Warn().Err(err).Msg("no reserve for a full disk")
	}
	return nil
}

// findOrCreate leaves a file under the store's path or says why not. It looks by stat alone (I4).
func (d *DB) findOrCreate(ctx context.Context, mark marker) error {
	info, err := os.Stat(d.home.db())
	if errors.Is(err, fs.ErrNotExist) {
		remainder, err := exists(d.home.db() + "-wal")
		if err != nil {
			return fmt.Errorf("look for the store: %w", err)
		}
		if mark.exists || remainder {
			return lost("There was a store in this folder, and its file is missing.")
		}
		return create(ctx, d.o, d.home, d.schema)
	}
	switch {
	case err != nil:
		return fmt.Errorf("look for the store: %w", err)
	case !info.Mode().IsRegular():
		return corrupt("Something else than a file is where the store should be.", nil)
	case info.Size() == 0:
		return lost("The store file is empty.")
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := d.home.db() + suffix
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(path, 0o600); err != nil {
				return unwritable(err)
			}
		}
	}
	return nil
}
