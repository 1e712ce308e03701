package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const stepTwo = "ALTER TABLE counters ADD COLUMN note TEXT NOT NULL DEFAULT '';"

func TestEmbeddedSchema_Loads(t *testing.T) {
	s, err := loadSchema(embedded)
	if err != nil || len(s) == 0 {
		t.Fatalf("%d steps: %v", len(s), err)
	}
	d := open(t, Options{Home: newHome(t)})
	if len(d.StoreID()) != 32 {
		t.Errorf("the default id is %q", d.StoreID())
	}
}

func TestLoadSchema_RefusesBadLadders(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"gap":          {"migrations/0001_a.sql": {}, "migrations/0003_b.sql": {}},
		"not from one": {"migrations/0002_a.sql": {}},
		"double":       {"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}},
		"odd name":     {"migrations/first.sql": {}},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := loadSchema(files); err == nil {
				t.Errorf("accepted as %v", s)
			}
		})
	}
}

func TestMigrate_KeepsCopyAndData(t *testing.T) {
	home := created(t)
	d := open(t, options(home, stepTwo))
	must(t, d.Read(context.Background(), func(tx *sql.Tx) error {
		var version, steps int
		var note, by string
		must(t, tx.QueryRow("PRAGMA user_version").Scan(&version))
		must(t, tx.QueryRow("SELECT count(*), max(applied_by) FROM schema_migrations").Scan(&steps, &by))
		must(t, tx.QueryRow("SELECT note FROM counters WHERE name='x' AND n=1").Scan(&note))
		if version != 2 || steps != 2 || by != "test" {
			t.Errorf("version %d, %d steps by %q", version, steps, by)
		}
		return nil
	}))
	copies, _ := filepath.Glob(filepath.Join(home, "backups", "*"))
	if len(copies) != 1 || !strings.Contains(copies[0], "schema1-") {
		t.Fatalf("copies: %v", copies)
	}
	if info, err := os.Stat(copies[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v (%v)", info.Mode(), err)
	}
	pool, err := sql.Open("sqlite3", copies[0])
	must(t, err)
	defer func() { _ = pool.Close() }()
	var n, version int
	must(t, pool.QueryRow("SELECT n FROM counters WHERE name='x'").Scan(&n))
	must(t, pool.QueryRow("PRAGMA user_version").Scan(&version))
	if n != 1 || version != 1 {
		t.Errorf("the copy has counter %d, schema %d", n, version)
	}
	var enforced int
	must(t, d.writer.QueryRow("PRAGMA foreign_keys").Scan(&enforced))
	if enforced != 1 {
		t.Error("foreign keys stayed off after the migration")
	}
}

// I7: a step is stored with its record or not at all, and those before it stay.
func TestMigrate_FailedStepLeavesNothing(t *testing.T) {
	for name, bad := range map[string]string{
		"fails half way":   "CREATE TABLE half (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);",
		"breaks reference": "CREATE TABLE half (x INTEGER REFERENCES blobs (id)) STRICT; INSERT INTO half VALUES (99);",
	} {
		t.Run(name, func(t *testing.T) {
			home := created(t)
			_, err := Open(context.Background(), options(home, stepTwo, bad))
			wantCode(t, err, CodeFailed)
			d := open(t, options(home, stepTwo))
			must(t, d.Read(context.Background(), func(tx *sql.Tx) error {
				var half, version int
				must(t, tx.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name='half'").Scan(&half))
				must(t, tx.QueryRow("PRAGMA user_version").Scan(&version))
				if half != 0 || version != 2 {
					t.Errorf("table half: %d, version %d", half, version)
				}
				return nil
			}))
			if n := count(t, d, "x"); n != 1 {
				t.Errorf("the counter is %d", n)
			}
		})
	}
}

// A fresh store whose schema does not apply is not left behind.
func TestCreate_FailedStepLeavesNoStore(t *testing.T) {
	home := newHome(t)
	_, err := Open(context.Background(), options(home, "INSERT INTO nowhere VALUES (1);"))
	wantCode(t, err, CodeFailed)
	for _, name := range []string{"holdfast.db", "store.id"} {
		if _, err := os.Stat(filepath.Join(home, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	open(t, options(home))
}

func TestMigrate_WaitsForOldProcesses(t *testing.T) {
	home := created(t)
	c := start(t, "hold", home)
	c.line(t, "inside")
	_, _ = c.in.Write([]byte("\n"))
	c.rest(t)
	c = start(t, "bump", home, "0") // open, not in a transaction
	c.line(t, "ready")
	_, err := Open(context.Background(), options(home, stepTwo))
	wantCode(t, err, CodeInUse)
	if len(lockHolders(mustOpen(t, filepath.Join(home, "run", "schema.lock")))) > 0 && !strings.Contains(err.Error(), fmt.Sprint(c.Process.Pid)) {
		t.Errorf("%v does not name process %d", err, c.Process.Pid)
	}
	if copies, _ := filepath.Glob(filepath.Join(home, "backups", "*")); len(copies) != 0 {
		t.Errorf("copied all the same: %v", copies)
	}
	c.kill()
	open(t, options(home, stepTwo))
	_, err = Open(context.Background(), options(home)) // and the old binary is told
	wantCode(t, err, CodeNewer)
}

func mustOpen(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
