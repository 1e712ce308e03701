package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func minWriter(t *testing.T, d *DB) (n int) {
	t.Helper()
	must(t, d.Read(context.Background(), func(tx *sql.Tx) (err error) {
		n, err = lowestWriter(context.Background(), tx)
		return err
	}))
	return n
}

func TestMigrate_RaisesTheLowestWriter(t *testing.T) {
	home := created(t)
	if n := minWriter(t, open(t, options(home))); n != 1 {
		t.Errorf("a new store lets %d write", n)
	}
	home = created(t)
	if n := minWriter(t, open(t, options(home, stepTwo))); n != 2 {
		t.Errorf("after a step %d may write", n)
	}
}

// Should the schema lock be lost, an older process stops at its next write all the same.
func TestMigrate_LostLockDoesNotLetOldOnesWrite(t *testing.T) {
	home := created(t)
	d := open(t, options(home))
	must(t, os.RemoveAll(filepath.Join(home, "run")))
	open(t, options(home, stepTwo))
	wantCode(t, d.Commit(context.Background(), "test", bump("x")), CodeNewer)
	<-d.Outdated()
	wantCode(t, d.OutdatedBy(), CodeNewer)
}

func TestRaiseWriter(t *testing.T) {
	home := created(t)
	d := open(t, options(home))
	for _, want := range []bool{true, false} {
		raised, err := RaiseWriter(context.Background(), options(home, stepTwo))
		must(t, err)
		if raised != want {
			t.Errorf("raised: %v", raised)
		}
	}
	must(t, d.Read(context.Background(), func(*sql.Tx) error { return nil }))
	select {
	case <-d.Outdated():
		t.Error("outdated before anybody looked")
	default:
	}
	wantCode(t, d.CheckWriter(context.Background()), CodeNewer)
	<-d.Outdated()
	wantCode(t, d.Commit(context.Background(), "test", bump("x")), CodeNewer)
	_, err := Open(context.Background(), options(home))
	wantCode(t, err, CodeNewer)
	must(t, d.Close())
	open(t, options(home, stepTwo))
	_, err = RaiseWriter(context.Background(), options(home))
	wantCode(t, err, CodeNewer)
}

func TestRaiseWriter_LeavesNothingWhereNoStoreWas(t *testing.T) {
	home := newHome(t)
	raised, err := RaiseWriter(context.Background(), options(home))
	must(t, err)
	if _, err := os.Stat(filepath.Join(home, "holdfast.db")); raised || err == nil {
		t.Errorf("raised %v, and there is a store", raised)
	}
}

// Copies of the newest migrations stay, parts of one that died do not, and nothing else is touched.
func TestBackups_NewestStay(t *testing.T) {
	home := created(t)
	dir := filepath.Join(home, "backups")
	must(t, os.Mkdir(dir, 0o700))
	put := func(name string) { must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) }
	for i := range 4 {
		put(fmt.Sprintf("holdfast-schema%d-2020010%dT000000.000.db", 10-i, i+1))
	}
	put("holdfast-schema9-20200101T000000.000.db.new")
	put("mine.db")
	open(t, options(home, stepTwo))
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	got := strings.Join(names, " ")
	if len(names) != keptBackups+1 || !strings.Contains(got, "mine.db") || !strings.Contains(got, "schema7-20200104") ||
		!strings.Contains(got, "schema8-20200103") || !strings.Contains(got, "holdfast-schema1-") || strings.Contains(got, ".new") {
		t.Errorf("copies: %s", got)
	}
}
