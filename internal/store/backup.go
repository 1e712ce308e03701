package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"holdfast/internal/fault"
)

// keptBackups is how many copies stay when a migration has succeeded. Each has the size of the store.
const keptBackups = 3

// backupName is the name of a finished copy; only files with such a name are ever removed.
var backupName = regexp.MustCompile(`^holdfast-schema\d+-(\d{8}T\d{6}\.\d{3})\.db$`)

// backupPart is the name of a copy that is being made, and of what SQLite may leave beside it.
var backupPart = regexp.MustCompile(`^holdfast-schema\d+-[\d.T]+\.db\.new(-journal)?$`)

// backup keeps a consistent copy of a store before its schema changes. The copy appears under its name only when complete. The caller
// has the schema lock alone, so an unfinished copy belongs to a process that died.
func (m migrator) backup(ctx context.Context, dir string, version int) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	if err := removeParts(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("holdfast-schema%d-%s.db", version, m.now().UTC().Format("20060102T150405.000")))
	tmp := path + ".new"
	defer func() {
		if err != nil { // half a copy on a full disk would keep it full
			_ = os.Remove(tmp)
		}
	}()
	if _, err := m.conn.ExecContext(ctx, "VACUUM INTO ?", tmp); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	if err := m.allowOlder(ctx, tmp, version); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	// The copy is no open database, so it may be opened here.
	f, err := os.OpenFile(tmp, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	fault.Point("store.backup:before")
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	fault.Point("store.backup:after")
	return nil
}

// allowOlder lets the version that goes with the copy's schema write to it again: the copy is the way back.
func (m migrator) allowOlder(ctx context.Context, path string, version int) error {
	if _, err := m.conn.ExecContext(ctx, "ATTACH DATABASE ? AS copied", path); err != nil {
		return err
	}
	_, err := m.conn.ExecContext(ctx, lowerWriter, version)
	_, detached := m.conn.ExecContext(ctx, "DETACH DATABASE copied")
	return errors.Join(err, detached)
}

const lowerWriter = `UPDATE copied.meta SET value = CAST(?1 AS TEXT) WHERE key = 'min_writer' AND CAST(value AS INTEGER) > ?1`

func removeParts(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for unfinished copies: %w", err)
	}
	for _, e := range entries {
		if !backupPart.MatchString(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an unfinished copy: %w", err)
		}
	}
	return nil
}

// pruneBackups removes all but the newest copies. It is called when a migration has succeeded, never before.
func pruneBackups(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the copies: %w", err)
	}
	var names []string
	for _, e := range entries {
		if backupName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	made := func(name string) string { return backupName.FindStringSubmatch(name)[1] }
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(made(b), made(a)) })
	var errs []error
	for _, name := range names[min(keptBackups, len(names)):] {
		errs = append(errs, os.Remove(filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}
