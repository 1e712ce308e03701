package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"holdfast/internal/fault"
)

const insertMeta = `INSERT INTO meta (key, value) VALUES (?, ?)`

// create builds a new store under another name and renames it into place when it is whole and synced (I5). The caller holds the
// gate and has found neither a store nor a marker.
func create(ctx context.Context, o Options, h home, s schema) error {
	if err := removeBuilding(h); err != nil {
		return err
	}
	if err := build(ctx, o, h, s); err != nil {
		return fmt.Errorf("build a new store: %w", err)
	}
	// A log left beside the new file would hold part of it. SQLite has folded it in when the last connection closed.
	if left, err := exists(h.building() + "-wal"); err != nil || left {
		return errors.Join(errors.New("build a new store: its log was not folded in"), err)
	}
	fault.Point("store.create:before")
	if err := os.Rename(h.building(), h.db()); err != nil {
		return fmt.Errorf("put the new store in place: %w", err)
	}
	if err := syncDir(string(h)); err != nil {
		return err
	}
	fault.Point("store.create:after")
	return nil
}

// removeBuilding clears what a creator that died left behind. It never held anything that was acknowledged.
func removeBuilding(h home) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(h.building() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an unfinished store: %w", err)
		}
	}
	return nil
}

func build(ctx context.Context, o Options, h home, s schema) (err error) {
	pool, _ := newPool(h.building(), role{create: true, modeOf: h.gate()})
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d", applicationID)); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	if err := useWAL(ctx, conn); err != nil {
		return err
	}
	if err := foundation(ctx, conn, o.NewID()); err != nil {
		return err
	}
	return migrator{conn, o.Now, o.BinaryVersion}.apply(ctx, s, 0)
}

// foundation makes the tables that every later step relies on.
func foundation(ctx context.Context, conn *sql.Conn, id string) error {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if _, err := tx.Exec(bootstrap); err != nil {
		return fmt.Errorf("make the first tables: %w", err)
	}
	for _, kv := range [][2]string{{"store_id", id}, {"min_writer", "0"}, {"cred_key", hex.EncodeToString(key)}} {
		if _, err := tx.Exec(insertMeta, kv[0], kv[1]); err != nil {
			return fmt.Errorf("store %s: %w", kv[0], err)
		}
	}
	return tx.Commit()
}

// useWAL puts the store into WAL mode. A store that was restored from a copy comes without it.
func useWAL(ctx context.Context, conn *sql.Conn) error {
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return fmt.Errorf("switch to write-ahead logging: %w", err)
	}
	if mode != "wal" {
		return &OpenError{CodeLibrary, "The store cannot use write-ahead logging here (it stays in mode " + mode + ").",
			"Set HOLDFAST_HOME to a folder on a local disk.", nil}
	}
	return nil
}
