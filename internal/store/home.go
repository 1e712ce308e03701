package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// home knows the names in the state folder. Paths only; it opens nothing.
type home string

func (h home) db() string         { return filepath.Join(string(h), "holdfast.db") }
func (h home) building() string   { return filepath.Join(string(h), "holdfast.db.new") }
func (h home) marker() string     { return filepath.Join(string(h), "store.id") }
func (h home) reserve() string    { return filepath.Join(string(h), "reserve") }
func (h home) log() string        { return h.db() + "-wal" }
func (h home) logMark() string    { return filepath.Join(string(h), "log.mark") }
func (h home) logLost() string    { return filepath.Join(string(h), "log.lost") }
func (h home) run() string        { return filepath.Join(string(h), "run") }
func (h home) backups() string    { return filepath.Join(string(h), "backups") }
func (h home) gate() string       { return filepath.Join(h.run(), "gate.lock") }
func (h home) schemaLock() string { return filepath.Join(h.run(), "schema.lock") }

// prepareHome makes the state folder and its run folder private to the user, creating them when they are missing.
func prepareHome(path string, fsType func(string) (string, error)) (home, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the state folder: %w", err)
	}
	h := home(abs)
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", unwritable(err)
	}
	if err := refuseNetwork(abs, fsType); err != nil {
		return "", err
	}
	if err := h.tighten(); err != nil {
		return "", err
	}
	if err := os.Mkdir(h.run(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", unwritable(err)
	}
	if err := os.Chmod(h.run(), 0o700); err != nil {
		return "", unwritable(err)
	}
	return h, h.private()
}

// refuseNetwork keeps the store off file systems on which file locks outlive their holder or do not exclude at all.
func refuseNetwork(dir string, fsType func(string) (string, error)) error {
	name, err := fsType(dir)
	if err != nil {
		return fmt.Errorf("ask for the file system of the state folder: %w", err)
	}
	if name == "" {
		return nil
	}
	return &OpenError{CodeNetwork, "The state folder is on a " + name + " file system, where file locks cannot be trusted.",
		"Set HOLDFAST_HOME to a folder on a local disk.", nil}
}

// tighten takes the rights of others away from a folder that is evidently a state folder. A folder with other things in it may be
// a shared one that was named by mistake: it is refused, not changed.
func (h home) tighten() error {
	info, err := os.Stat(string(h))
	if err != nil {
		return unwritable(err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if info.Mode()&fs.ModeSticky != 0 || !h.looksOurs() {
		return &OpenError{CodeUnwritable, fmt.Sprintf("The state folder is open to other users (mode %04o) and holds other things.",
			info.Mode().Perm()), "Choose another folder with HOLDFAST_HOME, or take the rights of others away (chmod 700).", nil}
	}
	if err := os.Chmod(string(h), 0o700); err != nil {
		return unwritable(err)
	}
	return nil
}

func (h home) looksOurs() bool {
	entries, err := os.ReadDir(string(h))
	if err != nil || len(entries) == 0 {
		return err == nil
	}
	for _, e := range entries {
		switch e.Name() {
		case "holdfast.db", "store.id", "config.toml", "run":
			return true
		}
	}
	return false
}

// exists tells whether a path names anything. Stat opens nothing.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes renames and removals in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
