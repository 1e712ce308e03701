package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"holdfast/internal/fault"
)

//go:embed migrations
var files embed.FS

// embedded is the ladder of this binary.
var embedded fs.FS = files

// migration is one step of the schema.
type migration struct {
	version  int
	name     string // the file name without its folder
	sql      string
	checksum string // SHA-256 of the text, in hex
}

// schema is the whole ladder, in order, version i+1 at index i.
type schema []migration

var migrationName = regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)

// loadSchema reads the ladder. A gap or a double number is a mistake in the build.
func loadSchema(files fs.FS) (schema, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var s schema
	for _, name := range names { // Glob sorts
		m := migrationName.FindStringSubmatch(filepath.Base(name))
		if m == nil {
			return nil, fmt.Errorf("migration %s: the name is not NNNN_name.sql", name)
		}
		version, _ := strconv.Atoi(m[1])
		if version != len(s)+1 {
			return nil, fmt.Errorf("migration %s: want number %04d", name, len(s)+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		sum := sha256.Sum256(text)
		s = append(s, migration{version, filepath.Base(name), string(text), hex.EncodeToString(sum[:])})
	}
	return s, nil
}

const bootstrap = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE schema_migrations (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  applied_by TEXT NOT NULL
) STRICT;`

const insertMigration = `INSERT INTO schema_migrations (version, name, checksum, applied_at, applied_by) VALUES (?, ?, ?, ?, ?)`

const listMigrations = `SELECT version, name, checksum FROM schema_migrations ORDER BY version`

// migrator applies steps on one connection, under the gate.
type migrator struct {
	conn *sql.Conn
	now  func() time.Time
	by   string // the version of the binary, recorded with each step
}

// apply runs the steps after version from, each in a transaction of its own together with its record (I7).
func (m migrator) apply(ctx context.Context, s schema, from int) error {
	if from >= len(s) {
		return nil
	}
	// Enforcement cannot be switched inside a transaction, and a step may rebuild a table that others refer to. Each step checks
	// all references before it commits.
	if _, err := m.conn.ExecContext(ctx, "PRAGMA foreign_keys=OFF"); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, step := range s[from:] {
		if err := m.step(ctx, step); err != nil {
			return fmt.Errorf("migrate to version %d: %w", step.version, err)
		}
	}
	if _, err := m.conn.ExecContext(ctx, "PRAGMA foreign_keys=ON"); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func (m migrator) step(ctx context.Context, step migration) error {
	tx, err := m.conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if _, err := tx.Exec(step.sql); err != nil {
		return err
	}
	if _, err := tx.Exec(insertMigration, step.version, step.name, step.checksum, m.now().UnixMilli(), m.by); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version=%d", step.version)); err != nil {
		return fmt.Errorf("number: %w", err)
	}
	// The schema lock keeps older processes out. Should it have failed (its file was removed under one), they stop at their next write.
	if _, err := raiseTo(ctx, tx, step.version, m.by); err != nil {
		return err
	}
	var child, row, parent, key any
	switch err := tx.QueryRow("PRAGMA foreign_key_check").Scan(&child, &row, &parent, &key); {
	case err == nil:
		return fmt.Errorf("rows of %v refer to missing rows of %v", child, parent)
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("check references: %w", err)
	}
	fault.Point("store.migrate:before")
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	fault.Point("store.migrate:after")
	return nil
}

// verify compares what was applied with what this binary has, and returns the version of the store.
func verify(ctx context.Context, conn *sql.Conn, s schema) (int, error) {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	if version > len(s) {
		return 0, newer(version, len(s), writtenBy(ctx, conn))
	}
	rows, err := conn.QueryContext(ctx, listMigrations)
	if err != nil {
		return 0, fmt.Errorf("list applied migrations: %w", err)
	}
	defer func() { _ = rows.Close() }()
	next := 0
	for rows.Next() {
		var got migration
		if err := rows.Scan(&got.version, &got.name, &got.checksum); err != nil {
			return 0, fmt.Errorf("list applied migrations: %w", err)
		}
		if got.version != next+1 || next >= version || s[next].checksum != got.checksum {
			return 0, mismatch(got.name)
		}
		next++
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("list applied migrations: %w", err)
	}
	if next != version {
		return 0, mismatch(s[next].name)
	}
	return version, nil
}

func mismatch(name string) *OpenError {
	return &OpenError{CodeMismatch, "The schema step " + name + " of the store is not the one this program has.",
		"Use the version of Holdfast that made the store, or a release that follows it.", nil}
}
